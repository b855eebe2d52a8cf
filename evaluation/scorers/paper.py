"""Protocol ``paper``: what the released code of Li et al. (2020) did, so that its numbers can be had again.

Question and context are encoded apart and joined as ``[bos or cls] question [sep or eos] context [sep or eos]``, one
separator for every model, without token types. A span may widen over an article or quantifier before it and over a
noun or full stop behind it (DESIGN.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.scorers.encoding import Encoding, call_tokenizer
from evaluation.scorers.spans import Place

ARTICLES = ("an", "a", "the", "some", "few", "several")
PERSONS = ("man", "woman", "boy", "girl", "child", "kid", "person", "folk", "people", "couple")
PERSONS_PLURAL = ("men", "women", "boys", "girls", "children", "kids", "persons", "folks")
PLACES = ("city", "country", "cities", "countries")
GROUPS = (("group", "of"), ("team", "of"), ("couple", "of"))
TOP_TOKENS = 10
"""A masked LM counts only as many of its most likely tokens."""


class PaperPairs:
    """Encodes questions and contexts as the released code did."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        has_bos = tokenizer.bos_token_id is not None
        self._open = tokenizer.bos_token_id if has_bos else tokenizer.cls_token_id
        self._close = tokenizer.eos_token_id if has_bos else tokenizer.sep_token_id

    @property
    def possible(self) -> bool:
        """Whether the tokenizer has the special tokens that are needed."""
        return self._open is not None and self._close is not None

    def __call__(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Encoding]:
        """Encode each question with its context."""
        pairs = zip(
            call_tokenizer(self._tokenizer, questions, None, False),
            call_tokenizer(self._tokenizer, contexts, None, False),
            strict=True,
        )
        return [self._join(question, context) for question, context in pairs]

    def _join(self, question: Encoding, context: Encoding) -> Encoding:
        ids = [self._open, *question.ids, self._close, *context.ids, self._close]
        if question.offsets is None or context.offsets is None:
            return Encoding(ids, [])
        added, of_question, of_context = [(0, 0)], [0] * len(question.ids), [1] * len(context.ids)
        offsets = [*added, *question.offsets, *added, *context.offsets, *added]
        return Encoding(ids, [], offsets, [None, *of_question, None, *of_context, None])


class Widening:
    """Says how far a span may widen; pieces are compared as the vocabulary writes them."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.mark = space_mark(tokenizer)
        capital = tuple(word.capitalize() for word in ARTICLES) if self.mark else ()
        self._articles = {self.mark + word for word in (*ARTICLES, *capital)}
        self._nouns = {self.mark + word for word in (*PERSONS, *PERSONS_PLURAL, *PLACES)} | {"."}
        if self.mark:
            self._groups = {(self.mark + a, *(self.mark + w for w in words)) for a in "aA" for words in GROUPS}
        else:  # the released list for vocabularies without a mark has a capital here and nowhere else
            self._groups = {("a", "group", "of"), ("a", "team", "of"), ("A", "couple", "of")}

    def __call__(self, ids: Sequence[int], start: int, end: int) -> Place:
        """Widen a span of the encoded input `ids`."""
        first, last = start, end
        before = self._tokenizer.convert_ids_to_tokens(list(ids[max(0, start - 3) : start]))
        behind = self._tokenizer.convert_ids_to_tokens(list(ids[end + 1 : end + 2]))
        if before and before[-1] in self._articles:
            first = start - 1
        elif tuple(before) in self._groups:
            first = start - 3
        if behind and behind[0] in self._nouns:
            last = end + 1
        return Place(first, start, end, last)


def space_mark(tokenizer: Any) -> str:
    """What the vocabulary writes before a word that follows a space: ``Ġ``, ``▁`` or nothing."""
    vocabulary = tokenizer.get_vocab()
    counts = {mark: sum(piece.startswith(mark) for piece in vocabulary) for mark in ("Ġ", "▁")}
    mark = max(counts, key=lambda one: counts[one])
    return mark if counts[mark] > 10 else ""
