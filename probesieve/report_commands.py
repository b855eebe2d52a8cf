"""The command that shows results and datasets in a browser, or on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probesieve.output import say


def report(
    paths: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="Result files, results folders, dataset folders.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page, one HTML file; replaced if it is there. By default report.html.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the summary tables; no page without --out.")] = False,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    base: Annotated[
        list[str] | None,
        typer.Option(metavar="TUNED=BASE", help="What a model was tuned from, if its name misleads; repeatable."),
    ] = None,
) -> None:
    """Show results and datasets as one HTML page that opens without a network, or as text.

    Example: probesieve report results build --out report.html

    Example: probesieve report results --text
    """
    import os
    import sys

    from evaluation.report import report_text, write_report

    if text:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        print(report_text(paths, bases=base or (), color=color))  # noqa: T201 (has colours, names are visible)
    if out or not text:
        written = write_report(paths, out or Path("report.html"), title=title, bases=base or ())
        say(f"Written: {written} ({written.stat().st_size / 1e6:.1f} MB); open it in a browser")
