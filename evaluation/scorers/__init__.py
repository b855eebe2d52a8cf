"""Scorers: rows of a probe set in, eight S values a row out, one module for each kind of model."""

from __future__ import annotations

from typing import Any

from evaluation.errors import EvaluationError
from evaluation.loading import DTYPES, load_model
from evaluation.models import Kind, ModelRef, check_choice
from evaluation.scorers.base import HALF_TOLERANCE, PREFIXES, Scorer, Settings, full_prefix, telling

__all__ = ["HALF_TOLERANCE", "PREFIXES", "PROTOCOLS", "Scorer", "Settings", "check_options", "make_scorer"]

PROTOCOLS = ("exact", "paper")


def make_scorer(
    ref: ModelRef,
    protocol: str = "exact",
    *,
    batch_size: int = 64,
    device: str | None = None,
    dtype: str = "float32",
    context_prefix: str | None = None,
    prompt: str | None = None,
    chat: bool | None = None,
    joint: bool = False,
    pronouns: bool | None = None,
    top: int | None = 10,
) -> Scorer:
    """Load a model and give what scores probe rows with it.

    Parameters
    ----------
    ref : ModelRef
        From `evaluation.models.resolve_model`.
    protocol : str
        ``exact``, or ``paper`` for question-answering models and masked LMs.
    batch_size : int
        Inputs at once.
    device : str, optional
        ``cuda`` where there is one, else ``cpu``.
    dtype : str
        ``float32``, ``float16`` or ``bfloat16``; the softmax is in float32. Scores do not depend on the batch to 1e-5
        in float32, and to `HALF_TOLERANCE` in the others, which is also how far they are from float32.
    context_prefix : str, optional
        ``newsqa``, or a text to put before every context.
    prompt : str, optional
        Template with ``{context}`` and ``{question}``, for causal and encoder-decoder models.
    chat : bool, optional
        Whether to use the tokenizer's chat template; by default when it has one.
    joint : bool
        For causal and encoder-decoder models: product of a subject's token probabilities, not geometric mean.
    pronouns : bool, optional
        For masked LMs on gender: count ``she`` for female and ``he`` for male names. By default only under ``paper``.
    top : int, optional
        Under ``paper``, how many of its likeliest tokens a masked LM counts; None counts all.

    Raises
    ------
    EvaluationError
        If an option is unknown or means nothing for this kind of model, or the model cannot be used.
    HubError
        If the model cannot be fetched.
    """
    check_options(ref.kind, protocol, dtype=dtype, prompt=prompt, chat=chat, joint=joint, pronouns=pronouns)
    if batch_size < 1:
        raise EvaluationError(f"batch_size must be at least 1, not {batch_size}")
    if top is not None and top < 1:
        raise EvaluationError(f"top must be at least 1, or None for the whole vocabulary, not {top}")
    settings = Settings(
        protocol=protocol,
        batch_size=batch_size,
        context_prefix=full_prefix(context_prefix, protocol),
        prompt=prompt,
        chat=chat,
        joint=joint,
        pronouns=pronouns,
        top=top,
    )
    loaded = load_model(ref, device=device, dtype=dtype)
    with telling(loaded):
        scorer: Scorer = _scorer_class(ref.kind)(loaded, settings)
    return scorer


def check_options(kind: Kind, protocol: str, *, dtype: str = "float32", joint: bool = False, **given: Any) -> None:
    """Raise `EvaluationError` for an option that is unknown or means nothing for a kind of model.

    Parameters
    ----------
    kind, protocol, dtype, joint
        As for `make_scorer`.
    **given
        ``prompt``, ``chat`` and ``pronouns``; None where they were not given.
    """
    check_choice("protocol", protocol, PROTOCOLS)
    check_choice("dtype", dtype, DTYPES)
    generates = kind in ("causal", "seq2seq")
    if generates and protocol == "paper":
        raise EvaluationError(f"protocol paper is for question-answering models and masked LMs, not kind {kind!r}")
    for name, value in {"joint": joint or None, **given}.items():
        useful = kind == "mlm" if name == "pronouns" else generates
        if value is not None and not useful:
            raise EvaluationError(f"option {name!r} means nothing for a model of kind {kind!r}: leave it out")


def _scorer_class(kind: Kind) -> Any:
    if kind == "qa":
        from evaluation.scorers.qa import QaScorer

        return QaScorer
    if kind == "mlm":
        from evaluation.scorers.mlm import MlmScorer

        return MlmScorer
    if kind == "causal":
        from evaluation.scorers.causal import CausalScorer

        return CausalScorer
    from evaluation.scorers.seq2seq import Seq2SeqScorer

    return Seq2SeqScorer
