"""The way in: any source that a spec names, or a path given instead, as labelled rows."""

from __future__ import annotations

from pathlib import Path

from builders.errors import BuildError
from builders.sources.arrange import LABEL_COLUMNS, arrange, check_filtered
from builders.sources.generated import read_generated
from builders.sources.hub import read_hub
from builders.sources.images import read_images
from builders.sources.places import IMAGES, SHARDS, TABLES, visible_files
from builders.sources.raw import RawSource
from builders.sources.rows import SourceRows
from builders.sources.shards import read_shards
from builders.sources.spec import IMAGE, SourceSpec
from builders.sources.tables import read_tables


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
    elif path is None and spec.kind in ("planted", "digits"):
        raw = read_generated(spec, work)
    else:
        raw = _read_local(spec, work, path)
    return arrange(raw, spec, work)


def _read_local(spec: SourceSpec, work: Path, path: Path | None) -> RawSource:
    if path is None:
        if not spec.id:
            raise BuildError(f"a source of kind {spec.kind!r} is read from disk: say where with --source")
        path = Path(spec.id)
    if not path.exists():
        raise BuildError(f"--source {path} does not exist")
    match _kind_of(path, spec):
        case "webdataset":
            return read_shards(path, work, image=spec.inputs[IMAGE], label=spec.label)
        case "images":
            return read_images(path, work)
        case _:
            return read_tables(path, work, labels=(spec.label, *LABEL_COLUMNS))


def _kind_of(path: Path, spec: SourceSpec) -> str:
    """What lies at `path`: of images first shards, then class folders; a table may hold either."""
    kinds = {"webdataset": SHARDS, "images": IMAGES, "files": TABLES}
    held = (
        [path.suffix.lower()]
        if path.is_file()
        else [file.suffix.lower() for file in visible_files(path, sum(kinds.values(), ()))]
    )
    found = [kind for kind, suffixes in kinds.items() if any(suffix in suffixes for suffix in held)]
    wanted = [kind for kind in found if spec.of_images or kind == "files"]
    if path.is_file() and found == ["images"]:
        raise BuildError(f"--source {path.name} is one image: give the folder that holds a folder per class")
    if wanted:
        return wanted[0]
    what = f"holds {found[0]}" if found else "holds nothing that can be read"
    raise BuildError(
        f"--source {path.name} {what}, but {' and '.join(spec.inputs)} are read from {', '.join(TABLES)} files"
        + (", image folders and .tar shards" if spec.of_images else "")
    )
