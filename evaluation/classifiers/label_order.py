"""Points out a model whose decisions are right under other names: the mark of a wrong label order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evaluation.classifiers.metrics import accuracy, confusion, score_interval
from evaluation.classifiers.names import shown

_CHANCE_OF_A_FALSE_ALARM = 0.05


@dataclass(frozen=True)
class LabelOrder:
    """A permutation of labels that lifts an accuracy which is below chance.

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
            f"accuracy {self.accuracy:.3f} is below chance ({self.chance:.3f}), and would be {self.permuted:.3f} if "
            f"the model said {pairs}: check the label order, and correct it with --label-map"
        )


def find_label_order(labels: ArrayLike, predicted: ArrayLike, names: Sequence[str]) -> LabelOrder | None:
    """Look for a permutation of labels that lifts an accuracy below chance by more than luck would.

    Of all K! permutations the best is found from the confusion matrix as an assignment problem (the same that trying
    all of them finds). It counts where the lower score limit of the lifted accuracy, at 5 % over all K! tries, is above
    1 / K and above what decisions of the same frequencies would get by luck: a model that always says the same is not
    accused, nor one that merely knows nothing.

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
        None where the accuracy is not below 1 / K, or no permutation stands out.

    Raises
    ------
    EvaluationError
        If there are no rows.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.special import gammaln, ndtri_exp

    found, classes = accuracy(labels, predicted).value, len(names)
    if classes < 2 or found >= 1 / classes:
        return None
    counts = confusion(labels, predicted, classes)
    meant, said = linear_sum_assignment(counts, maximize=True)
    rows = int(counts.sum())
    lifted = float(counts[meant, said].sum() / rows)
    by_luck = float((counts.sum(axis=1)[meant] / rows) @ (counts.sum(axis=0)[said] / rows))
    z = -float(ndtri_exp(np.log(_CHANCE_OF_A_FALSE_ALARM) - gammaln(classes + 1)))
    if score_interval(lifted, rows, z)[0] <= max(by_luck, 1 / classes):
        return None
    seen = counts.sum(axis=0) > 0
    meaning = tuple((names[s], names[m]) for m, s in zip(meant, said, strict=True) if m != s and seen[s])
    return LabelOrder(found, 1 / classes, lifted, meaning)
