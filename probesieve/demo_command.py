"""The command that shows the measurement on models whose preferences are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probesieve.options import Progress
from probesieve.output import say


def demo(
    build: Annotated[Path, typer.Option(help="Folder that gets the probe set.")] = Path("build"),
    models: Annotated[Path, typer.Option(help="Folder that gets the four models.")] = Path("models/demo"),
    results: Annotated[Path, typer.Option(help="Results folder.")] = Path("results/demo"),
    report: Annotated[Path, typer.Option(help="Gets the report.")] = Path("results/demo/report.html"),
    seed: Annotated[int, typer.Option(help="Of stories, models, sample and intervals.", min=0, max=2**32 - 1)] = 0,
    progress: Progress = True,
) -> None:
    """Train four tiny models, two with a planted preference, score them, and make the report. Needs no network.

    Example: probesieve demo
    """
    from builders.progress import switch_off
    from evaluation.demo.run import Places, run_demo

    if not progress:
        switch_off()
    for paragraph in run_demo(Places(build, models, results, report), seed=seed):
        say(f"{paragraph}\n")
