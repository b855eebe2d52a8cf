import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix, matthews_corrcoef, recall_score

from evaluation.classifiers.metrics import (
    NO_GROUP,
    Difference,
    OverSeeds,
    Rate,
    accuracy,
    calibration_error,
    class_accuracies,
    confusion,
    difference,
    drop,
    group_accuracies,
    matthews,
    over_seeds,
    rate,
    to_json,
    wilson,
)
from evaluation.errors import EvaluationError

NAMES = ("entailment", "neutral", "contradiction")
NOTHING = np.zeros(0, dtype=np.int64)


def hits(right: int, of: int) -> np.ndarray:
    return np.arange(of) < right


@pytest.mark.parametrize(("right", "of"), [(0, 1), (1, 1), (0, 40), (40, 40), (3, 7), (881, 1000), (9000, 9842)])
def test_wilson_agrees_with_scipy(right: int, of: int) -> None:
    expected = binomtest(right, of).proportion_ci(method="wilson")
    found = rate(hits(right, of))
    assert (found.value, found.n) == (right / of, of)
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_accuracy_of_an_empty_subset_is_refused_by_name() -> None:
    with pytest.raises(EvaluationError, match=r"^the removed rows has no rows to score"):
        accuracy(NOTHING, NOTHING, what="the removed rows")
    assert accuracy([0, 1, 2, 2], [0, 1, 1, 1]).value == 0.5


@pytest.mark.parametrize(
    "number",
    [
        lambda: class_accuracies(NOTHING, NOTHING, NAMES),
        lambda: group_accuracies(NOTHING, NOTHING, []),
        lambda: calibration_error(NOTHING, NOTHING, np.zeros((0, 3))),
        lambda: matthews(NOTHING, NOTHING, 3),
        lambda: confusion(NOTHING, NOTHING, 3),
        lambda: drop(hits(1, 2), np.zeros(2, dtype=bool)),
    ],
)
def test_no_number_is_made_of_nothing(number) -> None:
    with pytest.raises(EvaluationError, match="has no rows to score"):
        number()


def test_classes_are_recalls() -> None:
    rng = np.random.default_rng(3)
    labels, predicted = rng.integers(0, 3, 500), rng.integers(0, 3, 500)
    found = class_accuracies(labels, predicted, NAMES)
    np.testing.assert_allclose([one.value for one in found.values()], recall_score(labels, predicted, average=None))
    assert list(found) == list(NAMES)
    assert sum(one.n for one in found.values()) == 500
    assert list(class_accuracies([2, 2], [2, 0], NAMES)) == ["contradiction"]


def test_groups_in_order_with_lists_and_none() -> None:
    labels, predicted = np.array([0, 0, 1, 1, 0]), np.array([0, 1, 1, 0, 0])
    found = group_accuracies(labels, predicted, ["subsequence", "constituent", "subsequence", None, "constituent"])
    assert {name: (one.value, one.n) for name, one in found.items()} == {
        "constituent": (0.5, 2),
        "subsequence": (1.0, 2),
        NO_GROUP: (0.0, 1),
    }
    assert list(found)[-1] == NO_GROUP
    several = group_accuracies(labels, predicted, [["Logic", "Knowledge"], ["Logic"], [], ("Logic", "Logic"), None])
    assert {name: (one.value, one.n) for name, one in several.items()} == {
        "Knowledge": (1.0, 1),
        "Logic": (pytest.approx(1 / 3), 3),
        NO_GROUP: (1.0, 2),
    }
    assert list(group_accuracies(labels, predicted, np.array([10, 9, 2, 10, 9]))) == ["2", "9", "10"]
    assert list(group_accuracies(labels, predicted, [True, False, 3, "b", "a"])) == ["False", "True", "3", "a", "b"]
    with pytest.raises(EvaluationError, match="5 rows, 2 values"):
        group_accuracies(labels, predicted, ["a", "b"])


def test_calibration_error_by_hand() -> None:
    probabilities = np.array([[0.62, 0.38], [0.65, 0.35], [0.05, 0.95], [1.0, 0.0]])
    # Bin (.6, .667]: accuracy 1/2, confidence .635, gap .135, two rows. Bin (.933, 1]: accuracy 1/2, confidence .975,
    # gap .475, two rows. ECE = (.135 + .475) / 2 = .305.
    labels, predicted = np.array([0, 1, 1, 1]), np.array([0, 0, 1, 0])
    assert calibration_error(labels, predicted, probabilities) == pytest.approx(0.305)
    # In one bin: accuracy 1/2, confidence (.62 + .65 + .95 + 1) / 4 = .805.
    assert calibration_error(labels, predicted, probabilities, bins=1) == pytest.approx(0.305)
    # In ten bins .62 and .65 share one again, .95 and 1 too.
    assert calibration_error(labels, predicted, probabilities, bins=10) == pytest.approx(0.305)


