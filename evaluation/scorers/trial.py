"""What a model is tried on before it is scored: whether a token sees those behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.loading import DTYPES, Loaded

if TYPE_CHECKING:
    import torch


# How far log-probabilities of quantised models may be apart with what else is computed at once: bitsandbytes picks the
# columns that it keeps in half precision by all inputs together. Models that see later tokens are several apart.
_QUANTISED = 2.0


def agree(loaded: Loaded, one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two ways to compute log-probabilities, some of them minus infinity, come to the same."""
    return _apart(one, other) <= _tolerance(loaded)


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).nan_to_num(0.0).abs().max())


def _tolerance(loaded: Loaded) -> float:
    return 2e-3 if loaded.dtype == "float32" else 0.5


def looks_ahead(loaded: Loaded, whole: torch.Tensor, start: torch.Tensor) -> bool:
    """Whether the tokens of a text see those behind them.

    Every kind of model that scores several tokens at once is tried so: one that looks ahead has read the answer that
    it is to give.

    Parameters
    ----------
    loaded : Loaded
        The model.
    whole : (texts, tokens, vocabulary) tensor
        Log-probabilities behind each token of some texts.
    start : (texts, fewer tokens, vocabulary) tensor
        The same, from the first tokens alone.
    """
    tolerance = _tolerance(loaded) if loaded.dtype in DTYPES else _QUANTISED
    return _apart(start, whole[:, : start.shape[1]]) > tolerance
