"""Names of others as the sort keys and colour domains of a chart."""

from __future__ import annotations

_OF_EVERY_OBJECT = frozenset(
    ("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf")
)


def drawable(name: str) -> str:
    """Give a name as Vega can sort and stack by it: it stumbles over those that every JavaScript object has.

    Examples
    --------
    >>> drawable("painter"), drawable("constructor")
    ('painter', 'constructor\\u200b')
    """
    return f"{name}\u200b" if name in _OF_EVERY_OBJECT else name
