"""Stories as tensors, and how likely a model of either kind finds their two answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.demo.stories import Stories
from unqover_data.model import MASK

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Inputs:
    """Encoded stories.

    Attributes
    ----------
    kind : str
        ``qa`` or ``mlm``.
    ids, types, attended : (stories, tokens) int64 tensor
        As a BERT takes them.
    first, second : (stories,) int64 tensor
        Of ``qa`` the token where the answer stands last in the context, of ``mlm`` the token that it is.
    share : (stories,) float32 tensor
        How often the first is the answer.
    mask : int
        The token of the mask.
    """

    kind: Literal["qa", "mlm"]
    ids: torch.Tensor
    types: torch.Tensor
    attended: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    share: torch.Tensor
    mask: int

    @classmethod
    def of(cls, stories: Stories, tokenizer: Any, kind: Literal["qa", "mlm"]) -> Inputs:
        """Encode stories as the scorer of the kind encodes probes: question and context, or context with statement."""
        import torch

        if kind == "qa":
            encoded = tokenizer(stories.asked, stories.contexts, padding=True, return_tensors="np")
        else:
            asked = (text.replace(MASK, tokenizer.mask_token) for text in stories.asked)
            texts = [f"{context} {text}" for context, text in zip(stories.contexts, asked, strict=True)]
            encoded = tokenizer(texts, padding=True, return_tensors="np")
        tokens = {
            word: tokenizer.convert_tokens_to_ids(word.lower())
            for word in dict.fromkeys(stories.first + stories.second)
        }
        answers = [np.array([tokens[word] for word in words]) for words in (stories.first, stories.second)]
        if kind == "qa":
            answers = [_last(encoded["input_ids"] == token[:, None]) for token in answers]
        names = ("input_ids", "token_type_ids", "attention_mask")
        arrays = (*(np.asarray(encoded[name], dtype=np.int64) for name in names), *answers)
        ids, types, attended, first, second = (torch.from_numpy(array) for array in arrays)
        share = torch.from_numpy(stories.share)
        return cls(kind, ids, types, attended, first, second, share, int(tokenizer.mask_token_id))

    def log_likelihoods(self, model: Any, batch: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Give the log-probability of both answers of some stories, as the scorer takes it, and the share."""
        import torch

        ids, types, attended = self.ids[batch], self.types[batch], self.attended[batch]
        at = torch.arange(len(batch))
        if self.kind == "qa":
            output = model(input_ids=ids, token_type_ids=types, attention_mask=attended)
            logp = (output.start_logits.log_softmax(-1) + output.end_logits.log_softmax(-1)) / 2
        else:
            hidden = model.base_model(input_ids=ids, token_type_ids=types, attention_mask=attended)
            logp = model.cls(hidden.last_hidden_state[ids == self.mask]).log_softmax(-1)
        return logp[at, self.first[batch]], logp[at, self.second[batch]], self.share[batch]


def _last(found: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give the last true place of each row."""
    return np.asarray(found.shape[1] - 1 - found[:, ::-1].argmax(axis=1))
