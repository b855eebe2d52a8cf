"""Time and peak memory of the metrics of a whole probe set with random scores, as a Markdown table.

Each stage runs in a process of its own that makes the scores first. Example:
``python scripts/bench_metrics.py --name gender --repeat 3``
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from builders.probes import batches
from evaluation import metrics
from evaluation.scores import PROBE_COLUMNS, SCORE_COLUMNS, ScoredRows
from evaluation.summary import summarize
from probesieve.cli import run
from unqover_data import load_lists

# The released analysis (all its metrics for one grouping, as printed in its logs), measured once on a machine of the
# same kind (2 cores): 3.1 s and 333 MB for 38,500 rows, growing with the number of rows.
RELEASED_SECONDS_A_ROW = 3.1 / 38_500
RELEASED_MB_A_ROW = 333 / 38_500


def tables(name: str) -> tuple[pa.Table, pa.Table]:
    """The rows of config qa without their texts, and random scores."""
    rows = pa.concat_tables(batch.select(list(PROBE_COLUMNS)) for batch in batches(load_lists(name), "qa"))
    rng = np.random.default_rng(0)
    scores = {column: rng.random(len(rows), dtype=np.float32) for column in SCORE_COLUMNS}
    return rows, pa.table({"id": rows["id"], **scores})


def aggregates(rows: ScoredRows) -> None:
    """What the released analysis prints: δ, ε, avg S, γ and η of subjects and attributes, of subjects, μ and η."""
    for errors in (metrics.positional_errors, metrics.attribute_errors, metrics.average_scores):
        errors(rows).mean()
    table = metrics.bias_table(rows)
    table.collapse()
    metrics.model_intensity(table)
    metrics.model_count(table)
    if len(rows.groups) > 1:
        metrics.bias_table(rows, axis="group")


def everything(rows: ScoredRows) -> None:
    """All aggregates and tables with intervals, p and q."""
    summarize(rows, seed=0)


STAGES: dict[str, Callable[[ScoredRows], None] | None] = {
    "join scores to rows by id": None,
    "aggregates": aggregates,
    "aggregates and tables with intervals, p, q": everything,
}


def measure(name: str, stage: str) -> dict[str, float]:
    """Seconds of a stage, and peak MB of the process in all, in a new process."""
    command = [sys.executable, __file__, "--name", name, "--stage", stage]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def bench(
    name: Annotated[str, typer.Option(help="The probe set.")] = "gender",
    repeat: Annotated[int, typer.Option(help="Runs of each stage; the median is reported.")] = 3,
    stage: Annotated[str | None, typer.Option(help="Run one stage in this process and print its numbers.")] = None,
) -> None:
    """Measure the metrics."""
    if stage:
        probe_rows, scores = tables(name)
        start = time.perf_counter()
        joined = ScoredRows.from_tables(probe_rows, scores)
        work = STAGES[stage]
        if work:
            del probe_rows, scores
            start = time.perf_counter()
            work(joined)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"rows": len(joined), "seconds": seconds, "peak": peak}))
        return
    print("| stage | rows | seconds | µs a row | times faster a row than released | peak memory |")
    print("|---|---|---|---|---|---|")
    for label in STAGES:
        result = sorted((measure(name, label) for _ in range(repeat)), key=lambda run: run["seconds"])[repeat // 2]
        a_row = result["seconds"] / result["rows"]
        numbers = f"{result['rows']:,.0f} | {result['seconds']:.2f} | {1e6 * a_row:.2f}"
        print(f"| {label} | {numbers} | {RELEASED_SECONDS_A_ROW / a_row:,.0f} | {result['peak']:,.0f} MB |")
    rows = result["rows"]
    released = f"{rows * RELEASED_SECONDS_A_ROW:.0f} | {1e6 * RELEASED_SECONDS_A_ROW:.1f} | 1"
    print(f"| released analysis, by its growth | {rows:,.0f} | {released} | {rows * RELEASED_MB_A_ROW:,.0f} MB |")


if __name__ == "__main__":
    run(bench)
