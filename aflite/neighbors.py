"""How alike rows are, by cosine: what stands beside a kept row, duplicates, and the mean over groups of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aflite import validation

Ints = NDArray[np.int64]
_CHUNK, _BLOCK = 4096, 65_536


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


def nearest_removed(
    features: ArrayLike, kept: ArrayLike, *, count: int = 5, rows: ArrayLike | None = None
) -> Neighbors:
    """List for every kept row, or for some of them, the removed rows most similar to it.

    Parameters
    ----------
    features : array_like, shape (N, d)
        As given to the filter.
    kept : array_like of bool, shape (N,)
        `FilterResult.kept`.
    count : int
        Rows to list for each kept one; fewer when fewer were removed.
    rows : array_like of int, shape (Q,), optional
        The kept rows to look at; all by default.

    Returns
    -------
    Neighbors
        `rows` are the kept rows, `neighbors` numbers of removed ones.

    Raises
    ------
    ValueError, TypeError
        Lengths differ, `kept` is not bool, nothing was kept or removed, or one of `rows` was not kept.
    """
    matrix = validation.features(features)
    mask = validation.mask("kept", kept, matrix.shape[0])
    count = validation.integer("count", count, least=1)
    stay, gone = np.flatnonzero(mask), np.flatnonzero(~mask)
    if not stay.size or not gone.size:
        raise ValueError(f"kept must mark some rows and leave some, got {stay.size} of {mask.size}")
    asked = stay if rows is None else np.asarray(rows, dtype=np.int64)
    if not np.isin(asked, stay).all():
        raise ValueError(f"rows must name kept rows, got {asked[~np.isin(asked, stay)][0]}, which was removed")
    count = min(count, gone.size)
    similarity = np.empty((asked.size, 0), np.float32)
    neighbors = np.empty((asked.size, 0), np.int64)
    for start in range(0, gone.size, _BLOCK):
        block = gone[start : start + _BLOCK]
        index = _index(matrix, block)
        found = [index.search(_unit(matrix, chunk), min(count, block.size)) for chunk in _chunks(asked)]
        scores, position = (np.concatenate(part) for part in zip(*found, strict=True))
        similarity, neighbors = np.hstack([similarity, scores]), np.hstack([neighbors, block[position]])
        best = np.argsort(-similarity, axis=1, kind="stable")[:, :count]
        similarity = np.take_along_axis(similarity, best, axis=1)
        neighbors = np.take_along_axis(neighbors, best, axis=1)
    return Neighbors(asked, neighbors, np.clip(similarity, -1, 1))


def similarities(features: ArrayLike) -> NDArray[np.float32]:
    """Give the cosine of every two rows, in [-1, 1], shape (N, N); higher is more alike.

    Parameters
    ----------
    features : array_like, shape (N, d)
        Features of some rows.

    Examples
    --------
    >>> similarities([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]], dtype=float32)
    """
    matrix = validation.features(features)
    unit = _unit(matrix, np.arange(matrix.shape[0]))
    found: NDArray[np.float32] = np.clip(unit @ unit.T, -1, 1)
    return found


def mean_similarity(features: ArrayLike, groups: ArrayLike) -> NDArray[np.float64]:
    """Give the mean cosine of two different rows of each group: how little the rows of a group differ.

    All pairs count. With u the rows at length 1, it is (|sum of u|² - sum of |u|²) / (n (n - 1)).

    Parameters
    ----------
    features : array_like, shape (N, d)
        As given to the filter.
    groups : array_like of int, shape (N,)
        Number of each row's group, from 0; below 0 for none.

    Returns
    -------
    ndarray of float64, shape (groups,)
        In [-1, 1], higher is more alike; NaN for a group of fewer than two rows.

    Raises
    ------
    ValueError
        If lengths differ.

    Examples
    --------
    >>> mean_similarity([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [1.0, 1.0]], [0, 0, 0, 1]).round(3)
    array([0.333,   nan])
    """
    matrix = validation.features(features)
    codes = np.asarray(groups, dtype=np.int64)
    if codes.shape != (matrix.shape[0],):
        raise ValueError(f"groups must have shape ({matrix.shape[0]},) as features have rows, got {codes.shape}")
    number = int(codes.max(initial=-1)) + 1
    total, squares = np.zeros((number, matrix.shape[1])), np.zeros(number)
    for chunk in _chunks(np.flatnonzero(codes >= 0)):
        unit = _unit(matrix, chunk).astype(np.float64)
        order = np.argsort(codes[chunk], kind="stable")
        present, first = np.unique(codes[chunk][order], return_index=True)
        total[present] += np.add.reduceat(unit[order], first)
        squares[present] += np.add.reduceat((unit * unit).sum(1)[order], first)
    n = np.bincount(codes[codes >= 0], minlength=number)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = ((total * total).sum(1) - squares) / (n * (n - 1.0))
    return np.where(n > 1, found, np.nan)


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
