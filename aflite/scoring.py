"""Scores of one phase: m classifiers on random parts, each row predicted by those that never saw it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aflite import partitions as parts
from aflite.models import Counts, Data, Family, Ints, Task

Partitioner = Callable[[Ints, int, int, np.random.Generator], Sequence[Ints]]

_SMALL_ELEMENTS = 2**24
_PARTS, _STATES, _SAMPLE, DRAW = range(4)


def phase_seed(seed: int, phase: int, *purpose: int) -> np.random.SeedSequence:
    """Seed of one use of chance in one phase; no state is carried from phase to phase."""
    return np.random.SeedSequence(seed, spawn_key=(phase, *purpose))


@dataclass(frozen=True)
class Scorer:
    """Scores rows; the parameters are those of `filter_dataset`, checked."""

    data: Data
    family: Family
    m: int
    t: int
    seed: int
    partitions: str | Partitioner
    block_size: int | None
    groups: Ints | None
    stratify: bool
    n_batches: int
    n_jobs: int | None
    threads: int | None
    device: str

    def score(self, phase: int, pool: Ints, last: Counts | None, targets: Ints | None = None) -> Counts:
        """Train on parts of `pool`; predict the pool out of sample, or `targets`, rows outside the pool.

        Returns
        -------
        Counts
            Sums over all m classifiers, in the order of the pool or the targets.
        """
        from joblib import Parallel, delayed

        look_ahead = int(targets is not None)
        sizes = self._batch_sizes()
        shared = self.family.prepare(self.data, pool, self.t, phase_seed(self.seed, phase, _SAMPLE, look_ahead), last)
        layouts = phase_seed(self.seed, phase, _PARTS, look_ahead).spawn(len(sizes))
        states = phase_seed(self.seed, phase, _STATES, look_ahead).spawn(len(sizes))
        tasks = [
            Task(
                pool,
                targets,
                self._layout(pool, size, layouts[batch]),
                states[batch],
                self._device(batch),
                self.threads,
            )
            for batch, size in enumerate(sizes)
        ]
        results = Parallel(n_jobs=self.n_jobs)(delayed(self.family.score)(self.data, task, shared) for task in tasks)
        return _combined(results, sizes)

    def _batch_sizes(self) -> list[int]:
        batches = min(self.m, max(self.n_batches, math.ceil(self.m / self.family.max_parts(self.data, self.t))))
        return [self.m // batches + (batch < self.m % batches) for batch in range(batches)]

    def _device(self, batch: int) -> str:
        """A batch a GPU, in turn."""
        if self.device != "cuda":
            return self.device
        import torch

        return f"cuda:{batch % torch.cuda.device_count()}"

    def _small(self) -> bool:
        """Blocks save no memory traffic worth their overhead."""
        return bool(self.m * self.t * self.data.features.shape[1] <= _SMALL_ELEMENTS)

    def _layout(self, pool: Ints, m: int, seed: np.random.SeedSequence) -> parts.Layout:
        if callable(self.partitions):
            given = self.partitions(pool.copy(), m, self.t, np.random.default_rng(seed))
            return parts.from_parts(_positions(given, pool, m))
        codes = self.data.codes[pool] if self.stratify else None
        groups = None if self.groups is None else self.groups[pool]
        if self.partitions == "independent" or (self.partitions == "auto" and self._small()):
            return parts.independent(pool.size, m, self.t, seed=seed, codes=codes, groups=groups)
        return parts.blocked(pool.size, m, self.t, seed=seed, codes=codes, groups=groups, block_size=self.block_size)


def _positions(given: Sequence[Ints], pool: Ints, m: int) -> list[Ints]:
    """Positions in the pool of the row numbers that a user's function returned."""
    if not hasattr(given, "__len__"):
        raise ValueError(f"partitions must return {m} index arrays, returned {given!r}")
    if len(given) != m:
        raise ValueError(f"partitions must return {m} index arrays, returned {len(given)}")
    for part in given:
        one_axis = np.ndim(part) == 1 and np.size(part) > 0
        if not one_axis or np.unique(part).size != np.size(part) or not np.isin(part, pool).all():
            raise ValueError(
                "partitions must return arrays with one axis of distinct rows that are left, at least one an array"
            )
    return [np.searchsorted(pool, part) for part in given]


def _combined(results: Sequence[Counts], sizes: Sequence[int]) -> Counts:
    weights = intercepts = None
    first = results[0]
    if first.weights is not None:
        weights = np.average([result.weights for result in results], axis=0, weights=sizes).astype(np.float32)
        intercepts = np.average([result.intercepts for result in results], axis=0, weights=sizes).astype(np.float32)
    correct: NDArray[np.int64] = np.sum([result.correct for result in results], axis=0)
    held_out: NDArray[np.int64] = np.sum([result.held_out for result in results], axis=0)
    return Counts(correct, held_out, sum(result.incomplete for result in results), weights, intercepts)
