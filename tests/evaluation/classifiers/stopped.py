"""A run that is stopped while it scores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation import store


@contextlib.contextmanager
def stopped_after(shards: int) -> Iterator[None]:
    """Stop the run inside, as Ctrl-C does, once it has written some shards."""
    written: list[str] = []

    def stopping(table: Any, path: Path, write: Any = store.write_table) -> None:
        if len(written) == shards:
            raise KeyboardInterrupt
        if path.name.startswith("shard-"):
            written.append(path.name)
        write(table, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write_table", stopping)
        with pytest.raises(KeyboardInterrupt):
            yield
