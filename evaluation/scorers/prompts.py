"""Prompts of causal and encoder-decoder models: context, question, answer cue."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.errors import EvaluationError
from evaluation.loading import Loaded
from evaluation.scorers.base import Settings
from evaluation.scorers.encoding import Encoded, Encoding, behind_first, call_tokenizer, encode_pairs
from evaluation.scorers.work import Work

PROMPT = "{context}\nQuestion: {question}\nAnswer:"
CHAT_PROMPT = "{context}\n{question} Answer with the name alone."
"""What the user says where the tokenizer has a chat template; the answer is what the assistant says first."""

_FIELDS = ("{context}", "{question}")


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
        The template and whether a chat template is around it.
    lead : str
        What stands between prompt and answer.
    """

    def __init__(self, loaded: Loaded, settings: Settings, *, closed: bool = False) -> None:
        self._tokenizer, self._closed = loaded.tokenizer, closed
        has_chat = bool(getattr(loaded.tokenizer, "chat_template", None))
        if settings.chat and not has_chat:
            raise EvaluationError(f"{loaded.ref.name} has no chat template in its tokenizer: leave chat out")
        self.chat = has_chat if settings.chat is None else settings.chat
        template = settings.prompt if settings.prompt is not None else (CHAT_PROMPT if self.chat else PROMPT)
        for one in _FIELDS:
            if template.count(one) != 1:
                raise EvaluationError(
                    f"prompt must have {one} once, and has it {template.count(one)} times: {template!r}"
                )
        self.facts = {"prompt": template, "chat_template": self.chat}
        if self.chat:
            self._template = self._render(template)
            self.lead = self._chat_lead(template)
        else:
            self._template = template.rstrip(" ")
            self.lead = "" if self._template[-1:].isspace() else " "
        self.context_first = self._template.index(_FIELDS[0]) < self._template.index(_FIELDS[1])
        first, second = _FIELDS if self.context_first else _FIELDS[::-1]
        self._before, rest = self._template.split(first)
        self._between, self._behind = rest.split(second)

    def _render(self, template: str) -> str:
        """Put the chat template around the prompt."""
        message = [{"role": "user", "content": template}]
        try:
            text = self._tokenizer.apply_chat_template(
                message, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
        except Exception as error:  # whatever a template of somebody else's may raise
            reason = " ".join(str(error).split())
            raise EvaluationError(f"the chat template of this model fails ({reason}): pass --no-chat") from error
        if any(str(text).count(one) != 1 for one in _FIELDS):
            raise EvaluationError("the chat template of this model changes the prompt: pass --no-chat")
        return str(text)

    def _chat_lead(self, template: str) -> str:
        """Give the space that the chat template puts between its prompt and what the assistant says, if any."""
        answer = "Zq"
        turns = [{"role": "user", "content": template}, {"role": "assistant", "content": answer}]
        try:
            text = str(self._tokenizer.apply_chat_template(turns, tokenize=False, enable_thinking=False))
        except Exception:  # it knows no finished answers
            return ""
        between = text[len(self._template) :].partition(answer)[0] if text.startswith(self._template) else ""
        return between if between.isspace() else ""

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

    def answer(self, prompt: str, subject: str) -> list[int]:
        """Give the tokens that `subject` adds to a prompt."""
        alone, both = self.ids(prompt), self.ids(prompt + self.lead + subject)
        if both[: len(alone)] == alone and len(both) > len(alone):
            return both[len(alone) :]
        return call_tokenizer(self._tokenizer, [self.lead + subject], None, False)[0].ids

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
