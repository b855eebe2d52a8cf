"""What a run that was stopped left for the next: read with a line where it is damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builders.errors import BuildError
from unqover_data.errors import OneLine
from unqover_data.files import json_of, read_bytes


@contextlib.contextmanager
def told_when_damaged(path: Path) -> Iterator[None]:
    """Raise `BuildError` if the block, which reads a file of an earlier run and does nothing else, cannot.

    Parameters
    ----------
    path : Path
        What to name, and to have removed: the file, or the folder that is worth nothing without it.
    """
    try:
        yield
    except (OneLine, MemoryError):
        raise
    except Exception as error:  # whatever a library makes of damaged bytes
        if isinstance(error, OSError) and error.filename:
            raise
        raise BuildError(f"{path} is damaged: remove it and run the same command again") from error


def read_facts(path: Path) -> dict[str, Any]:
    """Read a JSON file of ours, which holds an object.

    Raises
    ------
    BuildError
        If it is damaged.
    """
    with told_when_damaged(path):
        return dict(json_of(read_bytes(path)))


def read_state(path: Path, device: Any = "cpu") -> dict[str, Any]:
    """Read what torch saved, without running any code of it.

    Raises
    ------
    BuildError
        If it is damaged.
    """
    import torch

    from builders.features.weight_errors import quiet_pickles

    with told_when_damaged(path), quiet_pickles():
        return dict(torch.load(path, map_location=device, weights_only=True))
