"""How every Parquet file of ours is written: so that the Hub can page through it and send only what changed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS_PER_SHARD = 5_000_000
ROWS_PER_GROUP = 100_000

_OPTIONS = {
    "compression": "zstd",
    "compression_level": 3,
    "write_page_index": True,
    "use_content_defined_chunking": True,
    # Without the Arrow schema a reader sees plain strings where dictionary arrays were written.
    "store_schema": False,
}


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a writer; an ``id`` column, never repeated, is stored as what differs from the row before."""
    repeated = [name for name in schema.names if name != "id"]
    delta = {"id": "DELTA_BYTE_ARRAY"} if "id" in schema.names else None
    return pq.ParquetWriter(path, schema, use_dictionary=repeated, column_encoding=delta, **_OPTIONS)


def write_split(
    tables: Iterable[pa.Table],
    folder: Path,
    config: str,
    split: str,
    *,
    rows: int,
    rows_per_shard: int | None = None,
    rows_per_group: int | None = None,
) -> tuple[list[str], int]:
    """Write one split of one config as ``CONFIG/SPLIT-00000-of-0000N.parquet``.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Each becomes one row group, or several of at most `rows_per_group` rows; they bound the memory that it takes.
    folder : Path
        The dataset folder.
    rows : int
        Rows in all, known beforehand since the number of shards stands in each name.
    rows_per_shard, rows_per_group : int, optional
        Limits; `ROWS_PER_SHARD` and `ROWS_PER_GROUP` by default.

    Returns
    -------
    list of str
        Paths relative to `folder`.
    int
        Bytes that the rows take in Arrow, strings written out.
    """
    rows_per_group = rows_per_group or ROWS_PER_GROUP
    shards = max(1, -(-rows // (rows_per_shard or ROWS_PER_SHARD)))
    names = [f"{config}/{split}-{shard:05d}-of-{shards:05d}.parquet" for shard in range(shards)]
    (folder / config).mkdir(parents=True, exist_ok=True)
    remaining = _ahead(tables)
    first = next(remaining)
    remaining = itertools.chain([first], remaining)
    written = arrow_bytes = 0
    for shard, name in enumerate(names, start=1):
        with _writer(folder / name, first.schema) as writer:
            while written < rows * shard // shards:
                table = next(remaining)
                writer.write_table(table, row_group_size=rows_per_group)
                written += len(table)
                arrow_bytes += sum(_arrow_bytes(column) for column in table.columns)
    return names, arrow_bytes


def _ahead(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Make the next table while this one is written: Arrow writes without Python's lock."""
    remaining = iter(tables)
    with ThreadPoolExecutor(1) as pool:
        upcoming = pool.submit(next, remaining, None)
        while (table := upcoming.result()) is not None:
            upcoming = pool.submit(next, remaining, None)
            yield table


def _arrow_bytes(column: pa.ChunkedArray) -> int:
    """Bytes of a column once its dictionary is written out: text, 4-byte offsets, a bit a row where there are nulls."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    total = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
        total += (pc.sum(lengths).as_py() or 0) + 4 * len(chunk) + (len(chunk) // 8 if chunk.null_count else 0)
    return total
