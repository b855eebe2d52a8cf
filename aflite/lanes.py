"""Threads whose number cannot change a result."""

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


@contextmanager
def lanes(threads: int | None, device: torch.device) -> Iterator[Lanes]:
    """Open the workers: `threads` of them, or as many as torch uses; a GPU gets one."""
    before = torch.get_num_threads()
    workers = 1 if device.type != "cpu" else threads or before
    torch.set_num_threads(1)
    try:
        if workers == 1:
            yield Lanes(None)
        else:
            # torch sets the thread number of its kernels anew in every thread that uses them.
            with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield Lanes(pool)
    finally:
        torch.set_num_threads(before)
