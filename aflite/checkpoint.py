"""State of a run after each phase, in one file that is replaced as a whole."""

import hashlib
import json
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
_CHUNK_BYTES = 64 * 2**20


class CheckpointMismatchError(ValueError):
    """A checkpoint belongs to a run with other parameters or inputs."""


def fingerprint(array: NDArray[Any]) -> str:
    """Hash of shape, type and contents of an array, read in pieces."""
    digest = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    array = np.atleast_1d(array)
    rows = max(1, _CHUNK_BYTES // max(1, array[:1].nbytes))
    for start in range(0, array.shape[0], rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).data)
    return digest.hexdigest()


def save(path: Path, config: dict[str, Any], record: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write configuration, record (both JSON values) and arrays beside `path`, then rename."""
    meta = json.dumps({"format": FORMAT, "config": config, "record": record})
    with tempfile.TemporaryDirectory(prefix=".aflite-", dir=path.parent) as folder:
        beside = Path(folder) / path.name
        with beside.open("wb") as file:
            np.savez(file, allow_pickle=False, meta=np.array(meta), **arrays)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)


def load(path: Path, config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Read what `save` wrote, or None where there is no file.

    Raises
    ------
    CheckpointMismatchError
        The file was written with another configuration; the message names every field that differs.
    ValueError
        There is no folder for the file, or what lies there is no checkpoint.
    """
    wanted = {"format": FORMAT, **json.loads(json.dumps(config))}
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint must lie in a folder that exists, {path.parent} does not; make it first")
    if not path.exists():
        return None
    meta, arrays = _read(path)
    written = {"format": meta["format"], **meta["config"]}
    different = [
        f"{name} was {written.get(name)!r} and is now {wanted.get(name)!r}"
        for name in wanted | written
        if written.get(name) != wanted.get(name)
    ]
    if different:
        raise CheckpointMismatchError(
            f"checkpoint: {path.name} belongs to another run: {'; '.join(different)}; "
            "give the same parameters and inputs, or another file"
        )
    return meta["record"], arrays


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if path.is_dir():
        raise ValueError(f"checkpoint must be a file, {path} is a folder; name a file in it")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop("meta")))
        if not {"format", "config", "record"} <= meta.keys():
            raise KeyError("format, config or record")
        if not all(isinstance(meta[name], dict) for name in ("config", "record")):
            raise TypeError("config and record must be objects")
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        RecursionError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(
            f"checkpoint: {path} is damaged or no checkpoint of this package ({type(error).__name__}: {error}); "
            "delete it to start anew, or give another file"
        ) from error
    return meta, arrays
