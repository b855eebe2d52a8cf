"""Trains a classifier for comparison: the same recipe on all rows, on what a filter kept, on a random subset.

Text models are fine-tuned with the Trainer of transformers, image models are trained with timm and RandAugment; the
recipes are those of `builders.features`, whose defaults are the settings of Le Bras et al. 2020.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from builders.aflite import Machine
from builders.atomic import write_text
from builders.disk import told_when_full
from builders.features.checkpoints import fields_that_differ
from builders.features.images import ImageRecipe, ImageSettings
from builders.features.transformer import TransformerRecipe, TransformerSettings
from builders.locks import claimed
from builders.names import as_file_name, inside
from builders.specs import read_override
from builders.stopping import goes_on_from
from builders.tables import from_table
from evaluation import store
from evaluation.built_sets import find_built
from evaluation.classifiers.ood import list_sets, load_ood_spec
from evaluation.classifiers.predict import INPUT_COLUMNS
from evaluation.classifiers.sets import labelled_splits
from evaluation.classifiers.subsets import TrainingRows, ood_training_rows, training_subset
from evaluation.errors import EvaluationError
from evaluation.models import check_choice

RECORD, CONFIG = "training.json", "config.json"

Settings = TransformerSettings | ImageSettings
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trained:
    """A checkpoint that ``probesieve eval`` scores.

    Attributes
    ----------
    folder : Path
        Where it lies.
    record : mapping
        Its ``training.json``: ``data``, ``rows``, ``labels`` (counts by name), ``seed`` and ``recipe``.
    fresh : bool
        Whether this call trained it.
    """

    folder: Path
    record: Mapping[str, Any]
    fresh: bool


@dataclass(frozen=True)
class TrainingRequest:
    """What a command asks for.

    Attributes
    ----------
    data : str
        A filtered folder, ORG/NAME on the Hub, or the name of a set out of distribution that has training rows.
    subset, split, features
        As for `evaluation.classifiers.subsets.training_subset`.
    files : Path, optional
        Files of a set out of distribution.
    where : tuple of str
        ``COLUMN=VALUE``: which rows of such a set.
    limit : int, optional
        Most rows.
    model : str, optional
        What to start from.
    values : tuple of str
        ``KEY=VALUE`` for the training settings.
    inputs : tuple of str
        Input columns that the model gets to see; empty for all.
    score : tuple of str
        Splits that are to be scored afterwards; a set that lacks one is refused before anything is trained.
    """

    data: str
    subset: str = "full"
    split: str = "train"
    features: Path | None = None
    files: Path | None = None
    where: tuple[str, ...] = ()
    limit: int | None = None
    model: str | None = None
    values: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    score: tuple[str, ...] = ()


def train_seeds(
    request: TrainingRequest, out: Path, *, seeds: Sequence[int], machine: Machine | None = None
) -> Iterator[Trained]:
    """Train a classifier with each of several seeds.

    Parameters
    ----------
    request : TrainingRequest
        What to train on and how.
    out : Path
        Folder that gets a folder a checkpoint.
    seeds : sequence of int
        Seeds, each once.
    machine : Machine, optional
        Where it runs.

    Raises
    ------
    EvaluationError, BuildError, HubError
        As `train_classifier` and the functions of `evaluation.classifiers.subsets`.
    """
    if len(set(seeds)) < len(seeds):
        raise EvaluationError(f"--seed must name each seed once, not {', '.join(map(str, seeds))}")
    values = dict(read_override(text) for text in request.values)
    if request.model is not None:
        values["model"] = request.model
    for seed in seeds:
        data = _requested_rows(request, seed).drawn(request.limit)
        settings = make_settings(data, values)
        yield train_classifier(data, out, settings=settings, seed=seed, inputs=request.inputs or None, machine=machine)


def _requested_rows(request: TrainingRequest, seed: int) -> TrainingRows:
    if request.data in list_sets():
        if request.subset != "full" or request.features or request.score:
            raise EvaluationError(
                f"{request.data} was not filtered: leave out --subset, --features and --score, and use --where; "
                f"score with probesieve eval --dataset {request.data}"
            )
        return ood_training_rows(load_ood_spec(request.data), request.files, where=_read_where(request.where))
    if request.files or request.where:
        raise EvaluationError(f"--files and --where are for one of {', '.join(list_sets())}, not for {request.data}")
    built = find_built(request.data)
    labelled_splits(built, request.score)
    return training_subset(built, request.subset, split=request.split, features=request.features, seed=seed)


def _read_where(where: Sequence[str]) -> dict[str, str]:
    named = [text.partition("=") for text in where]
    for text, (column, equals, value) in zip(where, named, strict=True):
        if not (column and equals and value):
            raise EvaluationError(f"--where must be COLUMN=VALUE such as round=R1, not {text!r}")
    return {column: value for column, _, value in named}


def make_settings(data: TrainingRows, values: Mapping[str, Any]) -> Settings:
    """Give the settings for text or images: the paper's, but for `values`.

    Raises
    ------
    BuildError
        If a value is unknown or of the wrong type.
    """
    kind: type[Settings] = ImageSettings if data.of_images else TransformerSettings
    return from_table(kind, values, "training settings")


def train_classifier(
    data: TrainingRows,
    out: Path,
    *,
    settings: Settings,
    seed: int,
    inputs: Sequence[str] | None = None,
    name: str | None = None,
    machine: Machine | None = None,
) -> Trained:
    """Train a classifier, or give the one that is there already from the same rows, settings and seed.

    Parameters
    ----------
    data : TrainingRows
        What to train on.
    out : Path
        Folder that gets the checkpoint's folder. A run that was killed goes on from ``out/.work``.
    settings : TransformerSettings or ImageSettings
        What to train and how.
    seed : int
        Decides new weights, order, augmentation and dropout. On a CPU equal seeds give equal weights.
    inputs : sequence of str, optional
        Input columns that the model gets to see, for partial-input baselines: ``["hypothesis"]``. All by default.
    name : str, optional
        Name of the checkpoint's folder; by default made of data, subset, inputs, model and seed.
    machine : Machine, optional
        Where it runs.

    Returns
    -------
    Trained
        The folder has ``config.json`` (with the class names, and ``input_columns`` for who scores it), the weights, a
        text model's tokenizer, and ``training.json``, which is the same for equal seeds.

    Raises
    ------
    EvaluationError
        If there is no such input column, or the folder holds something else.
    BuildError
        If the rows, the settings and the machine do not go together, another run trains this, or the disk is full.
    HubError
        If the model cannot be had from the Hub.
    """
    if not 0 <= seed < 2**32:
        raise EvaluationError(f"--seed must be from 0 to 2**32 - 1, not {seed}")
    machine = machine or Machine()
    columns = _columns(data, inputs)
    recipe = _recipe(data, columns, settings, machine)
    target = inside(out, name or default_name(data, settings, seed=seed, inputs=inputs))
    record = {
        "data": dict(data.facts),
        "rows": len(data.rows),
        "labels": _count_labels(data),
        "seed": seed,
        "recipe": dict(recipe.identity()),
        "versions": store.versions(),
    }
    work = inside(out, ".work", target.name)
    with claimed(target), told_when_full(work), goes_on_from(work):
        if target.exists():
            _check_same(target, record)
            shutil.rmtree(work, ignore_errors=True)  # of a run that was killed at its very end
            return Trained(target, record, fresh=False)
        _logger.info("training %s on %d rows", target.name, len(data.rows))
        recipe.train(data.rows, work, seed=seed)
        _put(work, target, columns, record)
    return Trained(target, record, fresh=True)


def default_name(data: TrainingRows, settings: Settings, *, seed: int, inputs: Sequence[str] | None = None) -> str:
    """Give the name of a checkpoint's folder: data, subset, what it reads if not all, model and seed."""
    model = Path(settings.model.replace(":", "/")).name
    subset = str(data.facts["subset"]).replace("=", "-")
    parts = [data.facts["name"], subset, *(inputs or ()), model, f"seed{seed}"]
    if limit := data.facts.get("limit"):
        parts.insert(2, str(limit))
    return as_file_name("_".join(map(str, parts)))


