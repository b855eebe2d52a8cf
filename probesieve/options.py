"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Progress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show progress bars on a terminal.")]
Workers = Annotated[int, typer.Option(help="Processes that decode images.", min=0, max=1_000)]