def test_bins_are_closed_above() -> None:
    # With two bins a confidence of .5 is in the lower. There: accuracy 1, confidence .5, gap .5 of one row; the upper:
    # accuracy 0, confidence .75, gap .75 of one row; ECE .625. In one bin: accuracy .5, confidence .625, gap .125.
    probabilities = np.array([[0.5, 0.5], [0.75, 0.25]])
    assert calibration_error([0, 1], [0, 0], probabilities, bins=2) == pytest.approx(0.625)


def test_calibration_is_of_the_decision_not_of_the_largest_sum() -> None:
    # A collapsed three-way decision may have less than half of the probability.
    assert calibration_error([0], [0], np.array([[0.4, 0.6]], dtype=np.float32)) == pytest.approx(0.6)
    assert calibration_error([0, 0], [0, 0], np.array([[1.0, 0.0], [1.0, 0.0]])) == 0
    assert calibration_error([1], [0], np.array([[1.0 + 1e-7, 0.0]])) == pytest.approx(1)


def test_calibration_error_agrees_with_a_loop_over_bins() -> None:
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet([1, 1, 1], 700).astype(np.float32)
    labels, predicted = rng.integers(0, 3, 700), probabilities.argmax(axis=1)
    confidence, expected = probabilities.max(axis=1).astype(float), 0.0
    for m in range(1, 16):
        inside = (confidence > (m - 1) / 15) & (confidence <= m / 15)
        if inside.any():
            gap = abs((labels == predicted)[inside].mean() - confidence[inside].mean())
            expected += inside.mean() * gap
    assert calibration_error(labels, predicted, probabilities) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_matthews_agrees_with_sklearn(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, 60)
    predicted = np.where(rng.random(60) < 0.4, labels, rng.integers(0, classes, 60))
    assert matthews(labels, predicted, classes) == pytest.approx(matthews_corrcoef(labels, predicted), abs=1e-12)
    np.testing.assert_array_equal(
        confusion(labels, predicted, classes), confusion_matrix(labels, predicted, labels=range(classes))
    )


def test_matthews_at_its_ends() -> None:
    labels = np.array([0, 1, 2, 0, 1, 2])
    assert matthews(labels, labels, 3) == pytest.approx(1)
    assert matthews([0, 1, 0, 1], [1, 0, 1, 0], 2) == pytest.approx(-1)
    assert matthews(labels, np.zeros(6, dtype=int), 3) == matthews(np.zeros(6, dtype=int), labels, 3) == 0


def a_rate(right: int, of: int) -> Rate:
    return Rate(right / of, *wilson(right / of, of), of)


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        # Newcombe 1998, Table II, method 10, contrasts (a), (b), (d), (f) and (h).
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_difference_gives_newcombes_published_intervals(
    one: tuple[int, int], other: tuple[int, int], low: float, high: float
) -> None:
    found = difference(a_rate(*one), a_rate(*other))
    assert found.value == pytest.approx(one[0] / one[1] - other[0] / other[1])
    assert (found.low, found.high) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))
    back = difference(a_rate(*other), a_rate(*one))
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))


def test_drop_is_all_less_kept() -> None:
    # 150 rows, 70 not kept with 56 right, 80 kept with 48 right: 104/150 - 48/80 = .0933, which is 70/150 of the
    # difference .2 in Newcombe's example, as are its limits .0524 and .3339.
    kept = np.arange(150) >= 70
    right = np.concatenate([hits(56, 70), hits(48, 80)])
    found = drop(right, kept)
    assert found.value == pytest.approx(104 / 150 - 48 / 80)
    assert (found.low, found.high) == pytest.approx((0.0524 * 70 / 150, 0.3339 * 70 / 150), abs=5e-5)
    assert drop(right, np.ones(150, dtype=bool)) == Difference(0.0, 0.0, 0.0)


def test_seeds_by_hand() -> None:
    # Mean 0.7, squares .01 + 0 + .01 over 2: sd .1.
    found = over_seeds([0.6, 0.7, 0.8])
    assert (found.mean, found.sd, found.n) == (pytest.approx(0.7), pytest.approx(0.1), 3)
    assert over_seeds(iter([0.5])) == OverSeeds(0.5, None, 1)
    with pytest.raises(EvaluationError, match="zero runs"):
        over_seeds([])


def test_rates_as_stored() -> None:
    assert to_json({"a": Rate(0.5, 0.25, 0.75, 4)}) == {"a": {"value": 0.5, "low": 0.25, "high": 0.75, "n": 4}}
    assert Difference(0.1, 0.0, 0.2).to_json() == {"value": 0.1, "low": 0.0, "high": 0.2}
    assert over_seeds([1.0]) == OverSeeds(1.0, None, 1)
