"""Names of rows beside given features: a table of what is in each row, compared with the rows that are filtered.

Features say nothing of what they are of, and a file in another order has the right shape. ``features.ids.csv`` beside
``features.npy`` has a line a row under a header that names columns of the set: the authors' ids, a text, or the row's
``split`` and ``source_index``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from builders.errors import BuildError

if TYPE_CHECKING:
    from datasets import Dataset

SPLIT = "split"
_SUFFIX = ".ids.csv"
_SHOWN = 60


def check_ids(
    features: Path,
    rows: Dataset,
    splits: Sequence[str],
    places: NDArray[np.int64],
    *,
    count: int,
    hidden: Sequence[str],
) -> None:
    """See that the file of ids beside a file of features, if there is one, is of these rows in this order.

    Parameters
    ----------
    features : Path
        The file of features.
    rows : datasets.Dataset
        The rows that are filtered.
    splits : sequence of str
        The split of each.
    places : int64 array, shape (rows,)
        The row of the file that holds the features of each.
    count : int
        Rows of the file.
    hidden : sequence of str
        Columns of `rows` by which rows are not told apart: label and image.

    Raises
    ------
    BuildError
        If it cannot be read, names a column that the rows lack, or differs in a row; names the line.
    """
    path = features.with_suffix(_SUFFIX)
    if not path.is_file():
        return
    header, lines = _read(path)
    known = [SPLIT, *(name for name in rows.column_names if name not in hidden)]
    if unknown := [name for name in header if name not in known]:
        raise BuildError(
            f"{path} has the column {unknown[0]!r}, which the rows lack; name columns of {', '.join(known)}"
        )
    if len(lines) != count:
        raise BuildError(
            f"{path} has {len(lines):,} rows below its header, and {features.name} has {count:,}; make both anew"
        )
    for number, name in enumerate(header):
        values = splits if name == SPLIT else rows[name][:]
        for place, value in zip(places.tolist(), values, strict=True):
            ours, given = "" if value is None else str(value), lines[place][number]
            if ours != given:
                there = ", which stands in another row" if any(line[number] == ours for line in lines) else ""
                raise BuildError(
                    f"{path}: row {place + 1:,} has {name} {given[:_SHOWN]!r} where the set has {ours[:_SHOWN]!r}"
                    f"{there}; put features and ids in the order of the set: the filtered splits as the spec names "
                    "them, each in its source's order"
                )


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BuildError(f"{path} cannot be read as CSV ({error}); write it anew") from error
    header = table[0] if table else []
    if not header or len(set(header)) < len(header):
        raise BuildError(f"{path} needs a header that names each of its columns once, not {','.join(header)!r}")
    if odd := next((number for number, line in enumerate(table) if len(line) != len(header)), None):
        raise BuildError(f"{path}: row {odd:,} has {len(table[odd])} cells, and the header has {len(header)}; mend it")
    return header, table[1:]
