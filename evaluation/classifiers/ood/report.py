"""The numbers of a set out of distribution, from its rows and what a model predicts for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.classifiers.metrics import accuracy, class_accuracies, matthews, to_json
from evaluation.classifiers.ood.spec import Group, OodSpec
from evaluation.errors import EvaluationError

if TYPE_CHECKING:
    from datasets import Dataset

Ints = NDArray[np.int64]


def report(spec: OodSpec, rows: Dataset, predicted: ArrayLike) -> dict[str, Any]:
    """Score predictions as the authors of a set do.

    Parameters
    ----------
    spec : OodSpec
        The set.
    rows : datasets.Dataset
        Rows of `read_ood`, all or some of them.
    predicted : integer array, shape (rows,)
        Indexes into the set's label names.

    Returns
    -------
    dict
        Of plain values. ``set`` and ``title``; ``metrics``, the main one first; ``all``, the scores of all rows;
        ``groups``, by column and value the scores of those rows; ``references``, what is known of other models.
        Scores are ``n``; ``accuracy`` (in [0, 1], higher is better) with its 95 % interval; ``matthews`` (in [-1, 1],
        higher is better, 0 for chance) where the set is judged by it; ``by_label``, accuracies by gold label, where
        that matters; ``mean_over_COLUMN``, the unweighted mean of the accuracies on the values of another column.
        Rows without a value count for none, rows with several for each; a value without rows is left out.

    Raises
    ------
    EvaluationError
        If there are no rows, or the predictions are not one label for each.
    """
    names = spec.names()
    labels = np.asarray(rows.with_format("numpy")["label"][:], dtype=np.int64)
    decided = _decisions(spec, predicted, len(labels), len(names))
    columns = {group.column: rows.with_format(None)[group.column][:] for group in spec.groups}
    groups = {}
    for group in spec.groups:
        values = {}
        for value, chosen in _members(group, columns[group.column]).items():
            scores = _scores(spec, labels[chosen], decided[chosen], names, by_label=group.by_label)
            if group.mean_of:
                others = [columns[group.mean_of][row] for row in chosen]
                scores |= _mean_over(group.mean_of, others, labels[chosen] == decided[chosen])
            values[value] = scores
        groups[group.column] = values
    return {
        "set": spec.name,
        "title": spec.title,
        "metrics": list(spec.metrics),
        "all": _scores(spec, labels, decided, names, by_label=spec.by_label),
        "groups": groups,
        "references": [asdict(reference) for reference in spec.references],
    }


def _decisions(spec: OodSpec, predicted: ArrayLike, rows: int, classes: int) -> Ints:
    decided = np.asarray(predicted)
    if decided.shape != (rows,):
        raise EvaluationError(f"predictions must be one a row of {spec.name} ({rows:,}), not of shape {decided.shape}")
    if not rows:
        raise EvaluationError(f"{spec.title} has no rows to score: raise --limit")
    if decided.dtype.kind not in "iu":
        raise EvaluationError(f"predictions must be whole numbers, indexes into the labels, not {decided.dtype}")
    if stray := decided[(decided < 0) | (decided >= classes)].tolist():
        raise EvaluationError(f"prediction {stray[0]} is no label of {spec.title}: they are 0 to {classes - 1}")
    return decided.astype(np.int64)


def _members(group: Group, cells: Sequence[Any]) -> dict[str, list[int]]:
    """Rows of each value: the spec's values in its order, then others by name."""
    members: dict[str, list[int]] = {value: [] for value in group.required}
    for row, cell in enumerate(cells):
        values = dict.fromkeys(cell if group.several else [] if cell is None else [cell])
        for value in values:
            members.setdefault(value, []).append(row)
    named, others = list(group.required), sorted(set(members) - set(group.required))
    return {value: members[value] for value in (*named, *others) if members[value]}


def _scores(spec: OodSpec, labels: Ints, decided: Ints, names: Sequence[str], *, by_label: bool) -> dict[str, Any]:
    scores: dict[str, Any] = {"n": len(labels), "accuracy": accuracy(labels, decided).to_json()}
    if "matthews" in spec.metrics:
        scores["matthews"] = matthews(labels, decided, len(names))
    if by_label:
        scores["by_label"] = to_json(class_accuracies(labels, decided, names))
    return scores


def _mean_over(column: str, values: Sequence[str | None], right: NDArray[np.bool_]) -> Mapping[str, float]:
    """The mean of the accuracies of each value, so that a large part does not outweigh a small one."""
    shares = [right[[one == value for one in values]].mean() for value in dict.fromkeys(values)]
    return {f"mean_over_{column}": float(np.mean(shares))}
