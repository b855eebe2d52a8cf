"""Stored scores joined to the probe rows that they belong to, as arrays: what every metric starts from."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import EvaluationError

if TYPE_CHECKING:
    import pyarrow as pa

SCORE_COLUMNS = (
    *("s1_12", "s2_12", "s1_21", "s2_21"),
    *("s1_12_negated", "s2_12_negated", "s1_21_negated", "s2_21_negated"),
)
"""S of a subject in an order: ``s1_21`` is S of subject1 where subject2 is first; ``_negated``: of the negation."""

PROBE_COLUMNS = ("id", "subject1", "subject2", "group1", "group2", "template", "attribute", "attribute_class")

_ROUNDING = 1e-6  # a float32 probability may come out this much above 1

FloatArray = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class ScoredRows:
    """The rows of a probe set with a model's scores; codes count into the names, -1 where a row has none.

    Attributes
    ----------
    scores : float64 array, shape (N, 8)
        Columns as in `SCORE_COLUMNS`, each in [0, 1].
    ids : pyarrow.Array of string, length N
    subjects, groups, attributes, attribute_classes, templates : tuple of str
        Names, sorted.
    subject1, subject2, group1, group2, attribute, attribute_class, template : int32 array, shape (N,)
        Codes into those names.
    """

    scores: FloatArray
    ids: pa.Array
    subjects: tuple[str, ...]
    groups: tuple[str, ...]
    attributes: tuple[str, ...]
    attribute_classes: tuple[str, ...]
    templates: tuple[str, ...]
    subject1: Codes
    subject2: Codes
    group1: Codes
    group2: Codes
    attribute: Codes
    attribute_class: Codes
    template: Codes

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def from_tables(cls, probe_rows: pa.Table, scores: pa.Table, *, subset: bool = False) -> ScoredRows:
        """Join scores to probe rows by ``id``; the order of the probe rows is kept.

        Parameters
        ----------
        probe_rows : pyarrow.Table
            With the columns `PROBE_COLUMNS`; others are ignored.
        scores : pyarrow.Table
            With ``id`` and `SCORE_COLUMNS`.
        subset : bool
            Whether probe rows without scores are left out (a sample, or a model whose vocabulary lacks some subjects)
            instead of refused.

        Raises
        ------
        EvaluationError
            For a missing column, no rows, an id that is repeated or unknown, a row without scores, and a score that
            is no number from 0 to 1.
        """
        require(probe_rows, PROBE_COLUMNS, "the probe rows")
        require(scores, ("id", *SCORE_COLUMNS), "the scores")
        if not len(probe_rows) or not len(scores):
            raise EvaluationError(f"the {'scores' if len(probe_rows) else 'probe rows'} have zero rows: nothing to do")
        kept, order = _match(_ids(probe_rows, "probe rows"), _ids(scores, "scores"), subset=subset)
        if kept is not None:
            probe_rows = probe_rows.take(kept)
        ids = _ids(probe_rows, "probe rows")
        matrix = _score_matrix(scores)
        matrix = matrix if order is None else matrix[order]
        _check_range(matrix, ids)
        subjects, (subject1, subject2) = encode(probe_rows, ("subject1", "subject2"))
        groups, (group1, group2) = encode(probe_rows, ("group1", "group2"), missing=True)
        attributes, (attribute,) = encode(probe_rows, ("attribute",))
        classes, (attribute_class,) = encode(probe_rows, ("attribute_class",), missing=True)
        templates, (template,) = encode(probe_rows, ("template",))
        names = (subjects, groups, attributes, classes, templates)
        return cls(matrix, ids, *names, subject1, subject2, group1, group2, attribute, attribute_class, template)

    def take(self, rows: NDArray[np.integer[Any]] | NDArray[np.bool_]) -> ScoredRows:
        """Give the rows at these positions, or where true; the names stay."""
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        columns = ("subject1", "subject2", "group1", "group2", "attribute", "attribute_class", "template")
        taken = {name: getattr(self, name)[rows] for name in columns}
        return replace(self, scores=self.scores[rows], ids=self.ids.take(rows), **taken)


def check_scores(scores: pa.Table) -> None:
    """Refuse scores of which an id is repeated or missing, or that are no numbers from 0 to 1; see `ScoredRows`."""
    require(scores, ("id", *SCORE_COLUMNS), "the scores")
    ids = _ids(scores, "scores")
    _check_distinct(ids, "scores")
    _check_range(_score_matrix(scores), ids)


def require(table: pa.Table, columns: Sequence[str], what: str) -> None:
    """Refuse a table that lacks a column."""
    for name in columns:
        if name not in table.column_names:
            close = difflib.get_close_matches(name, table.column_names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(table.column_names) or 'none'}"
            raise EvaluationError(f"{what} lack the column {name!r}; {hint}")


def _ids(table: pa.Table, what: str) -> pa.Array:
    import pyarrow as pa

    ids = table["id"].combine_chunks()
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks) if ids.num_chunks else pa.array([], pa.string())
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if ids.null_count:
        raise EvaluationError(f"the column 'id' of the {what} is empty in {ids.null_count:,} rows")
    return ids.cast(pa.string())


def _match(
    probe_ids: pa.Array, score_ids: pa.Array, *, subset: bool
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Which probe rows to keep, and the scores' row for each; None for all of them as they stand."""
    import pyarrow.compute as pc

    if probe_ids.equals(score_ids):  # as the runner stores them, of a set whose ids were checked when it was opened
        return None, None
    _check_distinct(probe_ids, "probe rows")
    _check_distinct(score_ids, "scores")
    places = pc.index_in(probe_ids, value_set=score_ids)
    lacking = places.null_count
    unknown = len(score_ids) - (len(probe_ids) - lacking)
    if unknown:
        stranger = score_ids.filter(pc.invert(pc.is_in(score_ids, value_set=probe_ids)))[0].as_py()
        also = f", and {lacking:,} of {len(probe_ids):,} rows have no scores" if lacking else ""
        raise EvaluationError(
            f"{unknown:,} of {len(score_ids):,} scores have an id that is not in the probe rows (the first is "
            f"{stranger!r}){also}; are they of another dataset, config or version?"
        )
    if lacking and not subset:
        first = probe_ids.filter(places.is_null())[0].as_py()
        raise EvaluationError(
            f"{lacking:,} of {len(probe_ids):,} probe rows have no scores (the first is {first!r}); "
            "score the rest, or pass only the rows that were to be scored"
        )
    kept = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False)) if lacking else None
    return kept, places.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)


