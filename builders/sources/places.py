"""Which files of a folder are read, and which split each belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from builders.errors import BuildError
from builders.sources.raw import listed

TABLES = (".parquet", ".jsonl", ".csv", ".tsv")
SHARDS = (".tar",)
IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")

_SHARD = re.compile(r"(?:^|[-_.])(?P<shard>\d+)(?:-of-(?P<shards>\d+))?$")
_SPLIT = re.compile(
    r"(?:^|[-_.])(?P<name>train|dev|validation|valid|val|test)(?:[-_](?P<part>matched|mismatched|hard|r\d+))?$"
)
_CALLED = {"dev": "validation", "valid": "validation", "val": "validation"}
_ORDER = ("train", "validation", "test")
# Lies beside MultiNLI in GLUE's archive but is a dataset of its own.
_NOT_OF_IT = ("diagnostic", "diagnostic-full")


def visible_files(folder: Path, suffixes: Sequence[str] = ()) -> list[Path]:
    """Every file below `folder` with one of the suffixes, by name; nothing hidden and no leftovers of macOS.

    A link to a file inside is followed; one to a folder inside is not, since its files are found where they lie.

    Parameters
    ----------
    folder : Path
        Where to look.
    suffixes : sequence of str
        In small letters; empty for every file.

    Raises
    ------
    BuildError
        If a link leads out of `folder`, or a name is not UTF-8.
    """
    return sorted(_below(folder, folder, folder.resolve(), suffixes))


def _below(folder: Path, root: Path, real_root: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith((".", "__MACOSX")):
            continue
        linked, is_folder = path.is_symlink(), path.is_dir()
        wanted = not suffixes or path.suffix.lower() in suffixes
        if linked and (is_folder or wanted) and not _stays_inside(path, real_root):
            raise BuildError(
                f"{shown(path.relative_to(root))} in {shown(root.name)} is a link that leads out of the folder: put "
                "what it leads to there itself (cp -rL copies so)"
            )
        if is_folder and not linked:
            yield from _below(path, root, real_root, suffixes)
        elif wanted and not is_folder and path.is_file():
            if not is_utf8(str(path)):
                raise BuildError(f"the name of {str(path)!a} is not UTF-8: rename it")
            yield path


def _stays_inside(path: Path, real_root: Path) -> bool:
    try:
        return path.resolve().is_relative_to(real_root)
    except (OSError, RuntimeError):  # a link to itself leads nowhere
        return True


def shown(name: str | Path) -> str:
    """Give a name as it can be printed: as it is, or with what is not UTF-8 escaped."""
    return str(name) if is_utf8(str(name)) else ascii(str(name))


def is_utf8(name: str) -> bool:
    """Whether a name can be written as UTF-8; one that the file system has otherwise holds surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def split_name(text: str) -> str | None:
    """The split that a file's stem or a folder's name stands for, None if it names none."""
    match = _SPLIT.search(text.lower())
    if match is None:
        return None
    name = _CALLED.get(match["name"], match["name"])
    return f"{name}_{match['part']}" if match["part"] else name


def in_order(splits: Iterable[str]) -> list[str]:
    """Training before validation before test."""
    return sorted(splits, key=lambda split: (_ORDER.index(split.split("_")[0]), split))


def splits_of(path: Path, suffixes: Sequence[str]) -> dict[str, list[Path]]:
    """Sort the files at `path` into splits by their names.

    Parameters
    ----------
    path : Path
        A file; or a folder, whose own files are taken, and only when there are none those further below.
    suffixes : sequence of str
        What the files end with.

    Returns
    -------
    dict of str to list of Path
        Shards of a split in their order.

    Raises
    ------
    BuildError
        If several files name no split, a split is there twice, or one of its shards is missing.
    """
    files = [path] if path.is_file() else visible_files(path, suffixes)
    files = [file for file in files if file.parent == path] or files
    if len(files) > 1:
        files = [file for file in files if file.stem not in _NOT_OF_IT] or files
    named: dict[str, dict[tuple[Path, str, str], list[Path]]] = {}
    nameless: dict[tuple[Path, str, str], list[Path]] = {}
    for file in files:
        stem = _SHARD.sub("", file.stem)
        split, kind = split_name(stem), (file.parent, stem, file.suffix)
        if split is None and file.parent not in (path, path.parent) and (split := split_name(file.parent.name)):
            kind = (file.parent, "", file.suffix)
        (named.setdefault(split, {}) if split else nameless).setdefault(kind, []).append(file)
    if nameless and (named or len(nameless) > 1):
        raise BuildError(
            f"no split can be told from {listed(some[0].name for some in nameless.values())}: "
            f"call files train, validation or test (or dev, val), or give --source a single file"
        )
    if nameless:
        named = {"train": nameless}
    for split, kinds in named.items():
        _check_one(split, list(kinds.values()), path)
    return {split: next(iter(named[split].values())) for split in in_order(named)}


def _check_one(split: str, kinds: Sequence[Sequence[Path]], path: Path) -> None:
    """Raise `BuildError` unless the files of a split are the shards of one table, and all of them."""
    if len(kinds) > 1:
        twice = listed(files[0].relative_to(path).as_posix() for files in kinds)
        raise BuildError(
            f"split {split} is there more than once: {twice}; give --source the folder or file that is meant"
        )
    shards = [match for file in kinds[0] if (match := _SHARD.search(file.stem))]
    if total := max((int(match["shards"] or 0) for match in shards), default=0):
        missing = sorted(set(range(total)) - {int(match["shard"]) for match in shards})
        if missing:
            raise BuildError(f"split {split} has {total} shards by its names, but number {missing[0]} is missing")
