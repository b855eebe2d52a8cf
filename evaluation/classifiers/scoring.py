"""Scores the shards of a split: one after the other in a stream, so that the model never waits, or several at once."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from builders.progress import counter
from evaluation import store
from evaluation.classifiers.labels import LabelMap
from evaluation.classifiers.predict import Classifier, Outputs, load_classifier
from evaluation.classifiers.sets import BROKEN, LabelledRows
from evaluation.classifiers.summary import broken_rows, prediction_columns
from evaluation.errors import EvaluationError
from evaluation.models import CLASSIFIERS, ModelRef
from evaluation.parallel import HERE, in_parallel
from evaluation.run import Engine

_NAMED = 3


@dataclass(frozen=True)
class How:
    """What a process needs to make the classifier."""

    ref: ModelRef
    dtype: str
    engine: Engine

    @property
    def decodes_ahead(self) -> bool:
        """Whether other processes decode images."""
        return CLASSIFIERS[self.ref.kind] == "image" and self.engine.backend == HERE

    @property
    def shards_at_once(self) -> int:
        """Shards are scored one after the other where their images are decoded ahead of the model."""
        return 1 if self.decodes_ahead else self.engine.workers

    @property
    def decoders(self) -> int | None:
        """As of `Engine`."""
        return self.engine.decoders if self.decodes_ahead else 0


@functools.lru_cache(maxsize=1)
def loaded(how: How) -> Classifier:
    """Load the model once a process, for all sets."""
    engine = how.engine
    return load_classifier(
        how.ref, dtype=how.dtype, device=engine.device, batch_size=engine.batch_size, workers=how.decoders
    )


def score_missing(
    place: store.Place, shards: int, rows: LabelledRows, labels: LabelMap, how: How, *, broken_share: float
) -> None:
    """Score the shards that no earlier run finished.

    Raises
    ------
    EvaluationError
        If more images are broken than may be, or the memory does not suffice.
    """
    missing = [number for number in range(shards) if not place.shard(number).is_file()]
    broken: list[dict[str, Any]] = []

    def check(number: int) -> int:
        table = pq.read_table(place.shard(number), columns=["source_index", BROKEN])
        broken.extend(broken_rows(table))
        check_broken(rows.name, rows.split, broken, len(broken), len(rows), broken_share)
        return len(table)

    there = sum(check(number) for number in sorted({*range(shards)} - {*missing}))
    if not missing:
        return
    places = {number: _places(number, len(rows)) for number in missing}
    with counter(total=len(rows), label=f"{rows.name} {rows.split}", done=there) as count:
        if how.shards_at_once == 1 and how.engine.backend == HERE:
            wanted = rows.take(np.concatenate(list(places.values())))
            stream = _Stream(loaded(how).outputs(wanted, part=store.ROWS_PER_SHARD), count)
            for number in missing:
                _store_shard(place, number, rows.take(places[number]), stream, labels)
                check(number)
            return
        calls = ((place, number, rows.take(places[number]), labels, how) for number in missing)
        for number in in_parallel(_score_shard, calls, at_once=how.shards_at_once, backend=how.engine.backend):
            count(check(number))


def _places(number: int, rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(number * store.ROWS_PER_SHARD, min(rows, (number + 1) * store.ROWS_PER_SHARD))


def _score_shard(place: store.Place, number: int, rows: LabelledRows, labels: LabelMap, how: How) -> int:
    _store_shard(place, number, rows, _Stream(loaded(how).outputs(rows), lambda _: None), labels)
    return number


def _store_shard(place: store.Place, number: int, rows: LabelledRows, stream: _Stream, labels: LabelMap) -> None:
    start = time.perf_counter()
    columns = _predictions(stream.take(len(rows)), rows.facts, labels)
    table = pa.table({name: rows.facts[name] for name in rows.facts.column_names} | columns)
    seconds = f"{time.perf_counter() - start:.6f}"
    store.write_table(table.replace_schema_metadata({"seconds": seconds}), place.shard(number))


def _predictions(given: Outputs, facts: pa.Table, labels: LabelMap) -> dict[str, pa.Array]:
    readable = np.setdiff1d(np.arange(len(facts)), list(given.broken))
    mapped = labels.of_logits(given.logits[readable])
    predicted = np.zeros(len(facts), dtype=np.int64)
    probabilities = np.zeros((len(facts), len(labels.names)), dtype=np.float32)
    predicted[readable], probabilities[readable] = mapped.predicted, mapped.probabilities
    return prediction_columns(predicted, probabilities, facts["label"].to_numpy(), given.broken)


def check_broken(name: str, split: str, broken: Sequence[Any], count: int, rows: int, share: float) -> None:
    """Raise `EvaluationError` if more images are broken than the share that may be; `broken` are the first of them."""
    if count > share * rows:
        others = ", ".join(str(one["source_index"]) for one in broken[1 : 1 + _NAMED])
        raise EvaluationError(
            f"{count:,} of {rows:,} images of {name}, split {split}, are broken, more than the share {share:g} of "
            f"--broken-share: {broken[0]['why']}{f'; also rows {others}' if others else ''}"
        )


class _Stream:
    """Outputs that come in pieces of any size, in pieces of the size that is asked for."""

    def __init__(self, outputs: Iterator[Outputs], count: Callable[[int], None]) -> None:
        self._outputs, self._count = outputs, count
        self._left: Outputs | None = None

    def take(self, rows: int) -> Outputs:
        """Give the outputs of the next rows."""
        logits, broken, have = [], dict[int, str](), 0
        while have < rows:
            piece = self._next() if self._left is None else self._left
            size = min(rows - have, len(piece.logits))
            logits.append(piece.logits[:size])
            broken |= {have + row: why for row, why in piece.broken.items() if row < size}
            rest = {row - size: why for row, why in piece.broken.items() if row >= size}
            self._left = Outputs(piece.logits[size:], rest) if size < len(piece.logits) else None
            have += size
        return Outputs(np.concatenate(logits), broken)

    def _next(self) -> Outputs:
        try:
            piece = next(self._outputs)
        except RuntimeError as error:
            if "out of memory" not in str(error).lower():
                raise
            raise EvaluationError("out of memory: pass a smaller --batch-size; the same command goes on") from error
        self._count(len(piece.logits))
        return piece
