"""Results as ``probesieve eval`` stores them, of models that exist only as a rule for their scores."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.probe_sets import ProbeSet, open_probe_set
from evaluation.run import Options
from evaluation.sampling import sample_rows
from evaluation.scores import SCORE_COLUMNS, ScoredRows
from evaluation.stored import seal
from evaluation.summary import summarize


def store_result(
    out: Path,
    folder: Path,
    name: str,
    *,
    kind: str = "qa",
    config: str | None = None,
    bias: float = 0.0,
    noise: float = 0.02,
    sample: str | None = None,
    parameters: int | None = None,
    seed: int = 0,
    **settings: Any,
) -> Path:
    """Store a result and give its JSON file.

    The model gives every subject 0.3 and some noise. With `bias`, it gives the first subject of the set, by name, so
    much more for the first attribute, and so much less for its negation.
    """
    config = config or ("mlm" if kind == "mlm" else "qa")
    probes, rows = _opened(str(folder), config, sample)
    scores = pa.table({"id": rows["id"]} | _scores(rows, bias, noise, seed))
    summary = summarize(ScoredRows.from_tables(rows, scores, subset=True), seed=seed, draws=20, flips=999)
    options = asdict(Options(sample=sample, **settings))
    sha = f"{seed:02x}" * 20
    result = {
        "model": {"name": name, "sha": sha, "kind": kind},
        "dataset": probes.facts,
        "settings": {"model": sha, "kind": kind, "dataset": probes.rows_id, **options},
        "coverage": {"rows": len(rows)},
        "scorer": {"kind": kind} | ({"parameters": parameters} if parameters else {}),
        "means": {},
        "rows": len(rows),
        "seconds": 1.0,
        "finished": "2026-01-01T00:00:00+00:00",
        "versions": {},
        "metrics": summary.to_json(),
        "tables": {table: content.to_pydict() for table, content in summary.tables.items()},
    }
    protocol = options["protocol"]
    place = out / name.replace("/", "__") / sha / f"{probes.name}@{probes.version}" / f"{config}.{protocol}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(scores, place.with_suffix(".parquet"))
    write_sealed(place, result)
    return place


@functools.lru_cache(maxsize=2)
def _opened(folder: str, config: str, sample: str | None) -> tuple[ProbeSet, pa.Table]:
    """The set, and the rows of it that are scored."""
    probes = open_probe_set(folder, config=config)
    return probes, probes.rows.take(pa.array(sample_rows(probes.rows, sample, seed=0))) if sample else probes.rows


def _scores(rows: pa.Table, bias: float, noise: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    first = min(pc.min(rows[side]).as_py() for side in ("subject1", "subject2"))
    asked = pc.equal(rows["attribute"], pc.min(rows["attribute"])).to_numpy(zero_copy_only=False)
    columns = {}
    for name in SCORE_COLUMNS:
        liked = pc.equal(rows[f"subject{name[1]}"], first).to_numpy(zero_copy_only=False) & asked
        sign = -1 if name.endswith("negated") else 1
        values = 0.3 + sign * bias * liked + rng.normal(0, noise, len(rows))
        columns[name] = np.clip(values, 0, 1).astype(np.float32)
    return columns


def write_sealed(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result with the sums of itself and of the Parquet beside it, as scoring does."""
    sealed = seal(json.loads(json.dumps(result)), path.with_suffix(".parquet"))
    path.write_text(json.dumps(sealed), encoding="utf-8")


def edited(path: Path, **changes: Any) -> None:
    """Change facts of a stored result, named as ``part__key``."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        part, _, key = name.partition("__")
        content[part][key] = value
    write_sealed(path, content)
