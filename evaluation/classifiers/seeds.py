"""Checkpoints of one setting and several seeds, scored together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from builders.aflite import Machine
from evaluation.classifiers.run import ClassifierOptions, evaluate_classifier
from evaluation.classifiers.sets import SUBSETS
from evaluation.classifiers.tables import Table
from evaluation.run import Engine


def score_seeds(
    checkpoints: Sequence[Path], dataset: str, *, splits: Sequence[str], machine: Machine, out: Path
) -> Table:
    """Give accuracies on the subsets of some splits, over the seeds of the checkpoints.

    Parameters
    ----------
    checkpoints : sequence of Path
        One a seed.
    dataset : str
        A filtered folder, or ORG/NAME on the Hub.
    splits : sequence of str
        What to score.
    machine : Machine
        Where it runs.
    out : Path
        The results folder; results that lie there are not made again.

    Returns
    -------
    Table
        A row a split, a column a subset.

    Raises
    ------
    EvaluationError, BuildError, HubError
        As `evaluation.classifiers.run.evaluate_classifier`.
    """
    engine = Engine(device=machine.device, decoders=machine.workers)
    options = ClassifierOptions()
    found = [
        evaluate_classifier(str(folder), dataset, options, engine=engine, out=out, splits=splits).result["splits"]
        for folder in checkpoints
    ]
    rows = []
    for split in splits:
        accuracies = [one[split]["accuracy"] for one in found]
        cells = (tuple(one[subset]["value"] for one in accuracies if one[subset]) for subset in SUBSETS)
        rows.append((split, tuple(cells)))
    return Table(f"Accuracy in percent, {len(checkpoints)} seeds", SUBSETS, tuple(rows))
