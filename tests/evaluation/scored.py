"""Small scored probe sets as lists of dicts, which an oracle can loop over, and as `ScoredRows`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.scores import PROBE_COLUMNS, SCORE_COLUMNS, ScoredRows

SHARED = Path(__file__).parents[2].parent / "shared"

Row = dict[str, Any]


def make_rows(
    score: Callable[[str, str, str, str, bool, bool], float],
    *,
    subjects: Sequence[str] = ("A", "B", "C"),
    templates: Sequence[str] = ("t0", "t1"),
    attributes: Sequence[str] = ("a", "b"),
) -> list[Row]:
    """All rows of a set, scored by ``score(subject, partner, template, attribute, stands_first, negated)``.

    Subjects are in groups east and west by turns, attributes in classes odd and even by turns.
    """
    rows = []
    for (i, one), (j, two) in itertools.combinations(enumerate(subjects), 2):
        for template in templates:
            for k, attribute in enumerate(attributes):
                row: Row = {
                    "id": f"{one}|{two}|{template}|{attribute}",
                    "subject1": one,
                    "subject2": two,
                    "group1": ("east", "west")[i % 2],
                    "group2": ("east", "west")[j % 2],
                    "template": template,
                    "attribute": attribute,
                    "attribute_class": ("even", "odd")[k % 2],
                }
                for name in SCORE_COLUMNS:
                    me, partner = (one, two) if name.startswith("s1") else (two, one)
                    first = ("12" in name) == name.startswith("s1")
                    row[name] = score(me, partner, template, attribute, first, name.endswith("negated"))
                rows.append(row)
    return rows


def random_rows(seed: int, *, share: float = 1.0, **sizes: Any) -> list[Row]:
    """Rows with random scores, of which about this share is kept; some scores are equal, so that there are ties."""
    rng = np.random.default_rng(seed)
    rows = make_rows(lambda *_: float(rng.integers(0, 12)) / 11, **sizes)
    return [row for row in rows if rng.random() < share]


def tables(rows: list[Row]) -> tuple[pa.Table, pa.Table]:
    """The probe rows and the scores, as they are stored."""
    names = pa.schema([(name, pa.string()) for name in PROBE_COLUMNS])
    probe = pa.Table.from_pylist([{name: row[name] for name in PROBE_COLUMNS} for row in rows], names)
    return probe, pa.Table.from_pylist([{name: row[name] for name in ("id", *SCORE_COLUMNS)} for row in rows])


def scored(rows: list[Row]) -> ScoredRows:
    return ScoredRows.from_tables(*tables(rows))
