"""Arrays of NumPy that came in a file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray


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
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None
