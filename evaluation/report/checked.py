"""What a stored result must hold to be shown: one that was edited, cut off or is of another version is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.scores import SCORE_COLUMNS

KEYS = {"model", "dataset", "settings", "rows"}

_NAMES = {"model": ("name", "sha", "kind"), "dataset": ("name", "version", "source", "revision")}
_AGGREGATES = ("mu", "eta", "delta", "epsilon", "average_score")
_ENDS = ("low", "high", "corrected")
_TABLES = {"subject": ("subject", "gamma"), "subject_attribute": ("subject", "attribute", "n", "gamma", "q")}
_PREDICTIONS = ("source_index", "label")


def check_result(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a result that lacks what a report shows, or whose rows cannot be read.

    Parameters
    ----------
    path : Path
        Its JSON file.
    content : mapping
        What that holds, with all of `KEYS` and with ``metrics`` or ``splits``.

    Raises
    ------
    EvaluationError
        By the name of what is missing.
    """
    if fault := next(_faults(content), None):
        raise EvaluationError(f"{path} has no {fault}: it was edited or is of another version; score the model again")
    _check_rows(path.with_suffix(".parquet"), ("id", *SCORE_COLUMNS) if "metrics" in content else _PREDICTIONS)


def _check_rows(path: Path, columns: tuple[str, ...]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowException) as error:
        raise EvaluationError(f"{path} cannot be read as Parquet: copy it again, or score the model again") from error
    if lacking := [name for name in columns if name not in names]:
        raise EvaluationError(f"{path} has no column {lacking[0]}: copy it again, or score the model again")


def _faults(content: Mapping[str, Any]) -> Iterator[str]:
    for part, keys in _NAMES.items():
        yield from (f"{part}.{key}" for key in keys if not isinstance(_of(content[part], key), str))
    if not isinstance(content["settings"], dict):
        yield "settings"
    if not isinstance(content["rows"], int):
        yield "rows"
    if "metrics" in content:
        yield from _probe_faults(content)
    elif not isinstance(content["splits"], dict):
        yield "splits"
    else:
        for split, summary in content["splits"].items():
            yield from (f"splits.{split}.{key}" for key in ("accuracy", "drop") if _of(summary, key, "") == "")


def _probe_faults(content: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(_of(content["dataset"], "config"), str):
        yield "dataset.config"
    for name in _AGGREGATES:
        found = _of(content["metrics"], name)
        if not _is_number(_of(found, "value")):
            yield f"number as metrics.{name}.value"
        ends = ((key, _of(found, key, "")) for key in _ENDS)
        yield from (f"number as metrics.{name}.{key}" for key, end in ends if end is not None and not _is_number(end))
    for name, columns in _TABLES.items():
        table = _of(content.get("tables"), name)
        yield from (f"tables.{name}.{column}" for column in columns if not isinstance(_of(table, column), list))


def _of(part: Any, key: str, otherwise: Any = None) -> Any:
    return part.get(key, otherwise) if isinstance(part, dict) else otherwise


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
