"""What an encoder is: trained on the warm-up sample by its recipe, it turns rows into features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class Encoded:
    """Features of some rows, in their order.

    Attributes
    ----------
    features : ndarray of float32, shape (rows, d)
        The representation before the output layer.
    logits : ndarray of float32, shape (rows, K), optional
        What the warm-up model's output layer makes of them; None where it has none.
    """

    features: NDArray[np.float32]
    logits: NDArray[np.float32] | None


class Encoder(Protocol):
    """A model that is ready to be used."""

    @property
    def width(self) -> int:
        """Columns d of the features."""

    def encode(self, rows: Dataset) -> Encoded:
        """Give the features of `rows`, in their order."""


class Recipe(Protocol):
    """How an encoder comes about."""

    def identity(self) -> Mapping[str, Any]:
        """Everything, as JSON values, that decides the features besides the rows and the seed."""

    def train(self, rows: Dataset, folder: Path, *, seed: int) -> None:
        """Train on the warm-up sample; called again after it was killed, it goes on where it was."""

    def load(self, folder: Path | None) -> Encoder:
        """Give the encoder that was trained in `folder`, or with None the checkpoint as it is."""
