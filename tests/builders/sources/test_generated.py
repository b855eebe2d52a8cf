"""Sources that are made on the spot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from datasets import Image
from sklearn.datasets import load_digits

from builders.errors import BuildError
from builders.planted import planted_rows
from builders.sources import read_source
from tests.builders.sources.reading import nli, pictures, refused


def test_digits_are_those_of_scikit_learn(tmp_path: Path) -> None:
    found = read_source(pictures(kind="digits"), work=tmp_path / "w")
    (train,) = found.splits.values()
    assert (list(found.splits), len(train), train.cache_files != []) == (["train"], 1797, True)
    assert train.column_names == ["image", "label", "source_index"]
    assert train.features["label"].names == list("0123456789")
    digits = load_digits()
    assert train["label"][:] == digits.target.tolist()
    shown = np.stack([np.asarray(image) for image in train["image"][:]])
    assert shown.dtype == np.uint8
    np.testing.assert_array_equal(np.rint(shown * (16 / 255)), digits.images)
    assert set(np.unique(shown)) >= {0, 255}
    again = read_source(pictures(kind="digits"), work=tmp_path / "other")
    raw = [one.splits["train"].cast_column("image", Image(decode=False))["image"][:] for one in (found, again)]
    assert raw[0] == raw[1]
    assert found.revision == again.revision


def test_planted_rows_become_a_split_in_files(tmp_path: Path) -> None:
    found = read_source(nli(kind="planted", rows=2_500, seed=3), work=tmp_path)
    train = found.splits["train"]
    assert train.column_names == ["premise", "hypothesis", "label", "source_index", "artifact"]
    assert (len(train), train.cache_files != []) == (2_500, True)
    expected = planted_rows(2_500, seed=3)
    for column in expected.column_names:
        assert train[column][:] == expected[column][:]
    assert found.origin == "generated: planted artifacts, 2,500 rows, seed 3"
    assert read_source(nli(kind="planted", rows=2_500, seed=3), work=tmp_path).revision == found.revision
    assert read_source(nli(kind="planted", rows=2_500, seed=4), work=tmp_path).revision != found.revision
    with pytest.raises(BuildError, match="no split 'test'"):
        read_source(nli(kind="planted", rows=30, filtered=("test",)), work=tmp_path)


def test_a_generated_source_gives_up_rows_for_validation(tmp_path: Path) -> None:
    whole = planted_rows(300, seed=3)
    found = read_source(nli(kind="planted", rows=300, validation=60, seed=3), work=tmp_path)
    assert {name: len(rows) for name, rows in found.splits.items()} == {"train": 240, "validation": 60}
    pairs = {
        name: list(zip(rows["premise"][:], rows["hypothesis"][:], strict=True)) for name, rows in found.splits.items()
    }
    everything = list(zip(whole["premise"][:], whole["hypothesis"][:], strict=True))
    for part in pairs.values():
        places = [everything.index(pair) for pair in part]
        assert places == sorted(places)
        assert len(set(places)) == len(part)
    assert {*pairs["train"], *pairs["validation"]} == {*everything}
    assert pairs["validation"] != everything[-60:]
    assert found.revision != read_source(nli(kind="planted", rows=300, seed=3), work=tmp_path).revision
    other = read_source(nli(kind="planted", rows=300, validation=61, seed=3), work=tmp_path)
    assert other.revision != found.revision
    refused(nli(kind="planted", rows=300, validation=300), None, "less than the 300 rows", "not 300")


def test_digits_give_up_rows_for_validation(tmp_path: Path) -> None:
    found = read_source(pictures(kind="digits", validation=297), work=tmp_path)
    assert {name: len(rows) for name, rows in found.splits.items()} == {"train": 1500, "validation": 297}
    targets = np.concatenate([np.asarray(rows["label"][:]) for rows in found.splits.values()])
    assert np.bincount(targets).tolist() == np.bincount(load_digits().target).tolist()
