"""Reads TOML and JSON within limits that no honest file meets, so that odd ones end with a line.

Files are of 4 MiB at most, tables and lists are nested 32 deep at most, whole numbers have 64 bits.
"""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

MOST_BYTES = 4 * 2**20
MOST_LEVELS = 32
_WHOLE = range(-(2**63), 2**63)
_TOO_DEEP = f"is nested more than {MOST_LEVELS} deep"
_TOO_LONG = "holds a whole number of more than 64 bits"


class FileError(ValueError):
    """What is wrong with a file, in words that follow its name."""


class InvalidError(FileError):
    """It is no TOML or JSON."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a file of `most` bytes at most, whatever the system says of its size.

    Raises
    ------
    FileError
        If it has more.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise FileError(f"has more than {most:,} bytes, the most that is read")
    return data


def toml_of(text: str | bytes) -> dict[str, Any]:
    """Read TOML in UTF-8.

    Raises
    ------
    FileError
        If it is not valid, or beyond the limits; numbers must be finite.
    """
    try:
        found = tomllib.loads(_decoded(text))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"is not valid TOML in UTF-8: {error}") from None
    except (ValueError, RecursionError) as error:
        raise _beyond(error) from None
    for value in _values(found):
        if isinstance(value, float) and not math.isfinite(value):
            raise FileError(f"holds {value}; numbers must be finite")
    return found


def json_of(text: str | bytes) -> Any:
    """Read JSON in UTF-8.

    Raises
    ------
    FileError
        If it is not valid, or beyond the limits; texts must be ones that UTF-8 can write.
    """
    try:
        found = json.loads(_decoded(text))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"is not valid JSON in UTF-8: {error}") from None
    except (ValueError, RecursionError) as error:
        raise _beyond(error) from None
    for value in _values(found):
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise FileError(f"holds half a character: {value!r}") from None
    return found


def _decoded(text: str | bytes) -> str:
    return text.decode("utf-8-sig") if isinstance(text, bytes) else text


def _beyond(error: ValueError | RecursionError) -> FileError:
    """Say which limit Python met before us."""
    return FileError(_TOO_DEEP if isinstance(error, RecursionError) else _TOO_LONG)


def _values(found: Any) -> list[Any]:
    """Return all keys and values, level by level, after a look at the limits."""
    every: list[Any] = []
    level = [found]
    for _ in range(MOST_LEVELS + 1):
        if any(isinstance(value, int) and value not in _WHOLE for value in level):
            raise FileError(_TOO_LONG)
        every += level
        tables = [item for value in level if isinstance(value, dict) for item in (*value, *value.values())]
        level = tables + [item for value in level if isinstance(value, list) for item in value]
    if level:
        raise FileError(_TOO_DEEP)
    return every
