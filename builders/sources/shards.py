"""WebDataset shards: tar files with the parts of a sample one after the other, KEY.jpg, KEY.cls, KEY.json."""

from __future__ import annotations

import logging
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from builders.errors import BuildError
from builders.limits import MOST_HEADER_BYTES, MOST_MEMBER_BYTES
from builders.progress import progress
from builders.sources.places import IMAGES, SHARDS, is_utf8, splits_of
from builders.sources.raw import (
    RawSource,
    listed,
    merge_features,
    open_arrow,
    stored,
    sum_of_files,
    write_arrow,
)
from builders.sources.spec import IMAGE, LABEL
from unqover_data.errors import one_line
from unqover_data.files import json_of

if TYPE_CHECKING:
    from datasets import Features

_KEY = "__key__"
_TEXT, _NUMBER = ("txt", "text", "transcript"), ("cls", "cls2", "index", "inx", "id")
_DECODED = ("jsn", "ten", "tb", "mp", "msg", "npy", "npz", "cbor", "pth")  # of no type that is known beforehand
_ROWS, _BYTES = 200, 64 * 2**20  # that are written at once
_INT64 = range(-(2**63), 2**63)
_READ_WHOLE = (  # headers that hold names
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
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
        used = (*self.images, LABEL, *([] if self.label == "json" else [self.label]))
        return Features({IMAGE: Image(), LABEL: label, **{k: v for k, v in self.features.items() if k not in used}})

    def row(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a sample."""
        label = None if self.label is None else sample[self.label]
        label = label[LABEL] if isinstance(label, dict) else label
        image = next((sample[part] for part in self.images if sample[part] is not None), None)
        return {**sample, IMAGE: image, LABEL: label}


def read_shards(path: Path, work: Path, *, image: str, label: str) -> RawSource:
    """Stream shards into one Arrow file a split in `work`.

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
        If a shard cannot be read, has no images, or a member is a link, is named outside of the shard, or too large.
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
        for _, part, content in _members(file, lambda _, kind: kind == "json" or kind in _NUMBER):
            kind = _kind(part)
            if f".{kind}" in IMAGES:
                parts[part] = Image(decode=False)
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
    features = Features({**parts, _KEY: Value("string")})
    named = tuple(part for part in images if part.lower() == image.lower())
    return _Layout(features, named or images, _label_part(features, label))


def _label_part(features: Mapping[str, Any], label: str) -> str | None:
    held = features.get("json")
    options = [part for part in (label, "cls") if part in features and part != "json"]
    options += ["json"] if isinstance(held, dict) and LABEL in held else []
    options += ["txt"] if "txt" in features else []
    return options[0] if options else None


def _kind(part: str) -> str:
    return part.rsplit(".", 1)[-1].lower()


def _members(file: Path, wanted: Callable[[str, str], bool]) -> Iterator[tuple[str, str, Any]]:
    """Key and part of every member of a shard, and the content of those whose part and kind are wanted, else None."""
    try:
        with tarfile.open(file, "r:", tarinfo=_Header) as shard:
            for member in shard:
                shard.members = []  # type: ignore[attr-defined]  # of which there may be millions
                _check_member(file.name, member)
                folder, slash, name = member.name.rpartition("/")
                stem, dot, part = name.partition(".")
                if not (stem and dot and member.isfile()) or name.startswith("__"):
                    continue
                content, kind = None, _kind(part)
                if wanted(part, kind):
                    held = shard.extractfile(member)
                    content = _parsed(file.name, member.name, held.read() if held else b"", kind)
                yield f"{folder}{slash}{stem}", part, content
            rest = cast(IO[bytes], shard.fileobj)
            if any(block.strip(b"\0") for block in iter(lambda: rest.read(2**20), b"")):
                raise BuildError(
                    f"{file.name} goes on behind its end, as one tar file put behind another: keep them apart"
                )
    except BuildError:
        raise
    except (tarfile.TarError, EOFError, OverflowError, ValueError) as error:
        raise BuildError(f"{file.name} cannot be read as a tar file: {one_line(error)}") from error


class _Header(tarfile.TarInfo):
    """A header, of which what is wrong ends the reading: `tarfile` would take it for the end of the shard."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf == bytes(tarfile.BLOCKSIZE):
                raise  # the end
            raise tarfile.ReadError(f"{error} where the next member, or the end, should be; get it again") from None
        if header.type in _READ_WHOLE and not 0 <= header.size <= MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {header.size:,} bytes; at most {MOST_HEADER_BYTES:,} are read")
        return header


def _check_member(shard: str, member: tarfile.TarInfo) -> None:
    """Raise `BuildError` for what would lead out of the shard, or holds more than it takes."""
    name = ascii(member.name)
    if member.issym() or member.islnk():
        raise BuildError(f"{name} in {shard} is a link: put the file itself there")
    if member.name.startswith("/") or ".." in member.name.split("/") or not is_utf8(member.name):
        raise BuildError(f"{name} in {shard} must have a name below the shard, in UTF-8: rename it")
    if member.issparse() or not 0 <= member.size <= MOST_MEMBER_BYTES:
        kind = "sparse, " if member.issparse() else ""
        raise BuildError(
            f"{name} in {shard} is {kind}of {member.size:,} bytes: members must be whole and of at most "
            f"{MOST_MEMBER_BYTES:,}"
        )


def _parsed(shard: str, member: str, content: bytes, kind: str) -> Any:
    """What a member says: JSON, a whole number, text, or bytes."""
    wanted = "JSON" if kind == "json" else "a whole number of 64 bits" if kind in _NUMBER else "text in UTF-8"
    try:
        if kind == "json":
            return json_of(content)
        if kind in _NUMBER:
            number = int(content)
            if number not in _INT64:
                raise ValueError(f"{len(str(number)):,} digits are too many")
            return number
        return content.decode("utf-8") if kind in _TEXT else content
    except ValueError as error:
        raise BuildError(f"{member} in {shard} must hold {wanted}: {one_line(error)}") from error


def _typed(shard: str, values: Sequence[Any]) -> Features:
    from datasets import Features

    try:
        return Features.from_arrow_schema(pa.schema([("json", pa.array(values).type)]))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise BuildError(f"the json parts in {shard} do not have one type: {one_line(error)}") from error


def _tables(files: Sequence[Path], split: str, layout: _Layout) -> Iterator[pa.Table]:
    schema = layout.columns().arrow_schema
    for part in _batched(sample for file in files for sample in _samples(file, layout.features)):
        rows = [layout.row(sample) for sample in part]
        try:
            yield pa.table({field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema})
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise BuildError(f"the samples of split {split} cannot be read: {one_line(error)}") from error


def _samples(file: Path, features: Features) -> Iterator[tuple[int, dict[str, Any]]]:
    """Bytes and parts of each sample; a part that it lacks is None."""
    from datasets import Image

    sample: dict[str, Any] = {}
    size = 0
    for key, part, content in _members(file, lambda part, _: part in features):
        if sample and sample[_KEY] != key:
            yield size, sample
            sample, size = {}, 0
        sample = sample or {**dict.fromkeys(features), _KEY: key}
        if content is None:
            continue
        if sample[part] is not None:
            raise BuildError(f"{key}.{part} is twice in {file.name}: leave one")
        image = isinstance(features[part], Image)
        sample[part] = {"bytes": content, "path": f"{key}.{part}"} if image else content
        size += len(content) if isinstance(content, bytes | str) else 0
    if sample:
        yield size, sample


def _batched(samples: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    total = 0
    for size, sample in samples:
        part.append(sample)
        total += size
        if len(part) == _ROWS or total >= _BYTES:
            yield part
            part, total = [], 0
    if part:
        yield part
