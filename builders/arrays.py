"""Arrays of NumPy that came in a file."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from unqover_data.errors import one_line


def open_npy(path: Path) -> NDArray[Any]:
    """Map a ``.npy`` file, read-only; no more memory is taken than its values need, whatever its header claims.

    Raises
    ------
    OSError
        If it cannot be opened.
    ValueError
        If it is no such file, holds objects, or is shorter than it says; the message is one line.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # of a size that overflows
            return npy.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # NumPy parses the header as Python, with whatever that raises
        raise ValueError(_reason(error)) from None


def _reason(error: Exception) -> str:
    """NumPy's reason in one line, unless it repeats what the header holds."""
    reason = one_line(error)
    if not isinstance(error, ValueError) or re.search("header|descr|malformed", reason, re.IGNORECASE):
        return "its header is damaged: write it anew with numpy.save"
    return reason
