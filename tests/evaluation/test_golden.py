"""Tiny checkpoints of every kind give the scores they gave before, whatever version of the libraries is installed.

``golden/`` holds tokenizers and configurations as transformers 4.48 saved them, which is how most checkpoints lie on
the Hub, with the shapes of the weights; the weights are computed here. ``PROBESIEVE_GOLDEN=write`` writes
``golden/scores.json`` anew.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.classifiers.predict import load_classifier
from evaluation.classifiers.sets import LabelledRows
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer

GOLDEN = Path(__file__).parent / "golden"
SCORES = GOLDEN / "scores.json"
NAMES = sorted(path.stem for path in (GOLDEN / "models").glob("*.json"))
TEXTS = ("Ann sent a letter to Bob.", "Mary Lou  lied; she never met a man.", "The child was late.", "Who?")


def weights(shapes: dict[str, list[int]]) -> dict[str, np.ndarray[Any, Any]]:
    """Compute weights with whole numbers alone (splitmix64), so that they are the same everywhere."""
    made: dict[str, np.ndarray[Any, Any]] = {}
    with np.errstate(over="ignore"):
        for number, (name, shape) in enumerate(sorted(shapes.items()), 1):
            state = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(number << 32)
            state = state * np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
            even = (state >> np.uint64(40)).astype(np.float64) / 2**24 - 0.5  # from -0.5 to 0.5
            is_norm = len(shape) == 1 and name.endswith("weight")
            made[name] = (1 + even / 4 if is_norm else even).astype(np.float32).reshape(shape)
    return made


def checkpoint(name: str, folder: Path) -> Path:
    """Write a checkpoint as it would be downloaded."""
    from safetensors.numpy import save_file

    model = json.loads((GOLDEN / "models" / f"{name}.json").read_text(encoding="utf-8"))
    shutil.copytree(GOLDEN / "tokenizers" / model["tokenizer"], folder)
    for file in ("config", "generation_config"):
        if file in model:
            (folder / f"{file}.json").write_text(json.dumps(model[file]), encoding="utf-8")
    save_file(weights(model["shapes"]), folder / "model.safetensors", {"format": "pt"})
    return folder


def scores_of(folder: Path, few: dict[str, pa.Table]) -> np.ndarray[Any, Any]:
    """Score the sixteen rows (those that a masked LM can score), or give the logits of a classifier for some pairs."""
    ref = resolve_model(str(folder))
    if ref.kind == "text-classifier":
        import datasets

        data = datasets.Dataset.from_dict({"premise": TEXTS, "hypothesis": TEXTS[::-1]})
        rows: Any = LabelledRows("few", "test", ("a", "b", "c"), ("premise", "hypothesis"), data, pa.table({}))
        model = load_classifier(ref, dtype="float32", device="cpu", batch_size=1, workers=1)
        return np.concatenate([block.logits for block in model.outputs(rows)]).astype(float)
    scorer = make_scorer(ref, device="cpu")
    table = few["mlm" if ref.kind == "mlm" else "qa"]
    return scorer.score(table.filter(pa.array(scorer.select(table)[0])))


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_what_they_were(few: dict[str, pa.Table], tmp_path: Path, name: str) -> None:
    found = scores_of(checkpoint(name, tmp_path / name), few)
    assert len(found) >= 4
    if os.environ.get("PROBESIEVE_GOLDEN") == "write":
        known = json.loads(SCORES.read_text(encoding="utf-8")) if SCORES.is_file() else {}
        known[name] = [[float(f"{value:.7g}") for value in row] for row in found.tolist()]
        SCORES.write_text(json.dumps(dict(sorted(known.items()))) + "\n", encoding="utf-8")
        return
    wanted = json.loads(SCORES.read_text(encoding="utf-8"))[name]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-8)
