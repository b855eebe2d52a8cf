"""Rows of text through a transformer, batched by length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.features.encoder import Encoded
from builders.features.representation import Forward

if TYPE_CHECKING:
    from datasets import Dataset

_ROWS_TOKENISED = 1024
_TOKENS_OF_BATCH = {"cpu": 1_024, "cuda": 16_384}  # padding included

Tokens = Mapping[str, list[list[int]]]


@dataclass(frozen=True)
class RowTokenizer:
    """Makes tokens of rows; two text columns are encoded as a pair.

    Attributes
    ----------
    tokenizer
        Of transformers.
    inputs : tuple of str
        The text columns.
    max_length : int
        Where a row is cut.
    """

    tokenizer: Any
    inputs: tuple[str, ...]
    max_length: int

    def lists(self, rows: Mapping[str, Any], **how: Any) -> Any:
        """Give token lists of each row, or padded tensors if `how` asks for them."""
        texts = [list(rows[name]) for name in self.inputs]
        return self.tokenizer(*texts, truncation=True, max_length=self.max_length, **how)

    def tensors(self, rows: Mapping[str, Any], device: str) -> dict[str, Any]:
        """Give a batch, padded to its longest row."""
        made = self.lists(rows, padding=True, return_tensors="pt")
        return {name: values.to(device) for name, values in made.items()}

    def probe(self, device: str) -> dict[str, Any]:
        """Give a batch of one short row."""
        return self.tensors({name: ["a"] for name in self.inputs}, device)

    def lengths(self, rows: Dataset) -> NDArray[np.int64]:
        """Tokens of each row."""
        lengths: list[int] = []
        for block in rows.iter(_ROWS_TOKENISED):
            lengths += map(len, self.lists(block)["input_ids"])
        return np.array(lengths, np.int64)


class TransformerEncoder:
    """A transformer that is ready to be used; `TransformerRecipe.load` makes it.

    Parameters
    ----------
    tokenizer : RowTokenizer
        Makes its tokens.
    forward : callable
        Makes features and logits of a batch.
    order : list of int, optional
        The logits' column of each label name; None if the logits mean something else.
    device : str
        Where the model is.
    most_rows : int, optional
        Rows of a batch at most, where there is another limit than that of tokens.
    """

    def __init__(
        self,
        tokenizer: RowTokenizer,
        forward: Forward,
        *,
        order: list[int] | None,
        device: str,
        most_rows: int | None = None,
    ) -> None:
        """Find the width of the features by encoding a word."""
        import torch

        self._tokenizer, self._forward, self._order, self._device = tokenizer, forward, order, device
        self._most_tokens = _TOKENS_OF_BATCH["cpu" if device == "cpu" else "cuda"]
        self._most_rows = most_rows or self._most_tokens
        self._pad = {"input_ids": tokenizer.tokenizer.pad_token_id, "attention_mask": 0}
        self._pad["token_type_ids"] = tokenizer.tokenizer.pad_token_type_id
        self._left = tokenizer.tokenizer.padding_side == "left"
        with torch.inference_mode():
            self.width: int = forward(tokenizer.probe(device))[0].shape[1]

    def encode(self, rows: Dataset) -> Encoded:
        """Give the features of `rows`, and logits by label where the model has them.

        Rows are batched by length within blocks of a fixed size, so equal `rows` give equal bits on one machine.
        """
        made = list(self.encoded(rows))
        features = np.concatenate([part.features for part in made]) if made else np.empty((0, self.width), np.float32)
        logits = [part.logits for part in made if part.logits is not None]
        return Encoded(features, np.concatenate(logits) if logits else None)

    def encoded(self, rows: Dataset) -> Iterator[Encoded]:
        """Give what `encode` gives block by block."""
        for tokens in self.tokenised(rows):
            yield self._encode_block(tokens)

    def tokenised(self, rows: Dataset) -> Iterator[Tokens]:
        """Give tokens block by block, making those of the next while the caller is busy with one."""
        blocks = rows.select_columns(list(self._tokenizer.inputs)).iter(_ROWS_TOKENISED)

        def tokenise() -> Tokens | None:
            block = next(blocks, None)
            return None if block is None else self._tokenizer.lists(block)

        with ThreadPoolExecutor(1) as pool:
            upcoming = pool.submit(tokenise)
            while (tokens := upcoming.result()) is not None:
                upcoming = pool.submit(tokenise)
                yield tokens

    def batches(self, tokens: Tokens) -> Iterator[tuple[NDArray[np.int64], dict[str, Any]]]:
        """Give places and tensors of batches of tokenised rows, the longest first."""
        import torch

        lengths = np.fromiter(map(len, tokens["input_ids"]), np.int64)
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < order.size:
            longest = int(lengths[order[start]])
            places = order[start : start + min(self._most_rows, max(1, self._most_tokens // longest))]
            if self._left:  # padding before the text would move its positions, so these get none
                places = places[lengths[places] == longest]
            start += places.size
            batch = {}
            for name, lists in tokens.items():
                padded = np.full((places.size, longest), self._pad[name], np.int64)
                for row, place in zip(padded, places, strict=True):
                    row[: lengths[place]] = lists[place]
                batch[name] = torch.from_numpy(padded).to(self._device)
            yield places, batch

    def _encode_block(self, tokens: Tokens) -> Encoded:
        import torch

        with torch.inference_mode():
            made = [(places, *self._forward(batch)) for places, batch in self.batches(tokens)]
            back = np.argsort(np.concatenate([places for places, _, _ in made]))
            features = torch.cat([features for _, features, _ in made]).float().cpu().numpy()[back]
            if self._order is None:
                return Encoded(features, None)
            logits = torch.cat([logits for _, _, logits in made]).float().cpu().numpy()[back]
        return Encoded(features, np.ascontiguousarray(logits[:, self._order]))
