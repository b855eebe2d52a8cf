"""WebDataset shards: where image and label are, samples that lack a part, and shards that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Image

from builders.sources import read_source
from tests.builders.sources.reading import pictures, png, refused, shard


def pixels(rows: Any) -> list[int]:
    return [image.getpixel((0, 0)) for image in rows["image"][:]]


def test_numbers_in_cls_over_shards_and_splits(tmp_path: Path) -> None:
    root = tmp_path / "set[1]"  # a name that is a pattern, too
    shard(root / "train-000001.tar", {"png": png(2), "cls": 0}, {"png": png(3)})
    shard(root / "train-000000.tar", {"png": png(0), "cls": 1}, {"png": png(1), "cls": -1, "txt": b"a caption "})
    shard(root / "test-000000.tar", {"png": png(9)})
    found = read_source(pictures(), work=tmp_path / "w", path=root)
    train = found.splits["train"]
    assert list(found.splits) == ["train"]
    assert train.column_names == ["image", "label", "source_index", "txt", "__key__"]
    assert (pixels(train), train["label"][:], train["source_index"][:]) == ([0, 2], [1, 0], [0, 2])
    assert train["__key__"][:] == ["train-000000/0000", "train-000001/0000"]
    assert train.features["label"].names == ["0", "1"]
    assert train.features["image"] == Image()
    assert found.unlabelled == {"train": 2, "test": 1}
    assert found.origin == "WebDataset shards: train-000000.tar, train-000001.tar, test-000000.tar"
    assert str(tmp_path) not in json.dumps(train.cast_column("image", Image(decode=False))[:], default=repr)
    refused(pictures(filtered=("test",)), root, "'test' has no labels")


def test_labels_in_json_or_text_and_images_under_several_names(tmp_path: Path) -> None:
    samples = [
        {"jpg": png(0), "json": {"label": "dog", "size": 1}},
        {"png": png(1), "json": {"label": "cat", "size": None}},
        {"JPEG": png(2), "json": {"label": "", "size": None}},
    ]
    path = shard(tmp_path / "json.tar", *samples)
    found = read_source(pictures(names=("dog", "cat")), work=tmp_path / "w", path=path)
    train = found.splits["train"]
    assert (pixels(train), train["label"][:], found.unlabelled) == ([0, 1], [0, 1], {"train": 1})
    assert train["json"][:] == [{"label": "dog", "size": 1}, {"label": "cat", "size": None}]

    path = shard(tmp_path / "txt.tar", {"png": png(0), "txt": b"dog"}, {"png": png(1), "txt": b"cat"})
    train = read_source(pictures(), work=tmp_path / "w", path=path).splits["train"]
    assert (train.features["label"].names, train["label"][:]) == (["cat", "dog"], [1, 0])


def test_the_parts_that_the_spec_names_count_first(tmp_path: Path) -> None:
    sample = {"png": png(0), "jpg": png(7), "cls": 0, "cls2": 1, "seg.png": png(3), "bin": b"\x00"}
    path = shard(tmp_path / "train.tar", sample, {**sample, "cls": 1, "cls2": 0})
    found = read_source(pictures(inputs={"image": "jpg"}, label="cls2"), work=tmp_path / "w", path=path)
    train = found.splits["train"]
    assert (pixels(train), train["label"][:], train["cls"][:]) == ([7, 7], [1, 0], [0, 1])
    assert train["bin"][0] == b"\x00"
    assert train["seg.png"][0]["bytes"] == png(3)


def test_a_long_split_is_written_in_parts(tmp_path: Path) -> None:
    path = shard(tmp_path / "train.tar", *({"png": png(i % 256), "cls": i % 2} for i in range(450)))
    train = read_source(pictures(), work=tmp_path / "w", path=path).splits["train"]
    assert pixels(train) == [i % 256 for i in range(450)]
    assert len(train.data.column("image").chunks) == 3


@pytest.mark.parametrize(
    ("samples", "parts"),
    [
        ([{"cls": 1}], ("a.tar", "no sample has an image")),
        ([{"png": png(0), "cls": b"cat"}], ("0000.cls in a.tar", "whole number")),
        ([{"png": png(0), "json": b"{"}], ("0000.json in a.tar", "JSON")),
        ([{"png": png(0), "json": {"label": 0}}, {"png": png(0), "json": {"label": "x"}}], ("a.tar", "one type")),
        ([{"png": png(0), "cls": 0}, {"cls": 1}], ("null in row 1",)),
        ([{"png": png(0), "cls": 0}, {"png": png(1), "cls": 5}], ("'5'", "row 1", "train")),
    ],
)
def test_samples_that_cannot_be_used(tmp_path: Path, samples: list[dict[str, Any]], parts: tuple[str, ...]) -> None:
    refused(pictures(names=("a", "b")), shard(tmp_path / "a.tar", *samples), *parts)


def test_what_is_no_tar_file_or_is_cut_off(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", {"png": png(0) * 100, "cls": 0})
    path.write_bytes(path.read_bytes()[:2000])
    refused(pictures(), path, "a.tar", "cannot be read as a tar file")
    path.write_bytes(b"x" * 2000)
    refused(pictures(), path, "a.tar", "cannot be read as a tar file")
    refused(pictures(), shard(tmp_path / "b.tar"), "b.tar", "no sample")


@pytest.mark.skipif(datasets.__version__ < "5", reason="this version of datasets wants a column for every part")
def test_parts_of_no_known_type_are_left_out_with_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    npy = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }".ljust(128) + b"\n\x07"
    npy = npy[:127] + b"\n\x07"
    path = shard(tmp_path / "train.tar", *({"png": png(0), "cls": i, "npy": npy} for i in (0, 1)))
    train = read_source(pictures(), work=tmp_path / "w", path=path).splits["train"]
    assert train.column_names == ["image", "label", "source_index", "__key__"]
    assert "left out: npy" in caplog.text
