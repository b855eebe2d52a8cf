"""Sets that targets only read, each built once."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np

from tests.builders.filtered_sets import build as build_filtered
from tests.builders.sources.reading import put
from tests.evaluation.conftest import LISTS


@functools.cache
def _root() -> Path:
    place = tempfile.mkdtemp(prefix="probesieve-fuzz-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(place)


@functools.cache
def digits() -> Path:
    """A filtered set of tiny images of ten classes."""
    from builders.aflite import build_aflite
    from builders.specs import load_spec

    root = _root() / "digits"
    put(root / "source", *(f"{digit}/{number}.png" for digit in range(10) for number in range(6)))
    features = np.random.default_rng(3).normal(size=(60, 12)).astype(np.float32)
    for row in range(0, 60, 3):
        features[row, row // 6] += 9
    np.save(root / "features.npy", features)
    spec = load_spec("digits", ["filter.n=40", "filter.m=4", "filter.t=30", "filter.k=5"])
    return build_aflite(spec, root, source=root / "source", features=root / "features.npy").folder


@functools.cache
def filtered() -> Path:
    """A filtered set of texts."""
    return build_filtered(_root() / "filtered").folder


@functools.cache
def probes() -> Path:
    """A probe set."""
    from builders.unqover import build_unqover
    from unqover_data import read_toml

    (_root() / "few.toml").write_text(LISTS, encoding="utf-8")
    return build_unqover(read_toml(_root() / "few.toml"), _root() / "probes").folder
