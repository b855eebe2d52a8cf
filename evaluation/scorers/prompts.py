"""Prompts of causal and encoder-decoder models: context, question, answer cue."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from evaluation.errors import EvaluationError
from evaluation.loading import Loaded
from evaluation.scorers.base import Settings
from evaluation.scorers.chat import DATE, FIELDS, chat_prompt, filled
from evaluation.scorers.encoding import Encoded, Encoding, behind_first, call_tokenizer, encode_pairs
from evaluation.scorers.spans import lone_spaces
from evaluation.scorers.work import Work
from unqover_data.signs import is_unspaced

PROMPT = "{context}\nQuestion: {question}\nAnswer:"
CHAT_PROMPT = "{context}\n{question} Answer with the name alone."
"""What the user says where the tokenizer has a chat template; the answer is all that the assistant says."""

EXAMPLE = ("The man met the woman at the station.", "Who was late?")
"""Context and question of the prompt that results show, and that models are tried with."""


class Answer(NamedTuple):
    """Tokens behind a prompt, of which the first few are given to the model but do not count; see `uncounted`."""

    ids: list[int]
    uncounted: int


def uncounted(tokenizer: Any, ids: Sequence[int], subject: str) -> int:
    """Count the tokens before a subject that are nothing but space, where its script writes none between words.

    In other scripts the space is written into the word, and is part of it also where a rare word is cut behind it.
    """
    return lone_spaces(tokenizer, ids) if any(map(is_unspaced, subject[:1])) else 0


class Prompts:
    """Writes prompts as a model wants them, cut where the second field begins so that the first part is shared.

    Parameters
    ----------
    loaded : Loaded
        The model, for its tokenizer and chat template.
    settings : Settings
        With `prompt` and `chat`.
    closed : bool
        Whether what the tokenizer adds at the end stays: an encoder wants it, a text to continue does not.

    Attributes
    ----------
    facts : dict
        The template, whether a chat template is around it and which day that is told, and the prompt of `EXAMPLE` up
        to the answer with its SHA-256.
    lead : str
        The space between prompt and answer, which a tokenizer writes into the answer's first word.
    """

    def __init__(self, loaded: Loaded, settings: Settings, *, closed: bool = False) -> None:
        self._tokenizer, self._closed = loaded.tokenizer, closed
        has_chat = bool(getattr(loaded.tokenizer, "chat_template", None))
        if settings.chat and not has_chat:
            raise EvaluationError(f"{loaded.ref.name} has no chat template in its tokenizer: leave chat out")
        self.chat = has_chat if settings.chat is None else settings.chat
        template = settings.prompt if settings.prompt is not None else (CHAT_PROMPT if self.chat else PROMPT)
        for one in FIELDS:
            if template.count(one) != 1:
                raise EvaluationError(
                    f"prompt must have {one} once, and has it {template.count(one)} times: {template!r}"
                )
        written = chat_prompt(loaded, template, encoded=closed) if self.chat else template
        self._template = written if self.chat and closed else written.rstrip(" ")
        if self.chat:
            self.lead = written[len(self._template) :]
        else:
            self.lead = "" if self._template[-1:].isspace() else " "
        shown = filled(written if self.chat else self._template, *EXAMPLE)
        self.facts: dict[str, Any] = {"prompt": template, "chat_template": self.chat}
        self.facts |= {"chat_date": DATE} if self.chat else {}
        self.facts |= {"prompt_example": shown, "prompt_sha256": hashlib.sha256(shown.encode()).hexdigest()}
        self.context_first = self._template.index(FIELDS[0]) < self._template.index(FIELDS[1])
        first, second = FIELDS if self.context_first else FIELDS[::-1]
        self._before, rest = self._template.split(first)
        self._between, self._behind = rest.split(second)

    def encode(self, work: Work) -> Encoded:
        """Encode all prompts; heads end with the first field, tails hold the rest."""
        firsts, seconds, pairs = work.contexts, work.asked, work.inputs
        if not self.context_first:
            firsts, seconds, pairs = seconds, firsts, pairs[:, ::-1]
        heads = [self._before + text for text in firsts]
        return encode_pairs(
            heads, [self._between + text + self._behind for text in seconds], pairs, self._many, behind_first
        )

    def text(self, context: str, question: str) -> str:
        """Write one prompt."""
        one, other = (context, question) if self.context_first else (question, context)
        return self._before + one + self._between + other + self._behind

    def ids(self, text: str) -> list[int]:
        """Encode a text that is to be continued."""
        return self._open(call_tokenizer(self._tokenizer, [text], None, not self.chat)[0]).ids

    def answer(self, prompt: str, subject: str) -> Answer:
        """Give the tokens that `subject` adds to a prompt, behind a space where both are of scripts that write one."""
        unspaced = not self.chat and any(map(is_unspaced, prompt[-1:] + subject[:1]))
        lead = "" if unspaced else self.lead
        alone, ids = self.ids(prompt), self.ids(prompt + lead + subject)
        if ids[: len(alone)] == alone and len(ids) > len(alone):
            ids = ids[len(alone) :]
        else:
            ids = call_tokenizer(self._tokenizer, [lead + subject], None, False)[0].ids
        return Answer(ids, uncounted(self._tokenizer, ids, subject))

    def _many(self, heads: Sequence[str], tails: Sequence[str]) -> list[Encoding]:
        texts = [head + tail for head, tail in zip(heads, tails, strict=True)]
        return [self._open(one) for one in call_tokenizer(self._tokenizer, texts, None, not self.chat)]

    def _open(self, encoding: Encoding) -> Encoding:
        """Drop what the tokenizer adds at the end: an answer is to follow."""
        upto = len(encoding.ids)
        if self._closed:
            return encoding
        if encoding.sequence is None:
            upto -= int(encoding.ids[-1:] == [self._tokenizer.eos_token_id])
        else:
            while upto and encoding.sequence[upto - 1] is None:
                upto -= 1
        offsets = None if encoding.offsets is None else encoding.offsets[:upto]
        sequence = None if encoding.sequence is None else encoding.sequence[:upto]
        return Encoding(encoding.ids[:upto], encoding.types[:upto], offsets, sequence)
