"""Image features: a timm model, trained from scratch on the warm-up sample or with weights that exist."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.errors import BuildError
from builders.features.encoder import Encoded
from builders.features.image_data import Evaluation, ImageRows, loaded
from builders.features.image_models import (
    Checkpoint,
    Forward,
    create,
    find_checkpoint,
    load,
    no_weights,
    read_weights,
)
from builders.features.image_training import check_trained, train

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from torch import nn

OPTIMIZERS = ("adamw", "rmsprop", "sgd")
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class ImageSettings:
    """What decides an image encoder, besides the rows and the seed.

    The paper's (Le Bras et al., 2020, on ImageNet): EfficientNet-B7, trained from scratch on a fixed 20 % sample with
    RandAugment of 2 layers and magnitude 28, and as features the 2,560 values before the classifier. From EfficientNet
    (Tan and Le, 2019, section 5.2): images of 600 pixels, dropout 0.5 and stochastic depth 0.2 for B7. Everything else
    is chosen here.

    Attributes
    ----------
    model : str
        A timm architecture such as ``efficientnet_b7``, which has no weights and is trained from scratch; or one that
        brings weights: timm's with a tag (``resnet18.a1_in1k``), ``hf-hub:org/name``, or a folder with the
        ``config.json`` and ``model.safetensors`` that timm saves for the Hub. A warm-up starts from weights where
        there are some.
    weights : str, optional
        A ``.safetensors``, ``.pth`` or ``.bin`` file with timm's weights for an architecture that brings none.
    revision : str, optional
        Branch, tag or commit of a model on the Hub; ``main`` if not given.
    image_size : int
        Width and height of the model's input in pixels.
    crop_share : float
        For features, how much of the resized image's shorter side the centre crop keeps, in (0, 1].
    crop_min : float
        For training, the smallest share of the area that a random crop takes, in (0, 1]; at 1 there is no random crop.
    flip : bool
        Whether training mirrors every other image; wrong where left and right differ, as for digits.
    rand_augment_layers, rand_augment_magnitude : int
        RandAugment's N and M, with M up to 30 on its paper's scale for ImageNet; N = 0 turns it off.
    epochs, batch_size : int
        Passes over the warm-up sample, and most images of a batch (in training and for features).
    optimizer : str
        ``adamw``, ``rmsprop`` or ``sgd`` (the latter two with momentum 0.9).
    learning_rate : float
        At its highest, after a linear rise over the first `rise`; it then falls along a cosine to 0.
    rise : float
        Share of the training steps in which the learning rate rises.
    weight_decay : float
        Of all weights but biases and normalisation.
    label_smoothing : float
        How much of a label's mass is spread over all, in [0, 1).
    drop_rate, drop_path_rate : float
        Dropout before the classifier, and stochastic depth; 0 leaves the architecture's own.
    dtype : str
        Arithmetic of the forward pass: ``auto`` is bfloat16 (float16 where it has none) on a GPU and float32
        elsewhere; or ``float32``, ``bfloat16``, ``float16`` (GPU only).
    """

    model: str = "efficientnet_b7"
    weights: str | None = None
    revision: str | None = None
    image_size: int = 600
    crop_share: float = 0.949
    crop_min: float = 0.08
    flip: bool = True
    rand_augment_layers: int = 2
    rand_augment_magnitude: int = 28
    epochs: int = 100
    batch_size: int = 64
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    rise: float = 0.05
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    drop_rate: float = 0.5
    drop_path_rate: float = 0.2
    dtype: str = "auto"

    def __post_init__(self) -> None:
        least = {"image_size": 1, "epochs": 1, "batch_size": 1, "rand_augment_layers": 0, "rand_augment_magnitude": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise BuildError(f"{name} must be at least {bound}, not {getattr(self, name)}")
        for name in ("crop_share", "crop_min"):
            if not 0 < getattr(self, name) <= 1:
                raise BuildError(f"{name} must be above 0 and at most 1, not {getattr(self, name)}")
        for name in ("rise", "label_smoothing", "drop_rate", "drop_path_rate"):
            if not 0 <= getattr(self, name) < 1:
                raise BuildError(f"{name} must be at least 0 and below 1, not {getattr(self, name)}")
        if self.learning_rate <= 0 or self.weight_decay < 0:
            raise BuildError(
                f"learning_rate must be above 0 and weight_decay at least 0, not {self.learning_rate} and "
                f"{self.weight_decay}"
            )
        for name, known in (("optimizer", OPTIMIZERS), ("dtype", DTYPES)):
            if getattr(self, name) not in known:
                raise BuildError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")


class ImageRecipe:
    """Makes image encoders.

    Parameters
    ----------
    settings : ImageSettings
        What to train or load, and how.
    inputs : tuple of str
        The one image column.
    names : tuple of str
        Label names, in label order.
    device : str, optional
        Where to compute; a GPU if there is one, else the CPU.
    workers : int
        Processes that load images; 0 loads in this one. Results do not depend on it.

    Raises
    ------
    BuildError
        If the inputs, names, device or workers cannot be, or if `settings` ask for float16 without a GPU.
    """

    def __init__(
        self,
        settings: ImageSettings,
        *,
        inputs: tuple[str, ...] = ("image",),
        names: tuple[str, ...],
        device: str | None = None,
        workers: int = 2,
    ) -> None:
        if len(inputs) != 1:
            raise BuildError(f"an image model takes one input column, not {len(inputs)}: {', '.join(inputs)}")
        if len(names) < 2:
            raise BuildError(f"a warm-up model needs at least two label names, not {len(names)}")
        if workers < 0:
            raise BuildError(f"workers must be at least 0, not {workers}")
        self.settings = settings
        self.names = names
        self.workers = workers
        self.column = inputs[0]
        self._given_device = device
        self._found: Checkpoint | None = None

    def identity(self) -> Mapping[str, Any]:
        """Give, as JSON values, all that decides the features besides rows and seed.

        A path stands in it by the SHA-256 of what it holds, a model of the Hub with its commit.

        Raises
        ------
        BuildError, HubError
            As `find_checkpoint`.
        """
        found = self._checkpoint()
        facts = {**asdict(self.settings), "dtype": self.dtype(), "names": list(self.names), **found.facts}
        del facts["revision"], facts["weights"]
        if found.file or found.folder:
            facts["model"] = found.architecture
        return {"encoder": "image", **facts}

    def train(self, rows: Dataset, folder: Path, *, seed: int) -> None:
        """Train on the warm-up sample; called again after it was killed, it goes on after the last full epoch.

        At the end `folder` holds the model as timm saves for the Hub. On a CPU an equal seed gives identical weights,
        whether the run was killed or not and however many workers there are.

        Parameters
        ----------
        rows : datasets.Dataset
            The sample, with the image column and ``label``.
        folder : Path
            Where checkpoints and the model go.
        seed : int
            At least 0; decides first weights, order, augmentation and dropout.

        Raises
        ------
        BuildError
            If there are fewer than two rows, a label is outside the names, an image cannot be read, the loss is no
            number, or `folder` was begun with something else.
        """
        train(self, rows, folder, seed=seed)

    def load(self, folder: Path | None) -> ImageEncoder:
        """Give the model trained in `folder`, or with None the weights that the settings name as they are.

        Raises
        ------
        BuildError
            If there is no finished model in `folder`, it was trained for something else, or no weights are named.
        """
        if folder is None:
            found = self._checkpoint()
            if not found.has_weights:
                raise no_weights(str(found.architecture))
            model = load(found, size=self.settings.image_size)
        else:
            check_trained(self, folder)
            model = self.new_model()
            model.load_state_dict(read_weights(folder / "model.safetensors"))
        return ImageEncoder(self, model, with_logits=folder is not None)

    def new_model(self) -> nn.Module:
        """Give the model that a warm-up starts with, its output layer random."""
        found, settings = self._checkpoint(), self.settings
        rates = {"drop_rate": settings.drop_rate, "drop_path_rate": settings.drop_path_rate}
        if not found.has_weights:
            name = str(found.architecture)
            return create(name, classes=len(self.names), size=settings.image_size, **rates)
        model: Any = load(found, size=settings.image_size, **rates)
        model.reset_classifier(len(self.names))
        started: nn.Module = model
        return started

    def transform(self, model: Any) -> Evaluation:
        """Give the fixed transform for `model`."""
        return Evaluation(
            self.settings.image_size,
            self.settings.crop_share,
            str(model.pretrained_cfg.get("interpolation", "bicubic")),
        )

    def device(self) -> torch.device:
        """Where to compute."""
        import torch

        chosen = self._given_device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            return torch.empty(0, device=chosen).device
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise BuildError(f"device {chosen!r} cannot be used ({reason}); leave it out, or pass cpu") from error

    def dtype(self) -> str:
        """Arithmetic of the forward pass on the device."""
        import torch

        on_gpu = self.device().type == "cuda"
        if self.settings.dtype == "float16" and not on_gpu:
            raise BuildError("dtype float16 needs a GPU; use auto, float32 or bfloat16")
        if self.settings.dtype != "auto":
            return self.settings.dtype
        if not on_gpu:
            return "float32"
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"

    def _checkpoint(self) -> Checkpoint:
        if self._found is None:
            self._found = find_checkpoint(self.settings.model, self.settings.weights, self.settings.revision)
        return self._found


class ImageEncoder:
    """A trained or ready-made timm model; its features are what the classifier gets to see.

    Attributes
    ----------
    width : int
        Columns of the features.
    """

    def __init__(self, recipe: ImageRecipe, model: nn.Module, *, with_logits: bool) -> None:
        self._recipe = recipe
        self._with_logits = with_logits
        self._transform = recipe.transform(model)
        self._forward = Forward(model, recipe.device(), recipe.dtype())
        self.width: int = self._forward.width(recipe.settings.image_size)

    def encode(self, rows: Dataset) -> Encoded:
        """Give the features of `rows`, in their order.

        Parameters
        ----------
        rows : datasets.Dataset
            Rows with the image column; with ``source_index``, that names a row whose image is broken.

        Returns
        -------
        Encoded
            ``features`` float32 of shape (rows, width); ``logits`` float32 of shape (rows, K), None for weights that
            were not trained here.

        Raises
        ------
        BuildError
            If there are no rows, an image cannot be read, or a feature is no finite number.
        """
        if not len(rows):
            raise BuildError("no rows to encode; the source, or what was chosen of it, is empty")
        recipe = self._recipe
        batches = batches_in_order(len(rows), recipe.settings.batch_size)
        features = np.empty((len(rows), self.width), np.float32)
        logits = np.empty((len(rows), len(recipe.names)), np.float32) if self._with_logits else None
        images = ImageRows(rows, recipe.column, self._transform)
        pinned = self._forward.device.type == "cuda"
        done = 0
        for pixels in loaded(images, batches, workers=recipe.workers, pinned=pinned):
            of_batch, outputs = self._forward.encoded(pixels)
            part = slice(done, done + len(pixels))
            features[part] = of_batch.cpu().numpy()
            if logits is not None:
                logits[part] = outputs.cpu().numpy()
            done += len(pixels)
        if not np.isfinite(features).all():
            first = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
            row = rows.remove_columns(recipe.column)[first].get("source_index", first)
            raise BuildError(f"the features of row {row} are not finite; the model is broken, or dtype is too narrow")
        return Encoded(features, logits)


def batches_in_order(rows: int, size: int, *, part: int | None = None) -> list[list[tuple[int, int]]]:
    """Cut rows into batches, the first of them small so that the model need not wait for one worker to fill it.

    With `part`, each so many rows are cut alike, so their batches do not depend on what comes before or behind them.
    """
    small = max(1, size // 8)
    starts = []
    for first in range(0, rows, part or max(1, rows)):
        last = min(rows, first + (part or rows))
        starts += [*range(first, min(first + size, last), small), *range(first + size, last, size)]
    return [[(0, row) for row in range(start, stop)] for start, stop in itertools.pairwise([*starts, rows])]
