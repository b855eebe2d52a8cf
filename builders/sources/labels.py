"""Labels as sources write them, turned into the numbers of the spec's names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.limits import MOST_CLASSES
from builders.sources.raw import listed

if TYPE_CHECKING:
    from datasets import Dataset

_NONE = ("", "-", "-1")
_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0+)?")
_ROWS = 10_000
_DIGITS = 10  # of no number that has a name


def label_names(splits: Mapping[str, Dataset], column: str) -> tuple[str, ...]:
    """The source's own names: those that it declares, else the texts that occur, sorted, or 0 to the highest number.

    Raises
    ------
    BuildError
        If it has fewer than two.
    """
    from datasets import ClassLabel, Value

    declared = [split.features[column] for split in splits.values()]
    if isinstance(declared[0], ClassLabel):
        return tuple(declared[0].names)
    found = {text for split in splits.values() for part in _parts(split, column) for text in _texts(part)}
    texts = {text for text in found if text is not None and text not in _NONE}
    if not texts:
        raise BuildError(f"the source has no labels: column {column!r} is empty in {listed(splits)}")
    if isinstance(declared[0], Value) and not declared[0].dtype.endswith("string") and all(map(str.isdecimal, texts)):
        if (highest := max(map(int, texts))) >= MOST_CLASSES:
            raise BuildError(
                f"column {column!r} has the label {highest}, and numbers without names must be below {MOST_CLASSES:,}: "
                "name the labels in the spec"
            )
        names = tuple(str(number) for number in range(highest + 1))
    else:
        names = tuple(sorted(texts))
    if len(names) < 2:
        raise BuildError(f"column {column!r} has the labels {', '.join(names)}: two or more are needed")
    return names


def label_codes(rows: Dataset, column: str, names: Sequence[str], *, split: str) -> NDArray[np.int64]:
    """Number of each row's label in `names`, -1 where it has none.

    A label is found by its name, and a number that is no name by its place. No label is -1, ``-``, an empty text,
    null or NaN, unless a name says otherwise.

    Parameters
    ----------
    rows : Dataset
        One split.
    column : str
        ClassLabel, integers, whole floats or text.
    names : sequence of str
        Label names.
    split : str
        What to call `rows` in an error.

    Returns
    -------
    ndarray of int64, shape (len(rows),)

    Raises
    ------
    BuildError
        If a label is not among the names, naming it, its split and its row.
    """
    from datasets import ClassLabel

    feature, numbers = rows.features[column], {name: number for number, name in enumerate(names)}
    declared = feature.names if isinstance(feature, ClassLabel) else []
    codes, start = np.empty(len(rows), np.int64), 0
    for part in _parts(rows, column):
        texts = _texts(part.dictionary, declared)
        known = [_number(text, numbers) for text in texts]
        for at in (i for i, number in enumerate(known) if number is None):
            row = start + int(np.flatnonzero(part.indices.fill_null(-1).to_numpy(zero_copy_only=False) == at)[0])
            raise BuildError(_outside(texts[at], names, split, row))
        table = np.array([*known, -1], np.int64)  # the last is where null's index -1 leads
        codes[start : start + len(part)] = table[part.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        start += len(part)
    return codes


def _parts(rows: Dataset, column: str) -> Iterable[pa.DictionaryArray]:
    """A column dictionary-encoded, some thousand rows at a time."""
    for table in rows.select_columns([column]).with_format("arrow").iter(_ROWS):
        part = table[column].combine_chunks()
        kind = part.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind) or _is_text(kind)):
            raise BuildError(f"label column {column!r} holds {kind}: labels must be whole numbers or text")
        part = part.cast(pa.string()) if pa.types.is_null(kind) else part
        yield part.dictionary_encode()


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _texts(values: pa.Array, declared: Sequence[str] = ()) -> list[str | None]:
    return [_text(value, declared) for value in (getattr(values, "dictionary", values)).to_pylist()]


def _text(value: Any, declared: Sequence[str]) -> str | None:
    """A label as text: whole numbers without a fraction, and the declared name of a number that has one."""
    if value is None or value != value:
        return None
    match = (
        None if isinstance(value, str) else _WHOLE.fullmatch(f"{value:.1f}" if isinstance(value, float) else str(value))
    )
    if match is None:
        return str(value)
    return declared[int(match[1])] if declared and 0 <= int(match[1]) < len(declared) else match[1]


def _number(text: str | None, numbers: Mapping[str, int]) -> int | None:
    """Number of a label, -1 if it is none, None if it is outside the names."""
    if text is None or (text not in numbers and text in _NONE):
        return -1
    if text in numbers:
        return numbers[text]
    match = _WHOLE.fullmatch(text)
    number = int(match[1]) if match and len(match[1]) < _DIGITS else -2
    return number if -1 <= number < len(numbers) else None


def _outside(text: str | None, names: Sequence[str], split: str, row: int) -> str:
    close = difflib.get_close_matches(str(text), names, n=1)
    hint = f"did you mean {close[0]}?" if close else "name every label in the spec, or correct the source"
    return f"label {text!r} in row {row} of split {split} is not among the label names {listed(names)}; {hint}"
