"""``probesieve eval``, ``difficulty`` and ``humans`` on filtered sets, as a person meets them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from builders.folder import Built
from builders.planted import LABELS
from builders.unqover import build_unqover
from evaluation.classifiers.ood.spec import SETS_DIR
from evaluation.models import resolve_model
from probesieve.cli import main
from tests.evaluation.classifiers.conftest import planted, reader
from tests.evaluation.classifiers.exact_models import decide
from tests.evaluation.classifiers.ood_files import write_hans
from tests.evaluation.conftest import LISTS, MakeModel
from tests.hub_fixtures import REPO, TOKEN
from tests.hub_server import HubServer
from tests.probesieve.test_cli import PROBESIEVE, call
from unqover_data import read_toml

__all__ = ["planted", "reader"]


@pytest.fixture(scope="session")
def probe_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("probes") / "few.toml"
    path.write_text(LISTS, encoding="utf-8")
    return build_unqover(read_toml(path), path.parent).folder


Call = Any


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command in this process; give its exit code and what it wrote."""

    def go(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["probesieve", *map(str, args)])
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return (0 if code is None else int(code), *capsys.readouterr())

    return go


def test_a_classifier_is_scored_shown_and_stored(planted: Built, reader: Path, tmp_path: Path, run_here: Call) -> None:
    args = ("eval", "--model", reader, "--dataset", planted.folder, "--out", tmp_path, "--no-progress")
    code, said, complained = run_here(*args)
    assert (code, complained) == (0, "")
    for part in (
        "(text-classifier, ",
        "snli-aflite 1.0.0",
        "matched by name",
        "removed",
        "Drop from all rows",
        "Stored:",
    ):
        assert part in said
    (stored,) = tmp_path.rglob("train.exact.json")
    assert str(stored) in said
    result = json.loads(stored.read_text(encoding="utf-8"))
    shown = result["splits"]["train"]["accuracy"]["kept"]
    assert f"kept        {shown['value']:.3f}  {shown['low']:.3f} to {shown['high']:.3f}" in said
    assert "Was there:" in run_here(*args)[1]


def test_a_set_out_of_distribution_is_named_like_a_dataset(reader: Path, tmp_path: Path, run_here: Call) -> None:
    write_hans(tmp_path / "hans")
    code, said, _ = run_here(
        "eval", "--model", reader, "--dataset", "hans", "--data", tmp_path, "--out", tmp_path / "r"
    )
    assert code == 0
    assert "heuristic: lexical_overlap" in said
    assert "Known of a BERT fine-tuned on MultiNLI, accuracy of entailment: lexical_overlap 0.946" in said
    (stored,) = (tmp_path / "r").rglob("test.exact.json")
    everything = json.loads(stored.read_text(encoding="utf-8"))["splits"]["test"]["report"]["all"]["accuracy"]
    (line,) = (line.split() for line in said.splitlines() if line.startswith("all "))
    assert line[1:5] == [f"{everything['value']:.3f}", f"{everything['low']:.3f}", "to", f"{everything['high']:.3f}"]


def test_a_set_of_ones_own_is_a_spec(reader: Path, tmp_path: Path, run_here: Call) -> None:
    write_hans(tmp_path / "hans")
    spec = (SETS_DIR / "hans.toml").read_text(encoding="utf-8").replace('name = "hans"', 'name = "mine"')
    (tmp_path / "mine.toml").write_text(spec, encoding="utf-8")
    args = ("--dataset", tmp_path / "mine.toml", "--data", tmp_path, "--out", tmp_path / "r")
    code, said, _ = run_here("eval", "--model", reader, *args)
    assert (code, " on mine " in said) == (0, True)
    code, _, complained = run_here("eval", "--model", reader, "--dataset", "none.toml")
    assert (code, "none.toml cannot be read (No such file" in complained) == (2, True)


