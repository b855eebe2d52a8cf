"""Labelled rows of a filtered set: all of them once, in order, with the subsets that they are in."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.errors import BuildError
from builders.folder import Built, write_manifest
from builders.unqover import build_unqover
from evaluation.built_sets import find_built
from evaluation.classifiers.sets import labelled_splits, matching_rows, read_split, subsets_of
from evaluation.errors import EvaluationError
from tests.evaluation.classifiers.exact_models import SIZES
from tests.evaluation.conftest import LISTS
from unqover_data import read_toml


def source_rows(planted: Built, split: str) -> list[dict[str, object]]:
    path = planted.folder.parents[1] / "source" / f"{split}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("split", SIZES)
def test_a_split_has_every_labelled_row_of_the_source_in_its_order(planted: Built, split: str) -> None:
    rows = read_split(find_built(str(planted.folder)), split)
    source = source_rows(planted, split)
    labelled = [place for place, row in enumerate(source) if int(str(row["label"])) >= 0]
    assert rows.facts["source_index"].to_pylist() == labelled
    assert rows.data["hypothesis"][:] == [source[place]["hypothesis"] for place in labelled]
    assert rows.facts["label"].to_pylist() == [source[place]["label"] for place in labelled]
    assert (rows.modality, rows.inputs, rows.groups) == ("text", ("premise", "hypothesis"), ("artifact",))
    assert rows.names == ("entailment", "neutral", "contradiction")


def test_subsets_are_those_of_the_folder(planted: Built) -> None:
    masks = subsets_of(read_split(find_built(str(planted.folder)), "train").facts)
    counts = planted.manifest["counts"]["train"]
    assert masks["full"].all()
    assert (masks["kept"].sum(), masks["removed"].sum()) == (counts["filtered"], counts["removed"])
    assert (masks["kept"] ^ masks["removed"]).all()
    assert masks["random"].sum() == counts["filtered"]


@pytest.mark.parametrize("column", ["in_random_subset", "source_index"])
def test_a_breakdown_that_is_called_as_a_stored_column_gets_another_name(planted: Built, column: str) -> None:
    built = find_built(str(planted.folder))
    rows = read_split(replace(built, manifest={**built.manifest, "breakdown": column}), "validation")
    assert rows.groups == (f"source_{column}",)
    assert rows.facts[f"source_{column}"].equals(rows.facts[column])
    assert len(set(rows.facts.column_names)) == len(rows.facts.column_names)


def test_images_without_bytes_are_refused(planted: Built, tmp_path: Path) -> None:
    shutil.copytree(planted.folder, tmp_path / "set")
    for file in (tmp_path / "set").rglob("*.parquet"):
        table = pq.read_table(file)
        paths = pa.array([{"bytes": None, "path": "http://127.0.0.1:9/x.png"}] * len(table))
        pq.write_table(table.set_column(0, table.column_names[0], paths), file)
    facts = {key: value for key, value in planted.manifest.items() if key not in ("versions", "files", "sha256")}
    write_manifest(tmp_path / "set", facts)
    with pytest.raises(BuildError, match="has no bytes in row 0"):
        read_split(find_built(str(tmp_path / "set")), "train")


def test_warmup_rows_are_in_the_full_set_alone() -> None:
    facts = pa.table({"part": ["filtered", "warmup", "removed"], "in_random_subset": [False, False, True]})
    assert {name: mask.tolist() for name, mask in subsets_of(facts).items()} == {
        "full": [True, True, True],
        "kept": [True, False, False],
        "removed": [False, False, True],
        "random": [False, False, True],
    }
    assert list(subsets_of(facts.select([]))) == ["full"]


def test_a_draw_keeps_rows_and_facts_together_and_is_told_by_its_seed(planted: Built) -> None:
    rows = read_split(find_built(str(planted.folder)), "train")
    drawn = rows.drawn(50, seed=3)
    places = drawn.facts["source_index"].to_pylist()
    assert (len(drawn), places) == (50, sorted(set(places)))
    source = source_rows(planted, "train")
    assert drawn.data["premise"][:] == [source[place]["premise"] for place in places]
    assert rows.drawn(50, seed=3).facts.equals(drawn.facts)
    assert not rows.drawn(50, seed=4).facts.equals(drawn.facts)
    assert rows.drawn(None, seed=0) is rows.drawn(len(rows), seed=0) is rows
    with pytest.raises(EvaluationError, match=r"1 of 324 rows of snli-aflite, train, leave the \w+ subset empty"):
        rows.drawn(1, seed=0)


def test_splits_without_labels_and_unknown_ones_are_named(planted: Built) -> None:
    built = find_built(str(planted.folder))
    assert labelled_splits(built) == ("train", "validation")
    assert labelled_splits(built, ["validation", "validation"]) == ("validation",)
    with pytest.raises(EvaluationError, match=r"split 'test' of snli-aflite has no labels: choose train or validation"):
        labelled_splits(built, ["test"])
    with pytest.raises(EvaluationError, match=r"no split 'trian' \(it has train, validation\); did you mean 'train'"):
        labelled_splits(built, ["trian"])


def test_a_probe_set_is_no_filtered_set(tmp_path: Path) -> None:
    path = tmp_path / "few.toml"
    path.write_text(LISTS, encoding="utf-8")
    built = find_built(str(build_unqover(read_toml(path), tmp_path).folder))
    with pytest.raises(EvaluationError, match="is no filtered set but a probe set: pass a folder"):
        labelled_splits(built)


def test_an_edited_file_is_refused(planted: Built, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(planted.folder, folder)
    (file,) = (folder / name for name in planted.manifest["configs"]["removed"]["train"]["files"])
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(EvaluationError, match=r"removed/train-00000-of-00001.parquet is missing or was edited"):
        read_split(find_built(str(folder)), "train")
    read_split(find_built(str(folder)), "validation")


def test_others_may_name_the_rows(planted: Built) -> None:
    rows, masks = matching_rows(find_built(str(planted.folder)), "validation")
    assert rows.pair_ids is not None
    assert rows.pairs is not None
    assert [rows.pair_ids[0], len(rows), rows.source_rows] == ["validation-0", 135, 150]
    assert np.array_equal(masks["kept"], ~masks["removed"])
    with pytest.raises(EvaluationError, match="has the splits train, validation: say with --split which one it is"):
        matching_rows(find_built(str(planted.folder)), None)
