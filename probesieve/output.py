"""What the commands write to the terminal; nothing in a name or a text of others can steer it."""

from __future__ import annotations

import logging
import sys

from unqover_data.signs import visible

_LAID_OUT = "\n\t"


def say(text: object = "", *, error: bool = False) -> None:
    """Print a text, its control characters and hidden signs written out, on stdout or stderr."""
    print(visible(str(text), keep=_LAID_OUT), file=sys.stderr if error else sys.stdout, flush=True)


def guard_warnings() -> None:
    """Have warnings that no one else handles written in the same way."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Visible())


class _Visible(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record), keep=_LAID_OUT)
