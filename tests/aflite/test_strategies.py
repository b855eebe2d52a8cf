from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.dummy import DummyClassifier

import aflite
from aflite import strategies
from aflite.loop import Removal
from aflite.models import Counts


@given(scores=arrays(float, 20, elements=st.sampled_from([0.2, 0.5, 0.75, 0.8])), limit=st.integers(0, 25))
def test_highest_takes_the_best_and_of_equals_the_first(scores, limit):
    eligible = scores >= 0.5
    chosen = strategies.highest(scores, eligible, limit)
    expected = sorted(np.flatnonzero(eligible), key=lambda row: (-scores[row], row))[:limit]
    assert chosen.tolist() == expected


def test_sampling_follows_the_softmax():
    """Scores 0.9, 0.8, 0.7, temperature 0.1: odds of one draw e^2 : e : 1, so 0.665, 0.245, 0.090."""
    rng = np.random.default_rng(0)
    scores, eligible = np.array([0.9, 0.1, 0.8, 0.7]), np.array([True, False, True, True])
    counts = np.zeros(4)
    for _ in range(5000):
        counts[strategies.sampled(scores, eligible, 1, temperature=0.1, rng=rng)] += 1
    # Standard deviation of a share of 0.665 over 5,000 draws: 0.0067.
    assert counts / 5000 == pytest.approx([0.665, 0, 0.245, 0.090], abs=0.027)


def test_sampling_draws_without_replacement():
    rng = np.random.default_rng(0)
    chosen = strategies.sampled(np.full(10, 0.5), np.ones(10, dtype=bool), 7, temperature=1.0, rng=rng)
    assert len(set(chosen.tolist())) == 7


@pytest.mark.parametrize("temperature", [1e-17, 1e-320])
def test_temperature_near_zero_takes_the_highest_with_ties_by_chance(temperature):
    scores = np.repeat([0.8, 0.9, 1.0], [5, 10, 3])
    drawn = [
        strategies.sampled(scores, scores > 0, 8, temperature=temperature, rng=np.random.default_rng(seed)).tolist()
        for seed in range(40)
    ]
    assert all(sorted(rows[:3]) == [15, 16, 17] for rows in drawn)
    # Each of the ten rows at 0.9 is among the next five in half of the draws; in none of 40: 2^-40.
    assert {row for rows in drawn for row in rows[3:]} == set(range(5, 15))


def test_the_highest_temperature_draws_uniformly():
    scores = np.linspace(0, 1, 6)
    counts = np.zeros(6)
    for seed in range(600):
        rng = np.random.default_rng(seed)
        counts[strategies.sampled(scores, scores >= 0, 2, temperature=1e308, rng=rng)] += 1
    # Each is among the two of six in a third of the draws: 200, standard deviation 11.5.
    assert np.abs(counts - 200).max() < 4 * 11.5


def test_low_temperature_is_slicing(planted):
    features, labels, _ = planted()
    run = {"n": 800, "m": 24, "t": 200, "k": 100, "tau": 0.8, "seed": 1, "phases": 2}
    sampled = aflite.filter_dataset(features, labels, **run, strategy="sampling", temperature=1e-4)
    # Ties fall by chance, so compare the scores of those that left.
    sliced = aflite.filter_dataset(features, labels, **run)
    assert np.array_equal(np.sort(sampled.predictability[~sampled.kept]), np.sort(sliced.predictability[~sliced.kept]))


def test_sampling_leaves_some_of_the_highest(planted):
    features, labels, _ = planted()
    run = {"n": 800, "m": 24, "t": 200, "k": 100, "tau": 0.5, "seed": 1, "phases": 2}
    result = aflite.filter_dataset(features, labels, **run, strategy="sampling", temperature=0.2)
    removed = result.predictability[~result.kept]
    assert removed.size == 100
    assert 0.5 <= removed.min() < np.sort(result.predictability)[-100]


def test_greedy_removes_one_row_a_phase(planted):
    features, labels, _ = planted(n_rows=200, noise=5)
    run = {"n": 190, "m": 8, "t": 60, "k": 1, "tau": 0.5, "seed": 0}
    result = aflite.filter_dataset(features, labels, **run, strategy="greedy")
    assert [record.removed for record in result.history] == [1] * 10
    sliced = aflite.filter_dataset(features, labels, **run)
    assert np.array_equal(result.removed_in_phase, sliced.removed_in_phase)


