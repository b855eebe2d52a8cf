"""Finds the tokens of a subject from the characters where it was recorded."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from evaluation.errors import EvaluationError
from evaluation.scorers.encoding import Encoding
from evaluation.scorers.work import Span


class Place(NamedTuple):
    """Where a subject may start (`first` to `start`) and end (`end` to `last`), as token positions.

    Under ``exact`` both are single tokens; under ``paper`` an article before or a noun behind may count.
    """

    first: int
    start: int
    end: int
    last: int


def squash(text: str) -> str:
    """Strip a text of what tokenizers change: case, accents, spaces.

    Examples
    --------
    >>> squash(" São  Tomé") == squash("sao tome")
    True
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in plain if not (c.isspace() or unicodedata.combining(c)))


def find_tokens(tokenizer: Any, encoding: Encoding, side: int, span: Span, text: str) -> tuple[int, int]:
    """Find the first and last token of the characters `span` of one of the two encoded texts.

    Tokens are those whose offsets overlap the span, with or without the space before a word in them. They must spell
    the subject; where an offset misses a letter, neighbours that make up for it are taken in. A token that is nothing
    but the space before the subject is no part of it, even where its offsets say so (``▁`` before a split word):
    training code, which takes the last token that starts no later than the answer, never made it a start.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizer
        What encoded the texts.
    encoding : Encoding
        Both texts, encoded together.
    side : int
        0 if the context is the first text, 1 if the second.
    span : (start, end)
        Characters of the subject in the context.
    text : str
        The context.

    Raises
    ------
    EvaluationError
        If no run of tokens spells the subject, or the tokenizer tells nothing to go by.
    """
    subject = text[slice(*span)]
    if encoding.offsets is None or encoding.sequence is None:
        return _find_without_offsets(tokenizer, encoding.ids, side, span, text)
    mine = [i for i, sequence in enumerate(encoding.sequence) if sequence == side]
    touching = [i for i in mine if _touches(encoding.offsets[i], span)]
    if touching:
        for start, end in _runs(touching[0], touching[-1], mine[0], mine[-1]):
            if _spells(tokenizer, encoding.ids[start : end + 1], subject):
                return start + lone_spaces(tokenizer, encoding.ids[start : end + 1]), end
        found = encoding.ids[touching[0] : touching[-1] + 1]
        covers = (encoding.offsets[touching[0]][0], encoding.offsets[touching[-1]][1])
        is_exact = covers[1] == span[1] and text[covers[0] : span[0]].strip() == ""
        if is_exact and tokenizer.unk_token_id is not None and tokenizer.unk_token_id in found:
            return touching[0], touching[-1]  # not in the vocabulary, but standing alone
        written = tokenizer.convert_ids_to_tokens(found)
        raise EvaluationError(f"the tokens {written} do not spell the subject {subject!r} of {text!r}: {_HINT}")
    raise EvaluationError(f"no token overlaps the subject {subject!r} of {text!r}: {_HINT}")


_HINT = "score only the rows that select keeps, or pass another model"


def _touches(offsets: Span, span: Span) -> bool:
    """Whether a token overlaps a span; a token of a single letter may have lost it to trimming and be empty."""
    start, end = offsets
    return (start < span[1] and end > span[0]) or (start == end and span[0] < end <= span[1])


def _runs(start: int, end: int, first: int, last: int) -> list[tuple[int, int]]:
    """The run itself, then with one neighbour at either end or both."""
    runs = [(start, end), (start - 1, end), (start, end + 1), (start - 1, end + 1)]
    return [(a, b) for a, b in runs if a >= first and b <= last]


def _spells(tokenizer: Any, ids: Sequence[int], subject: str) -> bool:
    return _written(tokenizer, ids) == squash(subject)


def _written(tokenizer: Any, ids: Sequence[int]) -> str:
    """What tokens say, less what tokenizers change."""
    written = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return squash(written.replace("▁", " "))


def lone_spaces(tokenizer: Any, ids: Sequence[int]) -> int:
    """Count the tokens at the start, the last one excepted, without which the rest is written the same."""
    start = 0
    while start < len(ids) - 1 and _written(tokenizer, ids[start:]) == _written(tokenizer, ids[start + 1 :]):
        start += 1
    return start


def _find_without_offsets(tokenizer: Any, ids: list[int], side: int, span: Span, text: str) -> tuple[int, int]:
    """Find a subject by encoding what comes before it and what comes up to its end (Python tokenizers)."""

    def encode(part: str) -> list[int]:
        return list(tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"])

    whole = encode(text)
    places = [i for i in range(len(ids) - len(whole) + 1) if ids[i : i + len(whole)] == whole]
    subject = text[slice(*span)]
    if places:
        at = places[-1 if side == 1 else 0]
        upto = encode(text[: span[1]])
        for before in (text[: span[0]].rstrip(), text[: span[0]]):
            start = len(encode(before))
            agrees = whole[: len(upto)] == upto and start < len(upto)
            if agrees and _spells(tokenizer, whole[start : len(upto)], subject):
                end = len(upto) - 1
                return at + start + lone_spaces(tokenizer, whole[start : end + 1]), at + end
    raise EvaluationError(
        f"the tokenizer of this model ({type(tokenizer).__name__}) gives no character offsets and the tokens of "
        f"{subject!r} cannot be told without: pass a model with a fast tokenizer"
    )
