"""How well people agree with gold labels, from the labels of several annotators a row (SNLI's original format).

Five people labelled each validation row of SNLI; the gold label is what three or more of them say. Human accuracy is
had by leaving out one annotator at a time: that annotator answers, as a model would, and is right if the answer is the
gold label. It is the share of right answers over all annotators of all rows, so each label counts the same.

The gold label is the distributed one, which models are scored against too, so the numbers compare. It was voted with
the label that is left out, which favours people; `Humans.against_others` does not: there the answer is compared with
what most of the other annotators say, and a tie of t labels among them counts 1 / t for each of these.

Rows with gold label ``-``, where no three annotators agree, have no right answer: no model is scored on them, no
filtered set has them, and they are left out here and counted. Blank labels are no answers, and rows with fewer than two
labels are left out too: there the only answer is the gold label itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.classifiers.matching import Pair, Rows, match_pairs
from evaluation.classifiers.metrics import Rate, wilson
from evaluation.classifiers.names import CONTRADICTION, ENTAILMENT, NEUTRAL, nli_role
from evaluation.classifiers.text_files import json_lines, read_text
from evaluation.errors import EvaluationError

LABELS = (ENTAILMENT, NEUTRAL, CONTRADICTION)
NO_GOLD = ("-", "", None)

_FEWEST_VOTES = 2


@dataclass(frozen=True)
class Annotated:
    """Rows with the labels of several annotators.

    Attributes
    ----------
    gold : int64 array, shape (rows,)
        Index into `LABELS`, -1 where there is no gold label.
    votes : int64 array, shape (rows, 3)
        How many annotators gave each label.
    pairs : tuple of (str, str)
        Premise and hypothesis.
    """

    gold: NDArray[np.int64]
    votes: NDArray[np.int64]
    pairs: tuple[Pair, ...]

    def __len__(self) -> int:
        return len(self.gold)


@dataclass(frozen=True)
class Humans:
    """Human accuracy on some rows; the n of a rate is a number of labels.

    Attributes
    ----------
    accuracy : Rate
        Of an annotator against the gold label, in [0, 1].
    against_others : Rate
        Of an annotator against most of the others of the row, in [0, 1]; at most `accuracy` where the
        gold label is what most of them say.
    rows : int
        Rows that count.
    without_gold, too_few : int
        Rows left out, for gold ``-`` and for fewer than two labels.
    """

    accuracy: Rate
    against_others: Rate
    rows: int
    without_gold: int
    too_few: int

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)


def read_annotated(path: Path) -> Annotated:
    """Read JSON lines with ``gold_label``, ``annotator_labels`` and both texts, as SNLI and MultiNLI distribute them.

    Raises
    ------
    EvaluationError
        If the file is not there or empty, or if a line is not JSON, lacks a field or has an unknown label.
    """
    gold, votes, pairs = [], [], []
    for where, content in json_lines(read_text(path), path.name):
        row = _checked(content, where)
        gold.append(-1 if row["gold_label"] in NO_GOLD else _label(row["gold_label"], where))
        answers = [_label(name, where) for name in row["annotator_labels"] if name not in NO_GOLD]
        votes.append(np.bincount(np.array(answers, dtype=np.int64), minlength=len(LABELS)))
        pairs.append((str(row["premise"]), str(row["hypothesis"])))
    if not gold:
        raise EvaluationError(f"{path} has no rows")
    return Annotated(np.array(gold), np.stack(votes), tuple(pairs))


def _checked(content: Any, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise EvaluationError(f"{where} is not a JSON object")
    row: dict[str, Any] = {"premise": content.get("sentence1"), "hypothesis": content.get("sentence2")} | content
    fields = ("gold_label", "annotator_labels", "premise", "hypothesis")
    if lacking := [name for name in fields if name not in row or (row[name] is None and name != "gold_label")]:
        raise EvaluationError(
            f"{where} has no {', '.join(lacking)}: human accuracy needs the original format, with gold_label, "
            "annotator_labels, sentence1 and sentence2"
        )
    if not isinstance(row["annotator_labels"], list):
        raise EvaluationError(f"{where}: annotator_labels must be a list, not {row['annotator_labels']!r}")
    return row


def _label(name: Any, where: str) -> int:
    role = nli_role(name) if isinstance(name, str) else None
    if role not in LABELS:
        raise EvaluationError(f"{where}: label {name!r} is none of {', '.join(LABELS)}")
    return LABELS.index(role)


def human_accuracy(annotated: Annotated, chosen: ArrayLike | None = None, *, what: str = "the subset") -> Humans:
    """Give leave-one-out human accuracy on some rows, with 95 % intervals by rows.

    Labels of one row are alike, so rows are the unit: the standard error is that of a ratio of two sums over rows
    (Cochran 1977, "Sampling Techniques", section 2.11), and the interval is Wilson's for as many independent labels as
    would have that error, no fewer than there are rows and no more than there are labels.

    Parameters
    ----------
    annotated : Annotated
    chosen : bool array, shape (rows,), optional
        Which rows; all by default.
    what : str
        What they are, for the message.

    Raises
    ------
    EvaluationError
        If no chosen row has a gold label and two annotators.
    """
    inside = np.ones(len(annotated), dtype=bool) if chosen is None else np.asarray(chosen, dtype=bool)
    enough, has_gold = annotated.votes.sum(axis=1) >= _FEWEST_VOTES, annotated.gold >= 0
    counted = inside & enough & has_gold
    if not counted.any():
        raise EvaluationError(f"{what} has no row with a gold label and two annotators: no human accuracy to give")
    votes, gold = annotated.votes[counted], annotated.gold[counted]
    answers = votes.sum(axis=1)
    return Humans(
        accuracy=rate_by_rows(votes[np.arange(len(gold)), gold], answers),
        against_others=rate_by_rows(_right_by_others(votes), answers),
        rows=len(gold),
        without_gold=int((inside & ~has_gold).sum()),
        too_few=int((inside & has_gold & ~enough).sum()),
    )


def _right_by_others(votes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Right answers of each row, each answer judged by the other votes of the row; ties count in part."""
    right = np.zeros(len(votes))
    for label in range(votes.shape[1]):
        others = votes.copy()
        others[:, label] -= 1
        leading = others == others.max(axis=1, keepdims=True)
        right += votes[:, label] * leading[:, label] / leading.sum(axis=1)
    return right


