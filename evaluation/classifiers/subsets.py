"""Rows to train a classifier on: a subset of a filtered folder, or the training split of a set out of distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.features.store import read_features
from builders.filtered import CONFIGS, FILTERED, REMOVED, WARMUP
from builders.folder import verify_folder
from builders.progress import without_bars_of_datasets
from evaluation.classifiers.ood import OodSpec, read_ood
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
        Input columns, ``label`` (a ClassLabel) and ``source_index``.
    columns : tuple of str
        The input columns: two texts or ``image``.
    facts : mapping
        What a checkpoint says of them: ``name``, ``version`` or ``revision``, ``split``, ``subset``.
    """

    rows: Dataset
    columns: tuple[str, ...]
    facts: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Label names in the order of their numbers."""
        return tuple(self.rows.features["label"].names)

    @property
    def of_images(self) -> bool:
        """Whether the input is an image."""
        return self.columns == ("image",)

    def head(self, limit: int | None) -> TrainingRows:
        """Give `limit` rows drawn evenly over the whole, all of them for None."""
        if limit is None or limit >= len(self.rows):
            return self
        if limit < 1:
            raise EvaluationError(f"--limit must be at least 1, not {limit}")
        places = np.arange(limit) * len(self.rows) // limit
        return TrainingRows(self.rows.select(places), self.columns, {**self.facts, "limit": limit})


@dataclass(frozen=True)
class FilteredFolder:
    """A filtered folder that was checked against its manifest.

    Attributes
    ----------
    path : Path
        The folder.
    manifest : mapping
        What built it.
    """

    path: Path
    manifest: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """Input columns."""
        return tuple(self.manifest["columns"])

    @property
    def filtered_splits(self) -> tuple[str, ...]:
        """Splits that were filtered, in the order in which they were pooled."""
        return tuple(self.manifest["inputs"]["source"]["filtered"])

    def rows(self, split: str) -> tuple[Dataset, NDArray[np.int8]]:
        """Give every labelled row of a split in the source's order, and its place in `builders.filtered.CONFIGS`.

        Raises
        ------
        EvaluationError
            If there is no such split.
        """
        from datasets import concatenate_datasets, load_dataset

        there = self.manifest["configs"]
        check_choice(f"split of {self.manifest['name']}", split, dict.fromkeys(s for of in there.values() for s in of))
        parts, codes = [], []
        with without_bars_of_datasets():
            for code, config in enumerate(CONFIGS):
                if split in there.get(config, {}):
                    parts.append(load_dataset(str(self.path), config, split=split))
                    codes.append(np.full(len(parts[-1]), code, np.int8))
        together = concatenate_datasets(parts)
        order = np.argsort(_column(together, "source_index"), kind="stable")
        return together.select(order), np.concatenate(codes)[order]


def open_filtered(path: Path) -> FilteredFolder:
    """Check a filtered folder, file by file.

    Raises
    ------
    BuildError
        If it is unfinished or was edited.
    EvaluationError
        If it is no filtered set.
    """
    manifest = verify_folder(path)
    if manifest.get("builder") != "aflite":
        raise EvaluationError(
            f"{path} is no filtered set but a set of builder {manifest.get('builder')!r}; "
            "build one with: probesieve build aflite"
        )
    return FilteredFolder(path, manifest)


def training_subset(
    data: FilteredFolder, subset: str, *, split: str = "train", features: Path | None = None, seed: int = 0
) -> TrainingRows:
    """Give the rows of a subset of a split, in the source's order.

    Parameters
    ----------
    data : FilteredFolder
        The filtered set.
    subset : str
        One of `SUBSETS`. ``full``: every labelled row, with those that trained the warm-up encoder: the source's own
        split. ``filtered`` and ``removed``: what the filter kept and took. ``random``: the stored random rows, as many
        as were kept. ``single-model``: as many rows, kept by one classifier at once, see `single_model_masks`.
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
    if (features is None) == (subset == SINGLE_MODEL):
        raise EvaluationError(
            f"--subset {SINGLE_MODEL} needs --features, the .npy or .safetensors file that the set was filtered on"
            if features is None
            else f"--features are for --subset {SINGLE_MODEL}, not for {subset}: leave them out"
        )
    rows, parts = data.rows(split)
    if features is not None:
        if split not in data.filtered_splits:
            raise EvaluationError(f"split {split!r} was not filtered, so no model can filter it: pass another split")
        mask = single_model_masks(data, features, seed=seed)[split]
    else:
        mask = _mask(subset, parts, _column(rows, "in_random_subset").astype(bool))
    chosen = np.flatnonzero(mask)
    if not chosen.size:
        raise EvaluationError(f"{data.manifest['name']} has no row in subset {subset} of split {split}: choose another")
    facts = {key: data.manifest[key] for key in ("name", "version")} | {"revision": data.manifest["sha256"]}
    facts |= {"split": split, "subset": subset}
    columns = [*data.columns, "label", "source_index"]
    return TrainingRows(rows.select(chosen).select_columns(columns), data.columns, facts)


