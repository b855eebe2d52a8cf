"""Rows to train a classifier on: a subset of a filtered folder, or the training split of a set out of distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.features.store import read_features
from builders.sources.spec import IMAGE
from evaluation.built_sets import BuiltSet
from evaluation.classifiers.ood import OodSpec, read_ood
from evaluation.classifiers.ood.spec import INPUTS
from evaluation.classifiers.sets import KEPT, REMOVED, labelled_splits, read_split, subsets_of
from evaluation.errors import EvaluationError
from evaluation.models import check_choice

if TYPE_CHECKING:
    from datasets import Dataset

SINGLE_MODEL = "single-model"
SUBSETS = ("full", "filtered", "removed", "random", SINGLE_MODEL)

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class TrainingRows:
    """What a classifier is trained on.

    Attributes
    ----------
    rows : datasets.Dataset
        Input columns, ``label`` and ``source_index``.
    columns : tuple of str
        The input columns: one or two texts, or ``image``.
    names : tuple of str
        Label names in the order of their numbers.
    facts : mapping
        What a checkpoint says of them: ``name``, ``revision``, ``split``, ``subset``.
    """

    rows: Dataset
    columns: tuple[str, ...]
    names: tuple[str, ...]
    facts: Mapping[str, Any]

    @property
    def labels(self) -> NDArray[np.int64]:
        """Label of each row, of shape (rows,)."""
        labels: NDArray[np.int64] = self.rows.select_columns(["label"]).with_format("arrow")[:]["label"].to_numpy()
        return labels

    @property
    def of_images(self) -> bool:
        """Whether the input is an image."""
        return self.columns == (IMAGE,)

    def drawn(self, limit: int | None) -> TrainingRows:
        """Give `limit` rows at random, the same for every call; all of them for None or where there are no more.

        Raises
        ------
        EvaluationError
            If `limit` is below 1.
        """
        if limit is None or limit >= len(self.rows):
            return self
        if limit < 1:
            raise EvaluationError(f"--limit must be at least 1, not {limit}")
        places = np.random.default_rng(0).choice(len(self.rows), limit, replace=False)
        return replace(self, rows=self.rows.select(np.sort(places)), facts={**self.facts, "limit": limit})


def training_subset(
    built: BuiltSet, subset: str, *, split: str = "train", features: Path | None = None, seed: int = 0
) -> TrainingRows:
    """Give the rows of a subset of a split, in the source's order.

    Parameters
    ----------
    built : BuiltSet
        A filtered set.
    subset : str
        One of `SUBSETS`. ``full``: every labelled row of the source's split, those of the warm-up sample too.
        ``filtered`` and ``removed``: what the filter kept and took. ``random``: the stored random rows, as many as were
        kept. ``single-model``: as many rows, kept by one classifier at once, see `single_model_masks`.
    split : str
        The split.
    features : Path, optional
        For ``single-model``, which needs them.
    seed : int
        Of ``single-model``.

    Raises
    ------
    EvaluationError
        If there is no such subset or split, or no row in it; if features are missing or one too many.
    BuildError
        If the features are not those of the set's rows.
    """
    check_choice("subset", subset, SUBSETS)
    labelled_splits(built, [split])
    if (features is None) == (subset == SINGLE_MODEL):
        raise EvaluationError(
            f"--subset {SINGLE_MODEL} needs --features, the .npy or .safetensors file that the set was filtered on"
            if features is None
            else f"--features are for --subset {SINGLE_MODEL}, not for {subset}: leave them out"
        )
    rows = read_split(built, split)
    if features is None:
        mask = subsets_of(rows.facts)[KEPT if subset == "filtered" else subset]
    else:
        masks = single_model_masks(built, features, seed=seed)
        if split not in masks:
            raise EvaluationError(f"split {split!r} was not filtered, so no model can filter it: pass another split")
        mask = masks[split]
    chosen = np.flatnonzero(mask)
    if not chosen.size:
        raise EvaluationError(f"{built.name} has no row in subset {subset} of split {split}: choose another")
    facts = {"name": built.name, "version": built.version, "revision": built.revision, "split": split, "subset": subset}
    facts["rows"] = built.rows_id(split)
    data = rows.data.select(chosen).select_columns([*rows.inputs, "label", "source_index"])
    return TrainingRows(data, rows.inputs, rows.names, facts)


def single_model_masks(built: BuiltSet, features: Path, *, seed: int) -> dict[str, Mask]:
    """Filter the scored rows at once with one classifier, down to as many as AFLite kept: neither phases nor ensemble.

    `aflite.baselines.single_model` with the t of the set's own filter.

    Parameters
    ----------
    built : BuiltSet
        The filtered set.
    features : Path
        A row for each kept or removed row of the filtered splits, in the source's order: the file that
        ``probesieve build aflite`` leaves below its work folder, or was given.
    seed : int
        Of the rows that train the classifier.

    Returns
    -------
    dict of str to ndarray of bool, shape (rows of the split,)
        For each filtered split, whether a row is kept; rows of the warm-up sample are not.

    Raises
    ------
    BuildError
        If the features are not those of the set's rows, or a parameter of the filter does not go with them.
    """
    from aflite.baselines import single_model

    found = {split: read_split(built, split).facts for split in built.manifest["inputs"]["source"]["filtered"]}
    subsets = {split: subsets_of(facts) for split, facts in found.items()}
    scored = {split: np.flatnonzero(masks[KEPT] | masks[REMOVED]) for split, masks in subsets.items()}
    labels = np.concatenate([facts["label"].to_numpy()[scored[split]] for split, facts in found.items()])
    kept = sum(int(masks[KEPT].sum()) for masks in subsets.values())
    given = read_features(features, n_rows={"kept and removed rows": labels.size})
    settings = built.manifest["inputs"]["filter"]
    try:
        mask = single_model(given.features, labels, n=kept, t=min(settings["t"], kept), seed=seed, c=settings["c"])
    except ValueError as error:
        raise BuildError(f"{SINGLE_MODEL}: {error}") from error
    masks, start = {}, 0
    for split, facts in found.items():
        masks[split] = np.zeros(len(facts), bool)
        masks[split][scored[split]] = mask[start : start + scored[split].size]
        start += scored[split].size
    return masks


def ood_training_rows(spec: OodSpec, path: Path | None, *, where: Mapping[str, str] | None = None) -> TrainingRows:
    """Give the training rows of a set that has a split ``train``, such as one round of Adversarial NLI.

    Parameters
    ----------
    spec : OodSpec
        The set.
    path : Path, optional
        Its files; by default it comes from the Hub.
    where : mapping of str to str, optional
        Values that columns of groups must have: ``{"round": "R1"}``.

    Raises
    ------
    EvaluationError
        If the set has no such split or column, or no such rows.
    HubError
        If the Hub does not have it.
    """
    if "train" not in spec.splits:
        raise EvaluationError(f"{spec.title} has no rows to train on: it is for scoring alone")
    found = read_ood(spec, path, split="train")
    mask = np.ones(len(found.rows), bool)
    for column, value in (where or {}).items():
        check_choice(f"column of {spec.name}", column, [group.column for group in spec.groups])
        values = found.rows[column][:]
        mask &= np.array([value in one if isinstance(one, list) else value == one for one in values], bool)
    chosen = np.flatnonzero(mask)
    if not chosen.size:
        raise EvaluationError(f"{spec.title} has no row where {_shown(where or {})}: choose other values")
    columns = INPUTS[spec.modality]
    rows = found.rows.select(chosen).select_columns([*columns, "label", "source_index"])
    facts = {"name": spec.name, "revision": found.revision, "split": "train", "subset": _shown(where or {}) or "full"}
    return TrainingRows(rows, columns, spec.names(), facts)


def _shown(where: Mapping[str, str]) -> str:
    return ",".join(f"{column}={value}" for column, value in where.items())
