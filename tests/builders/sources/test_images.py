"""Image folders: classes, splits, images without a class, and folders that are laid out otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Image

from builders.sources import read_source
from tests.builders.sources.reading import SHARED, pictures, put, refused


def test_classes_of_splits(tmp_path: Path) -> None:
    root = put(tmp_path / "set", "val/b/3.png", "train/b/2.PNG", "train/a/1.png", "train/b/10.png", "val/a/4.png")
    put(root, ".cache/x/1.png", "train/a/._1.png")
    (root / "README.md").touch()
    found = read_source(pictures(filtered=("train", "validation")), work=tmp_path / "w", path=root)
    assert list(found.splits) == ["train", "validation"]
    train = found.splits["train"]
    assert train.column_names == ["image", "label", "source_index"]
    assert train.features["label"].names == ["a", "b"]
    assert (train["label"][:], train["source_index"][:]) == ([0, 1, 1], [0, 1, 2])
    assert [image.getpixel((0, 0)) for image in train["image"][:]] == [2, 3, 1]  # a/1, b/10, b/2
    raw = train.cast_column("image", Image(decode=False))[0]["image"]
    assert (raw["bytes"], raw["path"]) == (None, str(root / "train/a/1.png"))
    assert found.origin == "image folder set (5 images)"
    assert found.unlabelled == {}
    assert train.cache_files


def test_one_folder_of_classes_is_training_data(tmp_path: Path) -> None:
    root = put(tmp_path / "set", "zebra/1.jpg", "ant/1.jpg", "ant/2.jpg")
    found = read_source(pictures(), work=tmp_path / "w", path=root)
    assert (found.splits["train"].features["label"].names, found.splits["train"]["label"][:]) == (
        ["ant", "zebra"],
        [0, 0, 1],
    )
    named = read_source(pictures(names=("zebra", "ant"), label="fine"), work=tmp_path / "w", path=root)
    assert named.splits["train"]["label"][:] == [1, 1, 0]
    refused(pictures(names=("zebra", "bee")), root, "'ant'", "row 0", "train")


def test_images_in_no_class_have_no_label(tmp_path: Path) -> None:
    root = put(tmp_path / "set", "train/a/1.png", "train/b/1.png", "train/loose.png", "test/1.png", "test/2.png")
    found = read_source(pictures(), work=tmp_path / "w", path=root)
    assert (len(found.splits["train"]), found.unlabelled) == (2, {"train": 1, "test": 2})
    refused(pictures(filtered=("test",)), root, "'test' has no labels")
    refused(pictures(filtered=()), put(tmp_path / "tests", "train/1.png", "test/1.png"), "no labels", "train, test")


def test_the_hash_is_of_names_and_contents_and_not_of_the_place(tmp_path: Path) -> None:
    one, two = (put(tmp_path / name, "a/1.png", "b/1.png") for name in ("one", "two"))
    first, second = (read_source(pictures(), work=tmp_path / "w", path=path) for path in (one, two))
    assert first.revision == second.revision
    (one / "a/1.png").unlink()  # the images of the other are its own
    assert second.splits["train"][0]["image"].getpixel((0, 0)) == 0
    put(two, "b/1.png")
    assert read_source(pictures(), work=tmp_path / "w", path=two).revision != first.revision


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("1.png", "a/1.png"), ("1.png must lie in CLASS/",)),
        (("train/a/b/1.png",), ("train/a/b/1.png must lie",)),
        (("first/a/1.png", "train/b/1.png"), ("no split", "first")),
        (("val/a/1.png", "dev/a/1.png"), ("validation is there more than once", "dev, val")),
        (("train/a/1.png",), ("labels a", "two or more")),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, names: tuple[str, ...], parts: tuple[str, ...]) -> None:
    refused(pictures(filtered=()), put(tmp_path / "set", *names), *parts)


@pytest.mark.skipif(not (SHARED / "cifar10-small").is_dir(), reason="needs shared/data/cifar10-small")
def test_real_images(tmp_path: Path) -> None:
    found = read_source(pictures(filtered=("train", "test")), work=tmp_path, path=SHARED / "cifar10-small")
    assert {split: len(rows) for split, rows in found.splits.items()} == {"train": 2000, "test": 500}
    assert found.splits["test"].features["label"].names[:2] == ["airplane", "automobile"]
    assert found.splits["test"][499]["image"].size == (32, 32)
    assert sum(file.stat().st_size for file in tmp_path.rglob("*.arrow")) < 1_000_000  # paths, not bytes
