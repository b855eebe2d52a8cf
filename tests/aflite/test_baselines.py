import numpy as np
import pytest

import aflite
from aflite import baselines


def test_random_subset():
    labels = np.array([0] * 70 + [1] * 20 + [2] * 10)
    mask = baselines.random_subset(labels, size=30, seed=0)
    assert mask.sum() == 30
    assert np.array_equal(mask, baselines.random_subset(labels, size=30, seed=0))
    assert not np.array_equal(mask, baselines.random_subset(labels, size=30, seed=1))
    balanced = baselines.random_subset(labels, size=31, seed=0, balanced=True)
    assert sorted(np.bincount(labels[balanced]).tolist()) == [10, 10, 11]
    # 60 of 3 labels: 20 each, but label 2 has only 10, so the others share the rest; label 1 gives all 20.
    scarce = baselines.random_subset(labels, size=60, seed=0, balanced=True)
    assert np.bincount(labels[scarce]).tolist() == [30, 20, 10]


def test_single_model_removes_planted_rows(planted):
    features, labels, easy = planted()
    kept = baselines.single_model(features, labels, n=900, t=300, seed=0)
    assert kept.sum() == 900
    assert easy[~kept].mean() > 0.95


def test_associations_by_hand():
    """Four rows; "cat" stands in two of label 0 and none of label 1, "a" in all.

    Without smoothing there are 2 + 4 = 6 counts: p(cat, 0) = 2/6, p(cat) = 2/6, p(0) = 4/6 and so
    PMI(cat, 0) = log(1 / (4/6)) = log 1.5; p(a, 0) = 2/6, p(a) = 4/6: log(2/6 / (4/6 * 4/6)) = log 0.75.
    """
    texts, labels = ["A cat.", "a CAT a", "a", "A"], [0, 0, 1, 1]
    table = baselines.associations(texts, labels, smoothing=0)
    assert table.words == ("a", "cat")
    assert table.pmi[:, 0] == pytest.approx([np.log(0.75), np.log(1.5)])
    assert table.pmi[1, 1] == -np.inf
    scores = baselines.pmi_scores(texts, labels, smoothing=0)
    # Rows 0 and 1: the greater of both; rows 2 and 3: PMI(a, 1) = log(2/6 / (4/6 * 2/6)) = log 1.5.
    assert scores == pytest.approx([np.log(1.5)] * 4)
    assert baselines.pmi_scores(["a", "...", "a a"], [0, 1, 1], smoothing=0)[1] == 0


def test_a_label_without_words_has_no_association():
    """Label 1 has only a text without words, so that neither count of the quotient is above 0."""
    table = baselines.associations(["a b", "..."], [0, 1], smoothing=0)
    # p(a, 0) = 1/2 = p(a), p(0) = 1.
    assert table.pmi.tolist() == [[0, -np.inf], [0, -np.inf]]
    assert baselines.pmi_scores(["a b", "..."], [0, 1], smoothing=0).tolist() == [0, 0]


def test_errors():
    for texts, message in (
        (["a", None], "texts must be str, row 1 is None"),
        ("ab", "texts must be a sequence of str, got str"),
    ):
        for call in (baselines.associations, baselines.pmi_scores):
            with pytest.raises(TypeError, match=message):
                call(texts, [0, 1])
        with pytest.raises(TypeError, match=message):
            baselines.partial_input(texts)
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\), one a row of texts, got shape \(3,\)"):
        baselines.associations(["a", "b"], [0, 1, 0])
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        baselines.random_subset([0, 1], size=1, seed=-1)
    with pytest.raises(ValueError, match=r"labels must have shape \(N,\), got shape \(1, 2\)"):
        baselines.random_subset([[0, 1]], size=1, seed=0)
    with pytest.raises(ValueError, match=r"scores must have shape \(N,\), got shape \(2, 2\)"):
        baselines.lowest(np.eye(2), n=1)
    with pytest.raises(ValueError, match="c must be a number > 0, got 0"):
        baselines.single_model(np.eye(4), [0, 1, 0, 1], n=3, t=2, seed=0, c=0)
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        baselines.repair_weights(np.eye(4), [0, 1, 0, 1], seed=0, steps=0)


def test_the_strongest_word_decides():
    """As above, PMI(cat, 0) = log 1.5, PMI(a, 0) = log 0.75 and PMI(a, 1) = log 1.5; "dog" is unknown."""
    table = baselines.associations(["A cat.", "a CAT a", "a", "A"], [0, 0, 1, 1], smoothing=0)
    found = baselines.strongest(table, ["a", "a cat dog", "dog", ""])
    # "a": log 0.75 and log 1.5; "a cat": the greater of each, log 1.5 twice.
    assert found == pytest.approx(np.log([[0.75, 1.5], [1.5, 1.5], [1, 1], [1, 1]]))


def test_pmi_finds_give_away_words():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    words = rng.choice(["red", "green", "blue", "tall", "small"], size=(400, 3))
    texts = [" ".join(row) + (" nobody" if label and index % 2 else "") for index, (row, label) in enumerate(zip(words, labels, strict=True))]  # fmt: skip  # noqa: E501
    give_away = np.array(["nobody" in text for text in texts])
    kept = baselines.lowest(baselines.pmi_scores(texts, labels, smoothing=1), n=int((~give_away).sum()))
    assert give_away[~kept].mean() > 0.95


def test_lowest_keeps_the_lowest():
    assert baselines.lowest([3, 1, 2, 3], n=2).tolist() == [False, True, True, False]
    assert baselines.lowest([3, 1, 2, 3], n=3).tolist() == [False, True, True, True]
    # A row without a score stays, as it does in the filter.
    assert baselines.lowest([np.nan, 1, 2], n=1).tolist() == [True, False, False]


def test_partial_input_feeds_the_filter():
    labels = np.tile([0, 1], 60)
    texts = [f"nobody sleeps {index % 7}" if label else f"someone walks {index % 5}" for index, label in enumerate(labels)]  # fmt: skip  # noqa: E501
    features = baselines.partial_input(texts, width=256)
    assert features.shape == (120, 256)
    assert np.linalg.norm(features, axis=1) == pytest.approx(1, abs=1e-5)
    result = aflite.filter_dataset(features, labels, n=80, m=8, t=40, k=0, tau=0.5, seed=0)
    assert result.history[0].bias > 0.95


def test_pair_features():
    joined = baselines.pair_features([[1.0, 2.0]], [[3.0, -1.0]])
    assert joined.tolist() == [[1, 2, 3, -1, 2, 3, 3, -2]]
    with pytest.raises(ValueError, match="hypothesis must have the shape"):
        baselines.pair_features([[1.0]], [[1.0, 2.0]])


def test_repair_lowers_the_weight_of_easy_rows(planted):
    features, labels, easy = planted(n_rows=600, noise=5)
    weights = baselines.repair_weights(features, labels, seed=0)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights[easy].mean() < weights[~easy].mean() / 2
    assert np.array_equal(weights, baselines.repair_weights(features, labels, seed=0))
