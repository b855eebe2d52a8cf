import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier

import aflite
from aflite.models import NearestNeighbours


def test_neighbours_vote_as_scikit_learn_says():
    rng = np.random.default_rng(0)
    features, codes = rng.normal(size=(300, 4)).astype(np.float32), rng.integers(2, size=300)
    ours = NearestNeighbours(5).fit(features[:200], codes[:200]).predict(features[200:])
    # Five votes for two classes never tie.
    theirs = KNeighborsClassifier(5).fit(features[:200], codes[:200]).predict(features[200:])
    assert np.array_equal(ours, theirs)


def test_the_nearest_class_wins_a_tie():
    """At 0: class 2 at distance 1, class 0 at 2 and 3, class 2 at 4: two votes each, class 2 is nearest."""
    features = np.array([[1.0], [2.0], [3.0], [4.0]], dtype=np.float32)
    model = NearestNeighbours(4).fit(features, np.array([2, 0, 0, 2]))
    assert model.predict(np.zeros((1, 1), dtype=np.float32)).tolist() == [2]
    # One vote more beats being nearest; fewer training rows than neighbours are all asked.
    model = NearestNeighbours(5).fit(features[:3], np.array([2, 0, 0]))
    assert model.predict(np.zeros((1, 1), dtype=np.float32)).tolist() == [0]


def test_estimators_are_cloned_and_seeded(planted):
    """A guessing classifier: clones differ by part, equal seeds agree, the prototype stays unfitted."""
    features, labels, _ = planted(n_rows=300)
    prototype = DummyClassifier(strategy="uniform")
    run = {"n": 200, "m": 30, "t": 100, "k": 0, "tau": 0.5, "model": prototype}
    a, b, c = (aflite.filter_dataset(features, labels, **run, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(a.predictability, b.predictability, equal_nan=True)
    assert not np.array_equal(a.predictability, c.predictability, equal_nan=True)
    # Guesses among three classes; were all clones seeded alike, rows would be right always or never.
    assert a.history[0].bias == pytest.approx(1 / 3, abs=0.03)
    assert 0.05 < np.nanstd(a.predictability) < 0.2
    assert not hasattr(prototype, "classes_")
