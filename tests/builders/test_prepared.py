"""What `datasets` keeps prepared in its cache: found damaged before it is read, and made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.prepared import rows_of_parquet

ROWS = {"id": [f"row {number}" for number in range(50)]}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def alter(path: Path) -> None:
    content = path.read_bytes()
    assert b"row 1" in content or b"{" in content
    path.write_bytes(content.replace(b"row 1", b"row 2").replace(b"{", b"\xff"))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "cut": cut,
    "altered": alter,
    "empty": lambda path: path.write_bytes(b"") and None,
    "gone": Path.unlink,
}


@pytest.mark.parametrize("name", ["parquet-train.arrow", "dataset_info.json"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_in_the_cache_changes_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    pq.write_table(pa.table(ROWS), tmp_path / "rows.parquet")
    assert rows_of_parquet([tmp_path / "rows.parquet"]).to_dict() == ROWS
    (prepared,) = (tmp_path / "cache").rglob(name)
    before = prepared.stat().st_mtime_ns
    assert rows_of_parquet([tmp_path / "rows.parquet"]).to_dict() == ROWS
    assert prepared.stat().st_mtime_ns == before  # and what is whole is read again
    DAMAGE[damage](prepared)
    if prepared.suffix == ".arrow" and damage != "altered":  # which is seen without sums, too
        prepared.with_name("probesieve_sums.json").unlink()
    assert rows_of_parquet([tmp_path / "rows.parquet"]).to_dict() == ROWS
