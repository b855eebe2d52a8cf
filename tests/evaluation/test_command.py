"""``probesieve eval`` as a person meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from builders.unqover import build_unqover
from probesieve.cli import main
from tests.evaluation.conftest import LISTS, MakeModel
from tests.hub_fixtures import REPO, TOKEN
from tests.hub_server import HubServer
from tests.probesieve.test_cli import PROBESIEVE, call
from unqover_data import read_toml

HERE = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "few.toml"
    path.write_text(LISTS.replace('name = "few"', 'name = "religion"'), encoding="utf-8")
    return build_unqover(read_toml(path), tmp_path).folder


@pytest.fixture
def model(make_model: MakeModel) -> Path:
    return make_model("BertForQuestionAnswering", "BertConfig", "bytes")


def test_a_model_is_scored_shown_stored_and_exported(folder: Path, model: Path, tmp_path: Path) -> None:
    script = (sys.executable, "scripts/eval_model.py")
    out = tmp_path / "results"
    done = call("--model", model, "--dataset", folder, "--out", out, "--no-progress", command=script, **HERE)
    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "(qa, ",
        "protocol exact, all rows",
        "μ ",
        "bias intensity",
        "ideal",
        "Strongest associations",
        "Stored:",
    ):
        assert part in done.stdout
    (stored,) = out.rglob("qa.exact.json")
    assert str(stored) in done.stdout
    again = call("eval", "--model", model, "--dataset", folder, "--out", out, **HERE)
    assert "Was there:" in again.stdout
    exported = call("export-scores", stored.parents[1], "--out", tmp_path / "scores")
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "scores" / f"scores-{model.name}" / "manifest.json").is_file()


def test_bad_input_is_one_line_and_leaves_nothing(
    folder: Path,
    model: Path,
    tmp_path: Path,
    make_model: MakeModel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    masked = make_model("BertForMaskedLM", "BertConfig")
    common = ("--dataset", str(folder), "--out", str(tmp_path / "results"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for args, code, message in (
        (("--model", str(tmp_path / "none"), *common), 2, "there is no folder"),
        (
            ("--model", "org/none", *common),
            1,
            "cannot find org/none at main: HF_HUB_OFFLINE is set and it is not in the cache",
        ),
        (("--model", str(masked), "--kind", "qa", *common), 2, "qa_outputs"),
        (("--model", str(model), "--kind", "qqa", *common), 2, "did you mean 'qa'?"),
        (("--model", str(model), "--protocol", "exakt", *common), 2, "did you mean 'exact'?"),
        (("--model", str(model), "--workers", "0", *common), 2, "--workers must be at least 1, not 0"),
        (("--model", str(model), "--seed", "-1", *common), 2, "--seed must be at least 0, not -1"),
        (("--model", str(model), "--dtype", "float8", *common), 2, "there is no dtype 'float8'"),
        (("--model", str(model), "--sample", "0", *common), 2, "--sample"),
        (("--model", str(model), "--sample", "17", *common), 2, "is more than the 16 rows there are"),
        (("--model", str(model), "--config", "mlmm", *common), 2, "did you mean 'mlm'?"),
        (
            ("--model", str(model), "--prompt", "{question}", *common),
            2,
            "'prompt' means nothing for a model of kind 'qa'",
        ),
        (("--model", str(model), "--context-prefix", "long " * 200, *common), 2, "takes at most 96 tokens"),
        (
            ("--model", str(model), "--eval-results", str(tmp_path), *common[:2], "--out", str(tmp_path / "r2")),
            2,
            "on the Hub",
        ),
        (("--dataset", str(folder)), 2, "Missing option '--model'"),
    ):
        monkeypatch.setattr(sys, "argv", ["probesieve", "eval", *args, "--no-progress"])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr().err
        assert ended.value.code == code, (args, said)
        assert message in said
        assert len(said.strip().splitlines()) == 1, said
    assert not list((tmp_path / "results").rglob("*.json"))


def test_a_set_on_the_hub_is_scored_at_its_sha(hub: HubServer, folder: Path, model: Path, tmp_path: Path) -> None:
    here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    assert call("push", folder, REPO, **here).returncode == 0
    asked = ("eval", "--model", model, "--dataset", REPO, "--out", tmp_path / "results")
    done = call(*asked, "--dataset-revision", "v1.0.0", "--eval-results", tmp_path / "repo", **here)
    assert done.returncode == 0, done.stderr
    (stored,) = (tmp_path / "results").rglob("qa.exact.json")
    result = json.loads(stored.read_text(encoding="utf-8"))
    assert result["dataset"]["source"] == REPO
    assert len(result["dataset"]["revision"]) == 40
    assert (tmp_path / "repo" / ".eval_results" / "unqover-religion.yaml").is_file()
    hub.publish("org/model", Path(model), kind="models", tag="v1")
    named = ("eval", "--model", "org/model", "--revision", "v1", "--dataset", REPO, "--dataset-revision", "v1.0.0")
    seen = []
    for out, offline in (("online", "0"), ("offline", "1")):
        done = call(*named, "--out", tmp_path / out, **here, HF_HUB_OFFLINE=offline)
        assert done.returncode == 0, done.stderr
        seen.append(len(hub.log))
    assert seen[0] == seen[1]
    one, two = (json.loads(next((tmp_path / out).rglob("qa.exact.json")).read_text()) for out in ("online", "offline"))
    assert all(one[key] == two[key] for key in ("model", "dataset", "metrics"))
    wrong = call(*asked, "--dataset-revision", "v9.9.9", **here)
    assert (wrong.returncode, len(wrong.stderr.strip().splitlines())) == (1, 1)
    assert "v9.9.9" in wrong.stderr
    missing = call("eval", "--model", model, "--dataset", "org/nothing", **here)
    assert (missing.returncode, len(missing.stderr.strip().splitlines())) == (1, 1)


def test_help_shows_an_example() -> None:
    assert "Example: probesieve eval --model" in call("eval", "--help", command=PROBESIEVE).stdout
