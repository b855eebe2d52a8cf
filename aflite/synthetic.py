"""The synthetic study (section 3 and appendix A.3): circles whose labels a planted bias gives away."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aflite import validation
from aflite.filter import filter_dataset
from aflite.results import FilterResult

# Radius of the inner circle; the outer has 1. The first set, with the widest gap, has flipped labels.
INNER_RADII = (0.3, 0.5, 0.65, 0.8)
N_ROWS = 2000
NOISE = 0.08
BIASED_SHARE = 0.75
BIAS_WIDTH = 8
BIAS_SD = 0.3
BIAS_MEAN = 0.3
FLIPPED_SHARE = 0.05
FOLDS = 5


@dataclass(frozen=True)
class Circles:
    """One biased set.

    Attributes
    ----------
    features : ndarray of float32, shape (N, 2 + 8)
        The point, then the bias columns: Gaussian about a class's mean on biased rows, about 0 on the rest.
    labels : ndarray of int64, shape (N,)
        0 for the outer circle, 1 for the inner, but for flipped rows.
    biased, flipped : ndarray of bool, shape (N,)
        Rows whose bias columns follow the label; rows whose label does not follow the circle.
    """

    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    biased: NDArray[np.bool_]
    flipped: NDArray[np.bool_]


@dataclass(frozen=True)
class StudyRow:
    """What one set with one seed gave.

    Accuracies in [0, 1] are means over five folds: on the two point columns alone, on all columns, and on all
    columns of the kept rows. The removed shares are of the biased and of the flipped rows (NaN without any).
    """

    set_number: int
    seed: int
    linear_plain: float
    linear_biased: float
    linear_kept: float
    svm_plain: float
    svm_biased: float
    svm_kept: float
    kept: int
    biased_removed: float
    flipped_removed: float


def circles(set_number: int, *, seed: int, n_rows: int = N_ROWS) -> Circles:
    """Draw a set.

    Parameters
    ----------
    set_number : int
        0 .. 3, from the widest gap between the circles to the narrowest; set 0 has flipped labels.
    seed : int
        Seed.
    n_rows : int
        Rows, half of them on each circle.

    Returns
    -------
    Circles

    Raises
    ------
    ValueError, TypeError
        A number is out of range.
    """
    validation.integer("set_number", set_number, least=0, most=len(INNER_RADII) - 1)
    validation.integer("seed", seed, least=0)
    validation.integer("n_rows", n_rows, least=2)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(set_number,)))
    circle = np.arange(n_rows) % 2
    angle = rng.uniform(0, 2 * np.pi, n_rows)
    radius = np.where(circle == 1, INNER_RADII[set_number], 1.0)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points += NOISE * rng.standard_normal((n_rows, 2))
    biased = np.zeros(n_rows, dtype=bool)
    for side in (0, 1):
        rows = rng.permutation(np.flatnonzero(circle == side))
        biased[rows[: round(BIASED_SHARE * rows.size)]] = True
    flipped = np.zeros(n_rows, dtype=bool)
    if set_number == 0:
        rows = rng.permutation(np.flatnonzero(biased))
        flipped[rows[: round(FLIPPED_SHARE * n_rows)]] = True
    labels = np.where(flipped, 1 - circle, circle)
    bias = BIAS_SD * rng.standard_normal((n_rows, BIAS_WIDTH))
    bias[biased] += BIAS_MEAN * (2 * labels[biased, None] - 1)
    return Circles(np.hstack([points, bias]).astype(np.float32), labels, biased, flipped)


def run_filter(data: Circles, *, seed: int) -> FilterResult:
    """Filter a set with the parameters of the study."""
    return filter_dataset(data.features, data.labels, n=300, m=32, t=200, k=50, tau=0.75, seed=seed)


def study(seeds: Iterable[int], sets: Sequence[int] = (0, 1, 2, 3)) -> list[StudyRow]:
    """Measure accuracies before and after the filter for every set and seed."""
    rows = []
    for set_number in sets:
        for seed in seeds:
            data = circles(set_number, seed=seed)
            kept = run_filter(data, seed=seed).kept
            rows.append(_row(set_number, seed, data, kept))
    return rows


def _row(set_number: int, seed: int, data: Circles, kept: NDArray[np.bool_]) -> StudyRow:
    def accuracy(kind: str, rows: NDArray[np.bool_], width: int) -> float:
        return _accuracy(kind, data.features[rows, :width], data.labels[rows], seed=seed)

    everything, full = np.ones_like(kept), data.features.shape[1]
    return StudyRow(
        set_number=set_number,
        seed=seed,
        linear_plain=accuracy("linear", everything, 2),
        linear_biased=accuracy("linear", everything, full),
        linear_kept=accuracy("linear", kept, full),
        svm_plain=accuracy("svm", everything, 2),
        svm_biased=accuracy("svm", everything, full),
        svm_kept=accuracy("svm", kept, full),
        kept=int(kept.sum()),
        biased_removed=float((~kept)[data.biased].mean()),
        flipped_removed=float((~kept)[data.flipped].mean()) if data.flipped.any() else float("nan"),
    )


def _accuracy(kind: str, features: NDArray[np.float32], labels: NDArray[np.int64], *, seed: int) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    model = LogisticRegression() if kind == "linear" else SVC()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return float(cross_val_score(model, features, labels, cv=folds).mean())
