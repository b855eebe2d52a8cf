"""Names that become paths: what they may be, and the path that they make, which never leads elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builders.errors import BuildError

_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){2}")
_SET = re.compile(r"\w[\w.-]*", re.ASCII)
_CONFIG = re.compile(r"\w+(-\w+)*", re.ASCII)
_SPLIT = re.compile(r"\w+(\.\w+)*", re.ASCII)
_FILE_OF_SET = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)
_UNFIT = re.compile(r"[/\\\x00-\x1f\x7f]")
_MOST, _MOST_BYTES = 120, 200  # what is beside a file while it is written has more in its name, and 255 bytes are all


def check_version(version: str) -> None:
    """Raise `BuildError` unless `version` reads MAJOR.MINOR.PATCH, the only form ``datasets`` accepts."""
    if not _VERSION.fullmatch(version):
        raise BuildError(f"version must be MAJOR.MINOR.PATCH such as 1.0.0, not {_shown(version)}")


def check_set_name(name: str) -> None:
    """Raise `BuildError` for the name of a set, its folder, that does not do as one everywhere."""
    if len(name) > _MOST or not _SET.fullmatch(name):
        raise BuildError(
            f"name must be letters, digits, '.', '_' or '-', {_MOST} at most and the first no '.' or '-', "
            f"not {_shown(name)}"
        )


def check_names(configs: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `BuildError` for a config or split name that the Hub takes but can never load again."""
    for config, splits in configs.items():
        if len(config) > _MOST or not _CONFIG.fullmatch(config):
            raise BuildError(
                f"config name {_shown(config)} must be letters, digits and '_', joined by single '-', {_MOST} at most"
            )
        for split in splits:
            if len(split) > _MOST or not _SPLIT.fullmatch(split):
                raise BuildError(
                    f"split name {_shown(split)} of config {config!r} must be letters, digits, '_' or '.', "
                    f"{_MOST} at most"
                )


def check_file_of_set(name: str) -> None:
    """Raise `BuildError` for a file of a set, written with ``/``, that may lie outside its folder."""
    parts = name.split("/")
    if not _FILE_OF_SET.fullmatch(name) or {".", ".."} & {*parts} or max(map(len, parts)) > _MOST_BYTES:
        raise BuildError(f"file name {_shown(name)} must be names of letters, digits, '.', '_' or '-', joined by '/'")


def inside(folder: Path, *names: str) -> Path:
    """Return the path of `names`, one below the other, in `folder`; whoever a name is from, it leads nowhere else.

    Raises
    ------
    BuildError
        If one cannot be the name of a file or folder.
    """
    for name in names:
        if not is_file_name(name):
            raise BuildError(
                f"{_shown(name)} cannot be the name of a file or folder in {folder}: it must be one to {_MOST_BYTES} "
                "bytes, neither '.' nor '..', without '/', '\\' and control characters"
            )
    return folder.joinpath(*names)


def is_file_name(name: str) -> bool:
    """Whether `name` can be that of a file or folder, and leads nowhere but there."""
    short = 0 < len(name.encode(errors="replace")) <= _MOST_BYTES
    return short and name not in (".", "..") and not _UNFIT.search(name)


def as_file_name(text: str) -> str:
    """Return a text as part of a file's name, with ``-`` for what cannot stand in one.

    Examples
    --------
    >>> as_file_name("genre-9/11")
    'genre-9-11'
    """
    return _UNFIT.sub("-", text)


def as_set_name(text: str) -> str:
    """Return a text as the name of a set, with ``-`` for what cannot stand in one.

    Examples
    --------
    >>> as_set_name("scores-my model")
    'scores-my-model'
    """
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII)


def _shown(name: str) -> str:
    return repr(name if len(name) <= _MOST else f"{name[:_MOST]}...")
