"""A built dataset folder: written beside its final name, renamed when complete, checked by its manifest.

``manifest.json`` is the marker: it is written last and holds the size and SHA-256 of every other file (of the card
without the owner's words), and one of itself, so a folder without it is unfinished and a folder that disagrees with it
was edited.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from builders.atomic import whole_folder, write_text
from builders.errors import BuildError
from builders.manifests import check_manifest
from builders.owner_words import CARD, as_built
from builders.schema import own_sum
from unqover_data.files import FileError, json_of, read_bytes

MANIFEST = "manifest.json"
_MOST_BYTES = 64 * 2**20

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Built:
    """A dataset folder, and whether this call wrote it or found it as it would have written it.

    Attributes
    ----------
    folder : Path
        Where it lies.
    manifest : dict
        Its manifest.
    fresh : bool
        Whether this call wrote it.
    seconds : mapping of str to float
        Wall-clock time of each stage of this call, where there are stages.
    reused : tuple of str
        Stages that found what they make.
    """

    folder: Path
    manifest: Manifest
    fresh: bool
    seconds: Mapping[str, float] = field(default_factory=dict)
    reused: tuple[str, ...] = ()


@contextlib.contextmanager
def new_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a hidden sibling of `target` to write into, and rename it to `target` when the block ends well.

    Raises
    ------
    BuildError
        If `target` exists and `overwrite` is false, if it exists and is not a dataset folder of ours, or if another
        run is writing it.
    """
    check_outside(target)
    with whole_folder(target, check=lambda: check_target(target, overwrite=overwrite)) as partial:
        yield partial


def check_outside(path: Path) -> None:
    """Raise `BuildError` if `path` lies inside a finished dataset folder, which must stay as it is."""
    around = next((parent for parent in path.absolute().parents if (parent / MANIFEST).is_file()), None)
    if around:
        raise BuildError(f"{path} would lie inside the dataset folder {around}; choose another folder")


def check_target(target: Path, *, overwrite: bool) -> None:
    """Raise `BuildError` if `target` may not be written: it is there already, or lies in a dataset folder."""
    check_outside(target)
    if target.is_symlink():
        raise BuildError(f"{target} is a symbolic link; remove it, or choose another --out")
    if target.exists() and not overwrite:
        raise BuildError(f"{target} exists already; pass --overwrite to replace it, or choose another --out")
    if target.exists() and not (target / MANIFEST).is_file():
        raise BuildError(f"{target} holds no {MANIFEST}, so it is not ours to replace; choose another --out")


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> Manifest:
    """Write `facts` with the library versions and the size and SHA-256 of every file; the last step of a build.

    Parameters
    ----------
    folder : Path
        Folder whose every file is complete.
    facts : mapping
        At least ``name``, ``version``, ``default_config`` and ``configs``
        (``{config: {split: {"rows": int, "files": [relative path, ...]}}}``).
    """
    files = {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": _sum(folder, path)}
        for path in _files(folder)
    }
    manifest: Manifest = {**facts, "versions": _versions(), "files": files}
    manifest["sha256"] = own_sum(manifest)
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    return manifest


def is_current(folder: Path, facts: Mapping[str, Any]) -> bool:
    """Whether `folder` was finished from the very same `facts` with the same library versions.

    Parameters
    ----------
    folder : Path
        May be missing.
    facts : mapping
        Those of the manifest's facts that are known before a build; of ``configs`` the numbers of rows.
    """
    if not (folder / MANIFEST).is_file():
        return False
    manifest = read_manifest(folder)
    of_inputs = {key: manifest.get(key) for key in (*facts, "versions")}
    if "configs" in facts:
        of_inputs["configs"] = {
            config: {split: {"rows": entry["rows"]} for split, entry in splits.items()}
            for config, splits in manifest["configs"].items()
        }
    return of_inputs == {**facts, "versions": _versions()}


def read_manifest(folder: Path) -> Manifest:
    """Read a folder's manifest.

    Raises
    ------
    BuildError
        If there is none, which means that the build never finished, if it is not as the build wrote it, or if a name in
        it would lead out of a folder.
    """
    path = folder / MANIFEST
    if not folder.is_dir():
        raise BuildError(f"{folder} is not a folder; build one with: probesieve build")
    if not path.is_file():
        raise BuildError(f"{folder} has no {MANIFEST}: it was never finished, or is no dataset folder of ours")
    try:
        manifest: Manifest = json_of(read_bytes(path, _MOST_BYTES))
    except FileError as error:
        raise BuildError(f"{path} {error}; build the folder again with --overwrite") from error
    if not isinstance(manifest, dict) or manifest.get("sha256") != own_sum(manifest):
        raise BuildError(f"{path} was edited: it is not what the build wrote; build the folder again with --overwrite")
    try:
        check_manifest(manifest)
    except ValueError as error:
        raise BuildError(
            f"{path} is no manifest of this version: {error}; build the folder again, or fetch another version"
        ) from error
    return manifest


def verify_folder(folder: Path) -> Manifest:
    """Check a folder against its manifest, file by file, and give the manifest.

    Raises
    ------
    BuildError
        Naming the first file that is missing, was added or was edited, or a row count that disagrees.
    """
    import pyarrow.parquet as pq

    manifest = read_manifest(folder)
    listed: dict[str, Any] = manifest["files"]
    found = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    for name in sorted(listed.keys() | found.keys()):
        if name not in found:
            raise BuildError(f"{folder} is incomplete: {name} is missing; build it again with --overwrite")
        if name not in listed:
            raise BuildError(
                f"{folder} holds {name}, which its manifest does not list; remove it, or build again with --overwrite"
            )
        if _sum(folder, found[name]) != listed[name]["sha256"]:
            raise BuildError(
                f"{folder} was edited: the SHA-256 of {name} is not the manifest's; build it again with --overwrite"
            )
    for config, splits in manifest["configs"].items():
        for split, facts in splits.items():
            rows = sum(pq.read_metadata(folder / name).num_rows for name in facts["files"])
            if rows != facts["rows"]:
                raise BuildError(f"{folder}: {config}/{split} has {rows} rows, its manifest says {facts['rows']}")
    return manifest


def sha256(path: Path) -> str:
    """SHA-256 of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum(folder: Path, path: Path) -> str:
    """SHA-256 of a file as the manifest has it: of the card with the owner's section empty."""
    return hashlib.sha256(as_built(path.read_bytes())).hexdigest() if path == folder / CARD else sha256(path)


def _versions() -> dict[str, str]:
    """Versions of all that decides a byte of a folder."""
    return {name: metadata.version(name) for name in ("probesieve", "pyarrow", "pyyaml", "altair", "vl-convert-python")}


def _files(folder: Path) -> list[Path]:
    """Every file below `folder` but the manifest and what the Hub's clients keep there, in name order."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path != folder / MANIFEST and path.relative_to(folder).parts[0] not in _CLIENTS_OWN
    )


_CLIENTS_OWN = {".cache", ".git", ".gitattributes"}
