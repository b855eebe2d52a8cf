"""JSON that is damaged in one field, in every way that a field can be."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

GONE = object()
WRONG = [GONE, None, True, -1, 1e9, 10**18, float("nan"), "x", "../x", [], {}, [1], {"x": 1}]


def places(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field, and the first item of every list."""
    yield at
    items = (
        content.items() if isinstance(content, dict) else enumerate(content[:1]) if isinstance(content, list) else ()
    )
    for key, value in items:
        yield from places(value, (*at, key))


def damaged(content: Any, at: tuple[Any, ...], value: Any) -> Any:
    """Give the content with another value at a place, or without it."""
    if not at:
        return None if value is GONE else value
    content = copy.deepcopy(content)
    inner: Any = content
    for key in at[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return content
