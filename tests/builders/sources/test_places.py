"""Which split a file is, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.errors import BuildError
from builders.sources.places import split_name, splits_of

SUFFIXES = (".jsonl", ".parquet", ".tsv")


def touch(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def found(root: Path) -> dict[str, list[str]]:
    return {
        split: [file.relative_to(root).as_posix() for file in files]
        for split, files in splits_of(root, SUFFIXES).items()
    }


@pytest.mark.parametrize(
    ("stem", "split"),
    [
        ("train", "train"),
        ("dev", "validation"),
        ("validation", "validation"),
        ("val", "validation"),
        ("valid", "validation"),
        ("test", "test"),
        ("Test", "test"),
        ("snli_1.0_train", "train"),
        ("snli_1.0_test_hard", "test_hard"),
        ("dev_matched", "validation_matched"),
        ("multinli_1.0_dev_mismatched", "validation_mismatched"),
        ("train_r1", "train_r1"),
        ("annotated", None),
        ("latest", None),
        ("retrain", None),
        ("train_notes", None),
    ],
)
def test_names_of_splits(stem: str, split: str | None) -> None:
    assert split_name(stem) == split


def test_files_of_a_folder_in_the_order_of_training(tmp_path: Path) -> None:
    touch(tmp_path, "test.tsv", "dev_matched.tsv", "train.tsv", "dev_mismatched.tsv", "diagnostic.tsv", "README.md")
    touch(tmp_path, ".hidden.tsv", "__MACOSX/train.tsv", "original/train.tsv")
    assert found(tmp_path) == {
        "train": ["train.tsv"],
        "validation_matched": ["dev_matched.tsv"],
        "validation_mismatched": ["dev_mismatched.tsv"],
        "test": ["test.tsv"],
    }


def test_shards_and_folders_of_a_split(tmp_path: Path) -> None:
    hub = touch(tmp_path / "a", *(f"data/train-0000{i}-of-00002.parquet" for i in (1, 0)), "data/test.parquet")
    assert found(hub) == {
        "train": ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"],
        "test": ["data/test.parquet"],
    }
    folders = touch(tmp_path / "b", "val/x.parquet", "val/y.parquet", "train/part-0.parquet")
    assert found(folders) == {"train": ["train/part-0.parquet"], "validation": ["val/x.parquet", "val/y.parquet"]}
    assert found(touch(tmp_path / "c", "00000.tsv", "00001.tsv")) == {"train": ["00000.tsv", "00001.tsv"]}
    one = touch(tmp_path / "d", "anything.tsv")
    assert found(one) == {"train": ["anything.tsv"]}
    assert list(splits_of(one / "anything.tsv", SUFFIXES)) == ["train"]


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("train.tsv", "annotated.tsv"), ("annotated.tsv", "--source")),
        (("a.tsv", "b.tsv"), ("a.tsv, b.tsv",)),
        (("diagnostic.tsv", "diagnostic-full.tsv"), ("no split can be told",)),
        (("dev.tsv", "validation.tsv"), ("validation is there more than once", "dev.tsv, validation.tsv")),
        (("train.tsv", "train.jsonl"), ("train is there more than once",)),
        (("x/train-00000-of-00001.tsv", "y/train-00000-of-00001.tsv"), ("x/train", "y/train")),
        (("train-00000-of-00003.tsv", "train-00002-of-00003.tsv"), ("train has 3 shards", "number 1 is missing")),
    ],
)
def test_names_that_leave_it_open_are_refused(tmp_path: Path, names: tuple[str, ...], parts: tuple[str, ...]) -> None:
    with pytest.raises(BuildError) as caught:
        splits_of(touch(tmp_path, *names), SUFFIXES)
    assert not [part for part in parts if part not in str(caught.value)], str(caught.value)
