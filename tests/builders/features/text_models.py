"""Recipes of tiny text models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builders.features.transformer import TransformerRecipe, TransformerSettings

NAMES = ("entailment", "neutral", "contradiction")
PAIR = ("premise", "hypothesis")


def recipe_of(model: Path | str, *, names: Any = NAMES, inputs: Any = PAIR, **settings: Any) -> TransformerRecipe:
    defaults = {"model": str(model), "max_length": 24, "batch_size": 8, "learning_rate": 5e-3}
    chosen = TransformerSettings(**{**defaults, **settings})
    return TransformerRecipe(chosen, inputs=inputs, names=names, device="cpu")


def weights(folder: Path) -> bytes:
    return (folder / "model" / "model.safetensors").read_bytes()


def classifier(make_model: Any, name: str, *, names: tuple[str, ...] = NAMES, **more: Any) -> Path:
    labels = dict(enumerate(names))
    return make_model(name, num_labels=3, id2label=labels, label2id={v: k for k, v in labels.items()}, **more)
