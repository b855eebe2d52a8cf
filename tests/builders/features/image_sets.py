"""Small images and recipes for them."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import datasets
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from builders.features.image_data import Evaluation
from builders.features.images import ImageRecipe, ImageSettings

NAMES = ("red", "green", "blue")
TINY = ImageSettings(
    model="test_resnet",
    image_size=16,
    crop_share=1.0,
    crop_min=0.5,
    rand_augment_magnitude=5,
    epochs=3,
    batch_size=8,
    learning_rate=0.003,
    drop_rate=0.2,
    drop_path_rate=0.0,
)
EVALUATION = Evaluation(16, 1.0, "bicubic")


def stored(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def table(images: list[dict[str, Any] | None], labels: list[int]) -> datasets.Dataset:
    columns = {"image": images, "label": labels, "source_index": [100 + row for row in range(len(labels))]}
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=list(NAMES))}
    return datasets.Dataset.from_dict(
        columns, features=datasets.Features({**features, "source_index": datasets.Value("int64")})
    )


def colours(rows: int, seed: int = 0) -> datasets.Dataset:
    """Noise in which the channel of the label is brighter."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    pixels = rng.integers(0, 160, (rows, 8, 8, 3))
    for row, label in enumerate(labels):
        pixels[row, :, :, label] += 90
    return table([stored(image.astype(np.uint8)) for image in pixels], labels.tolist())


def recipe(workers: int = 0, **changes: Any) -> ImageRecipe:
    return ImageRecipe(replace(TINY, **changes), names=NAMES, device="cpu", workers=workers)
