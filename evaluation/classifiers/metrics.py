"""Numbers of a classifier over stored predictions: pure functions of labels, decisions and probabilities.

Everywhere ``labels`` and ``predicted`` are int64 arrays of shape (rows,), indexes into the dataset's class names, and
``probabilities`` is of shape (rows, K) over those names. Intervals are at 95 % and about rows: where would the number
lie, had other rows of the same kind been drawn? They take rows for independent, which rows that share a premise are
not quite, and say nothing of other seeds or models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.errors import EvaluationError

Ints = NDArray[np.int64]

BINS = 15  # Guo et al. 2017, section 5
Z = 1.959963984540054  # quantile of the normal law for 95 %, two-sided
NO_GROUP = "(none)"


@dataclass(frozen=True)
class Rate:
    """A share with its interval.

    Attributes
    ----------
    value, low, high : float
        In [0, 1]; the interval is at 95 %.
    n : int
        Of how many.
    """

    value: float
    low: float
    high: float
    n: int

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)


@dataclass(frozen=True)
class Difference:
    """One share less another, with its interval at 95 %; all in [-1, 1]."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)


@dataclass(frozen=True)
class OverSeeds:
    """Runs of one setting with several seeds: mean, standard deviation (over n - 1; None for one run) and n."""

    mean: float
    sd: float | None
    n: int


def wilson(share: float, n: float) -> tuple[float, float]:
    """Give the score interval of a share at 95 % (Wilson 1927, "Probable inference").

    The limits are the p with (share - p)² = z² p (1 - p) / n. Unlike the normal interval it never leaves [0, 1] and
    has a width at 0 and 1.

    Parameters
    ----------
    share : float
        In [0, 1].
    n : float
        Independent trials, above 0; an effective number need not be whole.

    Examples
    --------
    >>> tuple(round(limit, 4) for limit in wilson(0.5, 100))
    (0.4038, 0.5962)
    """
    square = Z * Z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = Z / (1 + square / n) * float(np.sqrt(share * (1 - share) / n + square / (4 * n * n)))
    # Rounding alone would leave limits at 0 and 1 that are not quite there.
    low = 0.0 if share == 0 else max(0.0, centre - half)
    return low, 1.0 if share == 1 else min(1.0, centre + half)


def rate(hits: ArrayLike, *, what: str = "the subset") -> Rate:
    """Give the share of True among `hits` (bool array) with its Wilson interval.

    Raises
    ------
    EvaluationError
        If there are none; `what` names them in the message.
    """
    values = np.asarray(hits, dtype=bool)
    if not values.size:
        raise EvaluationError(f"{what} has no rows to score: choose another split or subset")
    share = float(values.mean())
    return Rate(share, *wilson(share, values.size), int(values.size))


def accuracy(labels: ArrayLike, predicted: ArrayLike, *, what: str = "the subset") -> Rate:
    """Give the share of right decisions, in [0, 1], higher is better, with its Wilson interval.

    Raises
    ------
    EvaluationError
        If there are no rows; `what` names them in the message.
    """
    return rate(np.asarray(labels) == np.asarray(predicted), what=what)


def class_accuracies(labels: ArrayLike, predicted: ArrayLike, names: Sequence[str]) -> dict[str, Rate]:
    """Give the accuracy on the rows of each class (its recall), in the order of `names`; classes without rows left out.

    Raises
    ------
    EvaluationError
        If there are no rows at all.
    """
    labels = np.asarray(labels)
    hits = labels == np.asarray(predicted)
    rate(hits)
    return {name: rate(hits[labels == place]) for place, name in enumerate(names) if (labels == place).any()}


def group_accuracies(labels: ArrayLike, predicted: ArrayLike, groups: Iterable[Any]) -> dict[str, Rate]:
    """Give the accuracy on the rows of each group, as of a column with the heuristic or the category of a row.

    Parameters
    ----------
    labels, predicted : int64 array, shape (rows,)
    groups : iterable of length rows
        The value of each row. A list or tuple puts the row into each group that it names, and an empty one or None
        into none: those rows stand under `NO_GROUP`.

    Returns
    -------
    dict of str to Rate
        By group in order of value, `NO_GROUP` last. The n add up to the rows if no value is a list.

    Raises
    ------
    EvaluationError
        If there are no rows, or not one group value a row.
    """
    hits = np.asarray(labels) == np.asarray(predicted)
    rate(hits)
    members: dict[Any, list[int]] = {}
    count = 0
    for row, value in enumerate(groups):
        count += 1
        several = value if isinstance(value, list | tuple | np.ndarray) else [] if value is None else [value]
        for group in dict.fromkeys(several) or [None]:
            members.setdefault(group, []).append(row)
    if count != len(hits):
        raise EvaluationError(f"groups must have one value a row: {len(hits)} rows, {count} values")
    order = sorted(
        members, key=lambda group: (group is None, isinstance(group, str), group if group is not None else 0)
    )
    return {NO_GROUP if group is None else str(group): rate(hits[members[group]]) for group in order}


