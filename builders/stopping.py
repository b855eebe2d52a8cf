"""Ctrl-C and SIGTERM: where they end a run, what is finished first, and what the last line says of going on.

The commands call `watch`; without it, as from Python, Ctrl-C is the interpreter's own and the rest does no harm.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from unqover_data.signs import visible

_AGAIN_AFTER = 0.05  # seconds


class Stopped(KeyboardInterrupt):
    """A signal asked the run to end."""


@dataclass
class _State:
    process: int = 0
    number: int | None = None
    undisturbed: int = 0
    place: Path | str | None = None
    over: bool = False
    told: Callable[[Any], object] = sys.unraisablehook


_state = _State()


def watch() -> None:
    """End this process on SIGINT and SIGTERM by `Stopped`; forget what was before."""
    _state.process, _state.number, _state.place = os.getpid(), None, None
    _state.undisturbed, _state.over = 0, False
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as a shell starts what runs in the background
            signal.signal(number, _stop)
    if sys.unraisablehook is not _unraisable:
        _state.told, sys.unraisablehook = sys.unraisablehook, _unraisable


def be_over() -> None:
    """Heed no signal from here on: the run is over, and only the interpreter has to end."""
    _state.over = True
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def told_when_stopped() -> Iterator[None]:
    """End the process with one line if a signal ends the block: exit code 130 for SIGINT, 143 for SIGTERM.

    Whatever comes out of the block after a signal is taken for its work: libraries make other errors of it.
    """
    watch()
    try:
        try:
            yield
        except BaseException as error:
            finished = isinstance(error, SystemExit) and error.code != 128 + signal.SIGINT  # typer's for Ctrl-C
            if finished or _state.number is None:
                raise
            _state.over = True
    except Stopped:  # another, before the first was told
        _state.over = True
    if _state.over and (number := _state.number) is not None:
        _state.number = None  # told once, where blocks lie in each other
        sys.stderr.write(f"{visible(_last_line())}\n")
        sys.exit(128 + number)


def _last_line() -> str:
    if _state.place is None:
        return "stopped; nothing unfinished was left behind"
    return f"stopped; run the same command again to go on from {_state.place}"


@contextlib.contextmanager
def goes_on_from(place: Path | str) -> Iterator[None]:
    """Tell whoever stops the block where the same run goes on; a path counts if something is there then."""
    try:
        yield
    except BaseException:  # libraries make other errors of a signal
        if _state.number is not None and _state.place is None and (isinstance(place, str) or place.exists()):
            _state.place = place
        raise


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Finish the block, which is short, before a signal ends the run."""
    before = _state.number
    _state.undisturbed += 1
    try:
        yield
    finally:
        _state.undisturbed -= 1
    if before is None and _state.number is not None and not _state.undisturbed:
        raise Stopped


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """Start processes in the block that Ctrl-C does not reach, so that they end with this one and say nothing."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # one that comes waits until the end
    here = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if here else None  # children keep it, whatever they unblock
    try:
        yield
    finally:
        if here:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(number: int, _: FrameType | None) -> None:
    if os.getpid() != _state.process:  # forked to decode images: the parent ends it, and tells
        if number == signal.SIGTERM:
            os._exit(128 + number)
        return
    if _state.over:
        return
    _state.number = _state.number or number
    if not _state.undisturbed:
        raise Stopped


def _unraisable(raised: Any) -> None:
    """Ask again where a library's callback or finalizer swallowed it."""
    if not issubclass(raised.exc_type, Stopped):
        _state.told(raised)
        return
    again = threading.Timer(_AGAIN_AFTER, signal.raise_signal, (signal.SIGINT,))
    again.daemon = True
    again.start()
