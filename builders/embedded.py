"""Refuses images and other media that a row only points to: a path or an address would be read on the user's machine.

``datasets`` stores images, sound, films and documents alike, as a struct of ``bytes`` and ``path``. Where there are no
bytes it opens the path, whatever it is, whenever a row is decoded or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from builders.errors import BuildError

if TYPE_CHECKING:
    from datasets import Dataset


def check_embedded(rows: Dataset, where: str, *, but: str | None = None) -> None:
    """Raise `BuildError` if a row has an image without its bytes.

    Parameters
    ----------
    rows : Dataset
        Rows as they are stored, before any is decoded.
    where : str
        What to call them: ``split train``.
    but : str, optional
        A column whose paths are ours, those of an image folder.
    """
    for field in rows.data.schema:
        start = 0
        for chunk in rows.data.column(field.name).chunks if field.name != but and _may_point(field.type) else ():
            if len(bad := np.flatnonzero(_pointing(chunk))):
                raise BuildError(
                    f"column {field.name!r} of {where} has no bytes in row {start + bad[0]}, only a path or nothing: "
                    "images are read from their bytes alone; embed them, or give a folder of images instead"
                )
            start += len(chunk)


def holds_media(kind: pa.DataType) -> bool:
    """Whether a type is that of images or other media: bytes and a path."""
    return bool(pa.types.is_struct(kind)) and {field.name for field in kind} == {"bytes", "path"}


def _is_list(kind: pa.DataType) -> bool:
    return any(of(kind) for of in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def _may_point(kind: pa.DataType) -> bool:
    if _is_list(kind):
        return _may_point(kind.value_type)
    return holds_media(kind) or (pa.types.is_struct(kind) and any(_may_point(field.type) for field in kind))


def _pointing(values: Any) -> NDArray[np.bool_]:
    """Which rows hold media without bytes, at any depth."""
    found = np.zeros(len(values), bool)
    if holds_media(values.type):
        lacking = pc.and_(values.is_valid(), pc.struct_field(values, "bytes").is_null())
        found |= lacking.to_numpy(zero_copy_only=False)
    elif pa.types.is_struct(values.type):
        for number, field in enumerate(values.type):
            if _may_point(field.type):
                found |= _pointing(pc.struct_field(values, [number]))
    elif _is_list(values.type) and _may_point(values.type.value_type):
        inside = _pointing(values.flatten())
        found[pc.list_parent_indices(values).to_numpy()[inside]] = True
    return found
