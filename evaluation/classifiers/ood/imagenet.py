"""ImageNet-A's 200 classes, and where they are among the outputs of a model of more classes."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import EvaluationError

_NUMBER = 1000
_LIKELY = 0.5  # names differ a little between libraries, those of other classes or of another order throughout


def imagenet_a_classes() -> tuple[str, ...]:
    """WordNet ids of the 200 classes, sorted, as timm lists them."""
    return tuple(_lines("imagenet_a_synsets.txt"))


def imagenet_classes() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """ImageNet's 1,000 classes in their usual order: in words, as datasets name them, and as WordNet ids."""
    ids = tuple(_lines("imagenet_synsets.txt"))
    lemmas = dict(line.split("\t") for line in _lines("imagenet_synset_to_lemma.txt"))
    return tuple(lemmas[wnid] for wnid in ids), ids


def imagenet_a_columns(classes: int, names: Sequence[str] | None = None) -> NDArray[np.int64]:
    """Find the outputs of a model that are ImageNet-A's classes.

    Only these compete, as in the authors' evaluation: take ``logits[:, columns]`` and then the softmax or the largest.

    Parameters
    ----------
    classes : int
        Outputs of the model.
    names : sequence of str, optional
        The model's name of each. WordNet ids are found wherever they are; without them the model must have
        ImageNet's 1,000 classes in their usual order, which names in words have to bear out.

    Returns
    -------
    int64 array, shape (200,)
        An index for each of `imagenet_a_classes`.

    Raises
    ------
    EvaluationError
        If the model has other classes.
    """
    wanted = imagenet_a_classes()
    places = {name: place for place, name in enumerate(names or ())}
    if all(wnid in places for wnid in wanted):
        return np.array([places[wnid] for wnid in wanted])
    if classes != _NUMBER:
        raise EvaluationError(
            f"imagenet-a needs a model of ImageNet's 1,000 classes, or one whose classes are named by WordNet ids; "
            f"this one has {classes:,} classes"
        )
    usual = {wnid: place for place, wnid in enumerate(_lines("imagenet_synsets.txt"))}
    columns = np.array([usual[wnid] for wnid in wanted])
    if names and not all(name.startswith("LABEL_") for name in names):
        lemmas = dict(line.split("\t") for line in _lines("imagenet_synset_to_lemma.txt"))
        alike = [_first(names[place]) == _first(lemmas[wnid]) for place, wnid in zip(columns, wanted, strict=True)]
        if np.mean(alike) < _LIKELY:
            raise EvaluationError(
                f"imagenet-a needs ImageNet's 1,000 classes in their usual order, but {len(alike) - sum(alike)} of the "
                f"200 that are scored have another name, such as {names[columns[alike.index(False)]]!r}"
            )
    return columns


def _first(name: str) -> str:
    """The first of several words for a class, in a form that libraries agree on."""
    return name.split(",")[0].strip().lower().replace("_", " ")


def _lines(name: str) -> list[str]:
    """A list that timm ships, without importing it."""
    found = importlib.util.find_spec("timm")
    if found is None or not found.submodule_search_locations:
        raise EvaluationError("imagenet-a needs timm, which lists its classes: pip install timm")
    path = Path(found.submodule_search_locations[0]) / "data" / "_info" / name
    return path.read_text(encoding="utf-8").splitlines()
