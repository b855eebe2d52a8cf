"""Says which rows a model can score, and which subjects are why not the others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MOST_NAMES = 12


def covered(
    table: pa.Table, keep: NDArray[np.bool_], lacking: NDArray[np.bool_], unplaced: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    """Count rows and name subjects, for a result.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of a probe set.
    keep : (rows,) bool
        Those that can be scored.
    lacking : (rows, 2) bool
        Whether the vocabulary lacks subject 1 or 2 as the row needs it.
    unplaced : (rows, 2) bool, optional
        Whether their tokens cannot be told from those around them.

    Returns
    -------
    dict
        ``subjects`` (how many), ``subjects_left_out`` (names that no row can have), ``rows``, ``rows_kept``,
        ``coverage`` (share of rows kept); where there are any, ``subjects_left_out_in_part`` (names that some rows
        can have, in other forms or places) and ``subjects_unplaced``.
    """
    rows, left_out = _counts(table), _counts(table, lacking)
    facts = {
        "subjects": len(rows),
        "subjects_left_out": sorted(name for name, count in left_out.items() if count == rows[name]),
        "rows": table.num_rows,
        "rows_kept": int(keep.sum()),
        "coverage": float(keep.mean()) if table.num_rows else 0.0,
    }
    more = {
        "subjects_left_out_in_part": sorted(name for name, count in left_out.items() if count < rows[name]),
        "subjects_unplaced": sorted(_counts(table, unplaced)) if unplaced is not None else [],
    }
    return facts | {name: found for name, found in more.items() if found}


def _counts(table: pa.Table, mask: NDArray[np.bool_] | None = None) -> Counter[str]:
    """Count the rows of each subject, or those where the mask is set for it."""
    counts: Counter[str] = Counter()
    for number, column in enumerate(("subject1", "subject2")):
        names = table[column].cast(pa.string())
        some = names if mask is None else names.filter(pa.array(mask[:, number]))
        counts.update({str(one["values"]): one["counts"] for one in some.value_counts().to_pylist()})
    return counts


def reasons(coverage: dict[str, Any]) -> str:
    """Say which subjects are why rows are left out; nothing if none are.

    Examples
    --------
    >>> reasons({"subjects_left_out": ["Ann", "Bob"], "subjects_left_out_in_part": ["Eve"]})
    'its vocabulary lacks Ann, Bob; and in some of their forms or places Eve'
    """
    lacking = [
        (_names(coverage.get("subjects_left_out", ())), ""),
        (_names(coverage.get("subjects_left_out_in_part", ())), "in some of their forms or places "),
    ]
    parts = [how + names for names, how in lacking if names]
    said = [f"its vocabulary lacks {'; and '.join(parts)}"] if parts else []
    if unplaced := _names(coverage.get("subjects_unplaced", ())):
        said.append(f"its tokens do not tell from the words around them {unplaced}")
    return "; ".join(said)


def _names(names: Any) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
