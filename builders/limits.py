"""What one image, member, line or number of a file may be at most, so that a small file cannot take a machine down."""

from __future__ import annotations

import json
import sys
from typing import Any

MOST_PIXELS = 100_000_000  # of an image
MOST_MEMBER_BYTES = 256 * 2**20  # of a member of a tar file
MOST_LINE_BYTES = 2**20  # of a line of word vectors
MOST_CLASSES = 100_000  # of labels that are numbers without names
MOST_NESTED = 32  # arrays and objects inside each other in a JSON value
MOST_DIGITS = sys.get_int_max_str_digits()  # of a whole number in a JSON value: 4,300 unless Python was told otherwise


def read_json(text: str, *, unique: bool = False) -> Any:
    """Read a JSON value.

    Parameters
    ----------
    text : str
        The value.
    unique : bool
        Whether to refuse an object with a key twice, of which Python would take the last.

    Raises
    ------
    ValueError
        If it is none, is nested deeper than `MOST_NESTED` or has a whole number of more than `MOST_DIGITS` digits.
    """
    if text.count("[") + text.count("{") > MOST_NESTED and _depth(text) > MOST_NESTED:
        raise ValueError(f"more than {MOST_NESTED} arrays and objects stand inside each other")
    try:
        return json.loads(text, object_pairs_hook=_once if unique else None)
    except (json.JSONDecodeError, _TwiceError):
        raise
    except ValueError:  # the only other one
        raise ValueError(f"a whole number has more than {MOST_DIGITS:,} digits") from None


class _TwiceError(ValueError):
    """A key that an object has twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(f"the key {next(key for key in keys if keys.count(key) > 1)!a} is there twice")
    return found


def _depth(text: str) -> int:
    """How many brackets are open at once, those inside of strings left out."""
    deepest = depth = 0
    quoted = escaped = False
    for sign in text:
        if quoted:
            quoted, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign == '"':
            quoted = True
        elif sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest
