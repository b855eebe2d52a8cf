"""The one reader of stored results: what is damaged, edited or of another version ends here, with a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.folder import sha256
from builders.schema import own_sum
from evaluation.errors import EvaluationError
from evaluation.result_schema import check_content
from evaluation.scores import SCORE_COLUMNS, check_scores
from unqover_data.files import FileError, json_of, read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

KEYS = {"model", "dataset", "settings", "rows"}

_MOST_BYTES = 256 * 2**20
_PREDICTIONS = {"source_index": "whole", "label": "whole", "predicted": "whole"}
_PROBABILITIES = ("confidence", "label_probability")
_AGAIN = "copy it again, or score the model again"


class NoResultError(EvaluationError):
    """A file that is no result at all, and not a damaged one."""


def seal(result: Mapping[str, Any], scores: Path) -> dict[str, Any]:
    """Return a result with the rows and the SHA-256 of its Parquet, and with one of itself.

    Parameters
    ----------
    result : mapping
        Of plain values, as JSON reads them.
    scores : Path
        Its Parquet file.
    """
    import pyarrow.parquet as pq

    facts = {"rows": pq.read_metadata(scores).num_rows, "sha256": sha256(scores)}
    sealed = {**result, "parquet": facts}
    return {**sealed, "sha256": own_sum(sealed)}


def read_stored(path: Path) -> dict[str, Any]:
    """Read a result, after a look at all that it says and at the rows beside it.

    Parameters
    ----------
    path : Path
        Its JSON file.

    Raises
    ------
    NoResultError
        If the file is no result of ``probesieve eval``.
    EvaluationError
        If it or its Parquet file is missing, damaged, edited or of another version.
    """
    if path.suffix != ".json" or not path.is_file():
        raise NoResultError(f"{path} is no stored result: pass a .json that probesieve eval wrote")
    try:
        content = json_of(read_bytes(path, _MOST_BYTES))
    except FileError as error:
        raise NoResultError(f"{path} {error}; remove it and score the model again") from error
    if not (isinstance(content, dict) and content.keys() >= KEYS and ("metrics" in content or "splits" in content)):
        raise NoResultError(f"{path} is no stored result: pass a .json that probesieve eval wrote")
    scores = path.with_suffix(".parquet")
    if not scores.is_file():
        raise EvaluationError(f"{path} has no .parquet beside it, which holds its rows: copy both, or score again")
    if "sha256" in content and content["sha256"] != own_sum(content):
        raise EvaluationError(f"{path} was edited: it is not what probesieve eval wrote; score the model again")
    try:
        check_content(content)
    except ValueError as error:
        raise EvaluationError(f"{path} is no result of this version: {error}; score the model again") from error
    _check_rows(scores, content)
    return content


def _check_rows(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a Parquet file that is not the one that was stored, or, where its sum is not known, that cannot be it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sealed = content.get("parquet")
    try:
        schema, rows = pq.read_schema(path), pq.read_metadata(path).num_rows
        if sealed and (rows != sealed["rows"] or sha256(path) != sealed["sha256"]):
            raise EvaluationError(f"{path} was edited: its rows are not those that were stored; {_AGAIN}")
        if rows != content["rows"]:
            raise EvaluationError(f"{path} has {rows:,} rows, and its result says {content['rows']:,}; {_AGAIN}")
        columns = ("id", *SCORE_COLUMNS) if "metrics" in content else (*_PREDICTIONS, *_PROBABILITIES, "broken")
        if lacking := [name for name in columns if name not in schema.names]:
            raise EvaluationError(f"{path} has no column {lacking[0]}; {_AGAIN}")
        if "splits" in content:
            _check_predictions(path, pq.read_table(path, columns=list(columns)), len(content["dataset"]["names"]))
        elif not sealed:
            check_scores(pq.read_table(path, columns=list(columns)))
    except (OSError, pa.ArrowException) as error:
        raise EvaluationError(f"{path} cannot be read as Parquet; {_AGAIN}") from error
    except EvaluationError as error:
        told = str(error)
        raise EvaluationError(told if told.startswith(str(path)) else f"{path}: {told}") from error


def _check_predictions(path: Path, rows: pa.Table, classes: int) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    broken = rows["broken"].is_valid().to_numpy()
    for name in _PREDICTIONS:
        column = rows[name]
        if not pa.types.is_integer(column.type):
            raise EvaluationError(f"{path}: column {name} must hold whole numbers, not {column.type}; {_AGAIN}")
        values = column.fill_null(0).to_numpy()
        lacking = column.is_null().to_numpy() != (broken if name == "predicted" else False)
        odd = lacking | (values < 0) | ((values >= classes) & (name != "source_index"))
        if odd.any():
            raise EvaluationError(f"{path}: {name} of row {int(np.argmax(odd)):,} cannot be; {_AGAIN}")
    for name in _PROBABILITIES:
        column = rows[name]
        if not pa.types.is_floating(column.type):
            raise EvaluationError(f"{path}: column {name} must hold numbers, not {column.type}; {_AGAIN}")
        values = column.fill_null(0).to_numpy()
        odd = (column.is_null().to_numpy() != broken) | ~((values >= 0) & (values <= 1 + 1e-6))
        if odd.any():
            raise EvaluationError(f"{path}: {name} of row {int(np.argmax(odd)):,} is no share from 0 to 1; {_AGAIN}")
    if pc.count_distinct(rows["source_index"]).as_py() < len(rows):
        raise EvaluationError(f"{path} repeats a source_index; {_AGAIN}")
