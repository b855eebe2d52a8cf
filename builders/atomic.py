"""Files and folders that are there whole or not at all, whatever kills the run or fills the disk.

Each is written under a hidden name beside its own, ``.NAME.unfinished``, and renamed. What a killed run left under that
name goes when the next one writes the same; a lock keeps it from what belongs to a run that lives.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from builders.disk import told_when_full
from builders.errors import BuildError
from builders.locks import claimed
from builders.stopping import undisturbed

_OF_CHECKPOINTS = ".aflite-"  # of aflite.checkpoint


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the name to write a file under, which becomes `path` when the block ends well, in place of an older one.

    Raises
    ------
    BuildError
        If the disk is full, or another run is writing it.
    """
    with _beside(path) as unfinished, told_when_full(path):
        unfinished.touch()
        mode = _mode(unfinished)
        yield unfinished
        settle(unfinished, mode)
        unfinished.replace(path)
        sync(path.parent)


@contextlib.contextmanager
def whole_folder(path: Path, *, check: Callable[[], None] | None = None) -> Iterator[Path]:
    """Yield a folder to write into, which becomes `path` when the block ends well.

    Parameters
    ----------
    path : Path
        Where it goes.
    check : callable, optional
        Raises if a folder at `path` may not be replaced; called before the block and again behind it, since what lies
        there may have changed. By default none may.

    Raises
    ------
    BuildError
        If the disk is full, another run is writing it, or a folder is in the way.
    """
    check = check or (lambda: _refuse(path))
    with _beside(path) as unfinished, told_when_full(unfinished):
        replaced = path.with_name(f".{path.name}.replaced")
        with undisturbed():
            _put_back(replaced, path)
        check()
        unfinished.mkdir()
        yield unfinished
        settle(unfinished)
        with undisturbed():
            check()
            try:
                if path.exists():
                    path.rename(replaced)
                unfinished.rename(path)
            finally:
                _put_back(replaced, path)
        sync(path.parent)


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that goes behind the block, or with the next of its name; whoever calls holds a lock."""
    _remove(folder)
    with told_when_full(folder):
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            with undisturbed():
                _remove(folder)


def sweep(folder: Path) -> None:
    """Remove what killed runs left below a folder that this run alone works in: unfinished files, and their locks."""
    for left in sorted(folder.rglob(".*"), reverse=True):
        if left.name.endswith((".unfinished", ".replaced", ".lock")) or left.name.startswith(_OF_CHECKPOINTS):
            _remove(left)


def write_text(path: Path, text: str) -> None:
    """Write a text file that is there whole or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def settle(path: Path, mode: int | None = None) -> None:
    """See a file, or all files of a folder, to the disk and give them the permissions that new files have here.

    Libraries write some through temporary files that only their owner may read. Without `mode`, the permissions are
    those that the folder was made with.
    """
    mode = _mode(path) if mode is None else mode
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file() and not file.is_symlink():
            if file.stat().st_mode & 0o777 != mode:
                file.chmod(mode)
            sync(file)


def sync(path: Path) -> None:
    """Make what was written to a file, or renamed in a folder, last."""
    try:
        opened = os.open(path, os.O_RDWR if os.name == "nt" and path.is_file() else os.O_RDONLY)  # Windows: only then
    except OSError:  # a folder, where these cannot be opened
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if not path.is_dir():
            raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    finally:
        os.close(opened)


def _refuse(path: Path) -> None:
    if path.exists():
        raise BuildError(f"{path} is there already: remove it, or choose another place")


def _mode(made: Path) -> int:
    """Permissions of new files, as a file or folder shows them that was just made."""
    return made.stat().st_mode & 0o666


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield the hidden name, with nothing of a killed run there; nothing stays under it."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with claimed(path):
        _remove(unfinished)
        try:
            yield unfinished
        finally:
            with undisturbed():
                _remove(unfinished)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _put_back(replaced: Path, path: Path) -> None:
    """Put a folder back that was about to be replaced, unless the new one is in its place: then it goes."""
    if replaced.exists() and not path.exists():
        replaced.rename(path)
    else:
        _remove(replaced)
