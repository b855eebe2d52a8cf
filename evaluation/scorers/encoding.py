"""Encodes pairs of texts with few calls to the tokenizer.

An input is a first and a second text (question and context, context and statement), as the model's own tokenizer
joins them. Nearly every tokenizer encodes each of the two the same whatever the other is, so an input is the head of
its first text followed by the tail of its second. That is checked on every text before it is used; where it does not
hold, every input is encoded by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evaluation.scorers.work import Indices

_AT_ONCE = 2_000


@dataclass(frozen=True)
class Piece:
    """Part of an encoded input: token ids, and token types (empty where the model has none)."""

    ids: list[int]
    types: list[int]


@dataclass(frozen=True)
class Encoding:
    """One whole encoded input.

    Attributes
    ----------
    ids, types : list of int
        Tokens and their types.
    offsets : list of (start, end), or None
        Characters behind each token, in the text that it comes from; None from a tokenizer without offsets.
    sequence : list of (int or None), or None
        0 for a token of the first text, 1 of the second, None for what the tokenizer adds.
    """

    ids: list[int]
    types: list[int]
    offsets: list[tuple[int, int]] | None = None
    sequence: list[int | None] | None = None


EncodeMany = Callable[[Sequence[str], Sequence[str]], list[Encoding]]
SplitAt = Callable[[str, Encoding], int | None]


@dataclass(frozen=True)
class Encoded:
    """All inputs of some work.

    Attributes
    ----------
    heads, tails : list of Piece
        What inputs are put together from.
    parts : (inputs, 2) int
        Head and tail of each input.
    samples : list of (Encoding, int)
        Whole encodings and where their tail starts.
    sample_of : dict
        From (0, first text), (1, second text) or, when inputs could not be taken apart, (2, input) to a sample.
    apart : bool
        Whether heads and tails are shared between inputs.
    """

    heads: list[Piece]
    tails: list[Piece]
    parts: Indices
    apart: bool
    samples: list[tuple[Encoding, int]] = field(default_factory=list)
    sample_of: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def head_lengths(self) -> Indices:
        """Tokens of each head."""
        return np.array([len(piece.ids) for piece in self.heads], dtype=np.int64)

    @property
    def tail_lengths(self) -> Indices:
        """Tokens of each tail."""
        return np.array([len(piece.ids) for piece in self.tails], dtype=np.int64)

    @property
    def lengths(self) -> Indices:
        """Tokens of each input."""
        return self.head_lengths[self.parts[:, 0]] + self.tail_lengths[self.parts[:, 1]]

    def ids(self, index: int) -> list[int]:
        """Tokens of an input."""
        head, tail = (int(part) for part in self.parts[index])
        return self.heads[head].ids + self.tails[tail].ids

    def types(self, index: int) -> list[int]:
        """Token types of an input, empty where the model has none."""
        head, tail = (int(part) for part in self.parts[index])
        return self.heads[head].types + self.tails[tail].types


def encode_pairs(
    firsts: Sequence[str], seconds: Sequence[str], pairs: Indices, encode: EncodeMany, split_at: SplitAt
) -> Encoded:
    """Encode inputs.

    Parameters
    ----------
    firsts, seconds : sequence of str
        Distinct texts.
    pairs : (inputs, 2) int
        The first and second text of each input.
    encode : callable
        Encodes many inputs as the model wants them.
    split_at : callable
        Gives the place in an encoding where the tail starts, None where it cannot be told.
    """
    first_uses = np.unique(pairs[:, 0], return_index=True)[1]
    second_uses = np.unique(pairs[:, 1], return_index=True)[1]
    chosen = np.unique(np.concatenate([first_uses, second_uses]))
    encodings = _many(firsts, seconds, pairs[chosen], encode)
    cuts = [split_at(firsts[pairs[i, 0]], e) for i, e in zip(chosen, encodings, strict=True)]
    heads: dict[int, Piece] = {}
    tails: dict[int, Piece] = {}
    sample_of: dict[tuple[int, int], int] = {}
    for number, (index, encoding, cut) in enumerate(zip(chosen, encodings, cuts, strict=True)):
        if not cut:  # it cannot be told, or the first token already reaches beyond the first text
            return _whole(firsts, seconds, pairs, encode)
        first, second = (int(i) for i in pairs[index])
        head = heads.setdefault(first, Piece(encoding.ids[:cut], encoding.types[:cut]))
        tail = tails.setdefault(second, Piece(encoding.ids[cut:], encoding.types[cut:]))
        if head.ids != encoding.ids[:cut] or tail.ids != encoding.ids[cut:]:
            return _whole(firsts, seconds, pairs, encode)
        sample_of.setdefault((0, first), number)
        sample_of.setdefault((1, second), number)
    empty = Piece([], [])
    return Encoded(
        heads=[heads.get(i, empty) for i in range(len(firsts))],
        tails=[tails.get(i, empty) for i in range(len(seconds))],
        parts=pairs,
        apart=True,
        samples=[(e, cut) for e, cut in zip(encodings, cuts, strict=True) if cut is not None],
        sample_of=sample_of,
    )


def _whole(firsts: Sequence[str], seconds: Sequence[str], pairs: Indices, encode: EncodeMany) -> Encoded:
    """Encode every input by itself: all of it is head."""
    encodings = _many(firsts, seconds, pairs, encode)
    return Encoded(
        heads=[Piece(encoding.ids, encoding.types) for encoding in encodings],
        tails=[Piece([], [])],
        parts=np.stack([np.arange(len(pairs)), np.zeros(len(pairs), dtype=np.int64)], axis=1),
        apart=False,
        samples=[(encoding, 0) for encoding in encodings],
        sample_of={(2, i): i for i in range(len(pairs))},
    )


def _many(firsts: Sequence[str], seconds: Sequence[str], pairs: Indices, encode: EncodeMany) -> list[Encoding]:
    encodings: list[Encoding] = []
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        encodings += encode([firsts[i] for i in some[:, 0]], [seconds[i] for i in some[:, 1]])
    return encodings


def call_tokenizer(tokenizer: Any, texts: Sequence[str], pairs: Sequence[str] | None, special: bool) -> list[Encoding]:
    """Encode texts, or pairs of texts, without padding or truncation.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizer
        Of either sort.
    texts, pairs : sequence of str
        First and, if given, second texts.
    special : bool
        Whether the tokenizer adds its special tokens.
    """
    given = [list(texts)] if pairs is None else [list(texts), list(pairs)]
    fast = bool(tokenizer.is_fast)
    batch = tokenizer(*given, add_special_tokens=special, return_offsets_mapping=fast, verbose=False)
    types = batch.get("token_type_ids")
    encodings = []
    for i, ids in enumerate(batch["input_ids"]):
        offsets = [(int(s), int(e)) for s, e in batch["offset_mapping"][i]] if fast else None
        sequence = list(batch.sequence_ids(i)) if fast else None
        encodings.append(Encoding(list(ids), list(types[i]) if types is not None else [], offsets, sequence))
    return encodings


def second_starts(_first: str, encoding: Encoding) -> int | None:
    """Split a pair encoding where the second text starts."""
    sequence = encoding.sequence
    return sequence.index(1) if sequence is not None and 1 in sequence else None


def behind_first(first: str, encoding: Encoding) -> int | None:
    """Split the encoding of two joined texts at the first token that reaches beyond the first text."""
    if encoding.offsets is None or encoding.sequence is None:
        return None
    for i, ((_, end), sequence) in enumerate(zip(encoding.offsets, encoding.sequence, strict=True)):
        if sequence is not None and end > len(first):
            return i
    return None
