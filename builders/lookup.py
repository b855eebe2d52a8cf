"""Names that may be a folder here or a repository on the Hub: what to say of one that is neither."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator
from pathlib import Path

from builders.errors import HubError


def close_folder(name: str, *also_in: Path) -> str:
    """Give ``; did you mean FOLDER?`` for the path of a folder that is not there, nothing if none is close.

    Parameters
    ----------
    name : str
        The path.
    *also_in : Path
        Folders in which it may lie, besides the one that the path names.
    """
    path = Path(name).expanduser()
    parent = path.parent
    if not parent.is_dir():
        parent = _close(parent.name, parent.parent) or parent
    found = next((close for place in (parent, *also_in) if (close := _close(path.name, place))), None)
    return f"; did you mean {found}?" if found else ""


def _close(name: str, parent: Path) -> Path | None:
    with contextlib.suppress(OSError):
        names = [child.name for child in parent.iterdir() if child.is_dir() and not child.name.startswith(".")]
        return next((parent / close for close in difflib.get_close_matches(name, names, n=1)), None)
    return None


@contextlib.contextmanager
def no_folder_either(name: str) -> Iterator[None]:
    """Ask a Hub for a name that is no folder, and say so too where the Hub does not say that it has it."""
    try:
        yield
    except HubError as error:
        if str(error).startswith((f"{name} has no revision", f"{name} is gated")):
            raise
        raise HubError(f"{error}; there is no folder {name} here either{close_folder(name)}") from error