def test_bad_input_is_one_line_and_leaves_nothing(
    planted: Built, reader: Path, probe_set: Path, make_model: MakeModel, tmp_path: Path, run_here: Call
) -> None:
    base = make_model("BertModel", "BertConfig")
    qa = make_model("BertForQuestionAnswering", "BertConfig")
    data = ("--dataset", planted.folder)
    for args, message in (
        (("--model", reader, "--dataset", probe_set), "is a probe set, which needs a question-answering or language"),
        (
            ("--model", reader, "--dataset", probe_set, "--sample", "9"),
            "is a probe set, which needs a question-answering",
        ),
        (("--model", reader, "--sample", "9"), "say with --dataset or --suite what to score it on"),
        (
            ("--model", reader, "--dataset", "imagenet-a", "--data", tmp_path),
            "classifies texts and imagenet-a holds images",
        ),
        (("--model", qa, "--suite", "nli-ood"), "nli-ood is a suite of sets out of distribution, which needs a class"),
        (("--model", qa, *data), "is a filtered set, which needs a classifier, and "),
        (("--model", qa, *data, "--split", "test"), "is a filtered set, which needs a classifier, and "),
        (("--model", qa, "--dataset", "hans"), "hans is a set out of distribution, which needs a classifier"),
        (("--model", base, *data), "is of architecture BertModel, which has no head that can be scored"),
        (("--model", base, "--kind", "text-classifier", *data), "classifier.bias, classifier.weight would be random"),
        (("--model", reader), "say with --dataset or --suite what to score it on"),
        (("--model", reader, "--dataset", "hanss"), "did you mean 'hans'?"),
        (("--model", reader, "--dataset", "hanss", "--data", tmp_path), "did you mean 'hans'?"),
        (("--model", reader, "--dataset", tmp_path / "none"), "is neither a built folder nor ORG/NAME"),
        (("--model", reader, "--suite", "nli-ood"), "Stress tests is not on the Hub: get it from https://"),
        (("--model", reader, "--suite", "nli-odd"), "did you mean 'nli-ood'?"),
        (("--model", reader, *data, "--data", tmp_path), "--data is for sets out of distribution"),
        (("--model", reader, "--suite", "nli-ood", "--data", tmp_path), "is not laid out as HANS"),
        (("--model", reader, *data, "--split", "test"), "split 'test' of snli-aflite has no labels"),
        (("--model", reader, *data, "--limit", "1"), "subset empty: raise --limit"),
        (("--model", reader, *data, "--prompt", "{question}"), "option --prompt means nothing for a model of kind"),
        (("--model", reader, *data, "--config", "qa"), "option --config means nothing for a model of kind"),
        (("--model", reader, *data, "--backend", "dsk"), "did you mean 'dask'?"),
        (("--model", reader, *data, "--workers", "0"), "--workers must be at least 1, not 0"),
        (("--model", qa, "--dataset", probe_set, "--label-map", "0=a"), "option --label-map means nothing for a model"),
        (("--model", qa, "--dataset", probe_set, "--split", "test"), "option --split means nothing for a model"),
        (("--model", reader, *data, "--eval-results", tmp_path), "--eval-results needs sets on the Hub"),
    ):
        code, said, complained = run_here("eval", *args, "--out", tmp_path / "r", "--no-progress")
        assert code == 2, (args, said, complained)
        assert message in complained
        assert len(complained.strip().splitlines()) == 1, complained
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"problem_type": "multi_label_classification"}, "is of problem_type 'multi_label_classification', so it"),
        ({"problem_type": "regression"}, "is of problem_type 'regression'"),
        (
            {"label2id": {"neutral": 0, "entailment": 1, "contradiction": 2}},
            "calls class 0 'entailment' in id2label and",
        ),
        ({"id2label": {"0": "neutral", "1": "Neutral", "2": "contradiction"}}, "several classes the name 'neutral'"),
        ({"num_labels": 2}, "has num_labels 2 and 3 names in id2label"),
        ({"id2label": {"0": "score"}, "label2id": {"score": 0}}, "has one class, so it tells nothing apart"),
    ],
)
def test_a_model_that_does_not_decide_for_one_named_class_is_refused(
    planted: Built, reader: Path, tmp_path: Path, run_here: Call, config: dict[str, Any], message: str
) -> None:
    folder = shutil.copytree(reader, tmp_path / "model")
    known = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(known | config), encoding="utf-8")
    asked = ("eval", "--model", folder, "--dataset", planted.folder, "--split", "validation", "--out", tmp_path / "r")
    code, _, complained = run_here(*asked)
    assert (code, len(complained.strip().splitlines())) == (2, 1)
    assert message in complained
    assert not (tmp_path / "r").exists()
    if "--label-map" in complained and "num_labels" not in config:  # a person's word counts more than the file's two
        code, said, _ = run_here(*asked, "--label-map", "0=entailment,1=neutral,2=contradiction")
        assert (code, "the model's classes as --label-map gives them" in said) == (0, True)


