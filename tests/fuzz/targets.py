"""All kinds of input that are damaged."""

from __future__ import annotations

from tests.fuzz import lists, models, options, rows, stored
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {**lists.TARGETS, **options.TARGETS, **models.TARGETS, **rows.TARGETS, **stored.TARGETS}
