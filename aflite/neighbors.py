"""Similar rows by exact inner-product search with FAISS: what stands beside a kept row, and duplicates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aflite import validation

Ints = NDArray[np.int64]
_CHUNK = 4096


@dataclass(frozen=True)
class Neighbors:
    """Most similar rows, best first.

    Attributes
    ----------
    rows : ndarray of int64, shape (Q,)
        The rows that were asked for.
    neighbors : ndarray of int64, shape (Q, count)
        Their most similar rows.
    similarity : ndarray of float32, shape (Q, count)
        Cosine, in [-1, 1]; higher is more alike.
    """

    rows: Ints
    neighbors: Ints
    similarity: NDArray[np.float32]


@dataclass(frozen=True)
class Pairs:
    """Pairs of near-duplicates, most alike first.

    Attributes
    ----------
    first, second : ndarray of int64, shape (P,)
        Row numbers in the first and the second set.
    similarity : ndarray of float32, shape (P,)
        Cosine, at least the threshold (to 1e-6); higher is more alike.
    """

    first: Ints
    second: Ints
    similarity: NDArray[np.float32]


def nearest_removed(features: ArrayLike, kept: ArrayLike, *, count: int = 5) -> Neighbors:
    """List for every kept row the removed rows most similar to it.

    Parameters
    ----------
    features : array_like, shape (N, d)
        As given to the filter.
    kept : array_like of bool, shape (N,)
        `FilterResult.kept`.
    count : int
        Rows to list for each kept one; fewer when fewer were removed.

    Returns
    -------
    Neighbors
        `rows` are the kept rows, `neighbors` numbers of removed ones.

    Raises
    ------
    ValueError, TypeError
        Lengths differ, `kept` is not bool, or nothing was kept or removed.
    """
    matrix = validation.features(features)
    mask = validation.mask("kept", kept, matrix.shape[0])
    count = validation.integer("count", count, least=1)
    stay, gone = np.flatnonzero(mask), np.flatnonzero(~mask)
    if not stay.size or not gone.size:
        raise ValueError(f"kept must mark some rows and leave some, got {stay.size} of {mask.size}")
    index = _index(matrix, gone)
    found = [index.search(_unit(matrix, chunk), min(count, gone.size)) for chunk in _chunks(stay)]
    similarity, position = (np.concatenate(part) for part in zip(*found, strict=True))
    return Neighbors(stay, gone[position], np.clip(similarity, -1, 1))


def duplicates(first: ArrayLike, second: ArrayLike | None = None, *, threshold: float = 0.99) -> Pairs:
    """List pairs of rows whose cosine similarity is at least `threshold`.

    Parameters
    ----------
    first : array_like, shape (N, d)
        Features of one split.
    second : array_like, shape (M, d), optional
        Features of another split. None: pairs within the first, each once, the lower row first.
    threshold : float
        Least similarity, in (0, 1].

    Returns
    -------
    Pairs

    Raises
    ------
    ValueError
        Widths differ or the threshold is out of range.
    """
    left = validation.features(first, "first")
    right = left if second is None else validation.features(second, "second")
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"second must have {left.shape[1]} columns as first has, got {right.shape[1]}")
    threshold = validation.number("threshold", threshold, above=0, most=1)
    index = _index(right, np.arange(right.shape[0]))
    rows, others, scores = [], [], []
    for chunk in _chunks(np.arange(left.shape[0])):
        # Rounding leaves the cosine of equal rows a little below 1.
        limits, similarity, found = index.range_search(_unit(left, chunk), threshold - 1e-6)
        rows.append(np.repeat(chunk, np.diff(limits.astype(np.int64))))
        others.append(found)
        scores.append(similarity)
    a, b, score = np.concatenate(rows), np.concatenate(others), np.concatenate(scores)
    if second is None:
        once = a < b
        a, b, score = a[once], b[once], score[once]
    order = np.lexsort((b, a, -score))
    return Pairs(a[order], b[order], np.minimum(score[order], 1))


def _chunks(rows: Ints) -> list[Ints]:
    return [rows[start : start + _CHUNK] for start in range(0, rows.size, _CHUNK)]


def _unit(matrix: NDArray[np.floating], rows: Ints) -> NDArray[np.float32]:
    """Rows of length 1, or 0 for rows of zeros."""
    picked: NDArray[np.float32] = np.array(matrix[rows], dtype=np.float32)
    # By the greatest entry first: squares of very small numbers are 0 in float32.
    greatest = np.abs(picked).max(1, keepdims=True)
    picked /= np.where(greatest > 0, greatest, 1)
    picked /= np.maximum(np.linalg.norm(picked, axis=1, keepdims=True), 1)
    return picked


def _index(matrix: NDArray[np.floating], rows: Ints) -> Any:
    import faiss

    index = faiss.IndexFlatIP(matrix.shape[1])
    for chunk in _chunks(rows):
        index.add(_unit(matrix, chunk))
    return index
