"""Threads whose number cannot change a result."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

T = TypeVar("T")


@dataclass(frozen=True)
class Lanes:
    """Runs tasks on worker threads, each with single-threaded torch kernels.

    A multi-threaded matrix product may add in another order with another number of threads. Here the work is
    cut into tasks by its size alone and partial sums are added in task order, so results are the same bits
    for any number of workers, and skinny products run faster than when two threads split one of them.
    """

    pool: ThreadPoolExecutor | None

    def map(self, task: Callable[[int], T], n_tasks: int) -> list[T]:
        """Call ``task(0) .. task(n_tasks - 1)`` and return the results in that order."""
        if self.pool is None:
            return [task(index) for index in range(n_tasks)]
        return list(self.pool.map(task, range(n_tasks)))


class _TorchThreads:
    """Torch's thread number is one for all: the first batch in a process sets it, the last restores it."""

    def __init__(self) -> None:
        """Nobody has changed it."""
        self.lock, self.users, self.before = threading.Lock(), 0, 1

    def enter(self) -> int:
        """Set to 1; return the number that was set outside."""
        with self.lock:
            if self.users == 0:
                self.before = torch.get_num_threads()
            self.users += 1
            torch.set_num_threads(1)
            return self.before

    def leave(self) -> None:
        """Restore when nobody is left."""
        with self.lock:
            self.users -= 1
            if self.users == 0:
                torch.set_num_threads(self.before)


_torch_threads = _TorchThreads()


@contextmanager
def lanes(threads: int | None, device: torch.device) -> Iterator[Lanes]:
    """Open the workers: `threads` of them, or as many as torch uses; a GPU gets one."""
    outside = _torch_threads.enter()
    workers = 1 if device.type != "cpu" else threads or outside
    try:
        if workers == 1:
            yield Lanes(None)
        else:
            with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield Lanes(pool)
    finally:
        _torch_threads.leave()
