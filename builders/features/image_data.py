"""Images on their way to a model: decoded, made RGB, resized and augmented by workers of a torch DataLoader.

What a training image looks like is a function of seed, epoch and row alone, so the number of workers changes nothing.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.images import broken_image, image_bytes, open_image

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from PIL.Image import Image

_WHITE = (255, 255, 255, 255)
_TRANSLATION = 100 / 600

Transform = Callable[["Image"], "Image | NDArray[Any]"]


@dataclass(frozen=True)
class Evaluation:
    """The fixed transform: the shorter side resized, then the centre cut out.

    Attributes
    ----------
    size : int
        Width and height of what comes out, in pixels.
    crop_share : float
        Side of the centre crop as a share of the resized image's shorter side.
    interpolation : str
        ``bilinear``, ``bicubic`` or another filter of Pillow.
    """

    size: int
    crop_share: float
    interpolation: str

    def __call__(self, image: Image) -> Image:
        """Give the RGB image at `size`."""
        side = min(image.size) * self.crop_share
        left, top = (image.width - side) / 2, (image.height - side) / 2
        return _cut(image, (left, top, left + side, top + side), self.size, self.interpolation)


@dataclass(frozen=True)
class Augmentation:
    """The training transform: a random crop, a flip, and RandAugment.

    Attributes
    ----------
    evaluation : Evaluation
        What is done instead of the random crop when `crop_min` is 1.
    crop_min : float
        Smallest share of the area that the random crop may take.
    flip : bool
        Whether every other image is mirrored left to right.
    layers, magnitude : int
        RandAugment's N and M.
    seed : int
        Decides, with epoch and row, what happens to an image.

    Notes
    -----
    RandAugment (Cubuk et al., 2020, arXiv:1909.13719) has M on the scale of its released code, where 10 is full
    strength and M goes to 30: a rotation is by 3 M degrees. timm cuts M at 10 unless ``mmax`` says otherwise, so
    ``mmax`` is set here and M = 28 is 28. Each layer is applied with probability 0.5 (the released code draws that from
    0.2 to 0.8). A translation at full strength is 100 of 600 pixels, the released code's at the size of
    EfficientNet-B7; at other sizes it is the same share. Cutout, the sixteenth operation, is not in timm's list.
    """

    evaluation: Evaluation
    crop_min: float
    flip: bool
    layers: int
    magnitude: int
    seed: int

    def __call__(self, image: Image, *, epoch: int, row: int) -> Image:
        """Give the RGB image at the size of `evaluation`, changed as the epoch and the row have it."""
        source = np.random.SeedSequence([self.seed, epoch, row])
        rng = np.random.default_rng(source)
        size, interpolation = self.evaluation.size, self.evaluation.interpolation
        if self.crop_min < 1:
            image = _cut(image, _random_box(image.size, self.crop_min, rng), size, interpolation)
        else:
            image = self.evaluation(image)
        if self.flip and rng.random() < 0.5:
            from PIL import ImageOps

            image = ImageOps.mirror(image)
        if not self.layers:
            return image
        with _global_generators(source.generate_state(4)):
            changed: Image = self._rand_augment(image)
        return changed

    @cached_property
    def _rand_augment(self) -> Any:
        from timm.data.auto_augment import rand_augment_transform

        return rand_augment_transform(
            f"rand-m{self.magnitude}-n{self.layers}-p0.5-mmax{max(self.magnitude, 1)}",
            {"translate_pct": _TRANSLATION, "img_mean": (128, 128, 128)},
        )


def _random_box(size: tuple[int, int], smallest: float, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Draw a crop of some share of the area and a ratio of sides from 3:4 to 4:3, cut to what fits."""
    share = rng.uniform(smallest, 1)
    ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
    area = size[0] * size[1] * share
    width, height = min(size[0], np.sqrt(area * ratio)), min(size[1], np.sqrt(area / ratio))
    left, top = rng.uniform(0, size[0] - width), rng.uniform(0, size[1] - height)
    return float(left), float(top), float(left + width), float(top + height)


def _cut(image: Image, box: tuple[float, float, float, float], size: int, interpolation: str) -> Image:
    from PIL.Image import Resampling

    return image.resize((size, size), Resampling[interpolation.upper()], box=box)