def test_look_ahead_keeps_rows_that_only_their_likes_predict():
    """Rows 0 .. 39, class 1, lie at one far place; all others are class 0.

    Every row is predicted by its neighbours, so all score 1 and rows 0 .. 39 make the slice, by row order.
    Without them the nearest rows to that place are of class 0, so each of them scores 0 and stays.
    """
    features = np.random.default_rng(0).normal(size=(240, 4)) * 0.3
    features[:40, 0] += 6
    labels = (np.arange(240) < 40).astype(int)
    run = {"n": 150, "m": 16, "t": 80, "k": 40, "tau": 0.9, "seed": 0, "model": "knn"}
    plain = aflite.filter_dataset(features, labels, **run, phases=2)
    assert np.flatnonzero(plain.removed_in_phase == 0).tolist() == list(range(40))
    ahead = aflite.filter_dataset(features, labels, **run, look_ahead=True)
    assert ahead.kept.all()
    assert ahead.history[0].held_back == 40
    assert ahead.stop_reason == "look_ahead_held_back_all"


@pytest.mark.parametrize("strategy", ["slicing", "sampling"])
def test_look_ahead_removes_planted_rows(planted, strategy):
    features, labels, easy = planted()
    run = {"n": 700, "m": 24, "t": 200, "k": 100, "tau": 0.9, "seed": 0, "look_ahead": True, "strategy": strategy}
    result = aflite.filter_dataset(features, labels, **run)
    assert (easy & ~result.kept).sum() > 0.95 * (~result.kept).sum()
    assert sum(record.removed for record in result.history) == (~result.kept).sum()


def test_sampling_draws_anew_in_every_phase(monkeypatch):
    """One class is always predicted, so in every phase all its rows score 1 and only the noise decides."""
    labels = np.array([0] * 30 + [1] * 90)
    features = np.random.default_rng(0).normal(size=(120, 2))
    noise = []
    sampled = strategies.sampled

    def noted(scores, eligible, limit, *, temperature, rng):
        noise.append(rng.bit_generator.state["state"]["state"])
        return sampled(scores, eligible, limit, temperature=temperature, rng=rng)

    monkeypatch.setattr(strategies, "sampled", noted)
    run = {"n": 80, "m": 12, "t": 40, "k": 10, "tau": 0.1, "seed": 0, "strategy": "sampling", "phases": 4}
    aflite.filter_dataset(features, labels, **run, model=DummyClassifier(strategy="constant", constant=1))
    assert len(noise) == len(set(noise)) == 3


def test_look_ahead_takes_rows_that_reach_tau_once_more(monkeypatch):
    """Of 10 looks ahead 6, 7, 8, 9 are right; with tau 0.8 the last two candidates leave."""
    again = Counts(np.array([6, 7, 8, 9]), np.full(4, 10), 0)
    scorer = SimpleNamespace(score=lambda *_, **__: again)
    scores = np.zeros(20)
    scores[[3, 5, 7, 9]] = 0.95
    removal = Removal(scorer, 10, 4, 0.8, "slicing", 0.05, True, None)
    leaving, candidates, eligible = removal.leaving(0, np.arange(20), scores, again)
    assert leaving.tolist() == [7, 9]
    assert (candidates, eligible) == (4, 4)


def test_look_ahead_near_n_does_not_stop_for_want_of_rows():
    """8 of 20 rows reach tau, n lets 2 leave, one of them is held back: the next phase may take another."""
    again = Counts(np.array([10, 0]), np.full(2, 10), 0)
    removal = Removal(SimpleNamespace(score=lambda *_, **__: again), 18, 5, 0.8, "slicing", 0.05, True, None)
    leaving, candidates, eligible = removal.leaving(0, np.arange(20), np.repeat([0.9, 0.1], [8, 12]), again)
    assert (leaving.tolist(), candidates, eligible) == ([0], 2, 8)
    assert removal.reason(0, 19, eligible, leaving.size) is None
    assert removal.reason(0, 20, eligible, 0) == "look_ahead_held_back_all"
    assert removal.reason(0, 19, 4, 1) == "few_predictable"
