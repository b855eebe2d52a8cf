import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from aflite import neighbors


def test_nearest_removed_equals_brute_force():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 10))
    kept = rng.random(200) < 0.4
    found = neighbors.nearest_removed(features, kept, count=3)
    similar = cosine_similarity(features[kept], features[~kept])
    expected = np.flatnonzero(~kept)[np.argsort(-similar, axis=1)[:, :3]]
    assert np.array_equal(found.rows, np.flatnonzero(kept))
    assert np.array_equal(found.neighbors, expected)
    assert np.allclose(found.similarity, -np.sort(-similar, axis=1)[:, :3], atol=1e-5)


def test_blocks_and_chosen_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(90, 5))
    kept = rng.random(90) < 0.4
    whole = neighbors.nearest_removed(features, kept, count=4)
    monkeypatch.setattr(neighbors, "_BLOCK", 7)
    asked = whole.rows[[3, 0, 8]]
    some = neighbors.nearest_removed(features, kept, count=4, rows=asked)
    assert np.array_equal(some.rows, asked)
    assert np.array_equal(some.neighbors, whole.neighbors[[3, 0, 8]])
    assert some.similarity == pytest.approx(whole.similarity[[3, 0, 8]], abs=1e-6)


def test_mean_similarity_is_that_of_all_pairs(monkeypatch):
    monkeypatch.setattr(neighbors, "_CHUNK", 16)
    rng = np.random.default_rng(2)
    features = rng.normal(size=(70, 4)) + 1
    groups = rng.integers(-1, 3, size=70)
    found = neighbors.mean_similarity(features, groups)
    for group in range(3):
        rows = np.flatnonzero(groups == group)
        similar = cosine_similarity(features[rows])
        assert found[group] == pytest.approx(similar[np.triu_indices(rows.size, 1)].mean(), abs=1e-6)
        assert neighbors.similarities(features[rows]) == pytest.approx(similar, abs=1e-5)


def test_fewer_removed_than_asked_for():
    found = neighbors.nearest_removed(np.eye(4), [True, True, True, False], count=5)
    assert found.neighbors.tolist() == [[3], [3], [3]]


def test_duplicates_within_and_across():
    first = np.array([[1.0, 0], [0, 1], [2, 0], [1, 1]])
    within = neighbors.duplicates(first)
    # Rows 0 and 2 point the same way; cos 45 degrees = 0.707 for the others.
    assert list(zip(within.first, within.second, strict=True)) == [(0, 2)]
    across = neighbors.duplicates(first, np.array([[0, 3.0], [1, 0.1]]), threshold=0.9)
    # (1, 0.1) has cosine 1 / sqrt(1.01) = 0.995 with (1, 0) and (2, 0).
    assert list(zip(across.first, across.second, strict=True)) == [(1, 0), (0, 1), (2, 1)]
    assert across.similarity == pytest.approx([1, 0.99504, 0.99504], abs=1e-4)
    none = neighbors.duplicates(first, np.array([[-1.0, -1.0]]))
    assert none.first.size == none.similarity.size == 0


@pytest.mark.parametrize("scale", [1e-30, 1e8])
def test_similarity_does_not_depend_on_scale(scale):
    """Squares of 1e-30 are 0 in float32."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 6))
    kept = rng.random(60) < 0.5
    plain, scaled = (neighbors.nearest_removed(rows, kept, count=2) for rows in (features, features * scale))
    assert np.array_equal(plain.neighbors, scaled.neighbors)
    assert scaled.similarity == pytest.approx(plain.similarity, abs=1e-5)
    twice = np.vstack([features, 3 * features]) * scale
    pairs = neighbors.duplicates(twice, threshold=np.float32(0.9999))
    assert {(row, row + 60) for row in range(60)} == set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert pairs.similarity.max() <= 1


def test_rows_of_zeros_are_like_nothing():
    found = neighbors.nearest_removed(np.array([[0.0, 0.0], [1.0, 0.0]]), [True, False])
    assert found.similarity.tolist() == [[0]]


def test_errors():
    with pytest.raises(ValueError, match="rows must name kept rows, got 2, which was removed"):
        neighbors.nearest_removed(np.eye(3), [True, True, False], rows=[0, 2])
    with pytest.raises(ValueError, match=r"groups must have shape \(3,\) as features have rows, got \(2,\)"):
        neighbors.mean_similarity(np.eye(3), [0, 1])
    with pytest.raises(TypeError, match="kept must be bool"):
        neighbors.nearest_removed(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match=r"kept must have shape \(3,\).*got shape \(2,\)"):
        neighbors.nearest_removed(np.eye(3), [True, False])
    with pytest.raises(ValueError, match="mark some rows and leave some, got 3 of 3"):
        neighbors.nearest_removed(np.eye(3), [True] * 3)
    with pytest.raises(ValueError, match="second must have 3 columns as first has, got 2"):
        neighbors.duplicates(np.eye(3), np.eye(2))
