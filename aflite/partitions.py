"""Random training parts: the rows that each of the m classifiers of a phase trains on (Algorithm 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# A part is a union of at least this many blocks where t allows it: fewer make parts overlap in lumps.
_BLOCKS_PER_PART = 12
_BLOCK_ROWS = 512


@dataclass(frozen=True)
class Layout:
    """Training parts as runs of rows that several classifiers share.

    Attributes
    ----------
    rows : ndarray of int64, shape (L,)
        Positions in the pool of remaining rows, one run after the other.
    bounds : ndarray of int64, shape (B + 1,)
        Run b is ``rows[bounds[b]:bounds[b + 1]]``.
    members : tuple of ndarray of int64
        For each run the classifiers that train on it, ascending.
    used : tuple of ndarray of int64
        For each run and member how many of its leading rows that classifier trains on.
    n_parts : int
        Number of classifiers.
    """

    rows: Ints
    bounds: Ints
    members: tuple[Ints, ...]
    used: tuple[Ints, ...]
    n_parts: int

    def trained(self, n_rows: int) -> NDArray[np.bool_]:
        """Which classifier trains on which row: bool, shape (n_parts, n_rows)."""
        mask = np.zeros((self.n_parts, n_rows), dtype=bool)
        for block, (members, used) in enumerate(zip(self.members, self.used, strict=True)):
            rows = self.rows[self.bounds[block] : self.bounds[block + 1]]
            for member, count in zip(members, used, strict=True):
                mask[member, rows[:count]] = True
        return mask

    def part(self, index: int) -> Ints:
        """Positions in the pool that classifier `index` trains on, in layout order."""
        runs = []
        for block, (members, used) in enumerate(zip(self.members, self.used, strict=True)):
            for count in used[members == index]:
                start = self.bounds[block]
                runs.append(self.rows[start : start + count])
        return np.concatenate(runs)

    def class_counts(self, codes: Ints, n_classes: int) -> Ints:
        """Rows of each class in each part, shape (n_parts, n_classes); `codes` are the pool's."""
        counts = np.zeros((self.n_parts, n_classes), dtype=np.int64)
        for block, (members, used) in enumerate(zip(self.members, self.used, strict=True)):
            inside = codes[self.rows[self.bounds[block] : self.bounds[block + 1]]]
            for length in np.unique(used):
                counts[members[used == length]] += np.bincount(inside[:length], minlength=n_classes)
        return counts


