"""Scoring as it is called from Python: one function for every kind of model and set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.errors import EvaluationError

if TYPE_CHECKING:
    from evaluation.results import ClassifierScores, ProbeScores

Name = str | os.PathLike[str]


def score(
    model: Name,
    dataset: Name,
    *,
    sample: float | str | None = None,
    limit: int | None = None,
    split: str | Sequence[str] = (),
    config: str | None = None,
    protocol: str = "exact",
    seed: int = 0,
    kind: str | None = None,
    revision: str | None = None,
    dataset_revision: str | None = None,
    data: Name | None = None,
    label_map: str | None = None,
    broken_share: float = 0.01,
    prompt: str | None = None,
    chat: bool | None = None,
    joint: bool = False,
    pronouns: bool | None = None,
    context_prefix: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    backend: str = "loky",
    out: Name = "results",
    overwrite: bool = False,
) -> ProbeScores | ClassifierScores:
    """Score a model on a set, or give the result that is there; the same as ``probesieve eval``.

    What the model is decides what is done: question-answering and language models are scored on probe sets,
    classifiers on filtered sets and on sets out of distribution. Arguments are the options of the command, under their
    names, and errors name them as options.

    Parameters
    ----------
    model : str or path
        Hub id or local folder.
    dataset : str or path
        Built folder, ORG/NAME on the Hub, or a set out of distribution: hans, diagnostics, stress, anli, imagenet-a, or
        the TOML file of one of your own.
    sample : float or int, optional
        Of probe sets: a share (``0.02``) or a number (``20000``) of rows, balanced over subjects and attributes.
    limit : int, optional
        Of classifiers: rows of each split, drawn at random.
    split : str or sequence of str
        Of classifiers; by default all that have labels.
    config : str, optional
        Of probe sets; by default ``mlm`` for masked LMs, else ``qa``.
    protocol : {"exact", "paper"}
        Of probe sets: ``paper`` does what the released code did.
    seed : int
        Of the sample and the intervals.
    kind : str, optional
        qa, mlm, causal, seq2seq, text-classifier or image-classifier, against what the checkpoint says.
    revision, dataset_revision : str, optional
        Branch, tag or sha on the Hub, of the model and of the set.
    data : path, optional
        Folder with the files of sets out of distribution, as they are distributed.
    label_map, broken_share
        As for `evaluation.classifiers.run.ClassifierOptions`.
    prompt, chat, joint, pronouns, context_prefix
        As for `evaluation.scorers.make_scorer`.
    dtype : {"float32", "float16", "bfloat16"}
        Of the model's weights.
    device, batch_size, backend
        As for `evaluation.run.Engine`.
    workers : int, optional
        Shards at once, by default 1; of image classifiers processes that decode images, by default all cores but one.
    out : path
        Results folder. A result that is there is given back; a run that was stopped goes on.
    overwrite : bool
        Whether to replace a result of other settings.

    Returns
    -------
    ProbeScores or ClassifierScores
        ``print`` and notebooks show it as tables. Of a probe set, ``mu``, ``eta``, ``delta``, ``epsilon`` and
        ``average_score`` have ``value``, ``low``, ``high`` and ``n``, and ``associations`` is a DataFrame; of a
        classifier, ``accuracy`` is one. ``to_dict()`` is the whole result, and ``path`` is where it lies.

    Raises
    ------
    EvaluationError, BuildError, HubError
        If the model and the set do not go together, an option is not for them, or one of them cannot be used.
    """
    from evaluation.classifiers.run import ClassifierOptions
    from evaluation.dispatch import Sets, evaluate_any
    from evaluation.results import ClassifierScores, ProbeScores
    from evaluation.run import Engine, Options

    source = _name("dataset", dataset, "a built folder, ORG/NAME, or a set out of distribution")
    found = list(
        evaluate_any(
            _name("model", model, "a Hub id or a model's folder"),
            Sets(
                datasets=(source,),
                data=None if data is None else Path(data),
                splits=(split,) if isinstance(split, str) else tuple(split),
                config=config,
                revision=dataset_revision,
            ),
            Options(
                protocol=protocol,
                sample=None if sample is None else str(sample),
                seed=seed,
                dtype=dtype,
                context_prefix=context_prefix,
                prompt=prompt,
                chat=chat,
                joint=joint,
                pronouns=pronouns,
            ),
            ClassifierOptions(limit=limit, seed=seed, dtype=dtype, label_map=label_map, broken_share=broken_share),
            engine=Engine(
                device=device,
                batch_size=batch_size,
                workers=1 if workers is None else workers,
                decoders=workers,
                backend=backend,
            ),
            out=Path(out),
            overwrite=overwrite,
            revision=revision,
            kind=kind,
        )
    )
    first = found[0]
    return first if isinstance(first, ProbeScores) else ClassifierScores.joined(found)


def _name(argument: str, given: object, what: str) -> str:
    """Give a name or a path as text; an object in place of one, or an empty one, is an error."""
    if isinstance(given, str | os.PathLike) and (name := os.fspath(given)):
        return str(name)
    came = repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
    raise EvaluationError(f"{argument} must be {what}, not {came}: pass its name or path")
