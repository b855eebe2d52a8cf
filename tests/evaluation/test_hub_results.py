"""What goes to the Hub: entries for model repositories, and scores as dataset folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.errors import BuildError
from builders.folder import verify_folder
from evaluation.errors import EvaluationError
from evaluation.hub_results import build_score_set, write_eval_results
from evaluation.probe_sets import open_probe_set
from evaluation.results import Evaluated
from evaluation.run import Options, evaluate
from tests.evaluation.test_run import CPU, folder, model  # noqa: F401  (fixtures)


@pytest.fixture
def done(request: pytest.FixtureRequest, tmp_path: Path) -> Evaluated:
    probes = open_probe_set(str(request.getfixturevalue("folder")), config="qa")
    return evaluate(request.getfixturevalue("model"), probes, Options(), engine=CPU, out=tmp_path / "results")


def test_entries_are_those_of_the_hubs_client(done: Evaluated, tmp_path: Path) -> None:
    from huggingface_hub import parse_eval_result_entries

    result: dict[str, Any] = {**done.result, "dataset": {**done.result["dataset"], "source": "org/unqover-few"}}
    (path,) = write_eval_results([result], tmp_path)
    assert path == tmp_path / ".eval_results" / "unqover-few.yaml"
    (entry,) = parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert (entry.dataset_id, entry.task_id) == ("org/unqover-few", "qa")
    assert entry.value == round(result["metrics"]["mu"]["value"], 6)
    assert entry.dataset_revision == result["dataset"]["revision"]
    assert "protocol exact, all rows" in str(entry.notes)


def test_a_local_set_has_no_entry(done: Evaluated, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="--eval-results needs sets on the Hub"):
        write_eval_results([done.result], tmp_path)
    assert not (tmp_path / ".eval_results").exists()


@pytest.mark.filterwarnings("default")  # of datasets and what it imports
def test_scores_become_a_folder_that_verifies_and_loads(done: Evaluated, tmp_path: Path) -> None:
    from datasets import load_dataset

    built, manifest = build_score_set(done.path.parents[1], tmp_path / "out")
    assert verify_folder(built) == manifest
    loaded = load_dataset(str(built), "unqover-few-1_0_0-qa-exact", split="test", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == 16
    assert 0 <= loaded[0]["s1_12"] <= 1
    card = (built / "README.md").read_text(encoding="utf-8")
    assert "measure stereotyping associations" in card
    for place in (done.result["model"]["name"], done.result["dataset"]["source"]):  # folders of this machine
        assert str(Path(place).parent) not in card + (built / "manifest.json").read_text(encoding="utf-8")
    with pytest.raises(BuildError, match="exists already"):
        build_score_set(done.path.parents[1], tmp_path / "out")


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="holds no results"):
        build_score_set(tmp_path, tmp_path / "out")