def block_rows(t: int) -> int:
    """Block length for parts of `t` rows: a divisor of t near min(512, t / 12) where there is one."""
    target = max(1, min(_BLOCK_ROWS, t // _BLOCKS_PER_PART))
    near = [size for size in range(target - target // 3, target + target // 3 + 1) if size and t % size == 0]
    return min(near, key=lambda size: abs(size - target)) if near else target


def blocked(
    n_rows: int,
    n_parts: int,
    t: int,
    *,
    seed: np.random.SeedSequence,
    codes: Ints | None = None,
    groups: Ints | None = None,
    block_size: int | None = None,
) -> Layout:
    """Draw parts as random unions of blocks of one shuffle.

    Every part is by itself a uniformly random subset of t rows; parts share blocks, so that one product
    serves several classifiers. The last block of a part is cut where t is reached.

    Parameters
    ----------
    n_rows, n_parts, t : int
        Rows to draw from, parts to draw, rows a part.
    seed : SeedSequence
        One child shuffles the rows, one per part picks its blocks.
    codes : ndarray of int64, shape (n_rows,), optional
        Classes to keep in proportion: every block then holds each class's share to within a row.
    groups : ndarray of int64, shape (n_rows,), optional
        Rows of a group stay together; parts then have at most t rows.
    block_size : int, optional
        Rows a block.
    """
    shuffle, *children = seed.spawn(n_parts + 1)
    rows, ends = _ordered(n_rows, np.random.default_rng(shuffle), codes, groups)
    bounds = _cut(ends, block_size or block_rows(t))
    lengths = np.diff(bounds)
    members: list[list[int]] = [[] for _ in lengths]
    used: list[list[int]] = [[] for _ in lengths]
    for part, child in enumerate(children):
        left = t
        for block in np.random.default_rng(child).permutation(lengths.size):
            # Only whole groups may enter: the cut falls on the last group end that still fits.
            limit = np.searchsorted(ends, bounds[block] + min(left, lengths[block]), side="right") - 1
            count = int(ends[limit] - bounds[block])
            if count > 0:
                members[block].append(part)
                used[block].append(count)
                left -= count
            if count < lengths[block] or left == 0:
                break
    return _layout(rows, bounds, members, used, n_parts)


def independent(
    n_rows: int,
    n_parts: int,
    t: int,
    *,
    seed: np.random.SeedSequence,
    codes: Ints | None = None,
    groups: Ints | None = None,
) -> Layout:
    """Draw every part by a shuffle of its own (the paper's partitions); parameters as in `blocked`.

    With `codes` the class counts of a part are the exact shares of t, rounded to the largest remainders.
    """
    parts = []
    for child in seed.spawn(n_parts):
        rng = np.random.default_rng(child)
        if codes is not None:
            parts.append(_stratified(codes, t, rng))
        else:
            rows, ends = _ordered(n_rows, rng, None, groups)
            parts.append(rows[: ends[np.searchsorted(ends, t, side="right") - 1]])
    return from_parts(parts)


def from_parts(parts: Sequence[Ints]) -> Layout:
    """Make a layout of given parts (one array of pool positions a classifier)."""
    sizes = np.array([part.size for part in parts], dtype=np.int64)
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    members = [[index] for index in range(len(parts))]
    return _layout(np.concatenate(parts), bounds, members, [[int(size)] for size in sizes], len(parts))


def _layout(rows: Ints, bounds: Ints, members: list[list[int]], used: list[list[int]], n_parts: int) -> Layout:
    return Layout(
        rows=rows.astype(np.int64),
        bounds=bounds.astype(np.int64),
        members=tuple(np.array(block, dtype=np.int64) for block in members),
        used=tuple(np.array(block, dtype=np.int64) for block in used),
        n_parts=n_parts,
    )


def _ordered(n_rows: int, rng: np.random.Generator, codes: Ints | None, groups: Ints | None) -> tuple[Ints, Ints]:
    """Shuffle; return the row order and the places where it may be cut (0 and every group end)."""
    if groups is not None:
        ids, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        order = rng.permutation(ids.size)
        place = np.empty(ids.size, dtype=np.int64)
        place[order] = np.arange(ids.size)
        return np.argsort(place[inverse], kind="stable"), np.concatenate(([0], np.cumsum(sizes[order])))
    ends = np.arange(n_rows + 1)
    if codes is None:
        return rng.permutation(n_rows), ends
    # Systematic sampling: the r-th of a class's c shuffled rows stands at (r + u) / c of the whole order.
    position = np.empty(n_rows)
    for code in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == code))
        position[rows] = (np.arange(rows.size) + rng.random()) / rows.size
    return np.argsort(position, kind="stable"), ends


def _cut(ends: Ints, size: int) -> Ints:
    """Cut the order into blocks of about `size` rows at allowed places."""
    targets = np.arange(size, ends[-1], size)
    inner = ends[np.searchsorted(ends, targets, side="left")]
    return np.unique(np.concatenate(([0], inner, ends[-1:])))


def _stratified(codes: Ints, t: int, rng: np.random.Generator) -> Ints:
    labels, counts = np.unique(codes, return_counts=True)
    share = counts * (t / codes.size)
    quota = np.floor(share).astype(np.int64)
    # Ties between remainders fall by chance, or the first classes would always gain the odd row.
    by_remainder = np.lexsort((rng.random(labels.size), quota - share))
    quota[by_remainder[: t - quota.sum()]] += 1
    picked = [
        rng.permutation(np.flatnonzero(codes == label))[:count] for label, count in zip(labels, quota, strict=True)
    ]
    return rng.permutation(np.concatenate(picked))
