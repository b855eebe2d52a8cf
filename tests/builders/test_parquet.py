"""What a new version of a file has to send."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from builders import parquet
from builders.parquet import write_split


def _shared(old: Path, new: Path) -> float:
    """Share of the 64-byte blocks of `new`, at any offset of `old`, that `old` has too."""
    before, after = old.read_bytes(), new.read_bytes()
    blocks = {before[i : i + 64] for i in range(len(before) - 64)}
    starts = range(0, len(after) - 64, 64)
    return sum(after[i : i + 64] in blocks for i in starts) / len(starts)


def test_an_inserted_row_leaves_most_of_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(0).bytes(16 * 100_000)
    rows = [data[i : i + 16].hex() for i in range(0, len(data), 16)]

    def write(name: str, texts: list[str]) -> Path:
        (file,), _ = write_split([pa.table({"text": texts})], tmp_path / name, "qa", "test", rows=len(texts))
        return tmp_path / name / file

    assert _shared(write("old", rows), write("new", ["inserted", *rows])) > 0.6
    monkeypatch.setitem(parquet._OPTIONS, "use_content_defined_chunking", False)
    assert _shared(write("plain-old", rows), write("plain-new", ["inserted", *rows])) < 0.4
