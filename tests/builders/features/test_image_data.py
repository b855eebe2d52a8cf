"""How an image comes to a model."""

from __future__ import annotations

import io
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from builders.features.image_data import Augmentation, Evaluation, ImageRows, loaded, read_rgb
from tests.builders.features.image_sets import EVALUATION, colours


def rgba(*pixel: int) -> Image.Image:
    return Image.new("RGBA", (4, 4), pixel)


@pytest.mark.parametrize(
    ("image", "kind", "expected"),
    [
        (Image.new("L", (4, 4), 90), "PNG", (90, 90, 90)),
        (Image.new("1", (4, 4), 1), "PNG", (255, 255, 255)),
        (Image.new("P", (4, 4), 0), "PNG", (0, 0, 0)),
        (Image.new("RGB", (4, 4), (9, 8, 7)).quantize(2), "GIF", (9, 8, 7)),
        (rgba(10, 20, 30, 255), "PNG", (10, 20, 30)),
        (rgba(10, 20, 30, 0), "PNG", (255, 255, 255)),  # unseen, so white
        (Image.new("LA", (4, 4), (0, 0)), "PNG", (255, 255, 255)),
        (Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "TIFF", (255, 0, 0)),
        (Image.fromarray(np.full((4, 4), 128 * 256 + 7, np.uint16)), "PNG", (128, 128, 128)),
    ],
)
def test_every_kind_of_image_becomes_rgb(image: Image.Image, kind: str, expected: tuple[int, ...]) -> None:
    file = io.BytesIO()
    image.save(file, kind)
    found = read_rgb({"bytes": file.getvalue(), "path": None})
    assert found.mode == "RGB"
    assert found.getpixel((2, 2)) == expected


def test_palettes_with_transparent_bytes_become_white_without_a_warning() -> None:
    image = Image.new("P", (4, 4), 0)
    file = io.BytesIO()
    image.save(file, "PNG", transparency=b"\x00")
    assert read_rgb({"bytes": file.getvalue(), "path": None}).getpixel((0, 0)) == (255, 255, 255)


def test_images_are_turned_as_exif_says_and_read_from_paths(tmp_path: Path) -> None:
    pixels = np.zeros((2, 6, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown turned by a quarter
    Image.fromarray(pixels).save(tmp_path / "turned.jpg", exif=exif)
    assert read_rgb({"bytes": None, "path": str(tmp_path / "turned.jpg")}).size == (2, 6)


def test_the_fixed_transform_takes_the_centre() -> None:
    pixels = np.zeros((4, 12, 3), np.uint8)
    pixels[:, 4:8, 1] = 255  # a green square between black ones
    found = np.asarray(Evaluation(8, 1.0, "nearest")(Image.fromarray(pixels)))
    assert found.shape == (8, 8, 3)
    assert (found == (0, 255, 0)).all()
    ring = np.zeros((8, 8, 3), np.uint8)
    ring[2:6, 2:6] = 255
    assert (np.asarray(Evaluation(4, 0.5, "nearest")(Image.fromarray(ring))) == 255).all()


def augmented(image: Image.Image, *, epoch: int = 0, row: int = 0, **changes: Any) -> NDArray[np.uint8]:
    plain = Augmentation(EVALUATION, crop_min=1.0, flip=False, layers=0, magnitude=0, seed=0)
    return np.asarray(replace(plain, **changes)(image, epoch=epoch, row=row))


def test_augmentation_is_a_function_of_seed_epoch_and_row() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8))
    kinds = ({"crop_min": 0.3}, {"layers": 2, "magnitude": 9}, {"crop_min": 0.3, "flip": True, "layers": 2})
    for kind in kinds:
        drawn = [augmented(image, epoch=epoch, row=row, **kind) for epoch in range(4) for row in range(4)]
        again = [augmented(image, epoch=epoch, row=row, **kind) for epoch in range(4) for row in range(4)]
        np.testing.assert_array_equal(drawn, again)
        assert len({one.tobytes() for one in drawn}) > 4
        other = [augmented(image, epoch=epoch, row=row, seed=1, **kind) for epoch in range(4) for row in range(4)]
        assert (np.array(drawn) != np.array(other)).any()


def test_without_augmentation_training_sees_the_image_and_with_flips_its_mirror() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8))
    plain = np.asarray(EVALUATION(image))
    seen = [augmented(image, row=row) for row in range(20)]
    assert all((one == plain).all() for one in seen)
    flipped = [augmented(image, row=row, flip=True) for row in range(20)]
    mirrored = sum((one == plain[:, ::-1]).all() for one in flipped)
    assert 3 < mirrored < 17
    assert mirrored + sum((one == plain).all() for one in flipped) == 20


def test_magnitude_28_is_28_on_the_scale_of_the_paper() -> None:
    turns = []
    augmentation = Augmentation(EVALUATION, crop_min=1.0, flip=False, layers=2, magnitude=28, seed=0)
    operations = {one.name: one for one in augmentation._rand_augment.ops}
    rotate, translate = operations["Rotate"], operations["TranslateXRel"]
    for operation in (rotate, translate):
        operation.prob = 1.0
        operation.aug_fn = lambda image, amount, **_: turns.append(abs(amount)) or image
        operation(Image.new("RGB", (4, 4)))
    # the released code: level / 10 * 30 degrees, and level / 10 * 100 pixels, of B7's 600
    assert turns == pytest.approx([84, 280 / 600])


def test_workers_give_what_one_process_gives() -> None:
    augmentation = Augmentation(EVALUATION, crop_min=0.3, flip=True, layers=2, magnitude=9, seed=3)
    rows = ImageRows(colours(6), "image", augmentation)
    batches = [[(0, 4), (0, 1)], [(1, 4)], [(0, 0), (5, 5)]]
    alone, shared = (list(loaded(rows, batches, workers=workers, pinned=False)) for workers in (0, 2))
    assert all(torch.equal(one, two) for one, two in zip(alone, shared, strict=True))
    assert [len(batch) for batch in shared] == [2, 1, 2]


def bomb(width: int, height: int) -> bytes:
    """A PNG of some hundred bytes that claims to be large."""
    file = io.BytesIO()
    Image.new("L", (1, 1)).save(file, "PNG")
    content = bytearray(file.getvalue())
    content[16:24] = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    return bytes(content)


@pytest.mark.parametrize("size", [(10_001, 10_000), (60_000, 60_000)])
def test_images_with_too_many_pixels_are_refused_before_they_are_decoded(size: tuple[int, int]) -> None:
    assert read_rgb({"bytes": bomb(1, 1), "path": None}).size == (1, 1)
    with pytest.raises(ValueError, match="more than 100,000,000 pixels"):
        read_rgb({"bytes": bomb(*size), "path": None})


def test_no_other_program_is_run_for_an_image() -> None:
    file = io.BytesIO()
    Image.new("L", (1, 1)).save(file, "EPS")
    with pytest.raises(UnidentifiedImageError):
        read_rgb({"bytes": file.getvalue(), "path": None})
