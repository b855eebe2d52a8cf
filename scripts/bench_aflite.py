"""Print how long phases of the filter take, beside a loop over scikit-learn's LogisticRegression."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from aflite import benchmark

HEAD = "| case | first phase | next phase | loop | loop / first | loop / next | agreement | loop's agreement |"


def row(result: benchmark.Measurement) -> str:
    """One line of the table."""
    shares = [f"{share:.3%}" if share is not None else "" for share in (result.agreement, result.default_agreement)]
    cells = [
        str(result.case),
        f"{result.first:.2f} s",
        f"{result.next:.2f} s",
        f"{result.loop:.0f} s",
        f"{result.loop / result.first:.1f}",
        f"{result.loop / result.next:.1f}",
        *shares,
    ]
    return f"| {' | '.join(cells)} |"


def table(cases: tuple[benchmark.Case, ...], timed: int, agreement: int) -> None:
    """Measure and print case by case."""
    print(HEAD, "|---" * HEAD.count(" | ") + "|---|", sep="\n")
    for case in cases:
        features, labels = benchmark.make(case)
        print(row(benchmark.measure(case, features, labels, timed=timed, agreement=agreement)), flush=True)


def main(
    quick: Annotated[bool, typer.Option(help="Two small cases, in seconds.")] = False,
    timed: Annotated[int, typer.Option(help="Turns of the loop to time; the rest is scaled.")] = 3,
    agreement: Annotated[int, typer.Option(help="Parts whose predictions are compared.")] = 2,
    growth: Annotated[bool, typer.Option(help="How cost grows with N, d, K and m.")] = False,
    variance: Annotated[bool, typer.Option(help="Blocked parts against independent ones.")] = False,
    snli: Annotated[bool, typer.Option(help="A phase at SNLI's size (needs 2 GB of disk).")] = False,
    snli_run: Annotated[bool, typer.Option(help="The whole filter at SNLI's size.")] = False,
) -> None:
    """Print Markdown tables of measured times."""
    if quick:
        table(benchmark.QUICK, timed, agreement)
    elif growth:
        table(benchmark.GROWTH, 1, 0)
    elif variance:
        case = benchmark.Case(3_000, 64, 3, 32, 300)
        print("| block rows | mean difference | standard error | largest z | expected | variance ratio |")
        print("|---|---|---|---|---|---|")
        for size in (5, 25, 60, 150):
            found = benchmark.compare_partitions(case, repeats=60, block_size=size)
            cells = [
                str(size),
                f"{found.mean_difference:+.5f}",
                f"{found.standard_error:.5f}",
                f"{found.largest_z:.2f}",
                f"{found.expected_largest_z:.2f}",
                f"{found.variance_ratio:.3f}",
            ]
            print(f"| {' | '.join(cells)} |")
    elif snli or snli_run:
        with TemporaryDirectory() as folder:
            features, labels = benchmark.make(benchmark.SNLI, path=Path(folder) / "features.npy")
            if snli:
                print(
                    HEAD,
                    row(benchmark.measure(benchmark.SNLI, features, labels, timed=1, agreement=0)),
                    sep="\n",
                )
            if snli_run:
                result, memory = benchmark.snli_run(features, labels)
                print("| phase | rows | bias | removed | seconds |\n|---|---|---|---|---|")
                for record in result.history:
                    print(
                        f"| {record.phase} | {record.size:,} | {record.bias:.4f} | {record.removed:,} "
                        f"| {record.seconds:.1f} |"
                    )
                seconds = sum(record.seconds for record in result.history)
                print(f"\n{result.kept.sum():,} kept, {result.stop_reason}, {seconds:.0f} s, peak {memory}")
    else:
        table(benchmark.CASES, timed, agreement)


if __name__ == "__main__":
    typer.run(main)