def _check_distinct(ids: pa.Array, what: str) -> None:
    import pyarrow.compute as pc

    if len(ids.dictionary_encode().dictionary) < len(ids):
        counts = pc.value_counts(ids)
        first = counts.filter(pc.greater(counts.field("counts"), 1))[0]
        raise EvaluationError(f"the {what} repeat the id {first['values'].as_py()!r} ({first['counts']} times)")


def _score_matrix(scores: pa.Table) -> FloatArray:
    import pyarrow as pa

    matrix = np.empty((len(scores), len(SCORE_COLUMNS)))
    for place, name in enumerate(SCORE_COLUMNS):
        column = scores[name]
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise EvaluationError(f"the column {name!r} of the scores must hold numbers, not {column.type}")
        matrix[:, place] = column.to_numpy()
    return matrix


def _check_range(matrix: FloatArray, ids: pa.Array) -> None:
    with np.errstate(invalid="ignore"):
        good = (matrix >= 0) & (matrix <= 1 + _ROUNDING)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        many = int((~good).any(axis=1).sum())
        raise EvaluationError(
            f"{many:,} of {len(matrix):,} rows have a score that is no number from 0 to 1 (the first: "
            f"{SCORE_COLUMNS[column]} = {matrix[row, column]} in {ids[int(row)].as_py()!r}); score them again"
        )
    np.minimum(matrix, 1.0, out=matrix)


def encode(table: pa.Table, columns: Sequence[str], *, missing: bool = False) -> tuple[tuple[str, ...], list[Codes]]:
    """Give the sorted names in several columns together, and each column's codes into them; -1 for null."""
    import pyarrow as pa

    encoded = []
    for name in columns:
        column = table[name]
        if not missing and column.null_count:
            raise EvaluationError(f"the column {name!r} of the probe rows is empty in {column.null_count:,} rows")
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        chunk = column.unify_dictionaries().combine_chunks()
        if isinstance(chunk, pa.ChunkedArray):
            chunk = chunk.chunk(0)
        encoded.append(chunk)
    words = [chunk.dictionary.to_pylist() for chunk in encoded]
    names = tuple(sorted({word for some in words for word in some if word is not None}))
    place = {name: code for code, name in enumerate(names)}
    codes = []
    for chunk, some in zip(encoded, words, strict=True):
        remap = np.array([*(place.get(word, -1) for word in some), -1], dtype=np.int32)
        codes.append(remap[chunk.indices.fill_null(len(some)).to_numpy(zero_copy_only=False)])
    return names, codes
