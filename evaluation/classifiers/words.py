"""The word-association baseline: the label that one word of the text is tied to most, no model behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aflite.baselines import associations, strongest
from evaluation.classifiers.subsets import TrainingRows
from evaluation.models import check_choice

SMOOTHING = 100.0  # Gururangan et al. 2018


def predict_by_words(
    train: TrainingRows, texts: Sequence[str], *, column: str, smoothing: float = SMOOTHING
) -> NDArray[np.int64]:
    """Give each text the label with the greatest pointwise mutual information with one of its words.

    The classifier is that of the AFLite paper (maximum PMI, on hypotheses). A text of unknown words gets the first
    label, as do ties.

    Parameters
    ----------
    train : TrainingRows
        Rows that the associations are learned from.
    texts : sequence of str, length N
        What is to be classified.
    column : str
        Text column of `train` that is learned from.
    smoothing : float
        Added to each count of a word and a label, at least 0.

    Returns
    -------
    ndarray of int64, shape (N,)
        Indexes into the label names.

    Raises
    ------
    EvaluationError
        If there is no such input column.
    """
    check_choice("input column", column, train.columns)
    table = associations(train.rows[column][:], train.labels, smoothing=smoothing)
    decided: NDArray[np.int64] = table.labels[strongest(table, texts).argmax(axis=1)]
    return decided
