"""Finds the rows of a split in files that others made: by index, by pair id or by exact text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import EvaluationError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]
Pair = tuple[str, ...]
"""Both texts of a row, or its only one."""

PAIR_IDS = ("pairID", "pair_id", "pairid", "uid")


@dataclass(frozen=True)
class Rows:
    """The labelled rows of one split, as far as others may name them.

    Attributes
    ----------
    names : tuple of str
        The dataset's classes.
    labels : int64 array, shape (rows,)
        Indexes into `names`.
    source_index : int64 array, shape (rows,)
        Place of each row in the source's split, unlabelled rows counted.
    pair_ids : tuple of str or None
        The ids that the dataset's authors gave, where it has them.
    pairs : tuple of tuple of str or None
        Both texts of each row, or its only one; None for images.
    source_rows : int or None
        Rows of the source's split, unlabelled ones counted, where it is known.
    """

    names: tuple[str, ...]
    labels: Ints
    source_index: Ints
    pair_ids: tuple[str, ...] | None = None
    pairs: tuple[Pair, ...] | None = None
    source_rows: int | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def from_table(cls, table: pa.Table, names: Sequence[str], inputs: Sequence[str]) -> Rows:
        """Take the columns of a filtered set.

        Parameters
        ----------
        table : pyarrow.Table
            With ``label``, and with ``source_index`` unless its rows are a whole split in order.
        names : sequence of str
            The dataset's classes.
        inputs : sequence of str
            The input columns; one or two of text, or an image.
        """
        ids = next((name for name in PAIR_IDS if name in table.column_names), None)
        numbered = "source_index" in table.column_names
        return cls(
            tuple(names),
            table["label"].to_numpy().astype(np.int64),
            table["source_index"].to_numpy().astype(np.int64) if numbered else np.arange(len(table)),
            None if ids is None else tuple(map(str, table[ids].to_pylist())),
            tuple(zip(*(table[name].to_pylist() for name in inputs), strict=True)) if _of_text(table, inputs) else None,
        )


def _of_text(table: pa.Table, inputs: Sequence[str]) -> bool:
    kinds = [str(table.schema.field(name).type) for name in inputs if name in table.column_names]
    return len(kinds) == len(inputs) and all(kind in ("string", "large_string") for kind in kinds)


def match_keys(wanted: Sequence[Hashable], known: Sequence[Hashable], *, what: str) -> Ints:
    """Give for each wanted key its place among the known, -1 for those that are not there.

    Raises
    ------
    EvaluationError
        If a known key is there twice; `what` names the keys.
    """
    places: dict[Hashable, int] = {}
    for place, key in enumerate(known):
        if places.setdefault(key, place) != place:
            raise EvaluationError(f"{what} {key!r} is there twice; each row must have one prediction")
    return np.array([places.get(key, -1) for key in wanted], dtype=np.int64)


def match_pairs(wanted: Sequence[Pair], known: Sequence[Pair]) -> Ints:
    """Give for each wanted text pair its place among the known, -1 for those that are not there.

    Texts must be the same but for space at their ends. The second row with the same texts goes to the second of them
    and so on, and to the last where there are fewer.
    """
    places: dict[Pair, list[int]] = {}
    for place, pair in enumerate(known):
        places.setdefault(stripped(pair), []).append(place)
    seen: dict[Pair, int] = {}
    found = np.full(len(wanted), -1, dtype=np.int64)
    for row, pair in enumerate(map(stripped, wanted)):
        if there := places.get(pair):
            found[row] = there[min(seen.get(pair, 0), len(there) - 1)]
            seen[pair] = seen.get(pair, 0) + 1
    return found


def stripped(pair: Pair) -> Pair:
    """The texts of a row as they are compared: without space at the ends."""
    return tuple(text.strip() for text in pair)
