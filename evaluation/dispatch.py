"""Finds out what a model and a set are, and scores the one on the other in the way that is for both."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.built_sets import BuiltSet, find_built
from evaluation.classifiers.ood import OodSpec, is_ood, list_sets, load_ood_spec
from evaluation.classifiers.run import ClassifierOptions, evaluate_filtered, evaluate_ood
from evaluation.classifiers.suites import suite_specs
from evaluation.errors import EvaluationError
from evaluation.models import CLASSIFIERS, ModelRef, resolve_model
from evaluation.results import ClassifierScores, ProbeScores
from evaluation.run import Engine, Options, evaluate_all


@dataclass(frozen=True)
class Sets:
    """What to score a model on.

    Attributes
    ----------
    datasets : tuple of str
        Built folders, ORG/NAME on the Hub, or sets out of distribution: names (`list_sets`) or specs (``.toml``).
        None at all, and no suite, are the four probe sets in ``./build``.
    suite : str or None
        One of `evaluation.classifiers.suites.SUITES`.
    data : Path or None
        Where the files of sets out of distribution lie.
    splits : tuple of str
        For classifiers; none are all that have labels.
    config : str or None
        For probe sets.
    revision : str or None
        Of datasets on the Hub.
    """

    datasets: tuple[str, ...] = ()
    suite: str | None = None
    data: Path | None = None
    splits: tuple[str, ...] = ()
    config: str | None = None
    revision: str | None = None


def evaluate_any(
    model: str,
    sets: Sets,
    options: Options,
    of_classifier: ClassifierOptions,
    *,
    engine: Engine,
    out: Path,
    overwrite: bool = False,
    revision: str | None = None,
    kind: str | None = None,
) -> Iterator[ProbeScores | ClassifierScores]:
    """Score a model on sets that are for its kind.

    Parameters
    ----------
    model : str
        Hub id or local folder.
    sets : Sets
        What to score it on.
    options : Options
        Of models that are scored on probe sets; for a classifier all must be the defaults.
    of_classifier : ClassifierOptions
        Of classifiers; for other models all must be the defaults.
    engine, out, overwrite
        As for `evaluation.run.evaluate`.
    revision, kind : str, optional
        As for `evaluation.models.resolve_model`.

    Raises
    ------
    EvaluationError, BuildError, HubError
        If the model and a set do not go together, an option is not for them, or one of them cannot be used.
    """
    ref = resolve_model(model, revision, kind=kind)
    if ref.kind not in CLASSIFIERS:
        _check_probe_sets(ref, sets)
        plain = ClassifierOptions(seed=of_classifier.seed, dtype=of_classifier.dtype)
        given = {"--data": sets.data, "--split": sets.splits or None}
        _refuse(ref, given | _changed(of_classifier, plain))
        yield from evaluate_all(
            ref,
            sets.datasets or None,
            options,
            engine=engine,
            out=out,
            overwrite=overwrite,
            config=sets.config,
            dataset_revision=sets.revision,
        )
        return
    specs, built = _sets_of_classifier(ref, sets)
    _refuse(ref, {"--config": sets.config} | _changed(options, Options(seed=options.seed, dtype=options.dtype)))
    how: dict[str, Any] = {"engine": engine, "out": out, "overwrite": overwrite}
    split = next(iter(sets.splits), None)
    ood = evaluate_ood(ref, specs, of_classifier, data=sets.data, split=split, revision=sets.revision, **how)
    for one in built:
        yield from evaluate_filtered(ref, one, of_classifier, splits=sets.splits or None, **how)
    yield from ood


def _sets_of_classifier(ref: ModelRef, sets: Sets) -> tuple[list[OodSpec], list[BuiltSet]]:
    """Give the sets out of distribution and the filtered sets; one that is for other models is told before options."""
    known = list_sets()
    suite = suite_specs(sets.suite) if sets.suite else ()
    specs = [*suite, *(load_ood_spec(source) for source in sets.datasets if is_ood(source))]
    filtered = [_known(source, known) for source in sets.datasets if not is_ood(source)]
    if not specs and not filtered:
        raise EvaluationError(
            f"{ref.name} is of kind {ref.kind}: say with --dataset or --suite what to score it on, a filtered set or "
            f"one of {', '.join(known)}"
        )
    if sets.data and not specs:
        raise EvaluationError(f"--data is for sets out of distribution: name one ({', '.join(known)}) or a --suite")
    if specs and len(sets.splits) > 1:
        raise EvaluationError("--split takes one split for sets out of distribution")
    built = [find_built(source, sets.revision) for source in filtered]
    for one in built:
        if one.builder == "unqover":
            raise EvaluationError(
                f"{one.source} is a probe set, which needs a question-answering or language model, and {ref.name} is "
                f"of kind {ref.kind}: pass a filtered set"
            )
    return specs, built


def on_disk(datasets: Sequence[str], suite: str | None) -> tuple[str, ...]:
    """Give those of the sets that are not certain to be on the Hub: all but the ones out of distribution."""
    return tuple(source for source in datasets or (() if suite else ("build",)) if not is_ood(source))


def _known(source: str, names: Sequence[str]) -> str:
    """Give a source that may be one; for what is neither folder nor ORG/NAME the sets out of distribution are close."""
    if "/" not in source and not Path(source).is_dir() and (close := difflib.get_close_matches(source, names, n=1)):
        raise EvaluationError(f"{source} is neither a built folder nor ORG/NAME; did you mean {close[0]!r}?")
    return source


def _check_probe_sets(ref: ModelRef, sets: Sets) -> None:
    """Raise `EvaluationError` for a set that is for classifiers."""
    of = {sets.suite: "a suite of sets out of distribution"} if sets.suite else {}
    for source in sets.datasets:
        if is_ood(source):
            of[source] = "a set out of distribution"
        elif find_built(source, sets.revision).builder == "aflite":
            of[source] = "a filtered set"
    for source, what in of.items():
        raise EvaluationError(
            f"{source} is {what}, which needs a classifier, and {ref.name} is of kind {ref.kind}: pass a checkpoint "
            "fine-tuned for the task"
        )


def _changed(given: Any, default: Any) -> dict[str, Any]:
    """Options that are not the defaults, by how a command line calls them."""
    names = (name for name in vars(given) if getattr(given, name) != getattr(default, name))
    return {f"--{name.replace('_', '-')}": getattr(given, name) for name in names}


def _refuse(ref: ModelRef, given: Mapping[str, Any]) -> None:
    """Raise `EvaluationError` for an option that means nothing for a kind of model."""
    for name, value in given.items():
        if value is not None:
            raise EvaluationError(f"option {name} means nothing for a model of kind {ref.kind!r}: leave it out")
