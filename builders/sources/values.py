"""What the values of any source must be, whoever wrote its files: whole, storable, and with the bytes of its images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.embedded import check_embedded
from builders.errors import BuildError
from builders.sources.raw import RawSource, open_arrow, stored, write_arrow
from builders.sources.spec import IMAGE
from unqover_data.errors import one_line

if TYPE_CHECKING:
    from datasets import Dataset


def check_values(rows: Dataset, split: str, *, of_files: bool) -> None:
    """Raise `BuildError` if a column could not be written as Parquet, is damaged, or has images without bytes.

    Parameters
    ----------
    rows : Dataset
        One split as it is stored.
    split : str
        What to call it in an error.
    of_files : bool
        Whether the column of images has the paths of an image folder's own files.
    """
    for field in rows.data.schema:
        name = field.name
        try:
            pq.write_table(pa.schema([field.remove_metadata()]).empty_table(), pa.BufferOutputStream())
        except pa.ArrowException as error:
            raise BuildError(
                f"column {name!r} of split {split} cannot be stored as Parquet ({one_line(error)}): leave it out"
            ) from error
        for chunk in rows.data.column(name).chunks:
            try:
                chunk.validate(full=True)
            except pa.ArrowException as error:
                raise BuildError(
                    f"column {name!r} of split {split} is damaged or no UTF-8 ({one_line(error)}): write it anew"
                ) from error
    check_embedded(rows, f"split {split}", but=IMAGE if of_files else None)


def with_types(raw: RawSource, work: Path) -> RawSource:
    """Return the source with text for what is null in every row inside a struct or a list.

    Arrow cuts structs and lists with children of type null wrongly, so no rows could be chosen of them.
    """
    from datasets import Features

    found = {split: rows.features for split, rows in raw.splits.items()}
    wanted = {split: Features({name: _typed(kind) for name, kind in of.items()}) for split, of in found.items()}
    if wanted == found:
        return raw

    def write(folder: Path) -> None:
        for split, rows in raw.splits.items():
            write_arrow(folder / f"{split}.arrow", wanted[split], _batches(rows))

    folder = stored(work, ("typed", raw.revision, raw.origin, list(wanted.items())), write)
    return replace(raw, splits=open_arrow(folder, raw.splits))


def _batches(rows: Dataset) -> Iterator[pa.Table]:
    """Rows in the batches in which they lie, none of them cut."""
    for batch in rows.data.to_batches():
        yield pa.Table.from_batches([batch])


def _typed(feature: Any, *, inside: bool = False) -> Any:
    from datasets import LargeList, List, Value

    if isinstance(feature, dict):
        return {name: _typed(kind, inside=True) for name, kind in feature.items()}
    if isinstance(feature, List | LargeList):
        return replace(feature, feature=_typed(feature.feature, inside=True))
    return Value("string") if inside and feature == Value("null") else feature