def _mask(subset: str, parts: NDArray[np.int8], random: Mask) -> Mask:
    masks: dict[str, Mask] = {
        "full": np.ones(len(parts), bool),
        "filtered": parts == FILTERED,
        "removed": parts == REMOVED,
        "random": random,
    }
    return masks[subset]


def single_model_masks(data: FilteredFolder, features: Path, *, seed: int) -> dict[str, Mask]:
    """Filter the scored rows at once with one classifier, down to as many as AFLite kept: neither phases nor ensemble.

    `aflite.baselines.single_model` with the t of the set's own filter.

    Parameters
    ----------
    data : FilteredFolder
        The filtered set.
    features : Path
        A row for each kept or removed row of the filtered splits, in the source's order: the file that
        ``probesieve build aflite`` leaves below its work folder, or was given.
    seed : int
        Of the rows that train the classifier.

    Returns
    -------
    dict of str to ndarray of bool
        For each filtered split, whether a row is kept; rows of the warm-up sample are not.

    Raises
    ------
    BuildError
        If the features are not those of the set's rows, or a parameter of the filter does not go with them.
    """
    from aflite.baselines import single_model

    found = {split: data.rows(split) for split in data.filtered_splits}
    scored = {split: np.flatnonzero(parts != WARMUP) for split, (_, parts) in found.items()}
    labels = np.concatenate([_column(rows, "label")[scored[split]] for split, (rows, _) in found.items()])
    kept = sum(int((parts == FILTERED).sum()) for _, parts in found.values())
    given = read_features(features, n_rows={"kept and removed rows": labels.size})
    settings = data.manifest["inputs"]["filter"]
    try:
        mask = single_model(
            given.features, labels, n=kept, t=min(settings["t"], kept), seed=seed, c=settings.get("c", 1.0)
        )
    except ValueError as error:
        raise BuildError(f"{SINGLE_MODEL}: {error}") from error
    masks, start = {}, 0
    for split, (rows, _) in found.items():
        masks[split] = np.zeros(len(rows), bool)
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
    columns = ("image",) if spec.modality == "image" else ("premise", "hypothesis")
    rows = found.rows.select(chosen).select_columns([*columns, "label", "source_index"])
    facts = {"name": spec.name, "revision": found.revision, "split": "train", "subset": _shown(where or {}) or "full"}
    return TrainingRows(rows, columns, facts)


def _shown(where: Mapping[str, str]) -> str:
    return ",".join(f"{column}={value}" for column, value in where.items())


def _column(rows: Dataset, name: str) -> NDArray[Any]:
    """Values of a column without those of others, images above all."""
    values: NDArray[Any] = rows.select_columns([name]).with_format("arrow")[:][name].to_numpy()
    return values
