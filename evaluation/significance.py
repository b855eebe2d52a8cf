"""p-values of γ from sign flips within rows, and q-values that keep the share of false discoveries down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import Views
from evaluation.scores import FloatArray

FLIPS = 9_999

_MANY = 5_000  # rows of a cell, from which the sum of random signs is as good as normal
_MOST_SIGNS, _LEAST_FLIPS = 2_000_000_000, 999  # what may be drawn for a cell that is large and yet not normal
_VALUES_AT_ONCE = 1_000_000
_VIEWS_AT_ONCE = 1_024
_FLIPS_AT_ONCE = 2_500
_ROUNDING = 1e-6  # of a float32 sum, relative to the sum of sizes


def sign_flip_p_values(seen: Views, *, seed: int, flips: int = FLIPS) -> FloatArray:
    """Give the two-sided p-value of γ of every cell: how often chance gives a mean as far from 0.

    If a model treated the two subjects of a row alike, swapping their names would turn the sign of C as often as not.
    So the signs are flipped at random, row by row: all 2^n ways where those are no more than `flips` + 1, else
    `flips` random ones, where p = (1 + as far) / (1 + flips). This is about the rows at hand; whether other templates
    would show the same is what the interval is about.

    Where a cell has thousands of rows of like size, the sum of random signs is normal and p is had from that.

    Returns
    -------
    float64 array, shape (rows, columns)
        In [0, 1], small where γ is hardly chance; 1 for a constant model; NaN where there is no row.
    """
    cells = len(seen.rows) * len(seen.columns)
    n = np.bincount(seen.cell, minlength=cells)
    p, normal = _normal(seen, n)
    order = np.argsort(seen.cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(n)[:-1]])
    by_size = np.argsort(n, kind="stable")
    by_size = by_size[(n[by_size] > 0) & ~normal[by_size]]
    rng = np.random.default_rng(seed)
    while len(by_size):
        smallest = int(n[by_size[0]])
        exact = smallest < 63 and 2**smallest <= flips + 1
        # Cells of about the same size together, since the smaller ones are filled up with zeros.
        most = smallest if exact else max(1.25 * smallest, smallest + 8)
        size = min(int(np.searchsorted(n[by_size], most, side="right")), max(1, _VALUES_AT_ONCE // int(most)))
        block, by_size = by_size[:size], by_size[size:]
        width = int(n[block].max())
        places = starts[block] + np.minimum(np.arange(width)[:, None], n[block] - 1)
        values = np.where(np.arange(width)[:, None] < n[block], seen.gamma[order[places]], 0.0)
        affordable = max(_LEAST_FLIPS, min(flips, _MOST_SIGNS // width))
        p[block] = _exact(values) if exact else _random(values, min(flips, affordable), rng)
    return p.reshape(len(seen.rows), len(seen.columns))


def _normal(seen: Views, n: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """p from the normal law, and for which cells it is good: many rows, none of which outweighs the others."""
    from scipy.special import ndtr

    total, second, fourth = (np.bincount(seen.cell, weights=seen.gamma**k, minlength=len(n)) for k in (1, 2, 4))
    with np.errstate(invalid="ignore", divide="ignore"):
        alike = second**2 / fourth
        p = 2 * ndtr(-np.abs(total) / np.sqrt(second))
    many = (n > _MANY) & (alike > _MANY / 10)
    return np.where(many, p, np.nan), many


def _as_far(sums: NDArray[np.float32], observed: FloatArray, slack: FloatArray) -> NDArray[np.int64]:
    return np.asarray(np.count_nonzero(np.abs(sums) >= (np.abs(observed) - slack).astype(np.float32), axis=0))


def _scaled(values: FloatArray) -> tuple[NDArray[np.float32], FloatArray, FloatArray]:
    """Values with the largest of each column as unit, their sums, and what rounding may do to those."""
    top = np.abs(values).max(axis=0)
    values = values / np.where(top > 0, top, 1.0)
    return values.astype(np.float32), values.sum(axis=0), _ROUNDING * np.abs(values).sum(axis=0)


def _exact(values: FloatArray) -> FloatArray:
    """All sign patterns of the rows of `values`, shape (n, cells); the pattern as observed is one of them."""
    scaled, observed, slack = _scaled(values)
    patterns = np.arange(2 ** len(values))
    signs = (1 - 2 * ((patterns[:, None] >> np.arange(len(values))) & 1)).astype(np.float32)
    return np.asarray(_as_far(signs @ scaled, observed, slack) / len(patterns))


def _random(values: FloatArray, flips: int, rng: np.random.Generator) -> FloatArray:
    scaled, observed, slack = _scaled(values)
    far = np.zeros(values.shape[1], dtype=np.int64)
    for done in range(0, flips, _FLIPS_AT_ONCE):
        some = min(_FLIPS_AT_ONCE, flips - done)
        sums = np.zeros((some, values.shape[1]), dtype=np.float32)
        for start in range(0, len(values), _VIEWS_AT_ONCE):
            part = scaled[start : start + _VIEWS_AT_ONCE]
            bits = np.unpackbits(np.frombuffer(rng.bytes(some * (-(-len(part) // 8))), np.uint8))
            bits = bits.reshape(some, -1)[:, : len(part)]
            sums += (1 - 2 * bits.astype(np.float32)) @ part
        far += _as_far(sums, observed, slack)
    return np.asarray((1 + far) / (1 + flips))


def false_discovery_q(p: FloatArray) -> FloatArray:
    """Give the Benjamini-Hochberg q-value of each p-value (1995).

    q is the smallest share of false discoveries at which this one would still be called a discovery: of those with
    q <= 0.05, about 5 % or fewer are expected to be chance.

    Parameters
    ----------
    p : float64 array, any shape
        NaN is left as it is and does not count.

    Returns
    -------
    float64 array, same shape
        In [0, 1], no smaller than p.

    Examples
    --------
    >>> false_discovery_q(np.array([0.01, 0.04, 0.03, np.nan])).tolist()
    [0.03, 0.04, 0.04, nan]
    """
    q = np.full(p.shape, np.nan)
    known = ~np.isnan(p)
    values = p[known]
    order = np.argsort(values)[::-1]
    ranks = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum.accumulate(np.minimum(values[order] * len(values) / ranks, 1.0))
    q[known] = adjusted
    return q
