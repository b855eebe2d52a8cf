"""Weights that cannot be read: damaged, or refused because reading them could run code."""

from __future__ import annotations

import contextlib
import pickle
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from safetensors import SafetensorError

from builders.hub_errors import causes_of
from builders.hub_files import remove_damaged
from unqover_data.errors import one_line

# What torch says of a pickle that names functions or classes besides tensors, and of a program saved as weights.
_CODE = re.compile(
    r"was not an allowed global|whose module \S+ is blocked|unrecognized function|Can only build|"
    r"Can only create new object|weights_only=True`+ with (TorchScript|legacy|files saved in the legacy)"
)
# What torch's safe reader says of the codes that pickles have from protocol 4 on, of which it reads none.
_LATER_PICKLE = re.compile(r"Unsupported operand 1(4\d|5[0-2])\b")
_WARNS = r"Detected pickle protocol|'torch\.load' received a zip file that looks like"
_BROKEN_ZIP = re.compile(r"PytorchStreamReader|failed finding central directory|unexpected EOF|file in archive")
_DAMAGED = (SafetensorError, pickle.UnpicklingError, EOFError)
# All that loading a model raises for what is wrong with its files.
LOADING_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, *_DAMAGED)


def weights_line(error: BaseException, files: Iterable[Path]) -> str | None:
    """Say why weights could not be read; None if `error` and what led to it are of another kind.

    Parameters
    ----------
    error : BaseException
        What loading raised.
    files : iterable of Path
        What was loaded. Files in the Hub's cache that are not what they are called there are removed.

    Returns
    -------
    str or None
        A line that goes on after "MODEL has ".
    """
    files = [path for path in files if path.is_file()]
    cut = [path.name for path in files if _is_cut(path)]
    for cause in causes_of(error):
        if _CODE.search(str(cause)):
            named = re.search(r"GLOBAL (\S+)|module (\S+) is", str(cause))
            what = f" ({named[1] or named[2]})" if named else ""
            return (
                f"weights in a pickle that holds more than tensors{what}: it is refused, because reading it could run "
                "code; convert the weights to safetensors, or pass a model that has them"
            )
        if _LATER_PICKLE.search(str(cause)):
            return (
                "weights in a pickle of protocol 4 or later, which torch's safe reader does not read: it is refused, "
                "because reading it otherwise could run code; convert the weights to safetensors, or pass a model that "
                "has them"
            )
        if cut or isinstance(cause, _DAMAGED) or (isinstance(cause, RuntimeError) and _BROKEN_ZIP.search(str(cause))):
            said = f"{cut[0]} ends too early" if cut else one_line(str(cause).split(" In PyTorch 2.6")[0], most=160)
            if removed := remove_damaged(files):
                return f"damaged weights in the Hub's cache: {', '.join(removed)} removed; run the same command again"
            return f"damaged weights ({said}): get them again"
    return None


@contextlib.contextmanager
def quiet_pickles() -> Iterator[None]:
    """Keep torch's warnings of pickles off the terminal: one that it cannot read is told, see `weights_line`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _WARNS, UserWarning)
        yield


def _is_cut(path: Path) -> bool:
    """Whether a file begins as one that torch writes and has no end, which torch takes for its old format."""
    if path.suffix not in (".bin", ".pt", ".pth"):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\3\4" and not zipfile.is_zipfile(path)
