"""The numbers of a classifier on one split, from the predictions that are stored of it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.classifiers.label_order import find_label_order
from evaluation.classifiers.metrics import (
    calibration_error,
    class_accuracies,
    drop,
    group_accuracies,
    rate,
    to_json,
)
from evaluation.classifiers.ood import OodSpec, report
from evaluation.classifiers.sets import (
    BROKEN,
    CONFIDENCE,
    KEPT,
    LABEL_PROBABILITY,
    PREDICTED,
    SUBSETS,
    subsets_of,
)
from evaluation.errors import EvaluationError

_NAMED = 20


def prediction_columns(
    predicted: NDArray[np.int64],
    probabilities: NDArray[np.float32],
    labels: NDArray[np.int64],
    broken: Mapping[int, str],
) -> dict[str, pa.Array]:
    """Give the columns that are stored beside the facts of each row.

    ``predicted`` is an index into the dataset's classes, ``confidence`` the probability of that decision and
    ``label_probability`` that of the gold label, both in [0, 1]; all are null for a row whose input is broken, which
    has the reason in ``broken``.
    """
    rows = np.arange(len(predicted))
    missing = np.isin(rows, list(broken))
    reasons = [broken.get(row) for row in range(len(predicted))]
    return {
        PREDICTED: pa.array(predicted, pa.int64(), mask=missing),
        CONFIDENCE: pa.array(probabilities[rows, predicted], pa.float32(), mask=missing),
        LABEL_PROBABILITY: pa.array(probabilities[rows, labels], pa.float32(), mask=missing),
        BROKEN: pa.array(reasons, pa.string()),
    }


def summarize(
    predictions: pa.Table, names: Sequence[str], groups: Sequence[str] = (), spec: OodSpec | None = None
) -> dict[str, Any]:
    """Sum up stored predictions; needs neither the model nor the dataset.

    Parameters
    ----------
    predictions : pyarrow.Table
        As stored: a row's facts and `prediction_columns`.
    names : sequence of str
        The dataset's classes.
    groups : sequence of str
        Columns by which accuracy is broken down.
    spec : OodSpec, optional
        Of a set out of distribution.

    Returns
    -------
    dict
        By subset (`SUBSETS`; None where one has no rows): ``accuracy`` with its interval at 95 %, ``classes``,
        ``groups`` by column, ``ece``. ``drop``: accuracy on all rows less that on the kept ones, with its interval,
        where the split was filtered. ``label_order``: a notice, or None. ``rows``: those that were scored; ``broken``:
        those whose input could not be read, with the reasons of the first of them. ``report``: as
        `evaluation.classifiers.ood.report`.

    Raises
    ------
    EvaluationError
        If there is no row to score.
    """
    is_broken = np.array(predictions[BROKEN].is_valid().to_pylist(), dtype=bool)
    scored = predictions.filter(pa.array(~is_broken))
    if not len(scored):
        raise EvaluationError("no row can be scored: the split is empty, or no image of it can be read")
    labels, predicted = (scored[column].to_numpy().astype(np.int64) for column in ("label", PREDICTED))
    confidence = scored[CONFIDENCE].to_numpy().astype(np.float64)
    masks = subsets_of(scored)
    values = {column: scored[column].to_pylist() for column in groups}
    summary: dict[str, Any] = {name: dict.fromkeys(SUBSETS) for name in ("accuracy", "classes", "groups", "ece")}
    for name, mask in masks.items():
        if not mask.any():
            continue
        of_labels, decided = labels[mask], predicted[mask]
        summary["accuracy"][name] = rate(of_labels == decided).to_json()
        summary["classes"][name] = to_json(class_accuracies(of_labels, decided, names))
        summary["groups"][name] = {
            column: to_json(group_accuracies(of_labels, decided, [cells[row] for row in np.flatnonzero(mask)]))
            for column, cells in values.items()
        }
        sure = np.broadcast_to(confidence[mask][:, None], (int(mask.sum()), len(names)))
        summary["ece"][name] = calibration_error(of_labels, decided, sure)
    filtered = KEPT in masks and masks[KEPT].any()
    order = find_label_order(labels, predicted, names)
    return {
        "rows": len(scored),
        **summary,
        "drop": drop(labels == predicted, masks[KEPT]).to_json() if filtered else None,
        "label_order": None if order is None else order.text,
        "broken": {"rows": int(is_broken.sum()), "first": broken_rows(predictions)[:_NAMED]},
        "report": None if spec is None else _report(spec, scored, predicted),
    }


def broken_rows(predictions: pa.Table) -> list[dict[str, Any]]:
    """Give the ``source_index`` of the rows whose input is broken, and ``why`` each is."""
    broken = predictions.filter(predictions[BROKEN].is_valid())
    pairs = zip(broken["source_index"].to_pylist(), broken[BROKEN].to_pylist(), strict=True)
    return [{"source_index": index, "why": why} for index, why in pairs]


def _report(spec: OodSpec, scored: pa.Table, predicted: NDArray[np.int64]) -> dict[str, Any]:
    from datasets import Dataset

    return report(spec, Dataset(scored), predicted)
