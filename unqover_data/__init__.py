"""Word lists and templates of the probe sets, and the code that reads and checks them.

The statements in the lists are offensive by design: they are data, to measure stereotyping associations against.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from unqover_data.model import ListError, NotFetchedError, ProbeLists, Slot, Subject
from unqover_data.toml_lists import BUNDLED_DIR, read_toml

__all__ = [
    "BUNDLED",
    "ListError",
    "NotFetchedError",
    "ProbeLists",
    "Slot",
    "Subject",
    "list_classes",
    "load_lists",
    "read_toml",
]

_NAMED = ("bundled", "released")
BUNDLED = ("gender", "nationality", "ethnicity", "religion")


def list_classes(lists: str = "bundled") -> tuple[str, ...]:
    """Names of the classes that `lists` (as for `load_lists`) holds."""
    path = Path(lists).expanduser()
    return (read_toml(path).name,) if lists not in _NAMED and path.is_file() else BUNDLED


def load_lists(name: str, lists: str = "bundled") -> ProbeLists:
    """Read and check the lists of one class.

    Parameters
    ----------
    name : str
        The class: one of `BUNDLED`, or the name in the TOML file that `lists` is.
    lists : str
        ``bundled``, ``released`` (fetched from the public repository and checked), a folder in the released
        layout, or a TOML file in ours.

    Raises
    ------
    ListError
        If the class or `lists` is not known, or if the lists have faults.

    Examples
    --------
    >>> load_lists("religion").rows("qa")
    38500
    """
    path = Path(lists).expanduser()
    if lists not in _NAMED and path.is_file():
        found = read_toml(path)
        if found.name != name:
            raise ListError([f"{path.name} holds the class {found.name!r}, not {name!r}"])
        return found
    if name not in BUNDLED:
        close = difflib.get_close_matches(name, BUNDLED, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "a class of your own needs --lists FILE.toml"
        raise ListError([f"there is no class {name!r} (known: {', '.join(BUNDLED)}); {hint}"])
    if lists == "bundled":
        return read_toml(BUNDLED_DIR / f"{name}.toml")
    from unqover_data.released import download, read_released

    if lists != "released" and not path.is_dir():
        close = difflib.get_close_matches(lists, _NAMED, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "nothing is there"
        raise ListError([f"--lists {lists}: must be bundled, released, a folder or a TOML file; {hint}"])
    return read_released(download() if lists == "released" else path, name)
