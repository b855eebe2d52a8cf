"""The way in: any source that a spec names, or a path given instead, as labelled rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from builders.errors import BuildError
from builders.sources.arrange import LABEL_COLUMNS, arrange, check_filtered
from builders.sources.generated import read_generated
from builders.sources.hub import read_hub
from builders.sources.images import read_images
from builders.sources.places import IMAGES, SHARDS, TABLES, is_utf8, visible_files
from builders.sources.raw import RawSource
from builders.sources.rows import SourceRows
from builders.sources.shards import read_shards
from builders.sources.spec import GENERATED, IMAGE, LABEL, SourceSpec
from builders.sources.tables import read_tables

_SUFFIXES = {"webdataset": SHARDS, "images": IMAGES, "files": TABLES}


def read_source(spec: SourceSpec, *, work: Path, path: Path | None = None) -> SourceRows:
    """Read a source into memory-mapped splits.

    Parameters
    ----------
    spec : SourceSpec
        What to read and what its columns and labels are called.
    work : Path
        Folder for what is written on the way; a second run finds it there. It belongs to one build at a time.
    path : Path, optional
        Local data to read in place of the spec's: a Parquet, JSONL, CSV or TSV file or a folder of them, a folder
        of images in class folders, or a folder of tar shards; which of them is seen by looking.

    Raises
    ------
    BuildError
        If the data is not what the spec says; the message names the column, label, split or row.
    HubError
        If the Hub does not give it.
    """
    check_filtered({*spec.filtered}, spec)
    if path is None and spec.kind == "hub":
        if not spec.id:
            raise BuildError("a source of kind 'hub' needs its id, ORG/NAME, or local data with --source")
        raw = read_hub(spec)
    elif path is None and spec.kind in GENERATED:
        raw = read_generated(spec, work)
    else:
        raw, spec = _read_local(spec, work, path)
    return arrange(raw, spec, work)


def _read_local(spec: SourceSpec, work: Path, path: Path | None) -> tuple[RawSource, SourceSpec]:
    """Rows, and the spec with the columns that they have: files of images come without names for theirs."""
    kinds = _SUFFIXES
    if path is None:
        if not spec.id:
            raise BuildError(f"a source of kind {spec.kind!r} is read from disk: say where with --source")
        path, kinds = Path(spec.id), {spec.kind: _SUFFIXES[spec.kind]}
    if not is_utf8(str(path)):
        raise BuildError(f"the source {str(path)!a} has a name that is not UTF-8: rename it")
    if not path.exists():
        raise BuildError(f"the source {path} does not exist: give the path of local data with --source")
    match _kind_of(path, spec, kinds):
        case "webdataset":
            raw = read_shards(path, work, image=spec.inputs[IMAGE], label=spec.label)
        case "images":
            raw = read_images(path, work)
        case _:
            return read_tables(path, work, labels=(spec.label, *LABEL_COLUMNS)), spec
    return raw, replace(spec, inputs={IMAGE: IMAGE}, label=LABEL)


def _kind_of(path: Path, spec: SourceSpec, kinds: Mapping[str, tuple[str, ...]]) -> str:
    """Which of `kinds` lies at `path`; texts are in tables only."""
    every = sum(kinds.values(), ())
    held = {file.suffix.lower() for file in ([path] if path.is_file() else visible_files(path, every))}
    found = [kind for kind, suffixes in kinds.items() if held & set(suffixes)]
    if path.is_file() and found == ["images"]:
        raise BuildError(f"--source {path.name} is one image: give the folder that holds a folder per class")
    if usable := [kind for kind in found if spec.of_images or kind == "files"]:
        return usable[0]
    what = f"holds {found[0]}" if found else f"holds nothing that can be read as {' or '.join(kinds)}"
    images = ", image folders and .tar shards" if spec.of_images else ""
    raise BuildError(
        f"--source {path.name} {what}: {' and '.join(spec.inputs)} can be read from {', '.join(TABLES)} files{images}"
    )