def rate_by_rows(right: ArrayLike, answers: ArrayLike) -> Rate:
    """Give the share of right answers over rows with several dependent answers each.

    Parameters
    ----------
    right, answers : array, shape (rows,)
        Right answers of each row, which may be parts of one, and all answers, above 0; at least one row.

    Returns
    -------
    Rate
        Its n is the number of answers.
    """
    right, answers = np.asarray(right, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    rows, total = len(right), answers.sum()
    share = float(right.sum() / total)
    residual = right - share * answers
    variance = rows / max(rows - 1, 1) * float(residual @ residual) / total**2
    if share in (0.0, 1.0) or rows == 1:
        effective = float(rows)
    else:
        effective = float(np.clip(share * (1 - share) / variance if variance else total, rows, total))
    return Rate(share, *wilson(share, effective), int(total))


def humans_on(annotated: Annotated, rows: Rows, subsets: Mapping[str, ArrayLike]) -> dict[str, Humans]:
    """Give human accuracy on parts of a split, whose annotated rows are found by their texts.

    Parameters
    ----------
    annotated : Annotated
        Some or all rows of the split, and maybe others, which are left out.
    rows : Rows
        The split.
    subsets : mapping of str to bool array, shape (rows,)
        Such as full, kept and removed.

    Raises
    ------
    EvaluationError
        If the split is no set of text pairs, or if a subset has no annotated row.
    """
    if rows.pairs is None or any(len(texts) != 2 for texts in rows.pairs[:1]):
        raise EvaluationError("human accuracy needs a set of text pairs: annotated rows are found by their texts")
    places = match_pairs(annotated.pairs, rows.pairs)
    if not (places >= 0).any():
        raise EvaluationError(
            f"none of the {len(annotated)} annotated rows is in the split of {len(rows)} rows: are they of another one?"
        )
    return {
        name: human_accuracy(annotated, (places >= 0) & np.asarray(mask, dtype=bool)[places], what=name)
        for name, mask in subsets.items()
    }
