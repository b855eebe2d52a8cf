"""Turns probe rows into the least work: each distinct model input once, and what is read off it.

A row asks four inputs (two subject orders, an attribute and its negation) for two subjects each. Rows share contexts,
questions and whole inputs, so inputs are kept as pairs of numbers into lists of distinct texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evaluation.errors import EvaluationError

Indices = NDArray[np.int64]
Span = tuple[int, int]


@dataclass(frozen=True)
class Work:
    """Distinct inputs of some rows, and what is read off them.

    Attributes
    ----------
    contexts, asked : list of str
        Distinct texts; `asked` holds questions or statements.
    inputs : (inputs, 2) int
        Context and asked text of each distinct input.
    readings : (readings, 2) int
        Input and subject of each distinct score.
    rows : (rows, 8) int
        The reading behind each score, columns as in `SCORE_COLUMNS`.
    spans : list of (start, end)
        Distinct subjects as character spans; empty when read by text.
    texts : list of (text, group)
        Distinct subjects as texts with their group; empty when read by span.
    """

    contexts: list[str]
    asked: list[str]
    inputs: Indices
    readings: Indices
    rows: Indices
    spans: list[Span]
    texts: list[tuple[str, str | None]]


def make_work(table: pa.Table, asked: str, *, by: str, prefix: str = "") -> Work:
    """Find the distinct inputs and readings of probe rows.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of a probe set.
    asked : str
        ``question`` or ``statement``.
    by : str
        ``span`` or ``text``: how subjects are told apart.
    prefix : str
        Put before every context; spans shift with it.

    Raises
    ------
    EvaluationError
        If a column is missing.
    """
    _check_columns(table, asked)
    contexts, (order12, order21) = _codes([table["context_12"], table["context_21"]])
    questions, (plain, negated) = _codes([table[asked], table[f"{asked}_negated"]])
    keys = np.stack([c * max(1, len(questions)) + a for a in (plain, negated) for c in (order12, order21)])
    inputs, input_of = np.unique(keys.reshape(-1), return_inverse=True)
    spans: list[Span] = []
    texts: list[tuple[str, str | None]] = []
    if by == "span":
        spans, (s1_12, s2_12, s1_21, s2_21) = _spans(table, len(prefix))
        subjects = np.stack([s1_12, s2_12, s1_21, s2_21] * 2)
        count = len(spans)
    else:
        texts, (s1_12, s2_12, s1_21, s2_21) = _texts(table, by_order=asked == "question")
        subjects = np.stack([s1_12, s2_12, s1_21, s2_21] * 2)
        count = len(texts)
    keys = np.repeat(input_of.reshape(4, -1), 2, axis=0) * max(1, count) + subjects
    readings, reading_of = np.unique(keys.reshape(-1), return_inverse=True)
    return Work(
        contexts=[prefix + context for context in contexts],
        asked=questions,
        inputs=np.stack(np.divmod(inputs, max(1, len(questions))), axis=1),
        readings=np.stack(np.divmod(readings, max(1, count)), axis=1),
        rows=reading_of.reshape(8, -1).T,
        spans=spans,
        texts=texts,
    )


def _check_columns(table: pa.Table, asked: str) -> None:
    needed = ("text1", "text2", "context_12", "context_21", "span1_12", "span2_12", "span1_21", "span2_21")
    other = {"question": "statement", "statement": "question"}[asked]
    if asked not in table.column_names and other in table.column_names:
        config = "qa" if asked == "question" else "mlm"
        raise EvaluationError(f"these rows have the column {other!r}, not {asked!r}: score config {config} instead")
    for name in (*needed, asked, f"{asked}_negated"):
        if name not in table.column_names:
            raise EvaluationError(f"the probe rows have no column {name!r}: build the set again, or pass another")
        if name.startswith("span") and table[name].null_count:
            raise EvaluationError(f"the column {name!r} of the probe rows has nulls: build the set again")


def _codes(columns: Sequence[pa.ChunkedArray]) -> tuple[list[str], list[Indices]]:
    """Number the distinct strings of several columns together."""
    chunks = [chunk.cast(pa.string()) for column in columns for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    if (codes < 0).any():
        raise EvaluationError(
            "a context, question, statement or subject of the probe rows is null: build the set again"
        )
    return encoded.dictionary.to_pylist(), np.split(codes, len(columns))


def _spans(table: pa.Table, shift: int) -> tuple[list[Span], list[Indices]]:
    names = ("span1_12", "span2_12", "span1_21", "span2_21")
    flat = [np.asarray(table[name].combine_chunks().flatten()).astype(np.int64).reshape(-1, 2) for name in names]
    ends = np.concatenate(flat)
    distinct, codes = np.unique(ends[:, 0] << 32 | ends[:, 1], return_inverse=True)
    spans = [(shift + int(key >> 32), shift + int(key & 0xFFFFFFFF)) for key in distinct]
    return spans, np.split(codes.reshape(-1), len(names))


def _texts(table: pa.Table, *, by_order: bool) -> tuple[list[tuple[str, str | None]], list[Indices]]:
    """Subjects as text in each of the two orders: as they stand in its context, or as they stand for the mask."""
    both = [table["text1"], table["text2"]]
    words, codes = _codes([*both, *([_standing(table, 1), _standing(table, 2)] if by_order else both)])
    if "group1" not in table.column_names or "group2" not in table.column_names:
        return [(word, None) for word in words], codes
    chunks = [chunk.cast(pa.string()) for name in ("group1", "group2") for chunk in table[name].chunks]
    encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    groups = [*encoded.dictionary.to_pylist(), None]
    group_codes = pc.fill_null(encoded.indices, len(groups) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
    keys = np.concatenate(codes) * len(groups) + np.tile(group_codes, 2)
    distinct, code = np.unique(keys, return_inverse=True)
    texts = [(words[key // len(groups)], groups[key % len(groups)]) for key in distinct]
    return texts, np.split(code.reshape(-1), 4)


def _standing(table: pa.Table, number: int) -> pa.ChunkedArray:
    """A subject as it stands in the other order, where languages that inflect may give it another form."""
    spans = table[f"span{number}_21"].to_pylist()
    texts = (context[slice(*span)] for context, span in zip(table["context_21"].to_pylist(), spans, strict=True))
    return pa.chunked_array([pa.array(texts, pa.string())])


class ReadingsOf:
    """Finds the readings of a batch of inputs."""

    def __init__(self, work: Work) -> None:
        self._order = np.argsort(work.readings[:, 0], kind="stable")
        self._ends = np.searchsorted(work.readings[self._order, 0], np.arange(len(work.inputs) + 1))

    def __call__(self, inputs: Indices) -> tuple[Indices, Indices]:
        """Give the readings of `inputs`, and for each the place of its input in `inputs`."""
        counts = self._ends[inputs + 1] - self._ends[inputs]
        readings = [self._order[self._ends[i] : self._ends[i + 1]] for i in inputs]
        return np.concatenate(readings), np.repeat(np.arange(len(inputs)), counts)