@contextlib.contextmanager
def _global_generators(words: NDArray[Any]) -> Iterator[None]:
    """Seed the generators that timm's augmentation draws from, and leave them as they were."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(words.tobytes())
    np.random.seed(words)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def read_rgb(value: Mapping[str, Any]) -> Image:
    """Decode an image as ``datasets`` stores it, turn it as its EXIF data says, and make it RGB.

    Transparent parts become white; 16 bits of grey become 8.
    """
    from PIL import Image as pillow

    image = open_image(image_bytes(value))
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.int64) // 256
        return pillow.fromarray(grey.clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = pillow.alpha_composite(pillow.new("RGBA", image.size, _WHITE), image)
    rgb: Image = image.convert("RGB")
    return rgb


class ImageRows:
    """Rows as a torch data set: an item is asked for by ``(epoch, row)`` and is an image's pixels and its row.

    Parameters
    ----------
    rows : datasets.Dataset
        Rows with the images.
    column : str
        Name of the image column.
    transform : Augmentation or callable
        What makes the model's input of an RGB image: another image, or an array as the model takes it.
    """

    def __init__(self, rows: Dataset, column: str, transform: Augmentation | Transform) -> None:
        import datasets

        if not isinstance(rows.features.get(column), datasets.Image):
            have = ", ".join(f"{name} ({type(feature).__name__})" for name, feature in rows.features.items())
            raise BuildError(f"column {column!r} must be there and hold images; the columns are {have}")
        named = [name for name in (column, "source_index") if name in rows.column_names]
        self._rows = rows.select_columns(named).cast_column(column, datasets.Image(decode=False)).with_format(None)
        self._column = column
        self._transform = transform

    def __getitems__(self, items: Sequence[tuple[int, int]]) -> list[NDArray[Any] | BuildError]:
        """Give the pixels of each item, (3, size, size), uint8 for images, or the error of one that cannot be read."""
        batch = self._rows[[row for _, row in items]]
        places = batch.get("source_index") or [row for _, row in items]
        return [
            self._pixels(value, place, epoch, row)
            for value, place, (epoch, row) in zip(batch[self._column], places, items, strict=True)
        ]

    def _pixels(self, value: Any, place: int, epoch: int, row: int) -> NDArray[Any] | BuildError:
        if value is None:
            return BuildError(f"row {place} (source_index) has no image in column {self._column!r}; leave the row out")
        try:
            image = read_rgb(value)
        except Exception as error:  # a decoder may raise anything on a broken file
            return BuildError(broken_image(value, place, error))
        if isinstance(self._transform, Augmentation):
            made: Image | NDArray[Any] = self._transform(image, epoch=epoch, row=row)
        else:
            made = self._transform(image)
        return made if isinstance(made, np.ndarray) else np.ascontiguousarray(np.asarray(made).transpose(2, 0, 1))


@dataclass(frozen=True)
class EpochBatches:
    """Batches of shuffled rows, epoch after epoch, of sizes that differ by one at most.

    Attributes
    ----------
    rows : int
        How many rows there are.
    batch_size : int
        Most rows of a batch.
    epochs : range
        The epochs to be gone through; the order within one is a function of `seed` and the epoch.
    seed : int
        Decides the orders.
    """

    rows: int
    batch_size: int
    epochs: range
    seed: int

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        """Give batches of ``(epoch, row)``."""
        for epoch in self.epochs:
            order = np.random.default_rng([self.seed, epoch]).permutation(self.rows)
            for part in np.array_split(order, self.per_epoch):
                yield [(epoch, int(row)) for row in part]

    def __len__(self) -> int:
        return self.per_epoch * len(self.epochs)

    @property
    def per_epoch(self) -> int:
        """Batches of an epoch."""
        return -(-self.rows // self.batch_size)


def loaded(
    rows: ImageRows, batches: Sequence[Any] | EpochBatches, *, workers: int, pinned: bool
) -> Iterator[torch.Tensor]:
    """Load batches ahead in worker processes and give them in order.

    Parameters
    ----------
    rows : ImageRows
        What is loaded from.
    batches : iterable of lists of (int, int)
        ``(epoch, row)`` of each item of each batch.
    workers : int
        Processes; 0 loads in this one.
    pinned : bool
        Whether to copy to memory from which a GPU loads fast.

    Yields
    ------
    Tensor of uint8, shape (batch, 3, size, size)

    Raises
    ------
    BuildError
        If an image cannot be read, or a worker was killed.
    """
    for pixels, broken in loaded_apart(rows, batches, workers=workers, pinned=pinned):
        for error in broken.values():
            raise error
        if pixels is not None:
            yield pixels


def loaded_apart(
    rows: ImageRows, batches: Sequence[Any] | EpochBatches, *, workers: int, pinned: bool
) -> Iterator[tuple[torch.Tensor | None, dict[int, BuildError]]]:
    """Load batches as `loaded` does, and go on where an image cannot be read.

    Yields
    ------
    Tensor, shape (readable, 3, size, size), or None
        The images that can be read, in order; None where there is none.
    dict of int to BuildError
        What is wrong with the others, by their place in the batch.

    Raises
    ------
    BuildError
        If a worker was killed.
    """
    import torch
    from joblib import cpu_count
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(
        rows,  # type: ignore[arg-type]  # torch asks for what it names, not for a base class
        batch_sampler=batches,
        num_workers=min(workers, cpu_count()),
        collate_fn=_collate,
        pin_memory=pinned,
        generator=torch.Generator(),
    )
    try:
        with warnings.catch_warnings():  # from Python 3.12; the workers touch nothing that has threads
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            iterator = iter(loader)
        yield from iterator
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        reason = " ".join(str(error).split())
        raise BuildError(
            f"a process that loads images died ({reason}); use fewer workers or a smaller batch_size"
        ) from error


def _collate(items: list[NDArray[Any] | BuildError]) -> tuple[torch.Tensor | None, dict[int, BuildError]]:
    import torch

    pixels = [item for item in items if not isinstance(item, BuildError)]
    broken = {place: item for place, item in enumerate(items) if isinstance(item, BuildError)}
    return torch.from_numpy(np.stack(pixels)) if pixels else None, broken
