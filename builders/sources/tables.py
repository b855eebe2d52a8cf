"""Rows of Parquet, JSONL, CSV and TSV files, every text exactly as it stands there.

None of the usual readers does that: Arrow's JSON reader makes times of text that looks like one, pandas makes
missing values of ``None`` and ``NA``, and a quote in a GLUE TSV opens a field that swallows the rows after it.
"""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.errors import BuildError
from builders.sources.places import TABLES, is_utf8, splits_of
from builders.sources.raw import (
    RawSource,
    listed,
    merge_features,
    open_arrow,
    stored,
    sum_of_files,
    write_arrow,
)
from unqover_data.errors import one_line
from unqover_data.files import FileError, json_of

if TYPE_CHECKING:
    from datasets import Features

_ROWS = 5_000
_ROWS_WITH_BYTES = 200


def read_tables(path: Path, work: Path, *, labels: Sequence[str]) -> RawSource:
    """Read a file, or a folder of them, into one Arrow file a split in `work`.

    Parameters
    ----------
    path : Path
        What `places.splits_of` sorts into splits.
    labels : sequence of str
        Columns that may hold labels, as numbers in some rows and text in others.

    Raises
    ------
    BuildError
        If a file is not what its name says, naming the file and where known the line.
    """
    files = splits_of(path, TABLES)
    every = [file for some in files.values() for file in some]
    revision = sum_of_files(path if path.is_dir() else path.parent, every)

    def write(folder: Path) -> None:
        features = merge_features(((file.name, _features(file, labels)) for file in every), as_text=labels)
        for split, some in files.items():
            write_arrow(
                folder / f"{split}.arrow", features, (part for file in some for part in _parts(file, features, labels))
            )

    folder = stored(work, ("tables", list(files), revision, sorted(labels)), write)
    return RawSource(open_arrow(folder, files), revision, f"local files: {listed(file.name for file in every)}")


def _features(path: Path, labels: Sequence[str]) -> Features:
    """Columns of a file; JSONL has to be read whole for that."""
    from datasets import Features, Value

    match path.suffix.lower():
        case ".parquet":
            try:
                schema = pq.read_schema(path)
                features = Features.from_arrow_schema(schema)
            except Exception as error:  # of metadata that anyone may have written
                raise BuildError(f"{path.name} cannot be read as Parquet: {one_line(error)}") from error
            _check_header(path.name, schema.names)
            return features
        case ".jsonl":
            found = ((path.name, _json_features(path.name, part, labels)) for part in _json_parts(path))
            return merge_features(found, as_text=labels)
        case ".csv":
            rows = _csv_rows(path)
        case _:
            rows = _tsv_rows(path)
    _, header = next(rows, (0, [""]))
    _check_header(path.name, header)
    return Features({name: Value("string") for name in header})


def _check_header(name: str, header: Sequence[str]) -> None:
    if twice := [column for column, times in Counter(header).items() if times > 1 or not _names_column(column)]:
        raise BuildError(f"{name} must begin with column names, each once; {twice[0]!a} is not such a name")


def _names_column(name: str) -> bool:
    return bool(name) and "\0" not in name and is_utf8(name)


def _parts(path: Path, features: Features, labels: Sequence[str]) -> Iterator[pa.Table]:
    """Rows of a file, some thousand at a time."""
    match path.suffix.lower():
        case ".parquet":
            yield from _parquet_parts(path)
        case ".jsonl":
            for part in _json_parts(path):
                yield _json_table(path.name, part, features, labels)
        case ".csv":
            yield from _text_parts(path.name, _csv_rows(path))
        case _:
            yield from _text_parts(path.name, _tsv_rows(path))


