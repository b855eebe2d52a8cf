"""What a filtered folder holds: every labelled row of the source once, in one of three configs, with its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from builders.cards import dataset_info
from builders.images import image_bytes
from builders.parquet import ROWS_PER_GROUP, ROWS_PER_SHARD, write_split
from builders.progress import progress

if TYPE_CHECKING:
    from datasets import Dataset

FILTERED, REMOVED, WARMUP = 0, 1, 2
CONFIGS = ("filtered", "removed", "warmup")
SCORE_COLUMNS = ("predictability", "times_scored", "removed_in_phase", "in_random_subset")

_GROUP_BYTES = 64 * 2**20
_SHARD_BYTES = 2**30
_LOOKED_AT = 64
_ORDER, _BASELINE = 0, 1


@dataclass(frozen=True)
class Outcome:
    """What became of the rows of one split; every array has one entry a row, in source order.

    Attributes
    ----------
    part : ndarray of int8
        Index into `CONFIGS`.
    predictability : ndarray of float64
        Score in [0, 1], higher is easier; NaN where there is none.
    times_scored : ndarray of int32
        Classifiers behind the score.
    removed_in_phase : ndarray of int32
        Phase that removed the row, from 0; -1 for none.
    in_random_subset : ndarray of bool
        Whether the row is in the random baseline of the size of the kept rows.
    """

    part: NDArray[np.int8]
    predictability: NDArray[np.float64]
    times_scored: NDArray[np.int32]
    removed_in_phase: NDArray[np.int32]
    in_random_subset: NDArray[np.bool_]

    @classmethod
    def untouched(cls, n_rows: int) -> Outcome:
        """Rows of a split that is not filtered: all kept, none scored, all in the baseline."""
        return cls(
            part=np.full(n_rows, FILTERED, np.int8),
            predictability=np.full(n_rows, np.nan),
            times_scored=np.zeros(n_rows, np.int32),
            removed_in_phase=np.full(n_rows, -1, np.int32),
            in_random_subset=np.ones(n_rows, bool),
        )

    def take(self, place: slice) -> Outcome:
        """Outcome of consecutive rows."""
        return Outcome(**{field.name: getattr(self, field.name)[place] for field in fields(self)})

    def columns(self, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Columns of some of the rows, null where there is no score or phase."""
        scores, phases = self.predictability[rows], self.removed_in_phase[rows]
        return {
            "predictability": pa.array(scores, mask=np.isnan(scores)),
            "times_scored": pa.array(self.times_scored[rows]),
            "removed_in_phase": pa.array(phases, mask=phases < 0),
            "in_random_subset": pa.array(self.in_random_subset[rows]),
        }


def draw_order(n_rows: int, n_warm: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the warm-up sample, and the order in which the other rows are scored.

    AFLite lets the earlier of two equally predictable rows go first. In source order that would empty the first split
    before the last; in a random one all splits keep one distribution.

    Returns
    -------
    warm : ndarray of int64, shape (n_warm,)
        Ascending.
    rest : ndarray of int64, shape (n_rows - n_warm,)
        In random order.
    """
    order = np.random.default_rng(np.random.SeedSequence((seed, _ORDER))).permutation(n_rows)
    return np.sort(order[:n_warm]), order[n_warm:]


def draw_baseline(outcome: Outcome, bounds: Mapping[str, slice], seed: int) -> None:
    """Draw, in each split, as many of the scored rows as are kept: the baseline D_n of the paper.

    The rows of a smaller draw are among those of a larger one with the same seed.
    """
    outcome.in_random_subset[:] = False
    for number, place in enumerate(bounds.values()):
        part, drawn = outcome.part[place], outcome.in_random_subset[place]
        rng = np.random.default_rng(np.random.SeedSequence((seed, _BASELINE, number)))
        order = rng.permutation(np.flatnonzero(part != WARMUP))
        drawn[order[: np.count_nonzero(part == FILTERED)]] = True


def write_parts(
    splits: Mapping[str, Dataset], outcomes: Mapping[str, Outcome], folder: Path, *, label: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write every row into the Parquet files of its config and split.

    Parameters
    ----------
    splits : mapping of str to datasets.Dataset
        Rows by split, with columns as in `SourceRows`.
    outcomes : mapping of str to Outcome
        One for each split.
    folder : Path
        The folder that is being built.
    label : str
        What stands before the progress bar.

    Returns
    -------
    dict
        ``configs`` as in the manifest; a config or split without rows is left out.
    list of dict
        ``dataset_info`` of each config.
    """
    configs: dict[str, Any] = {}
    infos = []
    for code, config in enumerate(CONFIGS):
        written: dict[str, Any] = {}
        sizes, schema, features = {}, None, None
        for split, rows in splits.items():
            chosen = np.flatnonzero(outcomes[split].part == code)
            if not chosen.size:
                continue
            group, shard = _sizes(rows.select(chosen[:_LOOKED_AT]))
            tables = progress(
                _tables(rows, outcomes[split], chosen, group), total=chosen.size, label=f"{label} {config}", step=len
            )
            files, arrow_bytes = write_split(
                tables, folder, config, split, rows=chosen.size, rows_per_shard=shard, rows_per_group=group
            )
            download = sum((folder / name).stat().st_size for name in files)
            written[split] = {"rows": chosen.size, "files": files}
            sizes[split] = {"rows": chosen.size, "bytes": arrow_bytes, "download": download}
            schema, features = next(_tables(rows, outcomes[split], chosen[:1], 1)).schema, rows.features
        if schema is not None:
            configs[config] = written
            infos.append(dataset_info(config, schema, sizes, features))
    return configs, infos


def _tables(rows: Dataset, outcome: Outcome, chosen: NDArray[np.int64], group: int) -> Iterator[pa.Table]:
    for start in range(0, chosen.size, group):
        part = chosen[start : start + group]
        table = _arrow(rows.select(part))
        for name, column in outcome.columns(part).items():
            table = table.append_column(name, column)
        yield table


def _arrow(rows: Dataset) -> pa.Table:
    """Give rows as a plain table, images with their bytes."""
    from datasets.table import embed_table_storage

    from builders.sources.spec import IMAGE  # readers of sources need folders, which need this module

    table = rows.with_format("arrow")[:].cast(rows.features.arrow_schema)
    if IMAGE in table.column_names:
        kind = table.schema.field(IMAGE).type
        values = [value and {**value, "bytes": image_bytes(value)} for value in table[IMAGE].to_pylist()]
        table = table.set_column(table.column_names.index(IMAGE), table.schema.field(IMAGE), pa.array(values, kind))
    # Every image has its bytes by now, so this only cuts paths down to names.
    return embed_table_storage(table).replace_schema_metadata(None)


def _sizes(sample: Dataset) -> tuple[int, int]:
    """Rows of a row group and of a shard, so that neither grows too large to page through."""
    mean = max(1, _arrow(sample).nbytes // len(sample))
    return max(1, min(ROWS_PER_GROUP, _GROUP_BYTES // mean)), max(1, min(ROWS_PER_SHARD, _SHARD_BYTES // mean))
