"""What the values of any source must be, whoever wrote its files: whole, storable, and with the bytes of its images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from builders.embedded import check_embedded
from builders.errors import BuildError
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
