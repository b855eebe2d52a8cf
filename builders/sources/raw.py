"""A source as its reader hands it on, and how rows get into memory-mapped Arrow files that are whole or absent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from builders.atomic import whole_folder
from builders.errors import BuildError
from builders.folder import sha256
from builders.progress import progress
from unqover_data.errors import one_line

if TYPE_CHECKING:
    from datasets import Dataset, Features

_LAYOUT = 1  # of what `stored` keeps; raise it when a reader writes other rows for the same source


@dataclass(frozen=True)
class RawSource:
    """All rows of all splits under the source's own column names, the same in every split; see `SourceRows`.

    `of_files` says that the images are paths of files, which the reader itself has found in the user's folder, or
    has fetched of the revision.
    """

    splits: Mapping[str, Dataset]
    revision: str
    origin: str
    of_files: bool = False


def stored(work: Path, facts: Sequence[Any], write: Callable[[Path], None]) -> Path:
    """Give the folder in `work` that `write` filled for the same `facts`, now or in an earlier run.

    It is complete whenever it is there.

    Raises
    ------
    BuildError
        If the disk is full.
    """
    folder = work / f"source-{hashlib.sha256(repr((_LAYOUT, *facts)).encode()).hexdigest()[:16]}"
    if not folder.is_dir():
        with whole_folder(folder) as unfinished:
            write(unfinished)
    return folder


def write_arrow(path: Path, features: Features, tables: Iterable[pa.Table]) -> None:
    """Write tables one after the other as an Arrow stream; columns that a table lacks become null.

    Raises
    ------
    BuildError
        If a value does not fit its column, such as the number of a label that has no name.
    """
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, features.arrow_schema) as writer:
        for table in tables:
            writer.write_table(_cast(table, features, path.stem).combine_chunks())


def _cast(table: pa.Table, features: Features, split: str) -> pa.Table:
    from datasets import Features
    from datasets.table import cast_table_to_schema

    try:
        return cast_table_to_schema(table, features.arrow_schema)
    except (pa.ArrowException, ValueError, TypeError) as error:
        for name in table.column_names:
            try:
                cast_table_to_schema(table.select([name]), Features({name: features[name]}).arrow_schema)
            except (pa.ArrowException, ValueError, TypeError) as of_column:
                raise BuildError(
                    f"column {name!r} of split {split} holds what its type does not allow: {one_line(of_column)}"
                ) from error
        raise


def open_arrow(folder: Path, splits: Iterable[str]) -> dict[str, Dataset]:
    """Memory-map the splits of a `stored` folder."""
    from datasets import Dataset

    return {split: Dataset.from_file(str(folder / f"{split}.arrow")) for split in splits}


def merge_features(found: Iterable[tuple[str, Features]], *, as_text: Sequence[str] = ()) -> Features:
    """Give the columns of several tables as one, in order of appearance.

    Parameters
    ----------
    found : iterable of (str, Features)
        What to call a table in an error, and its columns.
    as_text : sequence of str
        Columns that become text where their types disagree.

    Raises
    ------
    BuildError
        If another column's types disagree.
    """
    from datasets import Features, Value

    merged: dict[str, Any] = {}
    for where, features in found:
        for name, feature in features.items():
            if name not in merged or merged[name] == feature:
                merged[name] = feature
                continue
            both = [Features({name: one}).arrow_schema.field(0) for one in (merged[name], feature)]
            if {one.type for one in both} == {pa.int64(), pa.uint64()}:  # Arrow would take int64, which holds less
                merged[name] = Value("uint64")
                continue
            try:
                together = pa.unify_schemas(
                    [pa.schema([one.remove_metadata()]) for one in both], promote_options="permissive"
                )
                merged[name] = Features.from_arrow_schema(together)[name]
            except pa.ArrowTypeError:
                if name not in as_text:
                    raise BuildError(
                        f"column {name!r} of {where} is {both[1].type}, and {both[0].type} before that; "
                        f"make it one type throughout"
                    ) from None
                merged[name] = Value("string")
    return Features(merged)


def sum_of_files(root: Path, files: Sequence[Path]) -> str:
    """``sha256:`` and a hash over the names below `root` and the contents of `files`."""
    digest = hashlib.sha256()
    size = sum(path.stat().st_size for path in files)
    for path in progress(files, total=size, label="hash the source", step=lambda path: path.stat().st_size):
        digest.update(f"{path.relative_to(root).as_posix()}\0{sha256(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def listed(names: Iterable[str], most: int = 6) -> str:
    """Join names, at most so many and how many more."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def innermost(error: BaseException) -> BaseException:
    """Give the first cause of an error, which says more than what `datasets` wraps around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
