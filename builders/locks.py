"""One run at a time in a place. A lock belongs to a process and goes with it, also when it is killed."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from builders.errors import BuildError
from builders.stopping import undisturbed

_claimed: set[tuple[int, str]] = set()
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


@contextlib.contextmanager
def held(file: Path, busy: Exception) -> Iterator[None]:
    """Hold the lock of a file, which is made for it and goes with it.

    Parameters
    ----------
    file : Path
        In a folder that is there.
    busy : Exception
        What is raised at once if another process, or another thread, holds it.

    Raises
    ------
    BuildError
        If the file system has no locks.
    """
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise busy from None
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise
        file.unlink(missing_ok=True)
        raise BuildError(
            f"{file.parent} is on a file system without file locking ({error}), so two runs could write over each "
            "other there: choose a folder on another, or have locking switched on"
        ) from None
    try:
        yield
    finally:
        with undisturbed():
            with contextlib.suppress(OSError):  # where open files cannot be removed, it stays and does no harm
                file.unlink(missing_ok=True)
            lock.release()


@contextlib.contextmanager
def claimed(target: Path, option: str = "--out") -> Iterator[None]:
    """Keep other runs from writing `target`, a file or a folder, while the block makes it.

    Blocks of one thread may lie in each other: a command claims at its start what its last step writes.

    Raises
    ------
    BuildError
        If another run does.
    """
    mine = (threading.get_ident(), str(target.absolute()))
    if mine in _claimed:
        yield
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    busy = BuildError(f"another run is writing {target}: wait for it, or choose another {option}")
    with held(target.with_name(f".{target.name}.lock"), busy):
        _claimed.add(mine)
        try:
            yield
        finally:
            _claimed.discard(mine)
