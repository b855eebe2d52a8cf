import pytest

from aflite import benchmark


def test_measure_compares_with_scikit_learn():
    case = benchmark.Case(1500, 16, 3, 8, 300)
    features, labels = benchmark.make(case)
    result = benchmark.measure(case, features, labels, timed=1, agreement=1)
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
    found = benchmark.compare_partitions(benchmark.Case(600, 12, 3, 16, 120), repeats=24)
    assert abs(found.mean_difference) < 4 * found.standard_error
    assert found.largest_z < found.expected_largest_z + 1.5
    assert 0.8 < found.variance_ratio < 1.25
