"""95 % intervals over partners and templates for every aggregate, and μ and η without what noise adds to them.

An interval answers: within what would the number lie, had each subject met other partners of the same kind in other
templates of the same kind? Subjects and attributes are taken as they are. How it was tested: docs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.clusters import Spread, spread, total_error
from evaluation.metrics import BiasTable, Views, model_count, model_intensity, table_of, views
from evaluation.scores import FloatArray, ScoredRows

LEVEL = 0.95
DRAWS = 200

_FEWEST = 3
"""Rows of the median subject and attribute below which the noise of γ(x, a) cannot be told: there, intervals of μ and η
were seen to hold the truth in as few as none of 20 samples."""
_MOST_VALUES = 4_000_000  # of noise held at once
# Share of the noise that smooths which attribute is the largest, and the step of |η| at 0; chosen by simulation.
_SMOOTHING_MU, _SMOOTHING_ETA = 0.15, 0.03


@dataclass(frozen=True)
class Estimate:
    """An aggregate: its value, how many rows it is the mean of, its interval, and for μ and η the corrected value.

    The interval of a corrected number lies around `corrected`, not around `value`. ``None``: not known from so few.
    """

    value: float
    n: int
    low: float | None
    high: float | None
    corrected: float | None = None


@dataclass(frozen=True)
class TableIntervals:
    """Lower and upper ends, float64 arrays of the table's shape; NaN where there are neither two partners nor two
    templates.
    """

    low: FloatArray
    high: FloatArray


def mean_interval(rows: ScoredRows, per_row: FloatArray, *, low: float = 0.0, high: float = 1.0) -> Estimate:
    """Give the mean of a value per row, such as `positional_errors`, with its interval.

    Parameters
    ----------
    per_row : float64 array, shape (N,)
    low, high : float
        The range of the metric, beyond which no interval goes.
    """
    value = float(per_row.mean())
    moves = (per_row - value) / (2 * len(rows))
    error, freedom, skewness = total_error(rows, moves, moves, jackknife=True)
    t = float(_quantile(np.array(freedom)))
    lower, upper = (value - error * _unskewed(side * t, skewness) for side in (1, -1))
    return Estimate(value, len(rows), *_ends(lower, upper, low, high))


def table_intervals(rows: ScoredRows, seen: Views, *, of: str = "gamma") -> TableIntervals:
    """Give the interval of γ, or with ``of="eta"`` of η, of every cell; within [-1, 1].

    Parameters
    ----------
    seen : Views
        What the table was made of; see `evaluation.metrics.views`.
    """
    found = spread(seen, getattr(seen, of), len(rows.subjects), len(rows.templates))
    half = _quantile(found.freedom) * found.error
    shape = (len(seen.rows), len(seen.columns))
    return TableIntervals(*(np.clip(found.mean + side * half, -1, 1).reshape(shape) for side in (-1, 1)))


def intensity(rows: ScoredRows, *, seed: int, draws: int = DRAWS, seen: Views | None = None) -> Estimate:
    """Give μ with its interval and the corrected value (eq. 8).

    μ is a mean of maxima, so noise in γ(x, a) makes it too high: with no bias at all it is still above 0. How much
    noise there is, is known from the spread over partners and templates. Adding as much again lifts μ to μ*, and
    where the γ(x, a) of a subject are spread as by a normal law, μ² grows by the same step for each helping of noise.
    So the value without noise is one step below: corrected² = 2 μ² - μ*², or 0.

    Parameters
    ----------
    seed : int
        Of the added noise.
    draws : int
        How often noise is added; μ* is the mean.
    """
    seen = views(rows) if seen is None else seen
    return _corrected(rows, seen, seen.gamma, _largest, model_intensity, _SMOOTHING_MU, seed=seed, draws=draws)


def count(rows: ScoredRows, *, seed: int, draws: int = DRAWS, seen: Views | None = None) -> Estimate:
    """Give the model's η with its interval and the corrected value (eq. 9); see `intensity`.

    The mean of an absolute value is lifted by noise just as a maximum is: with few rows to a subject and attribute,
    their signs agree by chance.
    """
    seen = views(rows) if seen is None else seen
    return _corrected(rows, seen, seen.eta, _absolute, model_count, _SMOOTHING_ETA, seed=seed, draws=draws)


Summary = Callable[[FloatArray, NDArray[np.bool_]], tuple[FloatArray, FloatArray]]


def _largest(values: FloatArray, present: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """μ of each draw, and the mean over draws of what a unit of each cell adds to it."""
    size = np.abs(values)
    place = size.argmax(axis=2)[..., None]
    subjects = max(int(present.any(axis=1).sum()), 1)
    weight = np.zeros_like(values)
    np.put_along_axis(weight, place, np.sign(np.take_along_axis(values, place, axis=2)) / subjects, axis=2)
    return np.take_along_axis(size, place, axis=2).sum(axis=(1, 2)) / subjects, weight.mean(axis=0)


def _absolute(values: FloatArray, present: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """η of each draw, and the mean over draws of what a unit of each cell adds to it."""
    subjects = max(int(present.any(axis=1).sum()), 1)
    share = present / np.maximum(present.sum(axis=1, keepdims=True), 1) / subjects
    return (np.abs(values) * share).sum(axis=(1, 2)), (np.sign(values) * share).mean(axis=0)


def _corrected(
    rows: ScoredRows,
    seen: Views,
    values: FloatArray,
    summary: Summary,
    plain: Callable[[BiasTable], float],
    smoothing: float,
    *,
    seed: int,
    draws: int,
) -> Estimate:
    table = table_of(seen)
    value = plain(table)
    present = table.n > 0
    if np.median(table.n[present]) < _FEWEST:
        return Estimate(value, len(rows), None, None)
    found = spread(seen, values, len(rows.subjects), len(rows.templates))
    noise = _Noise(found, table.n, seed=seed, draws=draws)
    if not noise.known:
        return Estimate(value, len(rows), None, None)
    mean = np.where(present, found.mean.reshape(present.shape), 0.0)
    noisy, with_noise = noise.mean_of(lambda added: summary(mean + added, present))
    _, without = noise.mean_of(lambda added: summary(mean + np.sqrt(smoothing) * added, present), few=not smoothing)
    square = 2 * value**2 - noisy**2
    # The square moves by this much where a view moves its cell, hence its standard error.
    weight = (4 * value * without - 2 * noisy * with_noise).reshape(-1)
    cell_n = np.maximum(table.n.reshape(-1), 1)
    moves = (weight / cell_n)[seen.cell] * (values - found.mean[seen.cell])
    error, freedom, _ = total_error(rows, *np.split(moves, 2))
    half = float(_quantile(np.array(freedom))) * error
    low, high = float(np.sqrt(max(0.0, square - half))), float(np.sqrt(max(0.0, square) + half))
    return Estimate(value, len(rows), *_ends(low, high, 0.0, 1.0), corrected=float(np.sqrt(max(0.0, square))))


class _Noise:
    """Draws noise like that of the means of cells: one multiplier a partner and one a template, shared by all cells."""

    def __init__(self, found: Spread, n: NDArray[np.int64], *, seed: int, draws: int) -> None:
        self.found, self.shape, self.seed, self.half = found, n.shape, seed, max(1, draws // 2)
        flat = n.reshape(-1)
        unknown = np.isnan(found.error) & (flat > 0)
        self.known = not unknown.all() or not flat.any()
        per_row = found.error**2 * flat
        typical = np.nanmean(per_row[flat > 0]) if self.known and flat.any() else 0.0
        self.known = self.known and bool(np.isfinite(typical))
        # A cell of a single row says nothing of its noise; it gets the others'.
        self.alone = np.where(unknown, np.sqrt(typical / np.maximum(flat, 1)), 0.0)

    def mean_of(
        self, summary: Callable[[FloatArray], tuple[FloatArray, FloatArray]], *, few: bool = False
    ) -> tuple[float, FloatArray]:
        """Mean over draws, each taken with both signs, of what `summary` gives; always the same draws."""
        chunk = 1 if few else max(1, min(self.half, _MOST_VALUES // max(1, 2 * self.shape[0] * self.shape[1])))
        rng = np.random.default_rng(self.seed)
        number, weight, done = 0.0, np.zeros(self.shape), 0
        while done < (1 if few else self.half):
            size = min(chunk, self.half - done)
            added = self._draw(rng, size)
            values, weights = summary(np.concatenate([added, -added]))
            number += float(values.mean()) * size
            weight += weights * size
            done += size
        return number / done, weight / done

    def _draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        found = self.found
        moved = np.zeros((size, len(found.mean)))
        for moves in (found.by_partner, found.by_template):
            moved += (moves.T @ rng.standard_normal((moves.shape[0], size))).T
        moved *= found.shrink
        if self.alone.any():
            moved += rng.standard_normal(moved.shape) * self.alone
        return moved.reshape(size, *self.shape)


def _quantile(freedom: FloatArray) -> FloatArray:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.maximum(freedom, 1.0), 0.5 + LEVEL / 2))


def _unskewed(t: float, skewness: float) -> float:
    """Turn a quantile of Student's t to one of the mean of a skewed law (Hall 1992, his cubic transformation)."""
    if abs(skewness) < 1e-6:
        return t
    return float(3 / skewness * (np.cbrt(1 + skewness * (t - skewness / 6)) - 1))


def _ends(low: float, high: float, least: float, most: float) -> tuple[float | None, float | None]:
    if np.isnan(low) or np.isnan(high):
        return None, None
    return max(low, least), min(high, most)
