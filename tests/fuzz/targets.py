"""All kinds of input that are damaged."""

from __future__ import annotations

from tests.fuzz import lists, models, options, rows, stored, unfinished
from tests.fuzz.target import Target

PARTS = (lists, options, models, rows, stored, unfinished)
TARGETS: dict[str, Target] = {name: target for part in PARTS for name, target in part.TARGETS.items()}
