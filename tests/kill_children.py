"""Children of the kill loop: one is forked for each run, may be killed after a time, or find the disk full."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from builders.errors import BuildError


class Done:
    """How a child ended, what it wrote, and how long it took."""

    def __init__(self, code: int, said: str, seconds: float) -> None:
        self.code, self.said, self.seconds = code, said, seconds


def forked(run: Callable[[], Any], *, after: float | None = None) -> Done:
    """Run in a child; kill it after so many seconds."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        if not (child := os.fork()):
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            code = 1
            try:
                run()
                code = 0
            except BuildError as error:
                print(error, flush=True)
                code = 2
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        if after is not None:
            time.sleep(after)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return Done(os.waitstatus_to_exitcode(status), output.read(), time.perf_counter() - start)


def limited(size: int, run: Callable[[], Any]) -> None:
    """Run while no file can grow beyond `size` bytes, which reads EFBIG instead of ENOSPC."""
    with _largest_file(size):
        run()


@contextlib.contextmanager
def _largest_file(size: int) -> Iterator[None]:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
