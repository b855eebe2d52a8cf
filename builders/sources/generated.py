"""Sources that are made on the spot and need no network."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from builders.errors import BuildError
from builders.planted import planted_rows
from builders.sources.raw import RawSource, open_arrow, stored, write_arrow
from builders.sources.spec import IMAGE, LABEL, SourceSpec

if TYPE_CHECKING:
    from datasets import Dataset

_ROWS = 1_000


def read_generated(spec: SourceSpec, work: Path) -> RawSource:
    """Make the rows of a generated source and keep them in `work`: ``train``, and ``validation`` if the spec has one.

    Raises
    ------
    BuildError
        If the spec's ``validation`` leaves no rows to train on.
    """
    rows, origin = _digits() if spec.kind == "digits" else _planted(spec)
    splits = _split(rows, spec)
    digest = hashlib.sha256(repr(rows.features).encode())
    for number, part in enumerate(splits.values()):
        digest.update(f"split {number}".encode() if number else b"")
        for table in part.with_format("arrow").iter(_ROWS):
            digest.update(repr(table.to_pylist()).encode())
    revision = f"sha256:{digest.hexdigest()}"

    def write(path: Path) -> None:
        for split, part in splits.items():
            write_arrow(path / f"{split}.arrow", rows.features, part.with_format("arrow").iter(_ROWS))

    folder = stored(work, ("generated", revision), write)
    return RawSource(open_arrow(folder, list(splits)), revision, origin)


def _split(rows: Dataset, spec: SourceSpec) -> dict[str, Dataset]:
    if spec.validation is None:
        return {"train": rows}
    if spec.validation >= len(rows):
        raise BuildError(f"validation must be less than the {len(rows):,} rows of the source, not {spec.validation:,}")
    drawn = np.zeros(len(rows), bool)
    drawn[np.random.default_rng(spec.seed).choice(len(rows), spec.validation, replace=False)] = True
    return {"train": rows.select(np.flatnonzero(~drawn)), "validation": rows.select(np.flatnonzero(drawn))}


def _planted(spec: SourceSpec) -> tuple[Dataset, str]:
    assert spec.rows is not None  # checked by the spec
    rows = planted_rows(spec.rows, seed=spec.seed)
    return rows, f"generated: planted artifacts, {spec.rows:,} rows, seed {spec.seed}"


def _digits() -> tuple[Dataset, str]:
    """Give scikit-learn's 1,797 digits as 8-bit grey PNG images of 8 by 8 pixels, as they stand in their file."""
    from datasets import ClassLabel, Dataset, Features, Image
    from PIL import Image as Pillow
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = []
    for number, pixels in enumerate(digits.images):  # in steps of one from 0 to 16
        file = io.BytesIO()
        Pillow.fromarray(np.rint(pixels * (255 / 16)).astype(np.uint8)).save(file, format="PNG")
        images.append({"bytes": file.getvalue(), "path": f"{number:04d}.png"})
    names = [str(name) for name in digits.target_names]
    features = Features({IMAGE: Image(), LABEL: ClassLabel(names=names)})
    columns = {IMAGE: images, LABEL: digits.target.astype(np.int64)}
    return Dataset.from_dict(columns, features=features), "scikit-learn's handwritten digits"
