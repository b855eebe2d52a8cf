"""What a text model says of a batch: the representation before its output layer, and its logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from builders.errors import BuildError

Forward = Callable[[Mapping[str, Any]], tuple[Any, Any]]
"""From a batch without padding to features of shape (rows, d) and logits of shape (rows, K), or None for the second."""


def head_forward(model: Any, probe: Mapping[str, Any]) -> Forward:
    """Give the input of the classifier's last linear layer, and the logits that it makes of it.

    Parameters
    ----------
    model
        A sequence classifier.
    probe : mapping
        A batch of one row; it shows which layer is the last.

    Raises
    ------
    BuildError
        If the logits come from no linear layer.
    """
    import torch

    calls: list[tuple[Any, Any, Any]] = []
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    hooks = [module.register_forward_hook(lambda *call: calls.append(call)) for module in linear]
    with torch.inference_mode():
        logits = model(**probe).logits
    for hook in hooks:
        hook.remove()
    last = next((module for module, _, made in reversed(calls) if _position(made, logits) is not None), None)
    if last is None:
        raise BuildError(f"{type(model).__name__} has no linear output layer to look before; set pooling to 'mean'")
    seen: dict[str, Any] = {}
    last.register_forward_hook(lambda _, given, made: seen.update(given=given[0], made=made))

    def forward(batch: Mapping[str, Any]) -> tuple[Any, Any]:
        logits = model(**batch).logits
        position = _position(seen["made"], logits)
        return seen["given"][position], logits

    return forward


def _position(made: Any, logits: Any) -> Any:
    """Where in a layer's output the logits stand: everywhere, at a token a row (decoders), or nowhere (None)."""
    import torch

    if made.shape == logits.shape:
        return slice(None) if torch.equal(made, logits) else None
    if made.dim() != 3 or (made.shape[0], made.shape[2]) != logits.shape:
        return None
    equal = (made == logits[:, None]).all(-1)
    if not equal.any(1).all():
        return None
    rows, tokens = equal.shape
    last = tokens - 1 - equal.flip(1).int().argmax(1)
    return torch.arange(rows, device=made.device), last


def mean_forward(model: Any) -> Forward:
    """Give the mean of a classifier's last hidden states over the tokens, and its logits."""
    seen: dict[str, Any] = {}
    model.base_model.register_forward_hook(lambda _module, _given, made: seen.update(hidden=made[0]))

    def forward(batch: Mapping[str, Any]) -> tuple[Any, Any]:
        logits = model(**batch).logits
        return _mean(seen["hidden"]), logits

    return forward


def bare_forward(model: Any, probe: Mapping[str, Any], *, pooled: bool) -> Forward:
    """Give what a model without a head has: its pooler's output if it may and can be `pooled`, else the mean."""
    import torch

    with torch.inference_mode():
        pooled = pooled and getattr(model(**probe), "pooler_output", None) is not None

    def forward(batch: Mapping[str, Any]) -> tuple[Any, Any]:
        made = model(**batch)
        return made.pooler_output if pooled else _mean(made[0]), None

    return forward


def _mean(hidden: Any) -> Any:
    return hidden.float().mean(1)
