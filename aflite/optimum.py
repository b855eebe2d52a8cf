"""AFOpt (section 2 of the paper) by exhaustive search: the subset that the greedy filter approximates."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aflite import validation
from aflite.models import Data, Task, family
from aflite.partitions import from_parts

MAX_ROWS = 16


@dataclass(frozen=True)
class Optimum:
    """Outcome of `search`.

    Attributes
    ----------
    kept : ndarray of bool, shape (N,)
        The subset with the least representation bias; of equal ones the larger, then the one of earlier rows.
    bias : float
        Its representation bias, in [0, 1].
    n_subsets : int
        Subsets that were compared.
    n_classifiers : int
        Classifiers that were trained: one a training part.
    """

    kept: NDArray[np.bool_]
    bias: float
    n_subsets: int
    n_classifiers: int


def search(
    features: ArrayLike, labels: ArrayLike, *, n: int, t: int, model: Any = "logistic", c: float = 1.0
) -> Optimum:
    """Find AFOpt: the subset S of at least n rows whose representation bias R(Phi, S, M) is least.

    In the terms of section 2 of the paper, R is the expected accuracy on the rows of S that a classifier of M
    did not train on, its training part T being any t rows of S, each part equally likely:

        R(Phi, S, M) = mean over T of (1 / (|S| - t)) sum over i in S, not in T, of [f_T(Phi(x_i)) = y_i]

    The search trains one classifier for each of the C(N, t) parts and compares all subsets.

    Parameters
    ----------
    features : array_like, shape (N, d)
        N at most 16.
    labels : array_like of int, shape (N,)
        Any integers, at least two different ones.
    n : int
        Least size of the subset, t < n <= N.
    t : int
        Rows of a training part.
    model, c
        As in `filter_dataset`.

    Returns
    -------
    Optimum

    Raises
    ------
    ValueError, TypeError
        More than 16 rows, n or t out of range, or as in `filter_dataset`.

    Examples
    --------
    >>> int(search([[0.0], [0.1], [3.0], [3.1], [0.05]], [0, 0, 1, 1, 1], n=3, t=2).kept.sum())
    3
    """
    rights = _Rights.of(features, labels, t=t, model=model, c=c)
    n_rows = rights.correct.shape[1]
    validation.integer("n", n, least=t + 1, most=n_rows, why=f" (more than t = {t}, at most N = {n_rows})")
    best, chosen, compared = np.inf, np.arange(n_rows), 0
    for size in range(n_rows, n - 1, -1):
        for rows in combinations(range(n_rows), size):
            compared += 1
            bias = rights.bias(np.array(rows))
            # Sums of thousands of shares: equal ones may differ in the last bits.
            if bias < best - 1e-12:
                best, chosen = bias, np.array(rows)
    kept = np.zeros(n_rows, dtype=bool)
    kept[chosen] = True
    return Optimum(kept, float(best), compared, rights.correct.shape[0])


def representation_bias(
    features: ArrayLike,
    labels: ArrayLike,
    kept: ArrayLike,
    *,
    t: int,
    model: Any = "logistic",
    c: float = 1.0,
) -> float:
    """Exact representation bias R(Phi, S, M), as `search` defines it, of a given subset S.

    Parameters
    ----------
    features, labels, t, model, c
        As in `search`.
    kept : array_like of bool, shape (N,)
        The rows of S, more than t.

    Returns
    -------
    float
        In [0, 1]; higher is easier.

    Raises
    ------
    ValueError, TypeError
        As in `search`, or `kept` is no bool array of length N.
    """
    matrix = validation.features(features)
    rows = np.flatnonzero(validation.mask("kept", kept, matrix.shape[0]))
    validation.integer("t", t, least=1, most=rows.size - 1, why=f" (less than the {rows.size} kept rows)")
    return _Rights.of(matrix, labels, t=t, model=model, c=c).bias(rows)


@dataclass(frozen=True)
class _Rights:
    """Which classifier, one a training part, is right on which row: bool, shape (parts, N)."""

    parts: NDArray[np.int64]
    correct: NDArray[np.bool_]

    @classmethod
    def of(cls, features: ArrayLike, labels: ArrayLike, *, t: int, model: Any, c: float) -> "_Rights":
        matrix = validation.features(features)
        n_rows = matrix.shape[0]
        if n_rows > MAX_ROWS:
            raise ValueError(
                f"features must have at most {MAX_ROWS} rows for a search over all subsets, got {n_rows}; "
                "use filter_dataset"
            )
        classes, codes = validation.labels(labels, n_rows)
        validation.integer("t", t, least=1, most=n_rows - 1, why=f" (less than the {n_rows} rows)")
        parts = np.array(list(combinations(range(n_rows), t)), dtype=np.int64)
        chosen = family(model, c=validation.number("c", c, above=0), class_weight=None)
        data = Data(matrix, codes, classes.size)
        correct = np.zeros((len(parts), n_rows), dtype=bool)
        seed, pool = np.random.SeedSequence(0), np.arange(n_rows)
        shared = chosen.prepare(data, pool, t, seed, None)
        for index, part in enumerate(parts):
            unseen = np.setdiff1d(pool, part)
            task = Task(part, unseen, from_parts([np.arange(t)]), seed, "cpu", 1)
            correct[index, unseen] = chosen.score(data, task, shared).correct
        return cls(parts, correct)

    def bias(self, rows: NDArray[np.int64]) -> float:
        """Mean over the parts inside `rows` of the accuracy on the rest of `rows`."""
        inside = np.isin(self.parts, rows).all(1)
        right = self.correct[inside][:, rows].sum()
        t = self.parts.shape[1]
        return float(right / (comb(rows.size, t) * (rows.size - t)))
