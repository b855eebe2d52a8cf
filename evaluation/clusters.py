"""Standard errors over partners and templates, the two things that a mean over rows is an average of.

A mean over rows that share partners and templates varies by more than independent rows would. Resampling partners, and
templates, with mean-one multipliers (the multiplier bootstrap) has a variance in closed form: the squared sums of the
deviations that each partner, or each template, brings. The two are added and what both counted, the noise of single
rows, is taken off once, as for two-way clusters (Cameron, Gelbach and Miller 2011).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import Views
from evaluation.scores import FloatArray, ScoredRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_DENSE = 4  # how many counters a value may cost before sorting is the cheaper way to sum


class ClusterSums(NamedTuple):
    """Sums of deviations by cell and cluster: cell and cluster of each sum that has values, and how many a cell has."""

    cell: NDArray[np.int64]
    cluster: NDArray[np.int64]
    sums: FloatArray
    clusters_in_cell: NDArray[np.int64]


def cluster_sums(
    values: FloatArray, cell: NDArray[np.int64], cells: int, cluster: NDArray[np.int64], clusters: int
) -> ClusterSums:
    """Sum values by cell and cluster."""
    keys = cell * clusters + cluster
    if cells * clusters <= _DENSE * len(keys) + 1_000_000:
        found = np.flatnonzero(np.bincount(keys, minlength=cells * clusters))
        sums = np.bincount(keys, weights=values, minlength=cells * clusters)[found]
    else:
        found, places = np.unique(keys, return_inverse=True)
        sums = np.bincount(places, weights=values, minlength=len(found))
    owner = found // clusters
    return ClusterSums(owner, found % clusters, np.asarray(sums), np.bincount(owner, minlength=cells))


class Spread(NamedTuple):
    """Standard errors of the means of cells, and what they are made of.

    Attributes
    ----------
    mean, error, freedom : float64 array, shape (cells,)
        Mean, its standard error, and the degrees of freedom of that (Satterthwaite); an error is NaN where a cell has
        neither two partners nor two templates.
    by_partner, by_template : scipy.sparse.csr_array, shape (partners or templates, cells)
        What a multiplier of each partner, or template, moves the mean by.
    shrink : float64 array, shape (cells,)
        `error` over the standard deviation of those moves together.
    """

    mean: FloatArray
    error: FloatArray
    freedom: FloatArray
    by_partner: csr_array
    by_template: csr_array
    shrink: FloatArray


def spread(seen: Views, values: FloatArray, partners: int, templates: int) -> Spread:
    """Give the spread of the mean of every cell.

    Parameters
    ----------
    seen : Views
        Which view lies in which cell, and its partner and template.
    values : float64 array, shape (M,)
        What is averaged.
    partners, templates : int
        How many there are to count to.
    """
    from scipy.sparse import csr_array

    cells = len(seen.rows) * len(seen.columns)
    n = np.bincount(seen.cell, minlength=cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(seen.cell, weights=values, minlength=cells) / n
        off = values - mean[seen.cell]
        partner, template = seen.partner.astype(np.int64), seen.template.astype(np.int64)
        variances: list[FloatArray] = []
        counts: list[NDArray[np.int64]] = []
        moves = []
        for cluster, size in ((partner, partners), (template, templates), (partner * templates + template, None)):
            found = cluster_sums(off, seen.cell, cells, cluster, size or partners * templates)
            g = found.clusters_in_cell
            scale = np.where(g > 1, np.sqrt(g / np.maximum(g - 1, 1)) / n, 0.0)
            move = found.sums * scale[found.cell]
            variances.append(np.asarray(np.bincount(found.cell, weights=move**2, minlength=cells)))
            counts.append(g)
            if size:
                moves.append(csr_array((move, (found.cluster, found.cell)), shape=(size, cells)))
        variance, freedom = _combine(variances, counts)
        error = np.sqrt(variance)
        shrink = np.nan_to_num(error / np.sqrt(variances[0] + variances[1]), posinf=0.0)
    return Spread(mean, error, freedom, moves[0], moves[1], shrink)


def total_error(
    rows: ScoredRows, first: FloatArray, second: FloatArray, *, jackknife: bool = False
) -> tuple[float, float, float]:
    """Give standard error, degrees of freedom and skewness of one number made of all rows.

    Parameters
    ----------
    first, second : float64 array, shape (N,)
        By how much each row moves the number, as subject1 sees it (subject2 is the partner) and as subject2 does.
    jackknife : bool
        Scale the squared sums of G clusters by (G / (G - 1))², as leaving each out in turn does, not by G / (G - 1):
        wider with few clusters, for numbers of a skewed law.
    """
    subjects, templates = len(rows.subjects), len(rows.templates)
    one, two, template = (codes.astype(np.int64) for codes in (rows.subject1, rows.subject2, rows.template))
    variances, counts, cubes = [], [], []
    for size, seen_first, seen_second in (
        (subjects, two, one),
        (templates, template, template),
        (subjects * templates, two * templates + template, one * templates + template),
    ):
        sums = np.bincount(seen_first, first, size) + np.bincount(seen_second, second, size)
        g = int(np.count_nonzero(np.bincount(seen_first, minlength=size) + np.bincount(seen_second, minlength=size)))
        scale = (g / max(g - 1, 1)) ** (2 if jackknife else 1)
        variances.append(np.array([(sums**2).sum() * scale if g > 1 else 0.0]))
        counts.append(np.array([g]))
        cubes.append((sums**3).sum())
    # The two views of a pair have different partners; what they move together comes on top.
    turned = one > two
    low, high = np.where(turned, second, first), np.where(turned, first, second)
    keys, pair = np.unique(np.minimum(one, two) * subjects + np.maximum(one, two), return_inverse=True)
    for place, key, size in ((0, pair, len(keys)), (2, pair * templates + template, len(keys) * templates)):
        variances[place] += 2 * (np.bincount(key, low, size) @ np.bincount(key, high, size))
        variances[place] = np.maximum(variances[place], 0.0)
    variance, freedom = _combine(variances, counts)
    error = float(np.sqrt(variance[0]))
    skewness = float(cubes[0] + cubes[1]) / error**3 if error > 0 else 0.0
    return error, float(freedom[0]), skewness


def _combine(variances: list[FloatArray], counts: list[NDArray[np.int64]]) -> tuple[FloatArray, FloatArray]:
    """Variance of the mean, and Satterthwaite's degrees of freedom.

    With effects of P partners, T templates and single rows, V_P = p/P + e/PT, V_T = t/T + e/PT and, of all together,
    V_PT = (p + t + e)/PT. The variance is p/P + t/T + e/PT = V_P + V_T - E, and solving for E = e/PT gives
    E = (V_PT - V_P/T - V_T/P) / (1 - 1/T - 1/P) where every partner comes in every template. Where each comes in one
    only, E is V_PT; in between, by how full the grid is. Never less than of independent rows, V_PT.
    """
    by_partner, by_template, by_both = variances
    partners, templates, both = (np.maximum(count, 1) for count in counts)
    full = both / (partners * templates)
    rest = 1 - full * (1 / partners + 1 / templates)
    single = by_both - full * (by_partner / templates + by_template / partners)
    single = np.divide(single, rest, out=np.zeros_like(single), where=rest > 1e-9)
    variance = np.maximum(by_partner + by_template - np.clip(single, 0.0, by_both), by_both)
    variance = np.where(np.maximum(partners, templates) > 1, variance, np.nan)
    weight = by_partner**2 / np.maximum(partners - 1, 1) + by_template**2 / np.maximum(templates - 1, 1)
    most = np.maximum(np.maximum(partners, templates) - 1, 1).astype(np.float64)
    return variance, np.divide((by_partner + by_template) ** 2, weight, out=most, where=weight > 0)