def calibration_error(labels: ArrayLike, predicted: ArrayLike, probabilities: ArrayLike, *, bins: int = BINS) -> float:
    """Give the expected calibration error: how far confidence is from accuracy (Guo et al. 2017, eq. 3).

    ECE = Σ |B_m| / n · |acc(B_m) - conf(B_m)| over bins of equal width ((m - 1) / M, m / M] of the confidence, which is
    the probability of the decision.

    Parameters
    ----------
    labels, predicted : int64 array, shape (rows,)
    probabilities : float array, shape (rows, K)
        In [0, 1].
    bins : int
        M, at least 1.

    Returns
    -------
    float
        In [0, 1], lower is better; 0 for a model that is right as often as it says. Too high by chance where rows are
        few: a perfectly calibrated model has about 0.1 on a hundred rows.

    Raises
    ------
    EvaluationError
        If there are no rows.
    """
    predicted = np.asarray(predicted)
    hits = np.asarray(labels) == predicted
    rate(hits)
    confidence = np.asarray(probabilities, dtype=np.float64)[np.arange(len(hits)), predicted]
    place = np.clip(np.searchsorted(np.linspace(0, 1, bins + 1), confidence, side="left") - 1, 0, bins - 1)
    gaps = np.bincount(place, weights=hits - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(hits))


def matthews(labels: ArrayLike, predicted: ArrayLike, classes: int) -> float:
    """Give Matthews correlation for any number of classes, R_K (Gorodkin 2004).

    With C the confusion matrix, s its sum, c its trace, t and p its sums by true and by predicted class:
    R_K = (c s - Σ t p) / sqrt((s² - Σ p²) (s² - Σ t²)).

    Returns
    -------
    float
        In [-1, 1], higher is better; 0 for decisions that know nothing of the labels, and where all labels or all
        decisions are the same.

    Raises
    ------
    EvaluationError
        If there are no rows.
    """
    counts = confusion(labels, predicted, classes).astype(np.float64)
    total, right = counts.sum(), np.trace(counts)
    true, decided = counts.sum(axis=1), counts.sum(axis=0)
    spread = (total**2 - decided @ decided) * (total**2 - true @ true)
    return 0.0 if spread == 0 else float((right * total - true @ decided) / np.sqrt(spread))


def confusion(labels: ArrayLike, predicted: ArrayLike, classes: int) -> Ints:
    """Count rows by label (first axis) and decision (second axis), shape (classes, classes).

    Raises
    ------
    EvaluationError
        If there are no rows.
    """
    labels, predicted = np.asarray(labels, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    rate(labels == predicted)
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def difference(one: Rate, other: Rate) -> Difference:
    """Give one share less another, of separate rows, with Newcombe's interval (1998, "Interval estimation", method 10).

    The limits are d - sqrt((p1 - l1)² + (u2 - p2)²) and d + sqrt((u1 - p1)² + (p2 - l2)²), with l and u the limits of
    each share.

    Returns
    -------
    Difference
        In [-1, 1]; above 0 where the first is the larger.

    Examples
    --------
    Newcombe's own example, 56 of 70 less 48 of 80:

    >>> first, second = Rate(56 / 70, *wilson(56 / 70, 70), 70), Rate(48 / 80, *wilson(48 / 80, 80), 80)
    >>> found = difference(first, second)
    >>> round(found.low, 4), round(found.high, 4)
    (0.0524, 0.3339)
    """
    value = one.value - other.value
    below = float(np.hypot(one.value - one.low, other.high - other.value))
    above = float(np.hypot(one.high - one.value, other.value - other.low))
    return Difference(value, max(-1.0, value - below), min(1.0, value + above))


def drop(hits: ArrayLike, kept: ArrayLike) -> Difference:
    """Give what filtering takes from accuracy: that on all rows less that on the kept ones.

    The kept rows are among all rows, so the two shares are not independent. With w the share of rows that are not kept,
    accuracy(all) - accuracy(kept) = w (accuracy(not kept) - accuracy(kept)), and those two are: the interval is w times
    Newcombe's for them.

    Parameters
    ----------
    hits, kept : bool array, shape (rows,)
        Whether the decision is right, and whether the row is kept.

    Returns
    -------
    Difference
        Above 0 where the kept rows are harder; exactly 0 if every row is kept.

    Raises
    ------
    EvaluationError
        If no row is kept.
    """
    hits, kept = np.asarray(hits, dtype=bool), np.asarray(kept, dtype=bool)
    on_kept = rate(hits[kept], what="the kept subset")
    if kept.all():
        return Difference(0.0, 0.0, 0.0)
    found, weight = difference(rate(hits[~kept]), on_kept), float((~kept).mean())
    return Difference(weight * found.value, weight * found.low, weight * found.high)


def over_seeds(values: Iterable[float]) -> OverSeeds:
    """Give the mean and standard deviation of a number over the runs of several seeds.

    Raises
    ------
    EvaluationError
        If there are no runs.
    """
    runs = np.fromiter(values, dtype=np.float64)
    if not len(runs):
        raise EvaluationError("there are zero runs to average")
    return OverSeeds(float(runs.mean()), float(runs.std(ddof=1)) if len(runs) > 1 else None, len(runs))


def to_json(rates: Mapping[str, Rate]) -> dict[str, dict[str, Any]]:
    """Rates by name as they are stored."""
    return {name: found.to_json() for name, found in rates.items()}
