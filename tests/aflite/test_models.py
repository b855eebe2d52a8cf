import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aflite
from aflite.estimators import NearestNeighbours
from aflite.models import family


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


class Column(LogisticRegression):
    """Answers with a column, as some classifiers do."""

    def predict(self, features):
        return super().predict(features)[:, None]


def test_a_column_of_predictions_is_read_as_a_row(planted):
    features, labels, _ = planted(n_rows=300, noise=5)
    run = {"n": 200, "m": 6, "t": 80, "k": 0, "tau": 0.5, "seed": 0}
    a, b = (aflite.filter_dataset(features, labels, **run, model=kind()) for kind in (Column, LogisticRegression))
    assert np.array_equal(a.predictability, b.predictability, equal_nan=True)


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


def test_equal_seeds_fix_the_steps_of_a_pipeline(planted):
    features, labels, _ = planted(n_rows=300)
    guess = DummyClassifier(strategy="uniform")
    votes = VotingClassifier([("a", guess), ("b", DummyClassifier(strategy="uniform"))])
    for model in (make_pipeline(StandardScaler(), guess), votes):
        run = {"n": 200, "m": 20, "t": 100, "k": 0, "tau": 0.5, "model": model}
        a, b, c = (aflite.filter_dataset(features, labels, **run, seed=seed) for seed in (0, 0, 1))
        assert np.array_equal(a.predictability, b.predictability, equal_nan=True)
        assert not np.array_equal(a.predictability, c.predictability, equal_nan=True)


def test_states_given_by_the_user_stay_and_unset_ones_differ():
    votes = VotingClassifier(
        [(name, DummyClassifier(random_state=state)) for name, state in zip("abc", (5, None, None), strict=True)]
    )
    params = family(votes, c=1.0, class_weight=None).make(3).get_params()
    states = [params[f"{name}__random_state"] for name in "abc"]
    assert states[0] == 5
    assert len({*states}) == 3
    assert None not in states


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_generators_in_a_model_are_refused(state):
    model = make_pipeline(StandardScaler(), DummyClassifier(random_state=state))
    with pytest.raises(ValueError, match="None or an integer as dummyclassifier__random_state, got a"):
        family(model, c=1.0, class_weight=None)


def test_what_cannot_be_cloned_is_refused():
    with pytest.raises(TypeError, match=r"not its class; give LogisticRegression\(\.\.\.\)"):
        family(LogisticRegression, c=1.0, class_weight=None)
    # NearestNeighbours has fit and predict but no parameters to clone it from.
    with pytest.raises(TypeError, match=r"without get_params, set_params; derive it from sklearn"):
        family(NearestNeighbours(), c=1.0, class_weight=None)
