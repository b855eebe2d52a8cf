"""Full disks: what a library makes of one becomes a line that says so."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from builders.errors import BuildError, HubError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Of torch (thrice), safetensors and datasets, whose errors carry no number.
_SIGNS = (
    "PytorchStreamWriter",
    "inline_container",
    "iostream error",
    "No space left on device",
    "Not enough disk space",
    *(f"(os error {number})" for number in sorted(_FULL)),
)


@contextlib.contextmanager
def told_when_full(path: Path | None = None) -> Iterator[None]:
    """Raise `BuildError` if the block fails because there is no room.

    Parameters
    ----------
    path : Path, optional
        What to name where the error names no file: a file, or a folder, of which the file is named that was written
        last.
    """
    try:
        yield
    except (BuildError, HubError):
        raise
    except Exception as error:
        full = next((cause for cause in _causes(error) if _is_full(cause)), None)
        if full is None:
            raise
        # A copy names what it reads first, and what it writes second.
        named = getattr(full, "filename2", None) or getattr(full, "filename", None)
        where = named or (path and _last_written(path))
        place = f" for {where}" if where else ""
        reason = os.strerror(getattr(full, "errno", None) or errno.ENOSPC)
        raise BuildError(f"no room is left{place} ({reason}); free some space and run the same again") from error


def _last_written(path: Path) -> Path:
    """Give the file itself, or that of a folder which was being written when there was no room left."""
    try:
        files = [(file.stat().st_mtime_ns, file) for file in path.rglob("*") if file.is_file()]
    except OSError:  # something goes while it is looked at
        files = []
    return max(files)[1] if files else path


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_full(error: BaseException) -> bool:
    by_number = isinstance(error, OSError) and error.errno in _FULL
    return by_number or any(sign in str(error) for sign in _SIGNS)
