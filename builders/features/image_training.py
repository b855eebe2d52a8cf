"""The warm-up training of an image model, epoch by epoch, with a checkpoint after each."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.atomic import settle, whole_file, write_text
from builders.disk import told_when_full
from builders.errors import BuildError
from builders.features.image_data import Augmentation, EpochBatches, ImageRows, loaded
from builders.features.image_models import Forward
from builders.progress import progress
from builders.unfinished import read_facts, read_state, told_when_damaged
from unqover_data.files import json_of

if TYPE_CHECKING:
    import torch
    from datasets import Dataset

    from builders.features.images import ImageRecipe, ImageSettings

_MARKER, _CHECKPOINT = "trained.json", "checkpoint.pt"
_logger = logging.getLogger(__name__)


def train(recipe: ImageRecipe, rows: Dataset, folder: Path, *, seed: int) -> None:
    """Do what `ImageRecipe.train` promises."""
    import torch

    labels = _labels(rows, len(recipe.names))
    facts = {**recipe.identity(), "seed": seed, "rows": _rows_hash(rows, labels)}
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / _MARKER).is_file():
        _check_facts(read_facts(folder / _MARKER), facts, folder)
        return
    with torch.random.fork_rng(devices=[recipe.device()] if recipe.device().type == "cuda" else []):
        torch.manual_seed(seed)
        run = _Run(recipe, folder, facts, seed=seed)
        run.go(rows, labels)
        _save(run.model, recipe, folder, facts)


def check_trained(recipe: ImageRecipe, folder: Path) -> None:
    """Raise `BuildError` unless `folder` holds a finished model of this recipe."""
    if not (folder / _MARKER).is_file():
        raise BuildError(f"{folder} has no finished model; run the warm-up, which goes on where it was")
    _check_facts(read_facts(folder / _MARKER), recipe.identity(), folder)


class _Run:
    """A model, its optimiser and how far they are."""

    def __init__(self, recipe: ImageRecipe, folder: Path, facts: Mapping[str, Any], *, seed: int) -> None:
        import torch

        self.recipe, self.folder, self.facts, self.seed = recipe, folder, facts, seed
        self.model: Any = recipe.new_model()
        self.forward = Forward(self.model, recipe.device(), recipe.dtype())
        self.forward.width(recipe.settings.image_size)
        self.optimizer = _optimizer(self.model, recipe.settings)
        self.scaler = torch.amp.GradScaler(self.forward.device.type, enabled=recipe.dtype() == "float16")
        self.epoch = self._resume() if (folder / _CHECKPOINT).is_file() else 0

    def go(self, rows: Dataset, labels: NDArray[np.int64]) -> None:
        """Train the epochs that are left."""
        import torch

        settings = self.recipe.settings
        augmentation = Augmentation(
            self.recipe.transform(self.model),
            settings.crop_min,
            settings.flip,
            settings.rand_augment_layers,
            settings.rand_augment_magnitude,
            self.seed,
        )
        images = ImageRows(rows, self.recipe.column, augmentation)
        batches = EpochBatches(len(rows), settings.batch_size, range(self.epoch, settings.epochs), self.seed)
        pinned = self.forward.device.type == "cuda"
        pixels = loaded(images, batches, workers=self.recipe.workers, pinned=pinned)
        steps = zip(pixels, batches, strict=True)
        length = batches.per_epoch
        total, done = settings.epochs * length, self.epoch * length
        losses = torch.zeros(length, device=self.forward.device)
        self.model.train()
        for step, (images_of, batch) in enumerate(progress(steps, total=total, label="warm-up", done=done), start=done):
            if step % length == 0:
                torch.manual_seed(int(np.random.SeedSequence([self.seed, self.epoch]).generate_state(1)[0]))
            targets = torch.from_numpy(labels[[row for _, row in batch]])
            losses[step % length] = self._step(images_of, targets, _rate(settings, step, length))
            if (step + 1) % length == 0:
                self._end_epoch(float(losses.mean()))

    def _end_epoch(self, loss: float) -> None:
        self.epoch += 1
        if not math.isfinite(loss):
            raise BuildError(f"the loss of epoch {self.epoch} is {loss}; use a lower learning_rate, or dtype float32")
        _logger.info("epoch %d of %d: loss %.4f", self.epoch, self.recipe.settings.epochs, loss)
        self._write()

    def _step(self, pixels: torch.Tensor, targets: torch.Tensor, rate: float) -> torch.Tensor:
        from torch.nn.functional import cross_entropy

        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with self.forward.autocast():
            outputs = self.model(self.forward.inputs(pixels))
        targets = targets.to(self.forward.device, non_blocking=True)
        loss = cross_entropy(outputs.float(), targets, label_smoothing=self.recipe.settings.label_smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def _parts(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "scaler": self.scaler}

    def _write(self) -> None:
        """Write a checkpoint; the generators need no place in it, since every epoch seeds them anew."""
        import torch

        state = {name: part.state_dict() for name, part in self._parts().items()}
        with whole_file(self.folder / _CHECKPOINT) as unfinished, unfinished.open("wb") as file:
            torch.save({"epoch": self.epoch, "facts": json.dumps(self.facts), **state}, file)

    def _resume(self) -> int:
        path = self.folder / _CHECKPOINT
        saved = read_state(path, self.forward.device)
        with told_when_damaged(path):
            _check_facts(json_of(saved["facts"]), self.facts, self.folder)
            for name, part in self._parts().items():
                part.load_state_dict(saved[name])
            epoch = int(saved["epoch"])
        _logger.info("going on after epoch %d, from %s", epoch, path)
        return epoch


def _optimizer(model: Any, settings: ImageSettings) -> torch.optim.Optimizer:
    import torch

    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=settings.learning_rate, momentum=0.9, nesterov=True)
    if settings.optimizer == "rmsprop":
        return torch.optim.RMSprop(groups, lr=settings.learning_rate, momentum=0.9, alpha=0.9, eps=1e-3)
    return torch.optim.AdamW(groups, lr=settings.learning_rate)


def _rate(settings: ImageSettings, step: int, per_epoch: int) -> float:
    """Give the learning rate of a step: up along a line, then down along half a cosine to 0 after the last."""
    total = settings.epochs * per_epoch
    rising = settings.rise * total
    if step < rising:
        return settings.learning_rate * (step + 1) / (rising + 1)
    return settings.learning_rate * (1 + math.cos(math.pi * (step - rising) / (total - rising))) / 2


def _save(model: Any, recipe: ImageRecipe, folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the model as timm does for the Hub, the marker last."""
    import torch
    from timm.models import save_for_hf

    settings = recipe.settings
    size = [3, settings.image_size, settings.image_size]
    as_trained = {"input_size": size, "crop_pct": settings.crop_share}
    model = model.to("cpu", memory_format=torch.contiguous_format)
    config = {"label_names": list(recipe.names), "pretrained_cfg": as_trained}
    with told_when_full(folder / "model.safetensors"):
        save_for_hf(model, str(folder), model_config=config, safe_serialization=True)
    settle(folder)
    write_text(folder / _MARKER, json.dumps(facts, indent=2) + "\n")
    (folder / _CHECKPOINT).unlink(missing_ok=True)


