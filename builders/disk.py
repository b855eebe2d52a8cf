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
)


@contextlib.contextmanager
def told_when_full(folder: Path) -> Iterator[None]:
    """Raise `BuildError` if the block fails because there is no room.

    Parameters
    ----------
    folder : Path
        What to name where the error names no file.
    """
    try:
        yield
    except (BuildError, HubError):
        raise
    except Exception as error:
        full = next((cause for cause in _causes(error) if _is_full(cause)), None)
        if full is None:
            raise
        where = getattr(full, "filename", None) or folder
        reason = os.strerror(getattr(full, "errno", None) or errno.ENOSPC)
        raise BuildError(f"no room is left in {where} ({reason}); free some space and run the same again") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_full(error: BaseException) -> bool:
    by_number = isinstance(error, OSError) and error.errno in _FULL
    return by_number or any(sign in str(error) for sign in _SIGNS)
