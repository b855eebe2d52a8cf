"""Columns of TSV, JSONL and Parquet files under a spec's names, every text exactly as it stands there."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.sources.places import is_utf8
from evaluation.classifiers.ood.spec import OodSpec
from evaluation.errors import EvaluationError
from unqover_data.files import FileError, json_of

SUFFIXES = (".tsv", ".txt", ".jsonl", ".parquet")
_BOM = "\ufeff"
_NEEDED = ("id", "premise", "hypothesis")

Rows = list[tuple[int, Mapping[str, Any]]]


@dataclass(frozen=True)
class Columns:
    """What a spec wants of one file.

    Attributes
    ----------
    values : mapping of str to list
        By the spec's names; ``label`` holds names of labels.
    unlabelled : int
        Rows that were left out because their label is not known.
    """

    values: Mapping[str, list[Any]]
    unlabelled: int

    def __len__(self) -> int:
        """Rows."""
        return len(self.values["label"])


def read_columns(path: Path, spec: OodSpec) -> Columns:
    """Read a file of text pairs.

    Raises
    ------
    EvaluationError
        If it is not what its name says, has none of the spec's layouts, has no rows, or has a label that is none.
    """
    rows, declared = _read(path)
    if not rows:
        raise EvaluationError(f"{path.name} has no rows: fetch {spec.title} again from {spec.home}")
    layout = _layout(path.name, rows[0][1], spec)
    values: dict[str, list[Any]] = {name: [] for name in layout}
    names = declared.get(layout["label"], spec.labels)
    for number, row in rows:
        where = f"{path.name}, {'row' if path.suffix == '.parquet' else 'line'} {number}"
        label = _label(row.get(layout["label"]), names, spec, where)
        if label is None:
            continue
        for name, column in layout.items():
            values[name].append(label if name == "label" else _text(row, column, where, needed=name in _NEEDED))
    if not values["label"]:
        raise EvaluationError(f"{path.name} has no row with a label, so it cannot be scored")
    return Columns(values, len(rows) - len(values["label"]))


def _read(path: Path) -> tuple[Rows, Mapping[str, tuple[str, ...]]]:
    """Rows with their numbers, and the names of labels that the file declares, by column."""
    match path.suffix.lower():
        case ".parquet":
            return _read_parquet(path)
        case ".jsonl":
            return _read_jsonl(path), {}
        case ".tsv" | ".txt":
            return _read_tsv(path), {}
    raise EvaluationError(f"{path.name} must be one of {', '.join(SUFFIXES)}")


def _lines(path: Path) -> list[tuple[int, str]]:
    """Lines that are not empty, with their numbers."""
    try:
        text = path.read_bytes().decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{path.name} is not UTF-8 (byte {error.start:,}): convert it") from error
    except OSError as error:
        raise EvaluationError(f"{path.name} cannot be read: {error.strerror}") from error
    lines = text.split("\n")
    if lines[0].endswith("\r"):
        lines = [line.removesuffix("\r") for line in lines]
    return [(number, line) for number, line in enumerate(lines, start=1) if line]


def _read_tsv(path: Path) -> Rows:
    """Rows of a table with a header; a quote is a character as any other."""
    lines = _lines(path)
    header = lines[0][1].split("\t") if lines else []
    _check_header(path.name, header)
    rows: Rows = []
    for number, line in lines[1:]:
        fields = line.split("\t")
        if len(fields) != len(header):
            raise EvaluationError(f"{path.name}, line {number}: {len(fields)} fields, but the header has {len(header)}")
        rows.append((number, dict(zip(header, fields, strict=True))))
    return rows


def _read_jsonl(path: Path) -> Rows:
    rows: Rows = []
    for number, line in _lines(path):
        try:
            row = json_of(line)
        except FileError as error:
            raise EvaluationError(f"{path.name}, line {number}, {error}") from None
        if not isinstance(row, dict):
            raise EvaluationError(f"{path.name}, line {number}, must be a JSON object, not {type(row).__name__}")
        rows.append((number, row))
    return rows


def _read_parquet(path: Path) -> tuple[Rows, Mapping[str, tuple[str, ...]]]:
    import pyarrow.parquet as pq
    from datasets import ClassLabel, Features

    try:
        table = pq.read_table(path, partitioning=None)
        features = Features.from_arrow_schema(table.schema)
        rows = table.to_pylist()
    except Exception as error:  # of metadata and texts that anyone may have written
        raise EvaluationError(f"{path.name} cannot be read as Parquet: {' '.join(str(error).split())}") from error
    _check_header(path.name, table.column_names)
    declared = {name: tuple(one.names) for name, one in features.items() if isinstance(one, ClassLabel)}
    return list(enumerate(rows)), declared


def _check_header(name: str, header: Sequence[str]) -> None:
    if twice := [column for column in header if header.count(column) > 1]:
        raise EvaluationError(f"{name} has more than one column {twice[0]!r}: leave one")


def _layout(name: str, row: Mapping[str, Any], spec: OodSpec) -> Mapping[str, str]:
    """The layout whose columns are all in `row`, else a complaint about the one that comes nearest."""
    lacking = [[column for column in layout.values() if column not in row] for layout in spec.layouts]
    for layout, missing in zip(spec.layouts, lacking, strict=True):
        if not missing:
            return layout
    fewest = min(lacking, key=len)
    raise EvaluationError(
        f"{name} is not laid out as {spec.title}: it has no column {_listed(map(repr, fewest))} "
        f"(its columns: {_listed(row)}); use the file as distributed at {spec.home}"
    )


def _listed(names: Iterable[str], most: int = 12) -> str:
    every = list(names)
    return ", ".join(itertools.islice(every, most)) + (f" and {len(every) - most} more" if len(every) > most else "")


def _label(value: Any, names: Sequence[str], spec: OodSpec, where: str) -> str | None:
    """The name of a label that is a text or a number, None if the row has none."""
    if value is None or value in spec.unlabelled or (value == -1 and not isinstance(value, bool)):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        value = names[value]
    known: Collection[str] = (*spec.labels, *spec.written)
    if not isinstance(value, str) or value not in known:
        close = difflib.get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise EvaluationError(f"{where}: label {value!r} is none of {', '.join(spec.labels)}{hint}")
    return spec.written.get(value, value)


def _text(row: Mapping[str, Any], column: str, where: str, *, needed: bool) -> str | None:
    value = row.get(column)
    if isinstance(value, str) and is_utf8(value):
        return value if needed or value else None
    if value is None and not needed:
        return None
    raise EvaluationError(f"{where}: {column!r} must be a text, not {value!a}")