def _parquet_parts(path: Path) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            columns = file.schema_arrow
            nested = any(pa.types.is_struct(field.type) or pa.types.is_binary(field.type) for field in columns)
            for batch in file.iter_batches(_ROWS_WITH_BYTES if nested else _ROWS):
                yield pa.Table.from_batches([batch]).replace_schema_metadata(None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BuildError(f"{path.name} cannot be read as Parquet: {one_line(error)}") from error


def _text_parts(name: str, rows: Iterator[tuple[int, list[str]]]) -> Iterator[pa.Table]:
    """Tables of text from rows that follow their header."""
    _, header = next(rows)
    for part in _batched(rows):
        for line, row in part:
            if len(row) != len(header):
                raise BuildError(f"{name}, line {line}: {len(row)} fields, but the header has {len(header)}")
        columns = zip(*(row for _, row in part), strict=True)
        yield pa.table({key: pa.array(column, pa.string()) for key, column in zip(header, columns, strict=True)})


def _batched(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while part := list(itertools.islice(rows, _ROWS)):
        yield part


def _tsv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields, with quotes as any other character; ``\\r\\n`` ends lines if it ends the first."""
    end = b""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                end = b"\r" if line.endswith(b"\r\n") else b""
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line := line.removesuffix(b"\n").removesuffix(end):
                yield number, _text(path.name, number, line).split("\t")


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number where a row ends and its fields, quoted as RFC 4180 has it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            for row in rows:
                if row:
                    yield rows.line_num, row
        except csv.Error as error:
            raise BuildError(f"{path.name}, line {rows.line_num}, is not CSV: {one_line(error)}") from error
        except UnicodeDecodeError as error:
            raise BuildError(f"{path.name} is not UTF-8 after line {rows.line_num}: {one_line(error)}") from error


def _text(name: str, line: int, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BuildError(f"{name}, line {line}, is not UTF-8: {one_line(error)}") from error


def _json_parts(path: Path) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Line numbers and objects, some thousand at a time."""
    with path.open("rb") as file:
        yield from _batched(_json_rows(path.name, file))


def _json_rows(name: str, lines: Iterator[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        try:
            row = json_of(_text(name, number, line))
        except FileError as error:
            raise BuildError(f"{name}, line {number}, {error}") from None
        if not isinstance(row, dict):
            raise BuildError(f"{name}, line {number}, must be a JSON object with a field a column")
        if odd := [column for column in row if not _names_column(column)]:
            raise BuildError(f"{name}, line {number}: {odd[0]!a} cannot be the name of a column: rename it")
        yield number, row


def _columns(part: Sequence[tuple[int, Mapping[str, Any]]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for _, row in part for name in row)
    return {name: [row.get(name) for _, row in part] for name in names}


def _json_features(name: str, part: Sequence[tuple[int, Mapping[str, Any]]], labels: Sequence[str]) -> Features:
    from datasets import Features

    fields = []
    for column, values in _columns(part).items():
        if column in labels and len({isinstance(value, str) for value in values if value is not None}) > 1:
            values = [_as_text(value) for value in values]
        fields.append((column, _array(name, part, column, values, None).type))
    return Features.from_arrow_schema(pa.schema(fields))


def _json_table(
    name: str, part: Sequence[tuple[int, Mapping[str, Any]]], features: Features, labels: Sequence[str]
) -> pa.Table:
    schema = features.arrow_schema
    arrays = {}
    for column, values in _columns(part).items():
        kind = schema.field(column).type
        if column in labels and pa.types.is_string(kind):
            values = [_as_text(value) for value in values]
        arrays[column] = _array(name, part, column, values, kind)
    return pa.table(arrays)


def _as_text(value: Any) -> str | None:
    return None if value is None or value != value else str(value)


def _array(
    name: str,
    part: Sequence[tuple[int, Mapping[str, Any]]],
    column: str,
    values: Sequence[Any],
    kind: pa.DataType | None,
) -> pa.Array:
    if kind is None and any(isinstance(value, int) and value >= 2**63 for value in values):
        kind = pa.uint64()  # which Arrow does not infer
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise BuildError(
            f"{name}, lines {part[0][0]} to {part[-1][0]}: column {column!r} has no single type: {one_line(error)}"
        ) from error
