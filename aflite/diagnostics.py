"""What a filter run did to label shares and to scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aflite import validation
from aflite.results import FilterResult, histogram


@dataclass(frozen=True)
class LabelShares:
    """Shares of the labels, in [0, 1], in the order of `labels`.

    Attributes
    ----------
    labels : ndarray of int, shape (K,)
        The labels, ascending.
    before, kept, removed : ndarray of float64, shape (K,)
        Share of each label among all, the kept and the removed rows; NaN where there are none.
    """

    labels: NDArray[np.int64]
    before: NDArray[np.float64]
    kept: NDArray[np.float64]
    removed: NDArray[np.float64]


@dataclass(frozen=True)
class ScoreDistribution:
    """How the predictability of one set of rows is distributed.

    Attributes
    ----------
    count : int
        Rows with a score.
    unscored : int
        Rows without one: never held out.
    mean : float
        Mean score, in [0, 1], higher is easier; NaN without rows.
    quantiles : ndarray of float64, shape (5,)
        Least, quarter, median, three quarters, greatest score; NaN without rows.
    histogram : ndarray of int64, shape (20,)
        Rows in equal bins of [0, 1], closed below, the last above too.
    """

    count: int
    unscored: int
    mean: float
    quantiles: NDArray[np.float64]
    histogram: NDArray[np.int64]


def label_shares(labels: ArrayLike, kept: ArrayLike) -> LabelShares:
    """Compare the label shares of all rows with those of the kept and the removed.

    Parameters
    ----------
    labels : array_like of int, shape (N,)
        Labels of all rows.
    kept : array_like of bool, shape (N,)
        `FilterResult.kept`.

    Returns
    -------
    LabelShares

    Raises
    ------
    ValueError, TypeError
        Lengths differ, or `kept` is not bool.

    Examples
    --------
    >>> label_shares([0, 0, 0, 1], [True, False, False, True]).kept
    array([0.5, 0.5])
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"labels must have shape (N,), got shape {array.shape}")
    mask = validation.mask("kept", kept, array.size)
    names, codes = np.unique(array, return_inverse=True)
    sides = [np.ones_like(mask), mask, ~mask]
    with np.errstate(invalid="ignore"):
        shares = [np.bincount(codes[side], minlength=names.size) / side.sum() for side in sides]
    return LabelShares(names, *shares)


def score_distribution(result: FilterResult) -> tuple[ScoreDistribution, ScoreDistribution]:
    """Distribution of predictability among the kept and the removed rows, in this order."""
    return _distribution(result.predictability[result.kept]), _distribution(result.predictability[~result.kept])


def _distribution(scores: NDArray[np.float64]) -> ScoreDistribution:
    known = scores[~np.isnan(scores)]
    bins = histogram(known)
    if not known.size:
        return ScoreDistribution(0, scores.size, float("nan"), np.full(5, np.nan), bins)
    quantiles = np.quantile(known, [0, 0.25, 0.5, 0.75, 1])
    return ScoreDistribution(known.size, scores.size - known.size, float(known.mean()), quantiles, bins)
