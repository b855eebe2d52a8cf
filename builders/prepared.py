"""What `datasets` prepares in its cache and reads again unseen: looked at first, and prepared anew if it is damaged."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from builders.folder import sha256

if TYPE_CHECKING:
    from datasets import Dataset

_INFO, _SUMS = "dataset_info.json", "probesieve_sums.json"
_HASHED = 2**30  # bytes up to which a prepared file is hashed each time it is used


def rows_of_parquet(files: Sequence[Path]) -> Dataset:
    """Rows of Parquet files on disk, memory-mapped from the cache of `datasets`."""
    from datasets import load_dataset_builder

    def find() -> Any:
        return load_dataset_builder("parquet", data_files=[str(file) for file in files])

    return prepare(whole_builder(find, "parquet"), split="train")


def whole_builder(find: Callable[[], Any], name: str) -> Any:
    """Return the builder that `find` gives, with nothing in the cache of dataset `name` that it would choke on.

    What is damaged is removed, so that `prepare` makes it anew.
    """
    try:
        builder = find()
    except ValueError:  # it reads what it says of itself, as JSON in UTF-8
        if not _remove_unreadable(name):
            raise
        builder = find()
    return find() if remove_damaged(Path(builder.cache_dir)) else builder


def prepare(builder: Any, **which: Any) -> Any:
    """Return the rows of a builder, prepared now or in an earlier run."""
    builder.download_and_prepare()
    folder = Path(builder.cache_dir)
    try:
        rows = builder.as_dataset(**which)
    except (OSError, pa.ArrowException):  # damaged before any sums of it were kept
        shutil.rmtree(folder, ignore_errors=True)
        builder.download_and_prepare()
        rows = builder.as_dataset(**which)
    if not (folder / _SUMS).is_file():
        with contextlib.suppress(OSError):  # a cache that cannot be written does without
            (folder / _SUMS).write_text(json.dumps(_sums(folder)), encoding="utf-8")
    return rows


def remove_damaged(folder: Path) -> bool:
    """Remove what was prepared in a folder if a file there is not as it was; tell whether it was removed."""
    try:
        known = json.loads((folder / _SUMS).read_bytes())
    except (OSError, ValueError):
        return False
    found = _sums(folder)
    if all(found.get(name) == sums for name, sums in known.items()):
        return False
    shutil.rmtree(folder)
    return True


def _sums(folder: Path) -> dict[str, list[Any]]:
    """Size and SHA-256 of each file that was prepared; what `datasets` derives from them later is its own."""
    files = [path for path in sorted(folder.iterdir()) if path.name == _INFO or path.suffix == ".arrow"]
    files = [path for path in files if not path.name.startswith("cache-")]
    sizes = {path: path.stat().st_size for path in files}
    return {path.name: [size, sha256(path) if size <= _HASHED else None] for path, size in sizes.items()}


def _remove_unreadable(name: str) -> bool:
    from datasets import config

    wrong = []
    for info in (Path(config.HF_DATASETS_CACHE) / name.replace("/", "___")).rglob(_INFO):
        try:
            json.loads(info.read_bytes())
        except ValueError:
            wrong.append(info.parent)
    for folder in wrong:
        shutil.rmtree(folder)
    return bool(wrong)
