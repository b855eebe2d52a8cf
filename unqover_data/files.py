"""Reads TOML and JSON within limits that no honest file meets, so that odd ones end with a line.

Files are of 4 MiB at most, tables and lists are nested 32 deep at most, whole numbers have 64 bits
(in JSON with a sign or without one).
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

MOST_BYTES = 4 * 2**20
MOST_LEVELS = 32
_TOML_WHOLE = range(-(2**63), 2**63)
_JSON_WHOLE = range(-(2**63), 2**64)  # data may have hashes without a sign
_MOST_DIGITS = len(str(2**64))  # as many as -2**63 has with its sign
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_TOO_DEEP = f"is nested more than {MOST_LEVELS} deep"
_TOO_LONG = "holds a whole number of more than 64 bits"
_OUTSIDE = "holds a whole number outside -2^63 to 2^64-1"


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


def json_of(text: str | bytes, *, unique: bool = False) -> Any:
    """Read JSON in UTF-8.

    Parameters
    ----------
    text : str or bytes
        One value.
    unique : bool
        Whether to refuse an object that has a key twice, of which Python would take the last.

    Raises
    ------
    FileError
        If it is not valid, or beyond the limits; texts must be ones that UTF-8 can write.
    """
    try:
        text = _decoded(text)
        if text.count("[") + text.count("{") > MOST_LEVELS and _levels(text) > MOST_LEVELS:
            raise FileError(_TOO_DEEP)
        found = json.loads(text, parse_int=_whole, object_pairs_hook=_once if unique else None)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"is not valid JSON in UTF-8: {error}") from None
    if "\\u" in text and (half := _HALF.search(json.dumps(found, ensure_ascii=False))):
        raise FileError(f"holds half a character: {half[0]!a}")
    return found


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS or (number := int(digits)) not in _JSON_WHOLE:
        raise FileError(_OUTSIDE)
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise FileError(f"has the key {next(key for key in keys if keys.count(key) > 1)!a} twice")
    return found


def _levels(text: str) -> int:
    """How many brackets are open at once, those inside of strings left out."""
    deepest = depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= 1
    return deepest


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
        if any(isinstance(value, int) and value not in _TOML_WHOLE for value in level):
            raise FileError(_TOO_LONG)
        every += level
        tables = [item for value in level if isinstance(value, dict) for item in (*value, *value.values())]
        level = tables + [item for value in level if isinstance(value, list) for item in value]
    if level:
        raise FileError(_TOO_DEEP)
    return every
