"""Classifiers that are ready to be used: rows in, logits out, with whatever makes the inputs ahead of the model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.classifiers.labels import classes_in_order
from evaluation.classifiers.sets import LabelledRows
from evaluation.errors import EvaluationError
from evaluation.loading import DTYPES, chosen_device, first_use, load_model, load_parts, moved
from evaluation.models import CLASSIFIERS, ModelRef, check_choice

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from builders.features.text_encoder import TransformerEncoder

INPUT_COLUMNS = "input_columns"  # in config.json, of models that were trained here

_MOST_TOKENS = 512  # of a row, for models whose positions have no end
_IMAGES = 64
_MOST_WORKERS = 16
_IMAGENET = 1000
_CHANNELS = 3


@dataclass(frozen=True)
class Outputs:
    """What a model gives for consecutive rows.

    Attributes
    ----------
    logits : float32 array, shape (rows, classes of the model)
        NaN in the rows of `broken`.
    broken : mapping of int to str
        Why a row has no input, by its place among these.
    """

    logits: NDArray[np.float32]
    broken: Mapping[int, str] = field(default_factory=dict)


class Classifier(Protocol):
    """A model that is ready to be used."""

    @property
    def classes(self) -> tuple[tuple[str, ...], ...]:
        """Names of the outputs, in their order; several where a model may be read in several ways."""

    @property
    def facts(self) -> dict[str, Any]:
        """What a result says of how inputs were made."""

    def outputs(self, rows: LabelledRows, *, part: int | None = None) -> Iterator[Outputs]:
        """Give what the model says of all rows, some at a time and in order.

        With `part`, no batch has rows from both sides of a multiple of it, so that what is said of so many rows does
        not depend on what came before them: on where a run was cut.
        """


def load_classifier(
    ref: ModelRef, *, dtype: str, device: str | None, batch_size: int | None, workers: int | None
) -> Classifier:
    """Load a classifier.

    Parameters
    ----------
    ref : ModelRef
        Of a kind in `CLASSIFIERS`.
    dtype : str
        ``float32``, ``float16`` or ``bfloat16``; logits are handed on in float32 and softmax is in float64.
    device : str, optional
        ``cuda`` where there is one, else ``cpu``.
    batch_size : int, optional
        Rows at once at most; by default 64 images, or as many texts as make a fixed number of tokens.
    workers : int, optional
        Processes that decode images; by default all cores but one, and 16 at most.

    Raises
    ------
    EvaluationError, BuildError
        If the head or other weights are missing, or the model cannot be used.
    HubError
        If files cannot be fetched.
    """
    if ref.kind == "text-classifier":
        return TextClassifier(ref, dtype=dtype, device=device, batch_size=batch_size)
    cores = min(_MOST_WORKERS, max(1, (os.cpu_count() or 1) - 1))
    loaded = _timm_model if ref.library == "timm" else _transformers_model
    return ImageClassifier(
        loaded(ref, dtype=dtype, device=chosen_device(device)),
        batch_size=batch_size or _IMAGES,
        workers=cores if workers is None else workers,
    )


def check_together(ref: ModelRef, name: str, modality: str) -> None:
    """Raise `EvaluationError` if a model does not take the inputs of a set of that name, text or images."""
    takes = CLASSIFIERS[ref.kind]
    if takes != modality:
        other = next(kind for kind, one in CLASSIFIERS.items() if one == modality)
        raise EvaluationError(
            f"{ref.name} classifies {takes}s and {name} holds {modality}s: pass a model of kind {other}"
        )


class TextClassifier:
    """A sequence classifier of transformers; batches of rows of one length are made while the model is busy."""

    def __init__(self, ref: ModelRef, *, dtype: str, device: str | None, batch_size: int | None) -> None:
        self._loaded = loaded = load_model(ref, device=device, dtype=dtype)
        if loaded.tokenizer.pad_token_id is None:
            raise EvaluationError(
                f"{ref.name} has no padding token, which a row without text is made of: set one in its tokenizer"
            )
        if loaded.model.config.pad_token_id is None:
            loaded.model.config.pad_token_id = loaded.tokenizer.pad_token_id
        self.model = loaded.model
        self._most = loaded.limit or _MOST_TOKENS
        self._batch_size = batch_size
        self.classes = (classes_in_order(loaded.model.config.id2label),)
        self.facts = {"max_length": self._most}

    def outputs(self, rows: LabelledRows, *, part: int | None = None) -> Iterator[Outputs]:
        """Give logits; rows longer than the model takes are cut."""
        for block in self.encoder(rows).encoded(rows.data, part=part):
            yield Outputs(block.features)

    def encoder(self, rows: LabelledRows) -> TransformerEncoder:
        """Give what makes batches of rows and encodes them, as logits."""
        from builders.features.text_encoder import RowTokenizer, TransformerEncoder

        def forward(batch: Mapping[str, Any]) -> tuple[Any, None]:
            return self.model(**batch).logits, None

        tokenizer = RowTokenizer(self._loaded.tokenizer, self._columns(rows), self._most)
        return TransformerEncoder(
            tokenizer, forward, order=None, device=self._loaded.device, most_rows=self._batch_size
        )

    def _columns(self, rows: LabelledRows) -> tuple[str, ...]:
        """Columns that the model reads: those that its configuration names, of a partial-input model, else all."""
        named = tuple(getattr(self._loaded.model.config, INPUT_COLUMNS, rows.inputs))
        if missing := [column for column in named if column not in rows.inputs]:
            raise EvaluationError(
                f"{self._loaded.ref.name} reads the column {missing[0]}, which {rows.name} lacks "
                f"(it has {', '.join(rows.inputs)}): pass a model that was trained on such rows"
            )
        return named


@dataclass(frozen=True)
class ImageModel:
    """An image model, and what makes its inputs.

    Attributes
    ----------
    forward : callable
        From a batch of what `transform` gives to logits.
    transform : callable
        From an RGB image to an image or array for the model; runs in the workers.
    classes, facts
        As of `Classifier`.
    on_gpu : bool
        Whether batches are moved to a GPU.
    """

    forward: Callable[[torch.Tensor], torch.Tensor]
    transform: Callable[[Image], Image | NDArray[Any]]
    classes: tuple[tuple[str, ...], ...]
    facts: dict[str, Any]
    on_gpu: bool


class ImageClassifier:
    """An image classifier whose images are decoded ahead of it by processes."""

    def __init__(self, model: ImageModel, *, batch_size: int, workers: int) -> None:
        self._model, self._batch_size, self._workers = model, batch_size, workers
        self.classes, self.facts, self.forward = model.classes, model.facts, model.forward

    def outputs(self, rows: LabelledRows, *, part: int | None = None) -> Iterator[Outputs]:
        """Give logits, and which images cannot be decoded."""
        for size, pixels, broken in self.batches(rows, part=part):
            logits = np.full((size, len(self.classes[0])), np.nan, np.float32)
            readable = [place for place in range(size) if place not in broken]
            if pixels is not None:
                logits[readable] = self.forward(pixels).float().cpu().numpy()
            yield Outputs(logits, {place: str(error) for place, error in broken.items()})

    def batches(
        self, rows: LabelledRows, *, part: int | None = None
    ) -> Iterator[tuple[int, torch.Tensor | None, Mapping[int, Exception]]]:
        """Give the size of each batch, its images that can be decoded, and why the others cannot, by their place."""
        from builders.features.image_data import ImageRows, loaded_apart
        from builders.features.images import batches_in_order

        images = ImageRows(rows.data, rows.inputs[0], self._model.transform)
        batches = batches_in_order(len(rows), self._batch_size, part=part)
        loader = loaded_apart(images, batches, workers=self._workers, pinned=self._model.on_gpu)
        for batch, (pixels, broken) in zip(batches, loader, strict=True):
            yield len(batch), pixels, broken


def _timm_model(ref: ModelRef, *, dtype: str, device: str) -> ImageModel:
    from builders.features.image_models import Checkpoint, load

    check_choice("dtype", dtype, DTYPES)
    checkpoint = Checkpoint(folder=Path(ref.path)) if ref.local else Checkpoint(repository=ref.path, sha=ref.sha)
    model: Any = load(checkpoint, size=None)
    if not model.num_classes:
        raise EvaluationError(
            f"{ref.name} has no trained classifier, only features: pass a model with its output layer"
        )
    with first_use(ref):
        return _timm_parts(ref, model, dtype=dtype, device=device)


def _timm_parts(ref: ModelRef, model: Any, *, dtype: str, device: str) -> ImageModel:
    """Make what goes around a model of its own configuration, and try it."""
    import torch
    from timm.data.config import resolve_data_config
    from timm.data.transforms_factory import transforms_imagenet_eval
    from torchvision.transforms import Compose

    from builders.features.image_models import Forward

    data: Any = resolve_data_config({}, model=model, use_test_size=True)  # type: ignore[no-untyped-call]
    if (channels := data["input_size"][0]) != _CHANNELS:
        raise EvaluationError(f"{ref.name} takes images of {channels} channels, and images are read as RGB")
    pixels = transforms_imagenet_eval(
        data["input_size"][-2:],
        data["crop_pct"],
        data["crop_mode"],
        interpolation=data["interpolation"],
        mean=tuple(data["mean"]),  # what borders are filled with
        normalize=False,
    )
    forward = Forward(moved(model, device), torch.device(device), dtype)
    transform = Compose(pixels.transforms[:-1])  # the last makes a tensor
    forward.logits(torch.from_numpy(np.array(transform(_blank()))).movedim(-1, 0)[None])
    return ImageModel(
        forward.logits,
        transform,
        _classes_of_timm(model),
        {name: data[name] for name in ("input_size", "crop_pct", "crop_mode", "interpolation", "mean", "std")},
        torch.device(device).type == "cuda",
    )


def _blank() -> Image:
    """Make an image to try a model on."""
    from PIL import Image

    return Image.new("RGB", (64, 48))


def _classes_of_timm(model: Any) -> tuple[tuple[str, ...], ...]:
    """Names that the model brings; without them, those of ImageNet for its number of classes, or none but numbers."""
    if names := model.pretrained_cfg.get("label_names"):
        return (tuple(map(str, names.values() if isinstance(names, Mapping) else names)),)
    if model.num_classes == _IMAGENET:
        from evaluation.classifiers.ood.imagenet import imagenet_classes

        return imagenet_classes()
    return (tuple(f"LABEL_{place}" for place in range(model.num_classes)),)


def _transformers_model(ref: ModelRef, *, dtype: str, device: str) -> ImageModel:
    import torch

    model, processor, *_ = load_parts(ref, "image-classifier", "AutoImageProcessor", dtype=dtype, device=device)
    model = moved(model, device)

    def forward(pixels: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            logits: torch.Tensor = model(
                pixel_values=pixels.to(device, getattr(torch, dtype), non_blocking=True)
            ).logits
        return logits

    def transform(image: Image) -> NDArray[np.float32]:
        made: NDArray[np.float32] = np.asarray(
            processor(images=image, return_tensors="np")["pixel_values"][0], np.float32
        )
        return made

    with first_use(ref):
        forward(torch.from_numpy(transform(_blank()))[None])
    return ImageModel(
        forward,
        transform,
        (classes_in_order(model.config.id2label),),
        {"processor": type(processor).__name__},
        torch.device(device).type == "cuda",
    )
