"""Rows to train on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from builders.errors import BuildError
from builders.folder import Built
from evaluation.classifiers.ood import load_ood_spec
from evaluation.classifiers.subsets import ood_training_rows, single_model_masks, training_subset
from evaluation.errors import EvaluationError
from tests.evaluation.classifiers.ood_files import write_jsonl
from tests.evaluation.classifiers.training_sets import NAMES, SIZES, build, opened


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("set"))


def indexes(built: Built, subset: str, **more: object) -> list[int]:
    return training_subset(opened(built), subset, **more).rows["source_index"][:]  # type: ignore[arg-type]


def test_subsets_are_those_of_the_folder(built: Built) -> None:
    full, kept, removed = (indexes(built, name) for name in ("full", "filtered", "removed"))
    assert full == list(range(SIZES["train"]))
    assert sorted([*kept, *removed]) == full
    for config, found in (("filtered", kept), ("removed", removed)):
        (file,) = built.manifest["configs"][config]["train"]["files"]
        assert found == sorted(pq.read_table(built.folder / file)["source_index"].to_pylist())
    random = indexes(built, "random")
    assert (len(random), len({*random} & {*removed}) > 0) == (len(kept), True)
    rows = training_subset(opened(built), "filtered", split="validation")
    assert rows.rows.column_names == ["premise", "hypothesis", "label", "source_index"]
    assert (rows.names, rows.columns) == (NAMES, ("premise", "hypothesis"))
    assert rows.facts["subset"] == "filtered"
    assert rows.facts["revision"] == built.manifest["sha256"]
    # Labels go round from 0 in the source, so a row's label is its index modulo 3.
    assert rows.labels.tolist() == [index % 3 for index in rows.rows["source_index"][:]]


def test_a_single_model_keeps_as_many_rows(built: Built) -> None:
    features = built.folder.parent / "features.npy"
    masks = single_model_masks(opened(built), features, seed=0)
    assert {split: mask.size for split, mask in masks.items()} == SIZES
    kept = sum(len(indexes(built, "filtered", split=split)) for split in SIZES)
    assert sum(int(mask.sum()) for mask in masks.values()) == kept
    found = indexes(built, "single-model", features=features)
    assert found == np.flatnonzero(masks["train"]).tolist()
    assert found == indexes(built, "single-model", features=features)
    assert found != indexes(built, "single-model", features=features, seed=1)
    # Rows with index modulo 9 below 6 have a cue; only those can be predicted.
    left = np.flatnonzero(~masks["train"])
    assert (left % 9 < 6).mean() > 0.9


def test_limits_draw_the_same_rows_each_time(built: Built) -> None:
    rows = training_subset(opened(built), "full")
    few = rows.drawn(90).rows["source_index"][:]
    assert few == sorted({*few}) == rows.drawn(90).rows["source_index"][:]
    assert len(few) == rows.drawn(90).facts["limit"] == 90
    assert min(rows.drawn(90).labels.tolist().count(label) for label in range(3)) > 15
    assert rows.drawn(None) is rows
    assert rows.drawn(240) is rows
    with pytest.raises(EvaluationError, match="at least 1, not 0"):
        rows.drawn(0)


def test_what_cannot_be_trained_on(built: Built, tmp_path: Path) -> None:
    features = built.folder.parent / "features.npy"
    for more, message in (
        ({"subset": "filterd"}, "did you mean 'filtered'"),
        ({"subset": "full", "split": "vaildation"}, "did you mean 'validation'"),
        ({"subset": "single-model"}, "needs --features"),
        ({"subset": "full", "features": features}, "leave them out"),
    ):
        with pytest.raises(EvaluationError, match=message):
            training_subset(opened(built), **more)  # type: ignore[arg-type]
    np.save(tmp_path / "few.npy", np.load(features)[:-1])
    with pytest.raises(BuildError, match="359 rows, required are 360"):
        training_subset(opened(built), "single-model", features=tmp_path / "few.npy")


def anli_files(folder: Path) -> Path:
    for number in (1, 2, 3):
        rows = [
            {"uid": f"{number}-{row}", "context": "A dog ran.", "hypothesis": f"It ran {row}.", "label": "enc"[row % 3]}
            for row in range(3 * number)
        ]
        for split in ("train", "dev", "test"):
            write_jsonl(folder / f"R{number}" / f"{split}.jsonl", rows)
    return folder


def test_a_round_of_adversarial_nli(tmp_path: Path) -> None:
    files = anli_files(tmp_path)
    spec = load_ood_spec("anli")
    second = ood_training_rows(spec, files, where={"round": "R2"})
    assert (len(second.rows), second.names, second.facts["subset"]) == (6, NAMES, "round=R2")
    assert second.labels.tolist() == [0, 1, 2] * 2
    assert len(ood_training_rows(spec, files).rows) == 18
    with pytest.raises(EvaluationError, match="no row where round=R4"):
        ood_training_rows(spec, files, where={"round": "R4"})
    with pytest.raises(EvaluationError, match="did you mean 'round'"):
        ood_training_rows(spec, files, where={"rounds": "R4"})
    with pytest.raises(EvaluationError, match="HANS has no rows to train on"):
        ood_training_rows(load_ood_spec("hans"), files)