def test_a_pooler_that_would_be_random_is_refused(planted: Built, reader: Path, tmp_path: Path, run_here: Call) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "half"
    shutil.copytree(reader, folder)
    weights = {name: value for name, value in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    code, _, complained = run_here("eval", "--model", folder, "--dataset", planted.folder, "--out", tmp_path / "r")
    assert (code, "bert.pooler.dense.bias" in complained) == (2, True)


def test_a_filtered_set_on_the_hub_is_scored_at_its_sha(
    hub: HubServer, planted: Built, reader: Path, tmp_path: Path
) -> None:
    here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    here |= {"CUDA_VISIBLE_DEVICES": ""}
    assert call("push", planted.folder, REPO, **here).returncode == 0
    args = ("--model", reader, "--dataset", REPO, "--dataset-revision", "v1.0.0", "--split", "validation")
    script = (sys.executable, "scripts/eval_model.py")
    done = call(*args, "--out", tmp_path, "--eval-results", tmp_path / "repo", command=script, **here)
    assert done.returncode == 0, done.stderr
    (stored,) = tmp_path.rglob("validation.exact.json")
    result = json.loads(stored.read_text(encoding="utf-8"))
    assert (result["dataset"]["source"], len(result["dataset"]["revision"])) == (REPO, 40)
    (entry,) = yaml.safe_load((tmp_path / "repo" / ".eval_results" / "snli-aflite.yaml").read_text(encoding="utf-8"))
    kept = result["splits"]["validation"]["accuracy"]["kept"]
    assert entry["value"] == round(kept["value"], 6)
    assert entry["dataset"]["task_id"] == "validation"
    assert f"kept {kept['value']:.4f} (n = {kept['n']})" in entry["notes"]


def write_predictions(planted: Built, path: Path) -> None:
    rows = []
    for splits in planted.manifest["configs"].values():
        for name in splits["validation"]["files"]:
            rows += pq.read_table(planted.folder / name).to_pylist()
    lines = [{"pairID": row["pairID"], "predicted_label": decide(row["hypothesis"])} for row in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def test_difficulty_of_a_prediction_file_is_the_models_own(
    planted: Built, reader: Path, tmp_path: Path, run_here: Call
) -> None:
    write_predictions(planted, tmp_path / "other.jsonl")
    asked = ("--dataset", planted.folder, "--split", "validation")
    code, said, _ = run_here("difficulty", tmp_path / "other.jsonl", *asked)
    run_here("eval", "--model", reader, *asked, "--out", tmp_path / "r")
    (stored,) = (tmp_path / "r").rglob("validation.exact.json")
    accuracy = json.loads(stored.read_text(encoding="utf-8"))["splits"]["validation"]["accuracy"]
    values = [f"{accuracy[name]['value']:.3f}" for name in ("full", "kept", "removed", "random")]
    (line,) = (line.split() for line in said.splitlines() if line.startswith("other.jsonl"))
    assert (code, line[1:5]) == (0, values)
    assert "135 of 135" in said
    run_here("difficulty", tmp_path / "other.jsonl", *asked, "--out", tmp_path / "d.json")
    (written,) = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))["predictions"]
    assert written["kept"] == pytest.approx(accuracy["kept"])
    assert written["random"] == pytest.approx(accuracy["random"])
    code, _, complained = run_here("difficulty", tmp_path / "other.jsonl", "--dataset", planted.folder)
    assert (code, "say with --split which one it is" in complained) == (2, True)
    code, _, complained = run_here("difficulty", tmp_path / "none.jsonl", *asked)
    assert (code, len(complained.strip().splitlines())) == (2, 1)


def test_files_of_one_name_are_told_apart(planted: Built, tmp_path: Path, run_here: Call) -> None:
    for folder in ("one/preds", "two/preds", "two/more"):
        (tmp_path / folder).mkdir(parents=True)
        write_predictions(planted, tmp_path / folder / "p.jsonl")
    asked = ("--dataset", planted.folder, "--split", "validation")
    code, said, _ = run_here("difficulty", *sorted(tmp_path.rglob("p.jsonl")), *asked)
    assert code == 0
    assert [line.split()[0] for line in said.splitlines() if "p.jsonl" in line] == [
        "one/preds/p.jsonl",
        "more/p.jsonl",
        "two/preds/p.jsonl",
    ]
    file = tmp_path / "one" / "preds" / "p.jsonl"
    code, _, complained = run_here("difficulty", file, file, *asked)
    assert (code, "p.jsonl is given more than once" in complained) == (2, True)


