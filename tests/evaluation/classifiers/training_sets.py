"""A filtered folder whose easy rows have a cue word, and a plan over it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from builders.aflite import build_aflite
from builders.folder import Built
from builders.specs import load_spec
from evaluation.built_sets import BuiltSet, find_built

NAMES = ("entailment", "neutral", "contradiction")
CUES = ("outdoors", "because", "nobody")
WORDS = ("dog", "cat", "child", "runs", "eats", "park", "house", "old", "small", "red")
SIZES = {"train": 240, "validation": 120}
FILTER = ("filter.n=144", "filter.m=8", "filter.t=60", "filter.k=24")
TINY = {"epochs": 4, "learning_rate": 0.003, "batch_size": 16, "max_length": 32}


def build(root: Path) -> Built:
    """Build a set of 360 rows; the two thirds of them that have a cue are easy for the filter.

    Labels go round, so each of them is as frequent as the others in every part.
    """
    source = root / "source"
    source.mkdir(parents=True)
    rng = np.random.default_rng(5)
    features = []
    for split, size in SIZES.items():
        lines = []
        for row in range(size):
            label, easy = row % 3, row % 9 < 6
            words = [" ".join(rng.choice(WORDS, 5)) for _ in range(2)]
            hypothesis = f"{words[1]} {CUES[label]}" if easy else words[1]
            lines.append(
                {"premise": words[0], "hypothesis": hypothesis, "label": label, "kind": "cue" if easy else "none"}
            )
            signal = np.zeros(8)
            signal[label] = 8 * easy
            features.append(rng.normal(size=8) + signal)
        (source / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    np.save(root / "features.npy", np.array(features, np.float32))
    spec = load_spec("snli", ['source.filtered=["train","validation"]', "breakdown=kind", *FILTER])
    return build_aflite(spec, root, source=source, features=root / "features.npy")


def opened(built: Built) -> BuiltSet:
    """Open it as an evaluation does."""
    return find_built(str(built.folder))
