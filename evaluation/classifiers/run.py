"""Scores a classifier on filtered sets and on sets out of distribution: draws, scores shard by shard, sums up."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import store
from evaluation.built_sets import BuiltSet, find_built
from evaluation.classifiers.labels import SUBSET, LabelMap, match_labels
from evaluation.classifiers.ood import OodSpec, imagenet_a_columns
from evaluation.classifiers.predict import Classifier, check_together
from evaluation.classifiers.scoring import How, check_broken, loaded, score_missing
from evaluation.classifiers.sets import LabelledRows, labelled_splits, read_ood_rows, read_split
from evaluation.classifiers.summary import summarize
from evaluation.errors import EvaluationError
from evaluation.loading import DTYPES
from evaluation.models import CLASSIFIERS, ModelRef, check_choice, resolve_model
from evaluation.parallel import backend_arguments
from evaluation.results import ClassifierScores
from evaluation.run import Engine

PROTOCOL = "exact"

_TOLERATED = "broken_share"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ClassifierOptions:
    """What decides the predictions of a classifier; but for `broken_share`, stored and compared before a run goes on.

    Attributes
    ----------
    limit : int or None
        Rows of each split, drawn at random; None for all.
    seed : int
        Of the draw.
    dtype : str
        ``float32``, ``float16`` or ``bfloat16``.
    label_map : str or None
        What the model's classes mean, ``0=entailment,1=neutral,2=contradiction``; by default the names that it has.
    broken_share : float
        Share of images, in [0, 1], that may be broken; more of them end the run.
    """

    limit: int | None = None
    seed: int = 0
    dtype: str = "float32"
    label_map: str | None = None
    broken_share: float = 0.01


@dataclass(frozen=True)
class _Part:
    """A split that is to be scored: its place and its facts are known before its rows are read."""

    split: str
    facts: dict[str, Any]
    read: Callable[[], LabelledRows]
    spec: OodSpec | None = None


def evaluate_classifier(
    model: str,
    dataset: str,
    options: ClassifierOptions,
    *,
    engine: Engine,
    out: Path,
    splits: Sequence[str] | None = None,
    overwrite: bool = False,
    revision: str | None = None,
    kind: str | None = None,
    dataset_revision: str | None = None,
) -> ClassifierScores:
    """Score a classifier on a filtered set, or give the results that are there; a run that was stopped goes on.

    Parameters
    ----------
    model : str
        Hub id or local folder.
    dataset : str
        A folder of `builders.aflite.build_aflite`, or ORG/NAME on the Hub.
    options, engine, out, overwrite
        As for `evaluate_filtered`.
    splits : sequence of str, optional
        By default all that have labels.
    revision, dataset_revision : str, optional
        Of the model and of the dataset on the Hub.
    kind : str, optional
        Instead of what the checkpoint says.

    Returns
    -------
    ClassifierScores
        Its result is that of the last split but for ``splits``, where each split has its summary, and ``rows`` and
        ``seconds``, which are sums. ``splits[SPLIT]["accuracy"][SUBSET]`` has ``value``, ``low``, ``high`` and ``n``,
        or is None where SUBSET (full, kept, removed, random) has no rows. Its path is the folder of the results where
        there are several.

    Raises
    ------
    EvaluationError, BuildError, HubError
        As `evaluate_filtered`.
    """
    ref = resolve_model(model, revision, kind=kind)
    built = find_built(dataset, dataset_revision)
    found = list(evaluate_filtered(ref, built, options, engine=engine, out=out, splits=splits, overwrite=overwrite))
    return ClassifierScores.joined(found)


def evaluate_filtered(
    ref: ModelRef,
    built: BuiltSet,
    options: ClassifierOptions,
    *,
    engine: Engine,
    out: Path,
    splits: Sequence[str] | None = None,
    overwrite: bool = False,
) -> Iterator[ClassifierScores]:
    """Score a classifier on the splits of a filtered set, one result a split.

    Parameters
    ----------
    ref : ModelRef
        The model, pinned.
    built : BuiltSet
        The set, pinned.
    options : ClassifierOptions
        What decides the predictions.
    engine : Engine
        How the work is done.
    out : Path
        The results folder.
    splits : sequence of str, optional
        By default all that have labels.
    overwrite : bool
        Whether to replace a result, or an unfinished run, of other options.

    Raises
    ------
    EvaluationError
        If the model, the set and the options do not go together, other options made what is there, or more images are
        broken than may be.
    BuildError
        If the weights of an image model cannot be used.
    HubError
        If something cannot be fetched.
    """
    for split in labelled_splits(built, splits):
        part = _Part(split, _facts_of(built), functools.partial(read_split, built, split))
        yield _evaluate(ref, part, options, engine=engine, out=out, overwrite=overwrite)


def _facts_of(built: BuiltSet) -> dict[str, Any]:
    return {"name": built.name, "version": built.version, "source": built.source, "revision": built.revision}


def evaluate_ood(
    ref: ModelRef,
    specs: Sequence[OodSpec],
    options: ClassifierOptions,
    *,
    engine: Engine,
    out: Path,
    data: Path | None = None,
    split: str | None = None,
    revision: str | None = None,
    overwrite: bool = False,
) -> Iterator[ClassifierScores]:
    """Score a classifier on sets out of distribution; all are read by this call, before the first is scored.

    Parameters
    ----------
    ref, options, engine, out, overwrite
        As for `evaluate_filtered`.
    specs : sequence of OodSpec
        The sets.
    data : Path, optional
        Folder with the files that their authors distribute; by default they come from the Hub.
    split : str, optional
        Of sets that have several.
    revision : str, optional
        Of the sets on the Hub.

    Raises
    ------
    EvaluationError, BuildError, HubError
        As `evaluate_filtered`, and if a set cannot be read.
    """
    if data is None and (away := [spec for spec in specs if spec.hub is None]):
        raise EvaluationError(
            f"{away[0].title} is not on the Hub: get it from {away[0].home} and pass as --data the folder that has it "
            f"{'and the other sets' if len(specs) > 1 else ''}".rstrip()
        )
    parts = []
    for spec in specs:
        rows, facts = read_ood_rows(spec, data, split=split, revision=revision)
        check_together(ref, rows)
        parts.append(_Part(rows.split, facts, functools.partial(lambda rows: rows, rows), spec))
    return (_evaluate(ref, part, options, engine=engine, out=out, overwrite=overwrite) for part in parts)


def _evaluate(
    ref: ModelRef, part: _Part, options: ClassifierOptions, *, engine: Engine, out: Path, overwrite: bool
) -> ClassifierScores:
    how = How(ref, options.dtype, engine)
    _check(how, options)
    facts = part.facts
    place = store.place_of(out, ref, f"{facts['name']}@{facts['version']}", part.split, PROTOCOL)
    settings = {"model": ref.sha, "kind": ref.kind, "dataset": facts["revision"], "split": part.split}
    options = options if options.limit else replace(options, seed=ClassifierOptions.seed)  # where nothing is drawn
    settings |= {"protocol": PROTOCOL, **{name: value for name, value in asdict(options).items() if name != _TOLERATED}}
    if not overwrite and (found := store.read_result(place, settings)):
        broken = found["splits"][part.split]["broken"]
        check_broken(facts["name"], part.split, broken["first"], broken["rows"], found["rows"], options.broken_share)
        return ClassifierScores(found, place.result, fresh=False)
    everything = part.read()
    check_together(ref, everything)
    classifier = loaded(how)
    labels = _label_map(classifier, everything, options.label_map, part.spec)
    rows = everything.drawn(options.limit, seed=options.seed)
    with store.locked(place):
        shards = store.open_partial(place, settings, rows.facts, overwrite=overwrite)
        try:
            score_missing(place, shards, rows, labels, how, broken_share=options.broken_share)
        except BaseException:
            store.abandon(place)
            raise
        predictions, seconds = store.merge_shards(place, shards)
        summary = summarize(predictions, rows.names, rows.groups, part.spec)
        result = {
            "model": ref.facts,
            "dataset": facts | {"rows": len(everything), "inputs": list(rows.inputs), "names": list(rows.names)},
            "groups": list(rows.groups),
            "settings": settings,
            "labels": labels.facts,
            "inputs": classifier.facts,
            "rows": len(rows),
            "splits": {part.split: summary},
            "seconds": round(seconds, 3),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": store.versions(),
        }
        result = store.finish(place, result, predictions)
    if count := summary["broken"]["rows"]:
        _logger.warning("%d images of %s, split %s, could not be read and are left out", count, rows.name, part.split)
    return ClassifierScores(result, place.result, fresh=True)


def _check(how: How, options: ClassifierOptions) -> None:
    """Refuse what cannot be before anything is loaded, scored or replaced."""
    ref, engine = how.ref, how.engine
    if ref.kind not in CLASSIFIERS:
        raise EvaluationError(f"{ref.name} is of kind {ref.kind}, and this set needs one of {', '.join(CLASSIFIERS)}")
    check_choice("dtype", options.dtype, DTYPES)
    for name, value, least in (
        ("--workers", engine.decoders, 0) if how.decodes_ahead else ("--workers", engine.workers, 1),
        ("--batch-size", engine.batch_size, 1),
        ("--seed", options.seed, 0),
        ("--limit", options.limit, 1),
    ):
        if value is not None and value < least:
            raise EvaluationError(f"{name} must be at least {least}, not {value}")
    backend_arguments(engine.backend, how.shards_at_once)
    if not 0 <= options.broken_share <= 1:
        raise EvaluationError(f"--broken-share must be from 0 to 1, not {options.broken_share}")


def _label_map(classifier: Classifier, rows: LabelledRows, label_map: str | None, spec: OodSpec | None) -> LabelMap:
    """Meet the model's classes with the set's in the first of the ways in which they may be read that fits."""
    ways = classifier.classes
    if spec is not None and spec.classes == "imagenet-a":
        if label_map is not None:
            raise EvaluationError("--label-map means nothing on imagenet-a, whose classes are ImageNet's: leave it out")
        columns = imagenet_a_columns(len(ways[0]), ways[-1])
        target = np.full(len(ways[0]), -1)
        target[columns] = np.arange(len(columns))
        return LabelMap(ways[0], rows.names, tuple(target.tolist()), SUBSET.format(len(columns), len(target)))
    errors = []
    for names in ways:
        try:
            return match_labels(names, rows.names, label_map=label_map)
        except EvaluationError as error:
            errors.append(error)
    raise errors[0]