def test_predictions_on_hans_get_its_report(tmp_path: Path, run_here: Call) -> None:
    """Right on lexical_overlap (ex0 to ex3), always entailment elsewhere: 1 and 1 there, 1 and 0 of the labels else."""
    write_hans(tmp_path / "hans")
    said = ["entailment", "entailment", "neutral", "contradiction", *["entailment"] * 8]
    file = tmp_path / "preds.txt"
    file.write_text("pairID,gold_label\n" + "".join(f"ex{n},{said[n]}\n" for n in (*range(6, 12), *range(6))))
    asked = ("--dataset", "hans", "--data", tmp_path, "--out", tmp_path / "d.json")
    code, shown, _ = run_here("difficulty", file, *asked)
    assert (code, "preds.txt: 12 of 12 rows, matched by pair id" in shown) == (0, True)
    assert "Known of a BERT fine-tuned on MultiNLI, accuracy of entailment: lexical_overlap 0.946" in shown
    (written,) = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))["predictions"]
    groups = written["report"]["groups"]["heuristic"]
    shares = {name: {label: of["value"] for label, of in scores["by_label"].items()} for name, scores in groups.items()}
    assert shares == {
        "lexical_overlap": {"entailment": 1, "non-entailment": 1},
        "subsequence": {"entailment": 1, "non-entailment": 0},
        "constituent": {"entailment": 1, "non-entailment": 0},
    }
    file.write_text("pairID,gold_label\nx1,entailment\n")
    code, _, complained = run_here("difficulty", file, *asked)
    assert (code, "by pairID 0 found (the file has 'x1', the split 'ex0')" in complained) == (2, True)
    code, _, complained = run_here("difficulty", file, "--dataset", "some/set", "--data", tmp_path)
    assert (code, "--data is for one of anli, diagnostics, hans" in complained) == (2, True)


def test_humans_on_kept_and_removed_rows(planted: Built, tmp_path: Path, run_here: Call) -> None:
    """Four of five agree with the gold label on every row, so the accuracy is 4/5 whatever the subset."""
    source = planted.folder.parents[1] / "source" / "validation.jsonl"
    lines = []
    for line in source.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        gold = LABELS[row["label"]] if row["label"] >= 0 else "-"
        votes = [gold] * 4 + [LABELS[(row["label"] + 1) % 3]] if gold != "-" else list(LABELS)
        texts = {"sentence1": row["premise"], "sentence2": row["hypothesis"]}
        lines.append(json.dumps({**texts, "gold_label": gold, "annotator_labels": votes}) + "\n")
    (tmp_path / "annotated.jsonl").write_text("".join(lines), encoding="utf-8")
    file = tmp_path / "annotated.jsonl"
    code, said, _ = run_here("humans", file, "--dataset", planted.folder, "--split", "validation")
    assert code == 0
    assert "annotated.jsonl: 150 rows, 15 of them without a gold label" in said
    for name in ("full", "kept", "removed"):
        (line,) = (line.split() for line in said.splitlines() if line.startswith(f"{name} "))
        assert line[1] == "0.800"
    code, said, _ = run_here("humans", file, "--out", tmp_path / "h.json")
    (line,) = (line.split() for line in said.splitlines() if line.startswith("full "))
    assert (code, line[1], line[-1]) == (0, "0.800", "135")  # each tenth row has no gold label
    written = json.loads((tmp_path / "h.json").read_text(encoding="utf-8"))["subsets"]["full"]
    assert (written["accuracy"]["value"], written["without_gold"]) == (pytest.approx(0.8), 15)
    code, _, complained = run_here("humans", file, "--split", "validation")
    assert (code, "needs a --dataset" in complained) == (2, True)


@pytest.mark.parametrize("command", ["eval", "difficulty", "humans"])
def test_help_shows_an_example(command: str) -> None:
    assert f"Example: probesieve {command} " in call(command, "--help", command=PROBESIEVE).stdout


def test_results_of_classifiers_are_not_taken_for_others(
    planted: Built, reader: Path, tmp_path: Path, run_here: Call
) -> None:
    run_here("eval", "--model", reader, "--dataset", planted.folder, "--split", "validation", "--out", tmp_path)
    (stored,) = tmp_path.rglob("validation.exact.json")
    assert "is the result of a classifier" in run_here("compare", stored)[2]
    folder = tmp_path / "reader" / resolve_model(str(reader)).sha
    assert "holds no results on probe sets" in run_here("export-scores", folder, "--out", tmp_path / "scores")[2]
