"""Repeat the synthetic study of the AFLite paper: print its table and write its figure (extra `plots`)."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from aflite import plots, synthetic

FIGURE = Path("build") / "aflite-synthetic.png"
COLUMNS = {
    "linear_plain": "linear, no bias",
    "linear_biased": "linear, bias",
    "linear_kept": "linear, kept",
    "svm_plain": "SVM, no bias",
    "svm_biased": "SVM, bias",
    "svm_kept": "SVM, kept",
    "kept": "rows kept",
    "biased_removed": "biased removed",
    "flipped_removed": "flipped removed",
}


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to average over.")] = 5,
    figure: Annotated[Path, typer.Option(help="Where to write the picture.")] = FIGURE,
) -> None:
    """Print mean and standard deviation over seeds for each of the four sets; draw them for the first seed."""
    rows = synthetic.study(range(seeds))
    print(f"| set | {' | '.join(COLUMNS.values())} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for number in range(4):
        cells = []
        for name in COLUMNS:
            values = np.array([getattr(row, name) for row in rows if row.set_number == number], dtype=float)
            digits = 0 if name == "kept" else 3
            missing = np.isnan(values).all()
            cells.append("" if missing else f"{values.mean():.{digits}f} ± {values.std():.{digits}f}")
        print(f"| {number + 1} | {' | '.join(cells)} |")
    try:
        plots.study_figure(figure)
    except ModuleNotFoundError as error:
        typer.echo(f"no figure: {error}", err=True)
        raise typer.Exit(2) from error
    print(f"\nfigure: {figure}")


if __name__ == "__main__":
    typer.run(main)
