"""Sources and features whose easy rows are known, for tests of filtered sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from builders.aflite import build_aflite
from builders.folder import Built
from builders.specs import SetSpec, load_spec

NAMES = ("entailment", "neutral", "contradiction")
SIZES = {"train": 300, "validation": 60, "test": 40}
FILTER = ["filter.n=150", "filter.m=8", "filter.t=60", "filter.k=30"]


def write_source(folder: Path, *, sizes: dict[str, int] | None = None, every: int = 20) -> np.ndarray:
    """Write one JSONL a split, each `every`-th row without a label, and give the labels of the others in order."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    labels = []
    for split, size in (sizes or SIZES).items():
        lines = []
        for row in range(size):
            label = -1 if row % every == 3 else int(rng.integers(3))
            labels += [label] if label >= 0 else []
            text = {"premise": f"{split} premise {row} | *not* <b>bold</b>", "hypothesis": f" {split} hypothesis {row}"}
            lines.append(json.dumps({**text, "label": label, "pairID": f"{split}-{row}", "votes": ["a", "b"]}))
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return np.array(labels)


def write_features(path: Path, labels: np.ndarray, *, easy_share: float = 0.75) -> np.ndarray:
    """Write features of which the first three columns give the label away in the easy rows; give which are easy."""
    rng = np.random.default_rng(11)
    features = rng.normal(size=(labels.size, 8)).astype(np.float32)
    easy = rng.random(labels.size) < easy_share
    features[np.flatnonzero(easy), labels[easy]] += 8
    np.save(path, features)
    return easy


def spec_of(*overrides: str) -> SetSpec:
    """SNLI's spec with parameters for some hundred rows."""
    return load_spec("snli", [*FILTER, *overrides])


def build(root: Path, *overrides: str, easy_share: float = 0.75, **options: Any) -> Built:
    """Build a small set of given features."""
    labels = write_source(root / "source")
    write_features(root / "features.npy", labels, easy_share=easy_share)
    return build_aflite(
        spec_of(*overrides), root / "out", source=root / "source", features=root / "features.npy", **options
    )