def _columns(data: TrainingRows, inputs: Sequence[str] | None) -> tuple[str, ...]:
    """Input columns in the data's order."""
    if inputs is None:
        return data.columns
    for column in inputs:
        check_choice("input column", column, data.columns)
    return tuple(column for column in data.columns if column in inputs)


def _recipe(
    data: TrainingRows, columns: tuple[str, ...], settings: Settings, machine: Machine
) -> TransformerRecipe | ImageRecipe:
    if isinstance(settings, TransformerSettings):
        return TransformerRecipe(settings, inputs=columns, names=data.names, device=machine.device)
    return ImageRecipe(settings, inputs=columns, names=data.names, device=machine.device, workers=machine.workers)


def _count_labels(data: TrainingRows) -> dict[str, int]:
    counts = np.bincount(data.labels, minlength=len(data.names)).tolist()
    if missing := [name for name, count in zip(data.names, counts, strict=True) if not count]:
        _logger.warning("no row to train on has the label %s", ", ".join(missing[:5]))
    return dict(zip(data.names, counts, strict=True))


def _check_same(target: Path, record: Mapping[str, Any]) -> None:
    if not (target / RECORD).is_file():
        raise EvaluationError(f"{target} is there and holds no {RECORD}, so it is not ours: choose another --out")
    before = store.read_json(target / RECORD)
    before, now = (flat(json.loads(json.dumps(of | {"versions": None}))) for of in (before, dict(record)))
    # The rows decide, whatever else is said of their set; records of earlier versions have its revision alone.
    aside = {"data.revision"} if "data.rows" in before and "data.rows" in now else {"data.rows"}
    before, now = ({key: of[key] for key in of if key not in aside} for of in (before, now))
    if different := fields_that_differ(before, now):
        raise EvaluationError(f"{target} was trained otherwise ({different}): remove it, or choose another --out")


def flat(record: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Give the fields of a record and of the records in it, each by the names of all that it is in."""
    fields: dict[str, Any] = {}
    for key, value in record.items():
        fields |= flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return fields


def _put(work: Path, target: Path, columns: tuple[str, ...], record: Mapping[str, Any]) -> None:
    """Say in the trained folder what it is, and move it to its place."""
    model = work / "model" if (work / "model").is_dir() else work
    config = store.read_json(model / CONFIG)
    write_text(model / CONFIG, json.dumps({**config, INPUT_COLUMNS: list(columns)}, indent=2) + "\n")
    write_text(model / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    model.rename(target)
    shutil.rmtree(work, ignore_errors=True)
