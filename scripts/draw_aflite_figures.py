"""Draw the pictures of docs/aflite.md (needs the extra `plots`)."""

from pathlib import Path
from typing import Annotated

import typer

from aflite import plots

FOLDER = Path(__file__).parents[1] / "docs" / "images"


def main(folder: Annotated[Path, typer.Option(help="Where to write the pictures.")] = FOLDER) -> None:
    """Write aflite-synthetic.png and aflite-phases.png."""
    plots.study_figure(folder / "aflite-synthetic.png")
    plots.phases_figure(folder / "aflite-phases.png")
    print(f"figures: {folder}")


if __name__ == "__main__":
    typer.run(main)
