"""What libraries raise on a full disk becomes one line; everything else passes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from builders.disk import told_when_full
from builders.errors import BuildError

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
TORCH = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 663680 vs 663568")


def wrapped(cause: Exception) -> Exception:
    error = RuntimeError("An error occurred while generating the dataset")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (FULL, "work"),
        (OSError(errno.EDQUOT, "Quota exceeded", "work/model.pt"), "work/model.pt"),
        (TORCH, "work"),
        (RuntimeError("basic_ios::clear: iostream error"), "work"),
        (wrapped(FULL), "work"),
        (OSError("Not enough disk space. Needed: 5 GiB"), "work"),
    ],
)
def test_a_full_disk_is_named(error: Exception, where: str) -> None:
    with pytest.raises(BuildError, match=rf"no room is left for {where} \("), told_when_full(Path("work")):
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "no"), RuntimeError("diverged"), BuildError("its own line")])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, told_when_full(Path("work")):
        raise error
    assert caught.value is error
