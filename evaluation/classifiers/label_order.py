"""Points out a model whose decisions are right under other names: the mark of a wrong label order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evaluation.classifiers.metrics import accuracy, confusion
from evaluation.classifiers.names import shown

_FALSE_ALARMS = 0.05


@dataclass(frozen=True)
class LabelOrder:
    """A permutation of labels that lifts an accuracy which is below chance, or hardly above it.

    Attributes
    ----------
    accuracy, chance, permuted : float
        As it is, of guessing among K classes alike (1 / K), and under the permutation.
    meaning : tuple of (str, str)
        What the model says, and what it seems to mean by it; only pairs that differ.
    """

    accuracy: float
    chance: float
    permuted: float
    meaning: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The notice, in one line."""
        pairs = shown([f"{said} for {meant}" for said, meant in self.meaning])
        return (
            f"accuracy {self.accuracy:.3f} (chance: {self.chance:.3f}) would be {self.permuted:.3f} if the model said "
            f"{pairs}: check the label order, and correct it with --label-map"
        )


def find_label_order(labels: ArrayLike, predicted: ArrayLike, names: Sequence[str]) -> LabelOrder | None:
    """Look for a permutation of labels that lifts an accuracy of about chance by more than luck would.

    Of all K! permutations the best is found from the confusion matrix as an assignment problem (the same that trying
    all of them finds). It counts where the accuracy above chance (1 / K) more than doubles, or there was none; not only
    below chance, since a good three-way model with two labels swapped is right in about a third of the rows. And it
    counts only where guessing would get so many right in less than 5 % of cases, over all K! tries together (a binomial
    tail, times K!): guessing at 1 / K, or with the frequencies of the model's decisions where that gets more, so that a
    model which always says the same is not accused.

    Use it on all rows of a split. Rows that a filter kept were chosen because models fail on them, and accuracies below
    chance can be real there.

    Parameters
    ----------
    labels, predicted : int64 array, shape (rows,)
    names : sequence of str
        The K classes.

    Returns
    -------
    LabelOrder or None
        None where no permutation stands out.

    Raises
    ------
    EvaluationError
        If there are no rows.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.special import gammaln
    from scipy.stats import binom

    found, classes = accuracy(labels, predicted).value, len(names)
    counts = confusion(labels, predicted, classes)
    meant, said = linear_sum_assignment(counts, maximize=True)
    rows, right, chance = int(counts.sum()), int(counts[meant, said].sum()), 1 / classes
    if 2 * max(found - chance, 0) >= right / rows - chance:
        return None
    by_luck = float((counts.sum(axis=1)[meant] / rows) @ (counts.sum(axis=0)[said] / rows))
    if binom.logsf(right - 1, rows, max(by_luck, chance)) + gammaln(classes + 1) > np.log(_FALSE_ALARMS):
        return None
    seen = counts.sum(axis=0) > 0
    meaning = tuple((names[s], names[m]) for m, s in zip(meant, said, strict=True) if m != s and seen[s])
    return LabelOrder(found, chance, right / rows, meaning)
