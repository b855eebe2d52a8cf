"""What JSON of ours must hold: numbers within their limits, and one way of checking and of saying what is amiss."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
Sum = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(min_length=1)]


def own_sum(content: Mapping[str, Any]) -> str:
    """SHA-256 of all that a manifest or a result says, but for the one that it says of itself."""
    facts = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def convert(content: Any, kind: type[T]) -> T:
    """Return JSON as a `msgspec.Struct`; keys that it does not name may be there, as later versions have more.

    Raises
    ------
    ValueError
        Naming the first field that is missing or of another type, and what was expected of it.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).partition(" - at ")
        where = place.replace("$.", "").replace("$", "")
        raise ValueError(f"{fault[:1].lower()}{fault[1:]}{f' at {where}' if where.strip('`') else ''}") from None
