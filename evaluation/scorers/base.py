"""What every scorer does the same: settings, batches through the model, facts for the result."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from builders.errors import HubError
from builders.features.checkpoints import first_line
from evaluation.errors import EvaluationError
from evaluation.loading import Loaded, known_tokens
from evaluation.scorers.encoding import Encoded
from evaluation.scorers.work import Indices

if TYPE_CHECKING:
    import torch

R = TypeVar("R")

PREFIXES = {"newsqa": "[aug] yes no  [text] (CNN) --"}
"""Named headers. ``newsqa`` is the released filler (``word_lists/fillers/newsqa``), all of it literal text: MultiQA's
conversion to SQuAD's format writes ``[aug] yes no`` and ``[text]`` before every context, and CNN's own articles begin
with ``(CNN) --``. Models trained on that NewsQA saw it on most contexts."""


HALF_TOLERANCE = {"float16": 0.01, "bfloat16": 0.05}
"""How far scores of a model in half precision may be from those in float32, in either direction; the same goes for
two batch sizes. Kept by tests on models of random weights; the softmax is in float32 always."""


def full_prefix(given: str | None, protocol: str) -> str:
    """Give the text that is put before every context.

    A space follows it; under ``paper`` two follow a named header, since the released generator adds one to a filler
    and another between filler and context.

    Examples
    --------
    >>> full_prefix("newsqa", "exact")
    '[aug] yes no  [text] (CNN) -- '
    >>> full_prefix("News:", "paper")
    'News: '
    """
    if not given:
        return ""
    if given in PREFIXES:
        return PREFIXES[given] + ("  " if protocol == "paper" else " ")
    return given if given[-1].isspace() else given + " "


@dataclass(frozen=True)
class Settings:
    """How to score.

    Attributes
    ----------
    protocol : str
        ``exact`` or ``paper``.
    batch_size : int
        Inputs at once.
    context_prefix : str
        Text before every context, with the space that ends it.
    prompt : str or None
        Template with ``{context}`` and ``{question}``, for causal and encoder-decoder models.
    chat : bool or None
        Whether to use the tokenizer's chat template; None: when it has one.
    joint : bool
        Product instead of geometric mean of a subject's token probabilities.
    pronouns : bool or None
        Whether she and he count for female and male names at a mask; None: under ``paper``, when groups are those.
    top : int or None
        Under ``paper``, how many of its likeliest tokens a masked LM counts; None counts all.
    """

    protocol: str = "exact"
    batch_size: int = 64
    context_prefix: str = ""
    prompt: str | None = None
    chat: bool | None = None
    joint: bool = False
    pronouns: bool | None = None
    top: int | None = 10


class Scorer(Protocol):
    """Rows in, eight S values a row out.

    Attributes
    ----------
    facts : dict
        What the result should say of how scores come about.
    row_facts : dict of str to (rows,) float64 array
        What there is to say of each row scored last, besides S: ``no_answer``, the mean probability that a
        question-answering model gives to "no answer" over the row's four inputs.
    """

    facts: dict[str, Any]
    row_facts: dict[str, NDArray[np.float64]]

    def select(self, table: pa.Table) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Say which rows can be scored, and what is left out."""
        ...

    def score(self, table: pa.Table) -> NDArray[np.float64]:
        """Score rows.

        Parameters
        ----------
        table : pyarrow.Table
            Rows of the config for this kind of model, of those that `select` kept.

        Returns
        -------
        (rows, 8) float64 array
            S in [0, 1], higher is likelier; columns as in `SCORE_COLUMNS`.

        Raises
        ------
        EvaluationError
            If an input is too long, a subject's tokens cannot be found, or the model gives NaN.
        """
        ...


def common_facts(loaded: Loaded, settings: Settings) -> dict[str, Any]:
    """Give the facts that are the same for every kind."""
    facts: dict[str, Any] = {
        "kind": loaded.ref.kind,
        "architecture": type(loaded.model).__name__,
        "parameters": loaded.parameters,
        "protocol": settings.protocol,
        "dtype": loaded.dtype,
        "device": loaded.device,
    }
    if settings.context_prefix:
        facts["context_prefix"] = settings.context_prefix
    return facts


