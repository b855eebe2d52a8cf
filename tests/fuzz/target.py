"""A kind of input, and what commands do with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.damage import Damage


@dataclass(frozen=True)
class Target:
    """A kind of input: `make` writes good files into a folder, `run` is what a command does with them."""

    make: Callable[[Path], object]
    damage: Damage
    run: Callable[[Path], object]
    trials: int = 15
