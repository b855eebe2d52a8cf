"""Runs a masked LM's head on the mask only: the vocabulary's logits at all other positions are never needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.loading import Loaded
from evaluation.scorers.encoding import call_tokenizer
from evaluation.scorers.masks import PLACEHOLDER, Masks

if TYPE_CHECKING:
    import torch

_TRIAL = ("The one who came was a friend of [MASK].", "We saw that [MASK] was the first of many to leave the house.")


class MaskedHead:
    """Calls a masked LM and gives its logits at one position an input.

    A hook on the base model hands only the hidden states at the masks on to the head, so any architecture runs its
    own head. Whether that gives the same logits is tried out once; where it does not, all logits are computed.

    Attributes
    ----------
    cuts : bool
        Whether only the logits at the mask are computed.
    """

    def __init__(self, loaded: Loaded, masks: Masks) -> None:
        self._loaded = loaded
        self._positions: torch.Tensor | None = None
        self.cuts = False
        base = loaded.model.base_model
        if base is not loaded.model:
            base.register_forward_hook(self._cut)
            self.cuts = self._same_either_way(masks)

    def __call__(self, inputs: dict[str, torch.Tensor], positions: torch.Tensor) -> torch.Tensor:
        """Give the logits at `positions`, (batch, vocabulary)."""
        import torch

        if self.cuts:
            self._positions = positions
            try:
                logits: torch.Tensor = self._loaded.model(**inputs, return_dict=True).logits[:, 0]
            finally:
                self._positions = None
            return logits
        rows = torch.arange(len(positions), device=positions.device)
        whole: torch.Tensor = self._loaded.model(**inputs, return_dict=True).logits[rows, positions]
        return whole

    def _cut(self, _module: Any, _args: Any, output: Any) -> Any:
        import torch

        if self._positions is None:
            return output
        rows = torch.arange(len(self._positions), device=self._positions.device)
        hidden = output[0][rows, self._positions][:, None]
        if isinstance(output, tuple):
            return (hidden, *output[1:])
        output[next(iter(output.keys()))] = hidden
        return output

    def _same_either_way(self, masks: Masks) -> bool:
        """Try both ways on two sentences, as far as they fit."""
        import torch

        for sentence in _TRIAL:
            text = masks.write(sentence.replace("[MASK]", PLACEHOLDER))
            (encoding,) = call_tokenizer(self._loaded.tokenizer, [text], None, True)
            ids = torch.tensor([encoding.ids[: self._loaded.limit]], device=self._loaded.device)
            if int((ids == masks.id).sum()) != 1:
                return False
            positions = (ids == masks.id).int().argmax(1)
            with torch.inference_mode():
                self.cuts = False
                whole = self({"input_ids": ids}, positions)
                self.cuts = True
                try:
                    part = self({"input_ids": ids}, positions)
                except (RuntimeError, IndexError, AttributeError, TypeError, ValueError):
                    return False
            tolerance = 1e-4 if self._loaded.dtype == "float32" else 1e-2
            scale = max(1.0, float(whole.float().abs().max()))
            if part.shape != whole.shape or float((part.float() - whole.float()).abs().max()) > tolerance * scale:
                return False
        return True
