"""The solver for many classes against scikit-learn's minimum, with classes that a part lacks."""

import numpy as np
import pytest
import torch

import aflite
from aflite.lanes import lanes
from aflite.lbfgs import TOLERANCE, QuasiNewton
from aflite.models import Data, Logistic
from aflite.partitions import blocked
from aflite.rows import Rows
from aflite.solver import Newton, spectrum
from aflite.training import TrainingSet

K = 120


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=2_000)
    means = 0.5 * rng.standard_normal((K, 24))
    return (rng.standard_normal((2_000, 24)) + means[labels]).astype(np.float32), labels


def test_predictions_are_those_of_the_minimum(many):
    from sklearn.linear_model import LogisticRegression

    features, labels = many
    pool, cpu = np.arange(labels.size), torch.device("cpu")
    layout = blocked(labels.size, 3, 400, seed=np.random.SeedSequence(1))
    rows = Rows(features, cpu)
    with lanes(1, cpu) as workers:
        base = spectrum(rows, pool, workers)
        solution, _ = Logistic().solve(Data(features, labels, K), pool, layout, rows, base, workers, c=1.0, start=None)
    for part in range(3):
        chosen = layout.part(part)
        unseen = np.setdiff1d(pool, chosen)
        exact = LogisticRegression(tol=1e-9, max_iter=10_000).fit(features[chosen].astype(np.float64), labels[chosen])
        assert exact.classes_.size < K
        logits = features[unseen] @ solution.weights[part].numpy().T + solution.intercepts[part].numpy()
        assert (logits.argmax(1) == exact.predict(features[unseen].astype(np.float64))).mean() >= 0.998


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_both_methods_have_one_minimum(many, class_weight):
    features, labels = many
    pool, cpu = np.arange(labels.size), torch.device("cpu")
    layout = blocked(labels.size, 2, 600, seed=np.random.SeedSequence(2))
    rows = Rows(features, cpu)
    logits = []
    with lanes(1, cpu) as workers:
        base = spectrum(rows, pool, workers)
        for method in (QuasiNewton, Newton):
            training = TrainingSet(
                rows, pool, labels, K, layout, class_weight=class_weight, centre=base.mean, lanes=workers
            )
            solution = method(training, base, c=1.0, lanes=workers).solve(None, 1e-4)
            raw = solution.weights @ torch.from_numpy(features.T) + solution.intercepts[:, :, None]
            # One number added to all classes' intercepts changes no probability.
            seen = raw.isfinite()
            logits.append(raw - torch.where(seen, raw, 0.0).sum(1, keepdim=True) / seen.sum(1, keepdim=True))
    present = logits[0].isfinite()
    assert torch.equal(present, logits[1].isfinite())
    quasi, newton = logits[0][present], logits[1][present]
    assert float((quasi - newton).square().mean().sqrt() / newton.std()) < 2e-3


def test_shipped_tolerance_holds_at_large_scales(many):
    """Against ten times the precision, as scikit-learn does not converge here within thousands of steps."""
    features, labels = many[0] * 100, many[1]
    pool, cpu = np.arange(labels.size), torch.device("cpu")
    layout = blocked(labels.size, 2, 400, seed=np.random.SeedSequence(2))
    rows = Rows(features, cpu)
    predicted = []
    with lanes(1, cpu) as workers:
        base = spectrum(rows, pool, workers)
        for tolerance in (TOLERANCE, TOLERANCE / 10):
            training = TrainingSet(rows, pool, labels, K, layout, class_weight=None, centre=base.mean, lanes=workers)
            solution = QuasiNewton(training, base, c=1.0, lanes=workers).solve(None, tolerance)
            raw = solution.weights @ torch.from_numpy(features.T) + solution.intercepts[:, :, None]
            predicted.append(raw.argmax(1))
    assert float((predicted[0] == predicted[1]).float().mean()) >= 0.999


def test_threads_and_batches_do_not_change_a_bit(many):
    features, labels = many
    run = {"n": 1_500, "m": 4, "t": 400, "k": 100, "tau": 0.1, "seed": 0, "phases": 2, "n_batches": 2}
    one = aflite.filter_dataset(features, labels, **run, threads=1)
    two = aflite.filter_dataset(features, labels, **run, threads=2)
    apart = aflite.filter_dataset(features, labels, **run, threads=1, n_jobs=2)
    assert (one.removed_in_phase >= 0).sum() == 100
    for other in (two, apart):
        assert np.array_equal(one.predictability, other.predictability, equal_nan=True)
        assert np.array_equal(one.removed_in_phase, other.removed_in_phase)
