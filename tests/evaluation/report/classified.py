"""Results of classifiers that exist only as a rule for which rows they get wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.built_sets import find_built
from evaluation.classifiers.sets import read_split
from evaluation.classifiers.summary import prediction_columns, summarize
from tests.evaluation.report.stored import write_sealed


def store_classified(out: Path, folder: Path, name: str, wrong: Callable[[pa.Table], Any], *, split: str) -> Path:
    """Store a result and give its JSON file; `wrong` gives a bool for each row from its facts."""
    built = find_built(str(folder))
    rows = read_split(built, split)
    labels = rows.facts["label"].to_numpy()
    predicted = np.where(wrong(rows.facts), (labels + 1) % len(rows.names), labels).astype(np.int64)
    probabilities = np.full((len(rows), len(rows.names)), 0.5, np.float32)
    facts = {column: rows.facts[column] for column in rows.facts.column_names}
    predictions = pa.table(facts | prediction_columns(predicted, probabilities, labels, {}))
    sha = "ab" * 20
    dataset = {"name": built.name, "version": built.version, "source": str(folder), "revision": built.revision}
    result = {
        "model": {"name": name, "sha": sha, "kind": "text-classifier"},
        "dataset": dataset | {"rows": len(rows), "inputs": list(rows.inputs), "names": list(rows.names)},
        "groups": list(rows.groups),
        "settings": {"model": sha, "kind": "text-classifier", "protocol": "exact", "limit": None, "seed": 0},
        "labels": {"rule": "names"},
        "rows": len(rows),
        "seconds": 1.0,
        "finished": "2026-01-01T00:00:00+00:00",
        "versions": {},
        "splits": {split: summarize(predictions, rows.names, rows.groups)},
    }
    place = out / name.replace("/", "__") / sha / f"{built.name}@{built.version}" / f"{split}.exact.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(predictions, place.with_suffix(".parquet"))
    write_sealed(place, result)
    return place
