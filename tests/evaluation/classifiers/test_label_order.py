import itertools

import numpy as np
import pytest

from evaluation.classifiers.label_order import find_label_order
from evaluation.errors import EvaluationError

NLI = ("entailment", "neutral", "contradiction")


def decisions(tenths: int, rows: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Balanced labels, and decisions that are right in so many tenths of each class, the rest wrong in turn."""
    labels, turn = np.arange(rows) % classes, np.arange(rows) // classes
    return labels, np.where(turn % 10 < tenths, labels, (labels + 1 + turn % (classes - 1)) % classes)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_every_wrong_order_is_named(order: tuple[int, ...]) -> None:
    labels, truth = decisions(8, 300, 3)
    said = np.array(order)[truth]
    found = find_label_order(labels, said, NLI)
    if order == (0, 1, 2):
        assert found is None
        return
    assert found is not None
    assert found.permuted == pytest.approx(0.8)
    # One label is right and two are swapped, so (0.8 + 0.1 + 0.1) / 3; or none is right: 0.1 on the average.
    expected = 0.1 if all(order[i] != i for i in range(3)) else 1 / 3
    assert found.accuracy == np.mean(labels == said) == pytest.approx(expected, abs=1e-9)
    assert set(found.meaning) == {(NLI[order[i]], NLI[i]) for i in range(3) if order[i] != i}


def test_the_notice_is_a_line_that_says_what_stands_for_what() -> None:
    labels, truth = decisions(8, 300, 3)
    found = find_label_order(labels, (truth + 1) % 3, NLI)
    assert found is not None
    assert "(chance: 0.333) would be 0.800 if the model said" in found.text
    assert "neutral for entailment" in found.text
    assert "--label-map" in found.text
    assert "\n" not in found.text


def test_two_classes_swapped() -> None:
    labels, truth = decisions(9, 100, 2)
    found = find_label_order(labels, 1 - truth, ("entailment", "non-entailment"))
    assert found is not None
    assert (found.accuracy, found.permuted, found.chance) == pytest.approx((0.1, 0.9, 0.5))


@pytest.mark.parametrize("classes", [10, 200])
def test_many_classes(classes: int) -> None:
    labels, truth = decisions(8, 20 * classes, classes)
    order = np.roll(np.arange(classes), 1)
    found = find_label_order(labels, order[truth], [f"c{i}" for i in range(classes)])
    assert found is not None
    assert found.permuted == pytest.approx(0.8)
    assert ("c0", "c1") in found.meaning  # the model says 0 for 1: order[1] is 0
    assert len(found.text) < 400


def test_none_where_nothing_is_wrong_or_nothing_is_known() -> None:
    labels, truth = decisions(8, 300, 3)
    assert find_label_order(labels, truth, NLI) is None
    # Few of one class, and a model that never says another: below chance, yet not for its order of labels.
    skewed = np.repeat([0, 1, 2], [270, 20, 10])
    assert find_label_order(skewed, np.full(300, 2), NLI) is None
    # Three rows say nothing: one of six orders is right by luck in 6 of 27 cases.
    assert find_label_order([0, 1, 2], [1, 2, 0], NLI) is None
    assert find_label_order([0, 0], [0, 0], ("one",)) is None


def test_false_alarms_are_rare() -> None:
    rng = np.random.default_rng(0)
    alarms = sum(find_label_order(rng.integers(0, 3, 60), rng.integers(0, 3, 60), NLI) is not None for _ in range(400))
    assert alarms <= 0.05 * 400


def test_no_rows_are_refused() -> None:
    with pytest.raises(EvaluationError, match="no rows"):
        find_label_order([], [], NLI)
