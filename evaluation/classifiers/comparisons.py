"""A filtered set beside other models' predictions, and beside people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.built_sets import find_built
from evaluation.classifiers.difficulty import Difficulty, cross_model_difficulty
from evaluation.classifiers.humans import Humans, human_accuracy, humans_on, read_annotated
from evaluation.classifiers.prediction_files import read_predictions
from evaluation.classifiers.sets import FULL, KEPT, REMOVED, matching_rows
from evaluation.errors import EvaluationError


def difficulty_of(
    files: Sequence[Path],
    dataset: str,
    split: str | None = None,
    *,
    label_map: str | None = None,
    revision: str | None = None,
) -> tuple[str, list[Difficulty]]:
    """Score files of other models' predictions on what a filter kept and what it removed.

    Parameters
    ----------
    files : sequence of Path
        As `evaluation.classifiers.prediction_files.read_predictions` takes them.
    dataset : str
        A filtered folder, or its ORG/NAME on the Hub.
    split : str, optional
        Not needed where there is only one.
    label_map : str, optional
        What numbers in the files mean, where that is not the dataset's order.
    revision : str, optional
        Of the dataset on the Hub.

    Returns
    -------
    str
        Names the split.
    list of Difficulty
        One a file.

    Raises
    ------
    EvaluationError
        If the set is no filtered set, a file cannot be read or is of other rows, or a subset has no prediction.
    """
    built = find_built(dataset, revision)
    rows, masks = matching_rows(built, split)
    found = []
    for file in files:
        predictions = read_predictions(file, rows.names, label_map=label_map)
        found.append(cross_model_difficulty(predictions, rows, kept=masks[KEPT], removed=masks[REMOVED]))
    return _title(built.name, built.version, split, len(rows)), found


def humans_of(
    file: Path, dataset: str | None = None, split: str | None = None, *, revision: str | None = None
) -> tuple[str, dict[str, Humans]]:
    """Give human accuracy on all annotated rows, or on the full, kept and removed rows of a filtered set.

    Parameters
    ----------
    file : Path
        As `evaluation.classifiers.humans.read_annotated` takes it.
    dataset, split, revision
        As for `difficulty_of`; without a dataset all rows of the file count.

    Returns
    -------
    str
        Names the rows.
    dict of str to Humans

    Raises
    ------
    EvaluationError
        If the file cannot be read, the set is no filtered set, or a subset has no annotated row.
    """
    annotated = read_annotated(file)
    counted = f"{len(annotated):,} rows, {int((annotated.gold < 0).sum()):,} of them without a gold label"
    if dataset is None:
        if split is not None:
            raise EvaluationError(f"--split {split} needs a --dataset")
        return f"{file.name}: {counted}", {FULL: human_accuracy(annotated, what=file.name)}
    built = find_built(dataset, revision)
    rows, masks = matching_rows(built, split)
    subsets = {name: masks[name] for name in (FULL, KEPT, REMOVED)}
    title = f"{_title(built.name, built.version, split, len(rows))}; {file.name}: {counted}"
    return title, humans_on(annotated, rows, subsets)


def _title(name: str, version: str, split: str | None, rows: int) -> str:
    return f"{name} {version}{f', {split}' if split else ''}: {rows:,} labelled rows"
