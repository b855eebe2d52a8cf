"""Characters to tokens, on a tokenizer of every family; the oracle tries all runs of tokens and reads them."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.errors import EvaluationError
from evaluation.scorers.encoding import Encoding, call_tokenizer
from evaluation.scorers.spans import find_tokens

FAMILIES = [
    *("wordpiece", "bytes", "bytes-untrimmed", "bytes-split", "bytes-plain-mask"),
    *("metaspace", "split-metaspace", "metaspace-split"),
]
CONTEXTS = {
    "The child by the door is called Mary Lou, and Zebedee stood there.": ("Mary Lou", "Zebedee"),
    "Ann sent a letter to Bob.": ("Ann", "Bob"),
    "Bob sent a letter to Y.": ("Bob", "Y"),
    "The Café and the São Tomé man met": ("Café", "São Tomé"),
}


def read(tokenizer: Any, ids: list[int]) -> str:
    return "".join(str(tokenizer.decode(ids)).replace("▁", "").lower().split())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("side", [0, 1])
def test_tokens_are_the_shortest_run_that_reads_as_the_subject(make_tokenizer: Any, family: str, side: int) -> None:
    tokenizer = make_tokenizer(family)
    for context, subjects in CONTEXTS.items():
        texts = (context, "Who lied?") if side == 0 else ("Who lied?", context)
        (encoding,) = call_tokenizer(tokenizer, [texts[0]], [texts[1]], True)
        for subject in subjects:
            start = context.index(subject)
            span = (start, start + len(subject))
            found = find_tokens(tokenizer, encoding, side, span, context)
            ids = encoding.ids
            if tokenizer.unk_token_id in ids[found[0] : found[1] + 1]:
                assert encoding.offsets is not None
                assert context[encoding.offsets[found[0]][0] : encoding.offsets[found[1]][1]].strip() == subject
                continue
            want = "".join(subject.lower().split())
            plain = {want, "".join({"é": "e", "ã": "a"}.get(c, c) for c in want)}  # uncased models drop accents
            runs = [
                (i, j) for i in range(len(ids)) for j in range(i, len(ids)) if read(tokenizer, ids[i : j + 1]) in plain
            ]
            shortest = min(j - i for i, j in runs)
            assert found in [(i, j) for i, j in runs if j - i == shortest]


@pytest.mark.parametrize("side", [0, 1])
def test_a_python_tokenizer_is_read_by_parts(side: int) -> None:
    from transformers import ByT5Tokenizer

    tokenizer = ByT5Tokenizer()
    assert not tokenizer.is_fast
    context = "Ann sent a letter to Mary Lou."
    texts = (context, "Who lied?") if side == 0 else ("Who lied?", context)
    (encoding,) = call_tokenizer(tokenizer, [texts[0]], [texts[1]], True)
    start, end = find_tokens(tokenizer, encoding, side, (21, 29), context)
    # Bytes: a token a letter; behind "Who lied?" (9 letters) and its end token the context starts at 10.
    assert (start, end) == (21 + 10 * side, 28 + 10 * side)


def test_a_python_tokenizer_that_cannot_be_read_is_refused() -> None:
    class Odd:
        """Counts words so far, so that no part of a text is encoded as it is in the whole."""

        unk_token_id = None

        def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
            return {"input_ids": [len(text), *range(len(text.split()))]}

        def decode(self, ids: list[int], **_: Any) -> str:
            return str(ids)

    encoding = Encoding([0, 25, 0, 1, 2, 3, 4, 5, 9], [])
    with pytest.raises(EvaluationError, match=r"\(Odd\) gives no character offsets .* fast tokenizer"):
        find_tokens(Odd(), encoding, 1, (0, 3), "Ann sent a letter to Bob.")


def test_tokens_that_do_not_spell_the_subject_are_refused(make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer("wordpiece")
    context = "Ann sent a letter to Bob."
    (encoding,) = call_tokenizer(tokenizer, ["Who lied?"], [context], True)
    with pytest.raises(EvaluationError, match=r"the tokens \['sent'\] do not spell the subject 'en' of 'Ann sent"):
        find_tokens(tokenizer, encoding, 1, (5, 7), context)
    with pytest.raises(EvaluationError, match=r"no token overlaps the subject ' '"):
        find_tokens(tokenizer, encoding, 1, (3, 4), context)
