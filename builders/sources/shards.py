"""WebDataset shards: tar files with the parts of a sample one after the other, KEY.jpg, KEY.cls, KEY.json."""

from __future__ import annotations

import glob
import itertools
import json
import logging
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from builders.errors import BuildError
from builders.progress import progress
from builders.sources.places import IMAGES, SHARDS, splits_of
from builders.sources.raw import (
    RawSource,
    listed,
    merge_features,
    one_line,
    open_arrow,
    stored,
    sum_of_files,
    write_arrow,
)
from builders.sources.spec import IMAGE, LABEL

if TYPE_CHECKING:
    from datasets import Features

_KEY, _URL = "__key__", "__url__"
_MEMBER = re.compile(r"((?:.*/|)[^.]+)[.]([^/]*)")  # as `datasets` takes a member's name apart
_TEXT, _NUMBER = ("txt", "text", "transcript"), ("cls", "cls2", "index", "inx", "id")
_DECODED = ("jsn", "ten", "tb", "mp", "msg", "npy", "npz", "cbor", "pth")  # of no type that is known beforehand
_ROWS = 200
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Layout:
    """Parts of the samples, those of them that may be the image, and the one that is the label or holds it."""

    features: Features
    images: tuple[str, ...]
    label: str | None

    def columns(self) -> Features:
        """What a sample is stored as."""
        from datasets import Features, Image, Value

        label = Value("null") if self.label is None else self.features[self.label]
        label = label[LABEL] if isinstance(label, dict) else label
        used = (*self.images, LABEL, _URL, *([] if self.label == "json" else [self.label]))
        return Features({IMAGE: Image(), LABEL: label, **{k: v for k, v in self.features.items() if k not in used}})

    def row(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a sample."""
        label = None if self.label is None else sample[self.label]
        label = label[LABEL] if isinstance(label, dict) else label
        image = next((sample[part] for part in self.images if sample[part] is not None), None)
        return {**sample, IMAGE: image, LABEL: label}


def read_shards(path: Path, work: Path, *, image: str, label: str) -> RawSource:
    """Stream shards through `datasets` into one Arrow file a split in `work`.

    Parameters
    ----------
    path : Path
        What `places.splits_of` sorts into splits.
    image : str
        Part that holds the image, taken if there is one of that name; else any jpg, png, ...
    label : str
        Part that holds the label, likewise; else ``cls``, the field ``label`` of ``json``, or ``txt``.

    Raises
    ------
    BuildError
        If a shard cannot be read, or has no images.
    """
    files = splits_of(path, SHARDS)
    every = [file for some in files.values() for file in some]
    revision = sum_of_files(path if path.is_dir() else path.parent, every)

    def write(folder: Path) -> None:
        layout = _look(every, image, label)
        for split, some in files.items():
            write_arrow(folder / f"{split}.arrow", layout.columns(), _tables(some, split, layout))

    folder = stored(work, ("shards", list(files), revision, image, label), write)
    return RawSource(open_arrow(folder, files), revision, f"WebDataset shards: {listed(file.name for file in every)}")


def _look(files: Sequence[Path], image: str, label: str) -> _Layout:
    """Go over the members of all shards without reading the images, and see what parts the samples have."""
    from datasets import Features, Image, Value

    parts: dict[str, Any] = {}
    objects: list[tuple[str, Features]] = []
    left_out = set()
    for file in progress(files, total=len(files), label="look at the shards"):
        held: list[Any] = []
        for part, content in _members(file):
            kind = part.rsplit(".", 1)[-1].lower()
            if f".{kind}" in IMAGES:
                # By its version, `datasets` calls a JPEG jpeg; a part that no sample has is null.
                parts[part] = parts[part.lower()] = Image(decode=False)
            elif kind == "json":
                held.append(content)
            elif kind in _DECODED:
                left_out.add(part)
            else:
                parts[part] = Value(
                    {**dict.fromkeys(_TEXT, "string"), **dict.fromkeys(_NUMBER, "int64")}.get(kind, "binary")
                )
        if held:
            objects.append((file.name, _typed(file.name, held)))
    if left_out:
        _logger.warning("parts of the samples that are left out: %s", ", ".join(sorted(left_out)))
    if objects:
        parts["json"] = merge_features(objects)["json"]
    images = tuple(part for part, kind in parts.items() if isinstance(kind, Image) and "." not in part)
    if not images:
        raise BuildError(f"{listed(file.name for file in files)}: no sample has an image ({', '.join(IMAGES)})")
    features = Features({**parts, _KEY: Value("string"), _URL: Value("string")})
    named = tuple(part for part in images if part.lower() == image.lower())
    return _Layout(features, named or images, _label_part(features, label))


def _label_part(features: Mapping[str, Any], label: str) -> str | None:
    held = features.get("json")
    options = [part for part in (label, "cls") if part in features and part != "json"]
    options += ["json"] if isinstance(held, dict) and LABEL in held else []
    options += ["txt"] if "txt" in features else []
    return options[0] if options else None


def _members(file: Path) -> Iterator[tuple[str, Any]]:
    """Part and, for numbers and JSON, the content of every member of a shard."""
    try:
        with tarfile.open(file, "r:") as shard:
            for member in shard:
                match = _MEMBER.fullmatch(member.name)
                if match is None or not member.isfile():
                    continue
                kind = match[2].rsplit(".", 1)[-1].lower()
                content = None
                if kind == "json" or kind in _NUMBER:
                    held = shard.extractfile(member)
                    content = _parsed(file.name, member.name, held.read() if held else b"", kind)
                yield match[2], content
    except tarfile.TarError as error:
        raise BuildError(f"{file.name} cannot be read as a tar file: {one_line(error)}") from error


def _parsed(shard: str, member: str, content: bytes, kind: str) -> Any:
    try:
        return json.loads(content) if kind == "json" else int(content)
    except ValueError as error:
        wanted = "JSON" if kind == "json" else "a whole number"
        raise BuildError(f"{member} in {shard} must hold {wanted}: {one_line(error)}") from error


def _typed(shard: str, values: Sequence[Any]) -> Features:
    from datasets import Features

    try:
        return Features.from_arrow_schema(pa.schema([("json", pa.array(values).type)]))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise BuildError(f"the json parts in {shard} do not have one type: {one_line(error)}") from error


def _tables(files: Sequence[Path], split: str, layout: _Layout) -> Iterator[pa.Table]:
    from datasets import load_dataset

    paths = [glob.escape(str(file.resolve())) for file in files]
    rows = iter(
        load_dataset("webdataset", data_files={split: paths}, split=split, streaming=True, features=layout.features)
    )
    schema = layout.columns().arrow_schema
    while part := [layout.row(row) for row in _next(rows, split)]:
        yield pa.table({field.name: pa.array([row[field.name] for row in part], field.type) for field in schema})


def _next(rows: Iterator[Any], split: str) -> list[Any]:
    try:
        return list(itertools.islice(rows, _ROWS))
    except (ValueError, pa.ArrowException) as error:
        raise BuildError(f"the samples of split {split} cannot be read: {one_line(error)}") from error
