from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import aflite
from aflite import optimum


def small(seed=0, n_rows=8):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % 2
    return (rng.normal(size=(n_rows, 2)) + labels[:, None]).astype(np.float32), labels


def bias_by_scikit_learn(features, labels, rows, t):
    """R straight from its definition, one classifier a part."""
    shares = []
    for part in combinations(rows, t):
        rest = [row for row in rows if row not in part]
        if len(set(labels[list(part)])) == 1:
            predicted = np.full(len(rest), labels[part[0]])
        else:
            model = LogisticRegression(tol=1e-10, max_iter=1000).fit(features[list(part)], labels[list(part)])
            predicted = model.predict(features[rest])
        shares.append((predicted == labels[rest]).mean())
    return np.mean(shares)


def test_bias_and_optimum_equal_the_definition():
    features, labels = small(n_rows=7)
    found = optimum.search(features, labels, n=6, t=3)
    assert found.n_classifiers == 35  # 7 over 3
    assert found.n_subsets == 1 + 7
    biases = {
        rows: bias_by_scikit_learn(features, labels, rows, 3)
        for size in (6, 7)
        for rows in combinations(range(7), size)
    }
    assert found.bias == pytest.approx(min(biases.values()))
    kept = tuple(np.flatnonzero(found.kept).tolist())
    assert biases[kept] == pytest.approx(found.bias)
    assert optimum.representation_bias(features, labels, found.kept, t=3) == pytest.approx(found.bias)


@pytest.mark.parametrize("seed", range(2))
def test_filter_lies_between_optimum_and_the_full_set(seed):
    features, labels = small(seed, 9)
    result = aflite.filter_dataset(features, labels, n=6, m=128, t=3, k=1, tau=0, seed=0)
    best = optimum.search(features, labels, n=6, t=3)
    ours = optimum.representation_bias(features, labels, result.kept, t=3)
    full = optimum.representation_bias(features, labels, np.ones(9, dtype=bool), t=3)
    assert best.bias <= ours <= full


@pytest.mark.parametrize(("labels", "kept"), [([0, 1, 2], [0, 1, 2]), ([1, 1, 0], [0, 2])])
def test_of_equal_subsets_the_larger_then_the_earlier_rows(labels, kept):
    """With t = 1 a classifier knows its own row's class alone: rows of other classes are always wrong, bias 0."""
    found = optimum.search(np.eye(3), labels, n=2, t=1)
    assert found.bias == 0
    assert np.flatnonzero(found.kept).tolist() == kept


def test_errors():
    features, labels = small(n_rows=18)
    with pytest.raises(ValueError, match=r"at most 16 rows.*got 18"):
        optimum.search(features, labels, n=17, t=3)
    with pytest.raises(ValueError, match=r"n must be between 4 and 8 \(more than t = 3"):
        optimum.search(features[:8], labels[:8], n=3, t=3)
    features, labels = small()
    for change, message in (({"model": "logistics"}, "did you mean 'logistic'"), ({"c": -1}, "c must be a number > 0")):
        with pytest.raises(ValueError, match=message):
            optimum.search(features, labels, n=6, t=3, **change)
    with pytest.raises(ValueError, match=r"kept must have shape \(8,\), .*got shape \(7,\)"):
        optimum.representation_bias(features, labels, [True] * 7, t=3)
    with pytest.raises(TypeError, match="kept must be bool, True for its rows, got dtype int"):
        optimum.representation_bias(features, labels, range(8), t=3)
    with pytest.raises(ValueError, match=r"t must be between 1 and 7 \(less than the 8 kept rows\), got 8"):
        optimum.representation_bias(features, labels, [True] * 8, t=8)
