import numpy as np
import pytest

from aflite import benchmark, optimum, studies


def test_measure_compares_with_scikit_learn():
    case = benchmark.Case(1500, 16, 3, 8, 300, agreement=1)
    features, labels = benchmark.make(case)
    result = benchmark.measure(case, features, labels, timed=1)
    assert result.loop == pytest.approx(8 * (result.fit + result.predict))
    assert min(result.first, result.next, result.loop) > 0
    assert result.agreement > 0.995


def test_features_may_go_to_disk(tmp_path):
    case = benchmark.Case(300, 8, 2, 4, 60)
    in_memory, labels = benchmark.make(case)
    on_disk, same = benchmark.make(case, path=tmp_path / "features.npy")
    assert (in_memory == on_disk).all()
    assert (labels == same).all()


def test_blocked_scores_are_unbiased_and_about_as_variable():
    """Over 24 repeats the variance ratio of equal schemes has a relative error of some 5 %."""
    found = studies.compare_partitions(benchmark.Case(600, 12, 3, 16, 120), repeats=24, block_size=10)
    assert abs(found.mean_difference) < 4 * found.standard_error
    assert found.largest_z < found.expected_largest_z + 1.5
    assert 0.8 < found.variance_ratio < 1.25


def test_agreement_with_many_classes(monkeypatch):
    """scikit-learn starts from our weights there, of the classes that its part has."""
    monkeypatch.setattr(benchmark, "_TIGHT_NEWTON", 0)
    case = benchmark.Case(900, 16, 110, 2, 300, agreement=1)
    result = benchmark.measure(case, *benchmark.make(case), timed=1)
    assert result.agreement >= 0.995


def test_distances_to_the_optimum_are_in_order():
    found = studies.distances_to_optimum(2)
    assert (found["optimum"] <= found["greedy filter"]).all()
    assert (found["optimum"] <= found["random 7"]).all()
    rng = np.random.default_rng(0)
    labels = np.arange(10) % 2
    features = (rng.normal(size=(10, 2)) + labels[:, None]).astype(np.float32)
    everything = optimum.representation_bias(features, labels, np.ones(10, dtype=bool), t=3)
    assert found["all 10 rows"][0] == pytest.approx(everything)


def test_kept_rows_are_harder_than_as_many_random_ones(planted):
    features, labels, _ = planted(3_000)
    found = studies.held_out_accuracies(features, labels)
    assert found["all"][0] == 3_000
    assert found["kept"][0] == found["random, as many"][0] >= 2_000
    assert found["kept"][1] < found["random, as many"][1] - 0.1
