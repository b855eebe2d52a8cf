"""Rows of text through a transformer, in batches of one length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.features.encoder import Encoded
from builders.features.lengths import equal_length_batches
from builders.features.representation import Forward

if TYPE_CHECKING:
    from datasets import Dataset

_ROWS_OF_BLOCK = 4096
_ROWS_TOKENISED = 64  # more at once make so many lists that Python's cycle collector starts, which halts the model
_TOKENS_OF_BATCH = {"cpu": 1_024, "cuda": 16_384}

Batch = tuple[NDArray[np.int64], dict[str, Any]]
"""Places of rows in their block, int64 of shape (rows,), and the model's tensors, int64 of shape (rows, tokens)."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of rows, one row's behind the other's.

    Attributes
    ----------
    lengths : int64 array, shape (rows,)
        Tokens of each row.
    values : mapping of str to int64 array, shape (tokens of all rows,)
        By the name that the model knows them by.
    """

    lengths: NDArray[np.int64]
    values: Mapping[str, NDArray[np.int64]]

    @classmethod
    def of(cls, lists: Mapping[str, Sequence[Sequence[int]]]) -> Tokens:
        """Join what a tokenizer gives without padding."""
        lengths = np.fromiter(map(len, lists["input_ids"]), np.int64, len(lists["input_ids"]))
        count = int(lengths.sum())
        values = {name: np.fromiter(chain.from_iterable(rows), np.int64, count) for name, rows in lists.items()}
        return cls(lengths, values)

    @classmethod
    def joined(cls, parts: Sequence[Tokens]) -> Tokens:
        """Put the rows of several behind each other."""
        values = {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
        return cls(np.concatenate([part.lengths for part in parts]), values)

    def padded(
        self, places: NDArray[np.int64], padding: Mapping[str, int], *, left: bool = False
    ) -> dict[str, NDArray[np.int64]]:
        """Give rows as arrays of shape (rows, tokens of the longest), with the padding of each name on one side."""
        lengths = self.lengths[places, None]
        longest = lengths.max()
        column = np.arange(longest) - (longest - lengths if left else 0)
        there = (column >= 0) & (column < lengths)
        index = np.where(there, (np.cumsum(self.lengths) - self.lengths)[places, None] + column, 0)
        return {name: np.where(there, values[index], padding[name]) for name, values in self.values.items()}


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

    @property
    def padding(self) -> dict[str, int]:
        """What fills up a row, by the name that the model knows it by."""
        return {
            "input_ids": self.tokenizer.pad_token_id,
            "attention_mask": 0,
            "token_type_ids": self.tokenizer.pad_token_type_id,
        }

    @property
    def pads_left(self) -> bool:
        """Whether it fills up rows before their text."""
        return bool(self.tokenizer.padding_side == "left")

    def tokens(self, rows: Mapping[str, Any]) -> Tokens:
        """Give the tokens of one row or more."""
        texts = [list(rows[name]) for name in self.inputs]
        starts = range(0, len(texts[0]), _ROWS_TOKENISED)
        parts = ([column[start : start + _ROWS_TOKENISED] for column in texts] for start in starts)
        return Tokens.joined([Tokens.of(self._lists(part)) for part in parts])

    def tensors(self, rows: Mapping[str, Any], device: str) -> dict[str, Any]:
        """Give a batch, padded to its longest row on the side that the tokenizer pads."""
        import torch

        tokens = self.tokens(rows)
        made = tokens.padded(np.arange(tokens.lengths.size), self.padding, left=self.pads_left)
        return {name: torch.from_numpy(values).to(device) for name, values in made.items()}

    def probe(self, device: str) -> dict[str, Any]:
        """Give a batch of one short row."""
        return self.tensors({name: ["a"] for name in self.inputs}, device)

    def lengths(self, rows: Dataset) -> NDArray[np.int64]:
        """Tokens of each row, of one row or more."""
        return np.concatenate([self.tokens(block).lengths for block in rows.iter(_ROWS_OF_BLOCK)])

    def _lists(self, texts: Sequence[list[str]]) -> dict[str, list[list[int]]]:
        """Give each row's tokens; a row that has none gets one of padding, since models take no empty row."""
        made: dict[str, list[list[int]]] = self.tokenizer(*texts, truncation=True, max_length=self.max_length).data
        alone = self.padding | {"attention_mask": 1}
        for place, ids in enumerate(made["input_ids"]):
            if not ids:
                for name, lists in made.items():
                    lists[place] = [alone[name]]
        return made


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
        with torch.inference_mode():
            self.width: int = forward(tokenizer.probe(device))[0].shape[1]

    def encode(self, rows: Dataset) -> Encoded:
        """Give the features of `rows`, and logits by label where the model has them.

        Rows of one length make a batch, within blocks of a fixed size, so equal `rows` give equal bits on one machine,
        and nothing of a row depends on what is beside it but for rounding.
        """
        made = list(self.encoded(rows))
        features = np.concatenate([part.features for part in made]) if made else np.empty((0, self.width), np.float32)
        logits = [part.logits for part in made if part.logits is not None]
        return Encoded(features, np.concatenate(logits) if logits else None)

    def encoded(self, rows: Dataset, *, part: int | None = None) -> Iterator[Encoded]:
        """Give what `encode` gives block by block; `part` as of `batches`."""
        for batches in self.batches(rows, part=part):
            yield self._encode_block(batches)

    def batches(self, rows: Dataset, *, part: int | None = None) -> Iterator[list[Batch]]:
        """Give the batches of each block of rows, making those of the next while the caller is busy with one's.

        They are in the memory of the CPU. With `part`, a block ends after each so many rows, so their batches do not
        depend on what comes before or behind them.
        """
        read = rows.select_columns(list(self._tokenizer.inputs))
        blocks = _blocks(len(rows), part or max(1, len(rows)))

        def make() -> list[Batch] | None:
            block = next(blocks, None)
            return None if block is None else list(self._batches_of(self._tokenizer.tokens(read[block])))

        with ThreadPoolExecutor(1) as pool:
            upcoming = pool.submit(make)
            while (batches := upcoming.result()) is not None:
                upcoming = pool.submit(make)
                yield batches

    def _batches_of(self, tokens: Tokens) -> Iterator[Batch]:
        """Give batches without padding, the longest rows first."""
        import torch

        for places in equal_length_batches(tokens.lengths, self._most_rows, tokens=self._most_tokens):
            made = tokens.padded(places, self._tokenizer.padding)
            yield places, {name: torch.from_numpy(values) for name, values in made.items()}

    def _encode_block(self, batches: list[Batch]) -> Encoded:
        import torch

        with torch.inference_mode():
            made = [self._forward({name: part.to(self._device) for name, part in some.items()}) for _, some in batches]
            back = np.argsort(np.concatenate([places for places, _ in batches]))
            features = torch.cat([features for features, _ in made]).float().cpu().numpy()[back]
            if self._order is None:
                return Encoded(features, None)
            logits = torch.cat([logits for _, logits in made]).float().cpu().numpy()[back]
        return Encoded(features, np.ascontiguousarray(logits[:, self._order]))


def _blocks(rows: int, part: int) -> Iterator[slice]:
    """Cut each `part` rows into blocks."""
    for first in range(0, rows, part):
        last = min(rows, first + part)
        for start in range(first, last, _ROWS_OF_BLOCK):
            yield slice(start, min(start + _ROWS_OF_BLOCK, last))
