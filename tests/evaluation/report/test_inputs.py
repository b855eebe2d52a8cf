"""What is found at the paths, and what is refused in one line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.errors import BuildError
from builders.unqover import build_unqover
from evaluation.errors import EvaluationError
from evaluation.report.inputs import read_inputs
from tests.evaluation.conftest import LISTS
from tests.evaluation.report.stored import edited, store_result
from unqover_data import read_toml


@pytest.fixture
def copied(few_results: Path, tmp_path: Path) -> Path:
    return shutil.copytree(few_results, tmp_path / "copied")


def test_results_and_folders_are_found_however_deep(few_results: Path, few_folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "all"
    shutil.copytree(few_results, root / "deep" / "results")
    shutil.copytree(few_folder, root / "sets" / few_folder.name)
    (root / ".hidden").mkdir()
    (root / ".hidden" / "broken.json").write_text("{", encoding="utf-8")
    (root / "notes.json").write_text('{"no": "result"}', encoding="utf-8")
    (root / "half.json").write_text("{", encoding="utf-8")  # nothing says that it was to be a result
    inputs = read_inputs([root])
    assert len(inputs.probes) == 4
    assert [built.name for built in inputs.folders] == ["unqover-few"]
    assert [*inputs.datasets] == ["unqover-few 1.0.0"]
    twice = read_inputs([few_results, next(few_results.rglob("mlm.exact.json"))])
    assert len(twice.probes) == 4


def test_models_go_by_size_then_name(few_results: Path, few_folder: Path, copied: Path) -> None:
    inputs = read_inputs([few_results])
    assert [inputs.labels[model] for model in inputs.models] == [
        "small-lm",
        "small-newsqa",
        "small-squad",
        "other-squad",
    ]
    store_result(copied, few_folder, "org/a-old-result", seed=9)
    models = read_inputs([copied]).models
    assert [model.short for model in models][-2:] == ["other-squad", "a-old-result"]
    assert models[-1].parameters is None


def test_models_of_one_name_are_told_apart(few_folder: Path, tmp_path: Path) -> None:
    store_result(tmp_path, few_folder, "one/bert", seed=1)
    store_result(tmp_path, few_folder, "two/bert", seed=2)
    store_result(tmp_path, few_folder, "two/bert", seed=2, protocol="paper")
    store_result(tmp_path, few_folder, "two/bert", seed=3)
    labels = set(read_inputs([tmp_path]).labels.values())
    assert labels == {"one/bert", "bert (protocol paper)", f"two/bert qa {'02' * 3}0", f"two/bert qa {'03' * 3}0"}


def test_what_is_no_input_is_refused_in_a_line(
    few_results: Path, few_folder: Path, copied: Path, tmp_path: Path
) -> None:
    result = next(copied.rglob("mlm.exact.json"))
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, message in (
        (tmp_path / "none", "there is nothing at"),
        (empty, "holds no result and no dataset folder"),
    ):
        with pytest.raises(EvaluationError, match=message):
            read_inputs([path])
    with pytest.raises(EvaluationError, match="are of one model on unqover-few"):
        read_inputs([few_results, copied])
    with pytest.raises(EvaluationError, match="small-squid' is not among"):
        read_inputs([few_results], bases=["small-squid=small-lm"])
    result.with_suffix(".parquet").unlink()
    with pytest.raises(EvaluationError, match=r"has no \.parquet beside it"):
        read_inputs([copied])
    result.write_text("{", encoding="utf-8")
    with pytest.raises(EvaluationError, match="is not valid JSON"):
        read_inputs([copied])
    result.write_text("[]", encoding="utf-8")
    with pytest.raises(EvaluationError, match="is no stored result"):
        read_inputs([result])
    folder = shutil.copytree(few_folder, tmp_path / "edited")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("1.0.0", "1.0.1"), encoding="utf-8")
    with pytest.raises(BuildError, match="was edited"):
        read_inputs([folder])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics__mu": {}}, r"missing required field `value` at `metrics\.mu`"),
        (
            {"metrics__eta": {"value": float("nan"), "n": 1, "low": 0, "high": 1, "corrected": 0}},
            r"metrics\.eta",
        ),
        (
            {"metrics__delta": {"value": 0.5, "n": 1, "low": None, "high": None}},
            r"`corrected` at `metrics\.delta`",
        ),
        (
            {"metrics__delta": {"value": 0.5, "n": 1, "low": 0.4, "high": None, "corrected": None}},
            r"metrics\.delta must have low and high or neither",
        ),
        ({"dataset__version": "é"}, r"version must be MAJOR\.MINOR\.PATCH"),
        ({"dataset__config": "é"}, r"config name 'é' must be"),
        ({"tables__subject": {"subject": ["Ann"]}}, r"missing required field `n` at `tables\.subject`"),
        ({"model__sha": None}, r"got `null` at `model\.sha`"),
        ({"dataset__config": None}, r"got `null` at `dataset\.config`"),
    ],
)
def test_a_result_that_lacks_something_is_refused_by_its_name(
    copied: Path, change: dict[str, Any], message: str
) -> None:
    result = next(copied.rglob("mlm.exact.json"))
    edited(result, **change)
    with pytest.raises(EvaluationError, match=message):
        read_inputs([copied])


def test_rows_that_cannot_be_read_are_refused(copied: Path) -> None:
    scores = next(copied.rglob("mlm.exact.parquet"))
    whole = scores.read_bytes()
    scores.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EvaluationError, match="cannot be read as Parquet"):
        read_inputs([copied])
    pq.write_table(pa.table({"id": [str(row) for row in range(16)]}), scores)
    with pytest.raises(EvaluationError, match="was edited: its rows are not those that were stored"):
        read_inputs([copied])
    edited(scores.with_suffix(".json"))
    with pytest.raises(EvaluationError, match="has no column s1_12"):
        read_inputs([copied])
    with pytest.raises(EvaluationError, match="is no stored result"):  # not: remove it
        read_inputs([scores])


@pytest.mark.parametrize("source", ["/gone", "./gone", "~/gone", "a--b/gone"])
def test_a_source_that_is_gone_and_is_no_name_on_the_hub(copied: Path, source: str) -> None:
    for path in copied.rglob("*.json"):
        edited(path, dataset__source=source)
    inputs = read_inputs([copied])
    assert inputs.folder_of(inputs.probes[0]) is None


def test_rows_come_from_the_folder_that_was_scored(few_folder: Path, copied: Path, tmp_path: Path) -> None:
    """A folder that moved is found where it was passed; one that is gone is told."""
    for path in copied.rglob("*.json"):
        edited(path, dataset__source=str(tmp_path / "gone"))
    lost = read_inputs([copied])
    assert lost.rows_of(lost.probes[0]) is None
    assert lost.groups_of(lost.probes[0]) == {}
    assert "Pass the dataset folder" in lost.missing(lost.probes[0])
    moved = read_inputs([copied, shutil.copytree(few_folder, tmp_path / "moved")])
    rows = moved.rows_of(moved.probes[0])
    assert rows is not None
    assert len(rows) == 16
    assert moved.groups_of(moved.probes[0])["Ann"] == "female"
    edited(moved.probes[0].path, dataset__revision="0" * 64, settings__dataset="rows:" + "0" * 64)
    other = read_inputs([copied, tmp_path / "moved"])
    assert [other.rows_of(one) is None for one in other.probes].count(True) == 1


def test_rows_come_from_a_folder_with_other_words_beside_them(few_results: Path, tmp_path: Path) -> None:
    """Its title is another, and so is the sum of its manifest."""
    (tmp_path / "few.toml").write_text(LISTS.replace("Few probes", "A few probes"), encoding="utf-8")
    built = build_unqover(read_toml(tmp_path / "few.toml"), tmp_path / "sets").folder
    for path in shutil.copytree(few_results, tmp_path / "results").rglob("*.json"):
        edited(path, dataset__source="org/gone")
    inputs = read_inputs([tmp_path / "results", built])
    assert all(inputs.rows_of(one) is not None for one in inputs.probes)
    edited(inputs.probes[0].path, settings__dataset=inputs.probes[0].content["dataset"]["revision"])  # as of before
    old = read_inputs([tmp_path / "results", built])
    assert [old.rows_of(one) is None for one in old.probes].count(True) == 1


def test_rows_of_a_set_on_the_hub_come_from_its_cache(
    few_folder: Path, copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = "ab" * 20
    shutil.copytree(few_folder, tmp_path / "cache" / "datasets--org--few" / "snapshots" / sha)
    for path in copied.rglob("*.json"):
        edited(path, dataset__source="org/few", dataset__revision=sha)
    inputs = read_inputs([copied])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    assert inputs.rows_of(inputs.probes[0]) is None
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    rows = inputs.rows_of(inputs.probes[0])
    assert rows is not None
    assert len(rows) == 16
