"""Measure the tables of docs/aflite.md and print them as Markdown.

Tables: cases (a phase beside a loop over scikit-learn's LogisticRegression), growth (how cost grows with N, d, K, m
and t), quick (two small cases), snli (a phase at SNLI's size; 2 GB of disk), filter (the whole filter at that size
with its memory; 2 GB of disk), partitions (blocked against independent ones), optimum, and real (needs --data).
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from aflite import benchmark, studies

TIMES = {"cases": benchmark.CASES, "growth": benchmark.GROWTH, "quick": benchmark.QUICK}


def head(*names: str) -> None:
    """Print the first two lines of a table."""
    print(f"| {' | '.join(names)} |", "|---" * len(names) + "|", sep="\n")


def line(*cells: object) -> None:
    """Print one line of a table at once: the next may take minutes."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def times_head() -> None:
    """Print the head of the tables of times."""
    ratios = ("loop / first", "loop / next")
    head("case", "first phase", "next phase", "loop", *ratios, "agreement", "loop's agreement")


def times_line(result: benchmark.Measurement) -> None:
    """Print one line of them."""
    shares = [f"{share:.3%}" if share is not None else "" for share in (result.agreement, result.default_agreement)]
    seconds = f"{result.first:.2f} s", f"{result.next:.2f} s", f"{result.loop:.0f} s"
    line(result.case, *seconds, f"{result.loop / result.first:.1f}", f"{result.loop / result.next:.1f}", *shares)


def times(cases: Mapping[str, benchmark.Case], timed: int) -> None:
    """Measure case by case."""
    times_head()
    for case in cases.values():
        features, labels = benchmark.make(case)
        times_line(benchmark.measure(case, features, labels, timed=timed))


def snli(folder: Path) -> None:
    """Time a phase at SNLI's size, the loop on one part."""
    features, labels = benchmark.make(benchmark.SNLI, path=folder / "features.npy")
    times_head()
    times_line(benchmark.measure(benchmark.SNLI, features, labels, timed=1))


def whole_filter(folder: Path) -> None:
    """Filter SNLI's size down to 92,000 rows."""
    features, labels = benchmark.make(benchmark.SNLI, path=folder / "features.npy")
    result, memory = benchmark.snli_run(features, labels)
    head("phase", "rows", "bias", "removed", "seconds")
    for record in result.history:
        line(record.phase, f"{record.size:,}", f"{record.bias:.4f}", f"{record.removed:,}", f"{record.seconds:.1f}")
    seconds = sum(record.seconds for record in result.history)
    print(f"\n{result.kept.sum():,} rows kept ({result.stop_reason}), {seconds:.0f} s, {memory}")


def partitions() -> None:
    """Compare blocked parts with independent ones, each block size with a control of its own."""
    head("block rows", "mean difference", "standard error", "largest z", "expected", "variance ratio")
    repeats = 200
    for index, size in enumerate((5, 25, 60, 150)):
        found = studies.compare_partitions(
            benchmark.Case(3_000, 64, 3, 32, 300), repeats=repeats, block_size=size, first_seed=2 * repeats * index
        )
        line(
            size,
            f"{found.mean_difference:+.5f}",
            f"{found.standard_error:.5f}",
            f"{found.largest_z:.2f}",
            f"{found.expected_largest_z:.2f}",
            f"{found.variance_ratio:.3f}",
        )


def optimum() -> None:
    """Print how far the greedy filter is from AFOpt."""
    biases = studies.distances_to_optimum()
    head("subset", "mean bias", "standard deviation")
    for name, values in biases.items():
        line(name, f"{values.mean():.3f}", f"{values.std():.3f}")
    equal = np.isclose(biases["greedy filter"], biases["optimum"])
    print(f"\nThe greedy filter found an optimum in {equal.sum()} of {equal.size} sets.")


def real(data: Path | None) -> None:
    """Filter features from a file."""
    if data is None:
        raise typer.BadParameter("the table 'real' needs --data FILE.npz with the arrays features and labels")
    with np.load(data) as arrays:
        features, labels = arrays["features"], arrays["labels"]
    features = (features - features.mean(0)) / np.maximum(features.std(0), 1e-6)
    head("rows", "number", "accuracy")
    for name, (size, accuracy) in studies.held_out_accuracies(features, labels).items():
        line(name, f"{size:,}", f"{accuracy:.3f}")


def limit_threads(threads: int) -> None:
    """Set what the loop's BLAS and the solver may use; only libraries that are loaded are reached."""
    import sklearn.linear_model  # noqa: F401
    import torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    torch.set_num_threads(threads)


def main(
    table: Annotated[
        str, typer.Argument(help="cases, growth, quick, snli, filter, partitions, optimum or real")
    ] = "cases",
    case: Annotated[str | None, typer.Option(help="Only this case of cases, growth or quick.")] = None,
    timed: Annotated[int, typer.Option(min=1, help="Turns of the loop to time; the rest is scaled.")] = 3,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the loop and of the solver alike.")] = None,
    data: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="For real: an .npz file with features and labels.")
    ] = None,
) -> None:
    """Measure one table of docs/aflite.md and print it as Markdown."""
    if case is not None and table not in TIMES:
        raise typer.BadParameter(f"case is for the tables {', '.join(TIMES)}, got the table {table}")
    if threads is not None:
        limit_threads(threads)
    limit = "" if threads is None else f", {threads} thread{'s' * (threads > 1)}"
    print(f"{benchmark.machine()}{limit}\n", flush=True)
    if table in TIMES:
        cases = TIMES[table]
        if case is not None and case not in cases:
            raise typer.BadParameter(f"case must be one of {', '.join(cases)}, got {case}")
        times(cases if case is None else {case: cases[case]}, timed)
    elif table in ("snli", "filter"):
        with TemporaryDirectory() as folder:
            (snli if table == "snli" else whole_filter)(Path(folder))
    elif table == "partitions":
        partitions()
    elif table == "optimum":
        optimum()
    elif table == "real":
        real(data)
    else:
        raise typer.BadParameter(f"table must be one of {', '.join(TIMES)}, snli, filter, partitions, optimum, real")


if __name__ == "__main__":
    typer.run(main)
