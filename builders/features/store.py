"""Features on disk, as memory maps: those that an encoder makes, chunk by chunk, and those that are given."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from builders.arrays import open_npy
from builders.atomic import sync, write_text
from builders.errors import BuildError
from builders.features.encoder import Encoded, Encoder
from builders.progress import progress
from builders.unfinished import read_facts

if TYPE_CHECKING:
    from datasets import Dataset

_FEATURES, _PREDICTIONS, _FACTS = "features.npy", "predictions.npy", "facts.json"
_REORDERED = 4096
_SCANNED_BYTES = 64 * 2**20
_NOT_SUPPORTED = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


@dataclass(frozen=True)
class StoredFeatures:
    """Features that lie on disk.

    Attributes
    ----------
    features : ndarray of float32, shape (N, d)
        A read-only memory map, in row order.
    predictions : ndarray of int32, shape (N,), optional
        The warm-up model's label of each row, a read-only memory map; None where it has no output layer.
    reused : bool
        Whether they were there already.
    path : Path
        The ``.npy`` file of the features.
    """

    features: NDArray[np.float32]
    predictions: NDArray[np.int32] | None
    reused: bool
    path: Path


@dataclass(frozen=True)
class GivenFeatures:
    """Features that came in a file.

    Attributes
    ----------
    features : ndarray of float16 or float32, shape (N, d)
        A read-only memory map.
    rows : str
        Which of the acceptable row counts they have.
    """

    features: NDArray[np.floating[Any]]
    rows: str


def compute_features(
    encoder: Encoder, rows: Dataset, path: Path, *, inputs: Mapping[str, Any], n_classes: int, chunk: int = 4096
) -> StoredFeatures:
    """Encode all rows into a memory map, or take the one that an earlier call made of the same inputs.

    A call that was killed goes on after its last finished chunk and ends with the same bytes. The space is reserved
    first, and a full disk is an OSError that names the file.

    Parameters
    ----------
    encoder : Encoder
        Encodes `chunk` rows at a time.
    rows : datasets.Dataset
        What to encode.
    path : Path
        Folder for features; those of other inputs that lie there stay. Each takes a folder named by its hash.
    inputs : mapping
        JSON values that say where encoder and rows came from; others mean other features.
    n_classes : int
        Columns that the encoder's logits must have.
    chunk : int
        Rows that are encoded and written at once.

    Raises
    ------
    BuildError
        If there are no rows, or if a feature or logit is NaN or infinite; the message names the row.
    OSError
        If the disk is full or cannot be written.
    """
    if not len(rows):
        raise BuildError("there are no rows to compute features of; check the source and the splits that are filtered")
    facts = {"inputs": dict(inputs), "rows": len(rows), "width": encoder.width, "chunk": chunk, "classes": n_classes}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    done, work = path / digest[:32], path / f".{digest[:32]}.partial"
    if (stored := _stored(done, facts, reused=True)) is not None:
        return stored
    if done.exists():
        shutil.rmtree(done)
    _fill(work, encoder, rows, facts)
    work.rename(done)
    sync(path)
    if (stored := _stored(done, facts, reused=False)) is None:
        raise OSError(errno.EIO, "the features that were just written cannot be read back", str(done))
    return stored


def _stored(folder: Path, facts: Mapping[str, Any], *, reused: bool) -> StoredFeatures | None:
    """Open finished features, None if they are not there, are of other inputs, were cut off or are damaged."""
    if (known := _known(folder, facts)) is None or known["done"] != facts["rows"]:
        return None
    predictions = open_npy(folder / _PREDICTIONS) if known["predictions"] else None
    return StoredFeatures(open_npy(folder / _FEATURES), predictions, reused, folder / _FEATURES)


def _known(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was written of features, and how far they go; None if they are not there or not what they must be."""
    try:
        known = read_facts(folder / _FACTS)
        of_files: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
        of_files = {_FEATURES: (np.dtype("<f4"), (facts["rows"], facts["width"]))}
        if known["predictions"]:
            of_files[_PREDICTIONS] = (np.dtype("<i4"), (facts["rows"],))
        found = {name: open_npy(folder / name) for name in of_files}
        whole = {name: (array.dtype, array.shape) for name, array in found.items()} == of_files
        done = range(facts["rows"] + 1).index(known["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    told = {**json.loads(json.dumps(facts)), "done": done, "predictions": _PREDICTIONS in of_files}
    return told if whole and told == known else None


def _fill(work: Path, encoder: Encoder, rows: Dataset, facts: Mapping[str, Any]) -> None:
    """Write every chunk that is not there yet: the data first, then how far it goes."""
    n, width, chunk = len(rows), encoder.width, facts["chunk"]
    progressed = _known(work, facts)
    if progressed is None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            _reserve(work / _FEATURES, np.dtype("<f4"), (n, width))
        except OSError:
            shutil.rmtree(work, ignore_errors=True)
            raise
        progressed = {**facts, "done": 0, "predictions": False}
    starts = progress(
        range(progressed["done"], n, chunk),
        total=n,
        label="features",
        done=progressed["done"],
        step=lambda start: min(chunk, n - start),
    )
    for start in starts:
        encoded = encoder.encode(rows.select(range(start, min(start + chunk, n))))
        _check(encoded, start, facts)
        _write(work / _FEATURES, encoded.features.astype("<f4", copy=False), start)
        if encoded.logits is not None:
            if not start:
                _reserve(work / _PREDICTIONS, np.dtype("<i4"), (n,))
            _write(work / _PREDICTIONS, encoded.logits.argmax(1).astype("<i4"), start)
        progressed = {**facts, "done": min(start + chunk, n), "predictions": encoded.logits is not None}
        _write_facts(work, progressed)


def _check(encoded: Encoded, start: int, facts: Mapping[str, Any]) -> None:
    expected = (min(facts["chunk"], facts["rows"] - start), facts["width"])
    if encoded.features.shape != expected:
        raise ValueError(f"the encoder gave features of shape {encoded.features.shape}, expected {expected}")
    for what, values in (("feature", encoded.features), ("logit", encoded.logits)):
        if values is None or np.isfinite(values).all():
            continue
        row = start + _first_bad(values)
        raise BuildError(
            f"row {row} (counted from 0) has a {what} that is NaN or infinite: the encoder diverged or overflowed; "
            "lower its learning rate, or set dtype to 'float32'"
        )
    if encoded.logits is not None and encoded.logits.shape[1] != facts["classes"]:
        raise BuildError(
            f"the encoder tells {encoded.logits.shape[1]} classes apart, the rows have {facts['classes']}; "
            "train it on these labels"
        )


def _first_bad(values: NDArray[Any]) -> int:
    return int(np.flatnonzero(~np.isfinite(values).all(1))[0])


def _reserve(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Make a ``.npy`` file of its full size, so that a disk without the space says so now."""
    with path.open("wb") as file, _named(path):
        header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(file, header)
        file.flush()
        _allocate(file, file.tell(), int(np.prod(shape)) * dtype.itemsize)


def _allocate(file: IO[bytes], offset: int, size: int) -> None:
    try:
        os.posix_fallocate(file.fileno(), offset, size)
    except AttributeError:
        pass
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
    else:
        return
    for start in range(0, size, _SCANNED_BYTES):
        file.write(bytes(min(_SCANNED_BYTES, size - start)))


def _write(path: Path, values: NDArray[Any], start: int) -> None:
    """Put rows where they belong; written, not mapped, since a full disk kills a process that maps."""
    with path.open("r+b") as file, _named(path):
        npy.read_magic(file)
        npy.read_array_header_1_0(file)
        file.seek(start * values[:1].nbytes, os.SEEK_CUR)
        file.write(np.ascontiguousarray(values).data)
        file.flush()
        os.fsync(file.fileno())


def _write_facts(work: Path, facts: Mapping[str, Any]) -> None:
    write_text(work / _FACTS, json.dumps(facts, indent=1, sort_keys=True))


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the file's name to an OSError that lacks it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from None


def read_features(path: Path, *, n_rows: Mapping[str, int], work: Path | None = None) -> GivenFeatures:
    """Open features that were computed elsewhere.

    Parameters
    ----------
    path : Path
        A ``.npy`` file, or a ``.safetensors`` file with one tensor or one that is called ``features``: two-dimensional,
        float16, float32 or float64, a row for every row of what is filtered, in its order.
    n_rows : mapping of str to int
        Acceptable row counts by what they mean; where several fit, the first counts.
    work : Path, optional
        Folder for a nameless file that holds a float32 copy of what is not stored row by row in float16 or float32;
        the system's by default.

    Raises
    ------
    BuildError
        If it is no such file, has another number of rows, or a value is NaN or infinite in float32.
    OSError
        If there is no space for the copy.
    """
    if not path.is_file():
        raise BuildError(f"features {path} is no file; give a .npy or .safetensors file")
    if path.suffix not in _OPENERS:
        raise BuildError(f"features {path} must end in .npy or .safetensors, not {path.suffix!r}; convert it")
    features = _OPENERS[path.suffix](path)
    if features.dtype.kind != "f" or features.dtype.itemsize not in (2, 4, 8):
        raise BuildError(f"features {path} must be float16, float32 or float64, not {features.dtype}; convert them")
    if features.ndim != 2 or not features.size:
        raise BuildError(f"features {path} must have two dimensions, rows x features, none empty, not {features.shape}")
    meaning = next((name for name, count in n_rows.items() if count == features.shape[0]), None)
    if meaning is None:
        right = " or ".join(f"{count} ({name})" for name, count in n_rows.items())
        raise BuildError(
            f"features {path} has {features.shape[0]} rows, required are {right}; compute them for these rows"
        )
    if features.dtype.itemsize == 8 or not features.dtype.isnative or not features.flags.c_contiguous:
        return GivenFeatures(_copied(path, features, work), meaning)
    for start, block in _blocks(features):
        _refuse_bad(path, block, start)
    return GivenFeatures(features, meaning)


def _open_npy(path: Path) -> NDArray[Any]:
    try:
        return open_npy(path)
    except ValueError as error:
        raise BuildError(f"features {path} cannot be mapped as .npy ({error}); save an array of floats anew") from None


def _open_safetensors(path: Path) -> NDArray[Any]:
    """Map a tensor where it lies in the file; the library itself would copy it into memory."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as opened:
            names = list(opened.keys())
    except SafetensorError as error:
        raise BuildError(f"features {path} cannot be read as .safetensors ({error}); save it anew") from None
    name = names[0] if len(names) == 1 else "features"
    if name not in names:
        raise BuildError(f"features {path} holds {', '.join(sorted(names)) or 'nothing'}: call one tensor 'features'")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[name]
    dtypes = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
    if entry["dtype"] not in dtypes:
        raise BuildError(f"features {path} must be F16, F32 or F64, not {entry['dtype']}; convert them")
    if 0 in entry["shape"]:
        return np.empty(entry["shape"], dtypes[entry["dtype"]])
    offset = 8 + length + entry["data_offsets"][0]
    return np.memmap(path, dtypes[entry["dtype"]], "r", offset, tuple(entry["shape"]))


_OPENERS = {".npy": _open_npy, ".safetensors": _open_safetensors}


def _blocks(features: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    rows = max(1, _SCANNED_BYTES // (8 * features.shape[1]))
    for start in range(0, features.shape[0], rows):
        yield start, features[start : start + rows]


def _refuse_bad(path: Path, block: NDArray[Any], start: int) -> None:
    if not np.isfinite(block).all():
        raise BuildError(
            f"features {path}: row {start + _first_bad(block)} (counted from 0) has a value that is NaN or infinite "
            "in single precision; compute it again"
        )


def reordered(features: NDArray[Any], order: NDArray[np.int64], work: Path) -> NDArray[Any]:
    """Copy rows in another order into a file in `work` without a name, which goes when its map does."""
    with tempfile.TemporaryFile(dir=work) as file, _named(work):
        for start in range(0, order.size, _REORDERED):
            file.write(np.ascontiguousarray(features[order[start : start + _REORDERED]]).data)
        file.flush()
        return np.memmap(file, features.dtype, "r", 0, (order.size, features.shape[1]))


def _copied(path: Path, features: NDArray[Any], work: Path | None) -> NDArray[np.float32]:
    """Copy into a file without a name, which goes when its map does."""
    with tempfile.TemporaryFile(dir=work) as file, _named(work or Path(tempfile.gettempdir())):
        for start, block in _blocks(features):
            with np.errstate(over="ignore"):  # beyond float32: becomes infinite, and is refused
                single = np.ascontiguousarray(block, dtype=np.float32)
            _refuse_bad(path, single, start)
            file.write(single.data)
        file.flush()
        return np.memmap(file, np.float32, "r", 0, features.shape)
