"""Words that give a label away."""

from __future__ import annotations

import pytest
from datasets import Dataset

from evaluation.classifiers.subsets import TrainingRows
from evaluation.classifiers.words import predict_by_words
from evaluation.errors import EvaluationError


def rows_of(*pairs: tuple[str, int]) -> TrainingRows:
    texts, labels = zip(*pairs, strict=True)
    rows = Dataset.from_dict({"hypothesis": texts, "label": labels, "source_index": range(len(texts))})
    return TrainingRows(rows, ("premise", "hypothesis"), ("yes", "maybe", "no"), {"name": "hand"})


def test_the_word_that_is_tied_to_a_label_most_decides() -> None:
    """Label 1 never occurs; "nobody" stands with 2 alone, "someone" with 0 alone, "runs" with both.

    Without smoothing PMI(nobody, 2) and PMI(someone, 0) are the greatest there are, and PMI(runs, .) is lower: in
    "nobody runs" 2 wins. An unknown word says nothing: the first label.
    """
    train = rows_of(("Someone runs", 0), ("Someone eats", 0), ("Nobody runs", 2), ("Nobody eats", 2))
    texts = ["nobody runs", "SOMEONE sleeps", "purple", "eats nobody"]
    found = predict_by_words(train, texts, column="hypothesis", smoothing=0.0)
    assert found.tolist() == [2, 0, 0, 2]
    with pytest.raises(EvaluationError, match="did you mean 'hypothesis'"):
        predict_by_words(train, texts, column="hypotheses")
