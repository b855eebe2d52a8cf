"""Studies of the filter's quality for docs/aflite.md: kinds of partitions, the optimum, real features."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aflite import baselines, optimum
from aflite.benchmark import Array, Case, Ints, make
from aflite.filter import filter_dataset


@dataclass(frozen=True)
class PartitionComparison:
    """Scores by blocked parts against scores by independent ones, over repeated single phases.

    Attributes
    ----------
    mean_difference : float
        Blocked minus independent, mean over rows and repeats.
    standard_error : float
        Of that difference, from its spread over the repeats.
    largest_z : float
        Greatest difference of a row's mean scores, in its standard errors.
    expected_largest_z : float
        What as many independent standard normal numbers have as their greatest, at the 95th percentile.
    variance_ratio : float
        Mean over rows of the variance over repeats, blocked by independent; 1 means that blocks cost nothing.
    """

    mean_difference: float
    standard_error: float
    largest_z: float
    expected_largest_z: float
    variance_ratio: float


def compare_partitions(
    case: Case, *, repeats: int, block_size: int | None = None, first_seed: int = 0
) -> PartitionComparison:
    """Score one set `repeats` times with either kind of parts.

    The seeds are first_seed to first_seed + 2 * repeats - 1: comparisons with other ones share no control.
    """
    from scipy.stats import norm

    features, labels = make(case)

    def scores(kind: Literal["blocked", "independent"], start: int) -> NDArray[np.float64]:
        runs = [
            filter_dataset(
                features, labels, n=case.n_rows - 1, m=case.m, t=case.t, k=0, tau=0, seed=seed,
                partitions=kind, block_size=block_size if kind == "blocked" else None,
            )
            for seed in range(start, start + repeats)
        ]  # fmt: skip
        return np.stack([run.predictability for run in runs])

    blocked, independent = scores("blocked", first_seed), scores("independent", first_seed + repeats)
    means = blocked.mean(1) - independent.mean(1)
    variances = blocked.var(0, ddof=1), independent.var(0, ddof=1)
    error = np.sqrt((variances[0] + variances[1]) / repeats)
    moving = error > 0
    z = np.abs(blocked.mean(0) - independent.mean(0))[moving] / error[moving]
    return PartitionComparison(
        mean_difference=float(means.mean()),
        standard_error=float(means.std(ddof=1) / np.sqrt(repeats)),
        largest_z=float(z.max()),
        expected_largest_z=float(norm.ppf(1 - (1 - 0.95 ** (1 / z.size)) / 2)),
        variance_ratio=float(variances[0].mean() / variances[1].mean()),
    )


def distances_to_optimum(n_sets: int = 20) -> dict[str, NDArray[np.float64]]:
    """Exact representation biases of subsets of small sets: two overlapping Gaussian classes, 10 rows, n = 7, t = 3.

    Returns
    -------
    dict of ndarray, shape (n_sets,)
        For all rows, random ones, what the greedy filter keeps, and the optimum.
    """
    found: dict[str, list[float]] = {"all 10 rows": [], "random 7": [], "greedy filter": [], "optimum": []}
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        labels = np.arange(10) % 2
        features = (rng.normal(size=(10, 2)) + labels[:, None]).astype(np.float32)
        result = filter_dataset(features, labels, n=7, m=128, t=3, k=1, tau=0, seed=seed)
        subsets = {
            "all 10 rows": np.ones(10, dtype=bool),
            "random 7": np.isin(np.arange(10), rng.permutation(10)[:7]),
            "greedy filter": result.kept,
        }
        for name, kept in subsets.items():
            found[name].append(optimum.representation_bias(features, labels, kept, t=3))
        found["optimum"].append(optimum.search(features, labels, n=7, t=3).bias)
    return {name: np.array(values) for name, values in found.items()}


def held_out_accuracies(features: Array, labels: Ints) -> dict[str, tuple[int, float]]:
    """Filter real features; compare what is kept with all rows and with as many random ones.

    Parameters
    ----------
    features : ndarray of float32, shape (N, d)
        Standardised; the parameters are those for SNLI's 9,842 validation rows.
    labels : ndarray of int64, shape (N,)
        Classes.

    Returns
    -------
    dict of (number of rows, accuracy of logistic regression by five-fold cross-validation)
    """
    result = filter_dataset(features, labels, n=2_000, m=24, t=1_000, k=250, tau=0.75, seed=0)
    size = int(result.kept.sum())
    random = baselines.random_subset(labels, size=size, seed=0)
    subsets = {"all": np.ones_like(random), "kept": result.kept, "random, as many": random}
    return {name: (int(mask.sum()), _accuracy(features, labels, mask)) for name, mask in subsets.items()}


def _accuracy(features: Array, labels: Ints, mask: NDArray[np.bool_]) -> float:
    """Every row is held out once, so the mean score is the accuracy."""
    rows = np.random.default_rng(1).permutation(np.flatnonzero(mask))
    folds = [np.setdiff1d(np.arange(rows.size), fold) for fold in np.array_split(np.arange(rows.size), 5)]
    scored = filter_dataset(
        features[rows], labels[rows], n=rows.size // 2, m=5, t=rows.size // 2, k=0, tau=0, seed=0,
        partitions=lambda *_: folds,
    )  # fmt: skip
    return scored.history[0].bias
