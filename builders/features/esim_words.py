"""Sentences as numbers of words, and batches of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from builders.features.vectors import VectorFile

if TYPE_CHECKING:
    import torch

FIXED_IDS = 2  # padding, and the word that is not known
_POOL = 50
_TOKEN = re.compile(r"n't\b|'\w+|\w+?(?=n't\b)|\w+|[^\w\s]")


def tokens(text: str) -> list[str]:
    """Cut a sentence into lower-cased words, clitics and punctuation marks.

    Examples
    --------
    >>> tokens("The girl's dog doesn’t bark.")
    ['the', 'girl', "'s", 'dog', 'does', "n't", 'bark', '.']
    """
    return _TOKEN.findall(text.lower().replace("’", "'"))


class Lookup:
    """Turns sentences into numbers of words: 0 padding, 1 unknown, then the words that have a vector.

    With a vector file the vectors of new words are appended to `fixed` as they come.
    """

    def __init__(
        self, words: Sequence[str], vectors: VectorFile | None, *, max_length: int, dimension: int, device: torch.device
    ) -> None:
        import torch

        self._numbers: dict[str, int] = {}
        self._vectors, self._device, self._max_length = vectors, device, max_length
        self.fixed: torch.Tensor | None = None
        if vectors is None:
            self._numbers = {word: number for number, word in enumerate(words, start=FIXED_IDS)}
        else:
            self.fixed = torch.zeros((0, dimension), device=device)
            self._add(words)

    def ids(self, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Give the numbers of the words of every sentence; one without words is one unknown word."""
        cut = [[tokens(text)[: self._max_length] for text in side] for side in sentences]
        if self._vectors is not None:
            self._add(sorted({word for side in cut for text in side for word in text} - self._numbers.keys()))
        return [[[self._numbers.get(word, 1) for word in text] or [1] for text in side] for side in cut]

    def tensors(self, side: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Give padded numbers (batch, longest) and lengths, these on the CPU."""
        import torch

        lengths = [len(text) for text in side]
        padded = np.zeros((len(side), max(lengths)), np.int64)
        for row, text in zip(padded, side, strict=True):
            row[: len(text)] = text
        return torch.from_numpy(padded).to(self._device), torch.tensor(lengths)

    def _add(self, words: Sequence[str]) -> None:
        import torch

        if self._vectors is None or self.fixed is None or not words:
            return
        found = self._vectors.read(words)
        first = FIXED_IDS + len(self.fixed)
        self._numbers |= dict.fromkeys(words, 1) | {word: number for number, word in enumerate(found, start=first)}
        if found:
            added = torch.from_numpy(np.stack(list(found.values()))).to(self._device)
            self.fixed = torch.cat([self.fixed, added])


class Batches:
    """Batches of like lengths, in an order that seed and epoch decide."""

    def __init__(self, ids: list[list[list[int]]], labels: NDArray[np.int64], size: int, seed: int) -> None:
        self._premises, self._hypotheses = ids
        self._labels, self._size, self._seed = labels, size, seed
        self._lengths = np.array([len(p) * 1000 + len(h) for p, h in zip(*ids, strict=True)])

    def __len__(self) -> int:
        return -(-len(self._labels) // self._size)

    def of_epoch(self, epoch: int) -> Iterator[tuple[list[list[int]], list[list[int]], NDArray[np.int64]]]:
        """Shuffle, sort pools of 50 batches by length, and shuffle the batches."""
        generator = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        order = generator.permutation(len(self._labels))
        pool = self._size * _POOL
        pools = [order[i : i + pool] for i in range(0, len(order), pool)]
        order = np.concatenate([part[np.argsort(self._lengths[part], kind="stable")] for part in pools])
        cuts = [order[i : i + self._size] for i in range(0, len(order), self._size)]
        for number in generator.permutation(len(cuts)):
            batch = cuts[number]
            yield [self._premises[i] for i in batch], [self._hypotheses[i] for i in batch], self._labels[batch]
