"""Text files that others made: JSON, JSON lines and tables, refused where a reader would silently choose."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.classifiers.names import plain
from evaluation.errors import EvaluationError
from unqover_data.files import FileError, InvalidError, json_of

_SURPLUS = "surplus cells"


def read_text(path: Path) -> str:
    """Read a text file of a user."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path} cannot be read: {error}") from None


def json_lines(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Return where each line is and what is in it; blank lines are left out.

    Raises
    ------
    EvaluationError
        If a line is not JSON, or has a key twice.
    """
    # str.splitlines would also split at separators that JSON allows inside of texts.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{name}, line {number}", json_of(line, unique=True)
            except FileError as error:
                raise EvaluationError(f"{name}, line {number}, {error}") from None


def rows_of(text: str, suffix: str, name: str) -> list[Any]:
    """Return the values of a JSON, JSONL, CSV or TSV file, a row each; an object by pair ids becomes a row a key.

    Raises
    ------
    EvaluationError
        If it is not what its suffix says.
    """
    if suffix == ".jsonl":
        return _lines(text, name)
    if suffix != ".json":
        return list(_table(text, name))
    whole = _json(text, name)
    return [_record(key, value) for key, value in whole.items()] if isinstance(whole, Mapping) else list(whole)


def _json(text: str, name: str) -> Any:
    """Read one JSON value, or one a line."""
    try:
        whole = json_of(text, unique=True)
    except InvalidError:
        return _lines(text, name)
    except FileError as error:
        raise EvaluationError(f"{name} {error}") from None
    if not isinstance(whole, Mapping | list):
        raise EvaluationError(f"{name} must hold an object or a list, or an object a line")
    return whole


def _lines(text: str, name: str) -> list[Any]:
    return [value for _, value in json_lines(text, name)]


def _table(text: str, name: str) -> list[dict[str, Any]]:
    tabs = "\t" in text.split("\n", 1)[0]
    # Quotes in tables with tabs are part of the text, as in GLUE's.
    reader = csv.DictReader(
        io.StringIO(text, newline=""),
        delimiter="\t" if tabs else ",",
        quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
        restkey=_SURPLUS,
    )
    try:
        rows = list(reader)
    except csv.Error as error:
        raise EvaluationError(f"{name}, line {reader.line_num} cannot be read as a table: {error}") from None
    header = reader.fieldnames or ()
    if twice := [column for column, times in Counter(map(plain, header)).items() if times > 1]:
        raise EvaluationError(f"{name} has more than one column {twice[0]!r}: leave one")
    for number, row in enumerate(rows, start=1):
        if _SURPLUS in row or None in row.values():
            raise EvaluationError(
                f"{name}, row {number} has {'more' if _SURPLUS in row else 'fewer'} cells than the header"
            )
    return [dict(row) for row in rows]


def _record(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"index": key, **value}
    return {"index": key, "scores" if isinstance(value, list) else "predicted": value}