@contextlib.contextmanager
def telling(loaded: Loaded) -> Iterator[None]:
    """Turn what a model or tokenizer of somebody else's raises, when it is used, into one line."""
    try:
        yield
    except (EvaluationError, HubError):
        raise
    except Exception as error:
        if "out of memory" in str(error).lower():
            raise EvaluationError("out of memory: pass a smaller --batch-size; the same command goes on") from error
        raise EvaluationError(
            f"{loaded.ref.name} ({type(loaded.model).__name__}) cannot be scored as {loaded.ref.kind}: "
            f"{_reason(loaded, error)}"
        ) from error


def told(method: Callable[..., R]) -> Callable[..., R]:
    """Make a method of a scorer end in one line whatever the model raises, in any batch; see `telling`."""

    @functools.wraps(method)
    def telling_method(scorer: Any, *args: Any) -> R:
        with telling(scorer._loaded):
            return method(scorer, *args)

    return telling_method


def _reason(loaded: Loaded, error: Exception) -> str:
    known, tokens = known_tokens(loaded.model), len(loaded.tokenizer)
    if known is not None and known < tokens:
        return f"its tokenizer has {tokens} tokens and the model knows {known}; get both of one checkpoint"
    return f"{type(error).__name__}: {first_line(error).rstrip('.')}; pass another model"


def decoder_start(model: Any) -> int | None:
    """Give the token that a decoder begins with, where ``generate`` finds it or nested; None without."""
    config, generation = model.config, getattr(model, "generation_config", None)
    nested = getattr(config, "decoder", None)
    for name in ("decoder_start_token_id", "bos_token_id"):
        for place in (generation, config, nested):
            value = place.get(name) if isinstance(place, dict) else getattr(place, name, None)
            if isinstance(value, int):
                return value
    return None


def select_all(table: pa.Table) -> tuple[NDArray[np.bool_], dict[str, Any]]:
    """Take every row."""
    return np.ones(table.num_rows, dtype=bool), {"rows": table.num_rows, "rows_kept": table.num_rows, "coverage": 1.0}


def check_lengths(loaded: Loaded, lengths: Indices, text: str) -> None:
    """Raise if an input is longer than the model can take.

    Parameters
    ----------
    loaded : Loaded
        The model.
    lengths : (n,) int
        Tokens of the inputs.
    text : str
        The longest, to show.
    """
    if loaded.limit is not None and len(lengths) and lengths.max() > loaded.limit:
        shown = text if len(text) <= 120 else text[:120] + "..."
        raise EvaluationError(
            f"{loaded.ref.name} takes at most {loaded.limit} tokens, and an input has {lengths.max()} ({shown!r}): "
            "pass a model with a higher limit, or a shorter --context-prefix or --prompt"
        )


def refuse_nan(values: torch.Tensor, loaded: Loaded) -> None:
    """Raise if a log-probability is not a number."""
    if bool(values.isnan().any()):
        hint = "its weights are damaged" if loaded.dtype == "float32" else f"{loaded.dtype} overflows: use float32"
        raise EvaluationError(f"{loaded.ref.name} gives scores that are not numbers (NaN); {hint}")


class Inputs:
    """Makes model inputs out of encoded ones of one length."""

    def __init__(self, loaded: Loaded) -> None:
        import inspect

        accepted = inspect.signature(loaded.model.forward).parameters
        names = loaded.tokenizer.model_input_names
        self._device = loaded.device
        self._mask = "attention_mask" in accepted
        self._types = "token_type_ids" in accepted and "token_type_ids" in names

    def __call__(self, encoded: Encoded, batch: Sequence[int] | Indices) -> dict[str, torch.Tensor]:
        """Give the keyword arguments of the model for a batch."""
        import torch

        ids = self._matrix([encoded.ids(i) for i in batch])
        inputs = {"input_ids": ids}
        if self._mask:
            inputs["attention_mask"] = torch.ones_like(ids)
        if self._types:
            types = [encoded.types(i) for i in batch]
            inputs["token_type_ids"] = self._matrix(types) if types[0] else torch.zeros_like(ids)
        return inputs

    def _matrix(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Make a matrix of rows of one length; through NumPy, which is several times faster than from lists."""
        import torch

        flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * len(rows[0]))
        return torch.from_numpy(flat.reshape(len(rows), -1)).to(self._device)