def _check_facts(saved: Mapping[str, Any], asked: Mapping[str, Any], folder: Path) -> None:
    for name, value in asked.items():
        if saved.get(name) != value:
            raise BuildError(
                f"{folder} was begun with {name} = {saved.get(name)!r}, not {value!r}; use another folder or remove it"
            )


def _labels(rows: Dataset, classes: int) -> NDArray[np.int64]:
    if len(rows) < 2:
        raise BuildError(f"a warm-up needs at least 2 rows, not {len(rows)}; use a larger warm-up share")
    if "label" not in rows.column_names:
        raise BuildError(f"warm-up rows need a column 'label'; they have {', '.join(rows.column_names)}")
    labels = np.asarray(rows.with_format("numpy")["label"][:], dtype=np.int64)
    if labels.min() < 0 or labels.max() >= classes:
        outside = labels[(labels < 0) | (labels >= classes)][0]
        raise BuildError(f"label {outside} is outside the {classes} names (0 to {classes - 1}); drop its rows first")
    return labels


def _rows_hash(rows: Dataset, labels: NDArray[np.int64]) -> str:
    """Hash labels and places of the rows; of the pixels the caller knows whether they changed."""
    digest = sha256(labels.tobytes())
    if "source_index" in rows.column_names:
        digest.update(np.asarray(rows.with_format("numpy")["source_index"][:], dtype=np.int64).tobytes())
    return f"{len(rows)} rows, sha256:{digest.hexdigest()}"
