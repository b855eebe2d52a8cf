"""A filtered set beside other models' predictions, and beside people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.built_sets import find_built
from evaluation.classifiers.difficulty import Difficulty, OodPredictions, cross_model_difficulty, find_predictions
from evaluation.classifiers.humans import Humans, human_accuracy, humans_on, read_annotated
from evaluation.classifiers.ood import OodSpec, is_ood, list_sets, load_ood_spec, report
from evaluation.classifiers.prediction_files import read_predictions
from evaluation.classifiers.sets import FULL, KEPT, REMOVED, matching_rows, ood_matching_rows, read_ood_rows
from evaluation.errors import EvaluationError


def difficulty_of(
    files: Sequence[Path],
    dataset: str,
    split: str | None = None,
    *,
    label_map: str | None = None,
    revision: str | None = None,
    data: Path | None = None,
) -> tuple[str, list[Difficulty] | list[OodPredictions]]:
    """Score files of other models' predictions on what a filter kept and removed, or on a set out of distribution.

    Parameters
    ----------
    files : sequence of Path
        As `evaluation.classifiers.prediction_files.read_predictions` takes them.
    dataset : str
        A filtered folder, its ORG/NAME on the Hub, or a set out of distribution as its authors' report has it.
    split : str, optional
        Not needed where there is only one.
    label_map : str, optional
        What numbers in the files mean, where that is not the dataset's order.
    revision : str, optional
        Of the dataset on the Hub.
    data : Path, optional
        Folder with the files of a set out of distribution, which has its authors' ids; by default it is the Hub's.

    Returns
    -------
    str
        Names the split.
    list of Difficulty or of OodPredictions
        One a file.

    Raises
    ------
    EvaluationError
        If the set is neither, a file cannot be read, is there twice or is of other rows, or a subset has no prediction.
    """
    called = _told_apart(files)
    if is_ood(dataset):
        return _on_ood(files, called, load_ood_spec(dataset), split, data, label_map=label_map, revision=revision)
    if data is not None:
        raise EvaluationError(f"--data is for one of {', '.join(list_sets())}, not for {dataset}: leave it out")
    built = find_built(dataset, revision)
    rows, masks = matching_rows(built, split)
    how: dict[str, Any] = {"label_map": label_map, "inputs": built.manifest["columns"]}
    found = [
        cross_model_difficulty(read_predictions(file, rows.names, name=name, **how), rows, masks)
        for file, name in zip(files, called, strict=True)
    ]
    return _title(built.name, built.version, split, len(rows)), found


def _told_apart(files: Sequence[Path]) -> list[str]:
    """Give each file the shortest end of its path that no other one has."""
    parts = [file.parts for file in files]
    names = []
    for file, own in zip(files, parts, strict=True):
        if files.count(file) > 1:
            raise EvaluationError(f"{file} is given more than once: give each file of predictions once")
        lengths = range(1, len(own) + 1)
        alone = (size for size in lengths if [one[-size:] for one in parts].count(own[-size:]) == 1)
        names.append(str(Path(*own[-next(alone, len(own)) :])))
    return names


def _on_ood(
    files: Sequence[Path],
    called: Sequence[str],
    spec: OodSpec,
    split: str | None,
    data: Path | None,
    *,
    label_map: str | None,
    revision: str | None,
) -> tuple[str, list[OodPredictions]]:
    read, facts = read_ood_rows(spec, data, split=split, revision=revision)
    rows = ood_matching_rows(read)
    found = []
    for file, name in zip(files, called, strict=True):
        predictions = read_predictions(file, rows.names, label_map=label_map, inputs=read.inputs, name=name)
        if rows.pair_ids is None and predictions.pair_ids is not None and predictions.pairs is None:
            column = predictions.column("pair_id", "pair id")
            raise EvaluationError(
                f"{name} names its rows by {column}, and {spec.title} has no ids on the Hub: pass as --data the folder "
                f"with the files of {spec.home}"
            )
        common, there, predicted = find_predictions(predictions, rows)
        scored = read.take(np.flatnonzero(there))
        found.append(OodPredictions(**vars(common), report=report(spec, scored.data, predicted)))
    return f"{spec.title} ({facts['origin']}): {len(rows):,} labelled rows", found


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
