"""What a model's chat template writes around a prompt, up to where a finished assistant turn has its answer.

A template is a program of somebody else's. It may date its text, open a channel or a block of thoughts before an
answer, and change or drop what it is given. So a finished turn is rendered with a made-up answer, and the prompt is
what stands before it; where that cannot be told, the template is refused.
"""

from __future__ import annotations

from typing import Any

from evaluation.errors import EvaluationError
from evaluation.loading import Loaded

DATE = "2025-01-01"
"""The day that every template is told, so that scores are those of any other day."""

FIELDS = ("{context}", "{question}")
_ANSWERS = ("Zqanne", "van der McZq")
_TRIAL = ('"It\'s 5 < 6 & more," said the man.', "Who 'said' <it>?")
_WRITTEN = (
    *(("Y", "2025"), ("y", "25"), ("G", "2025"), ("m", "01"), ("-m", "1"), ("d", "01"), ("-d", "1"), ("e", " 1")),
    *(("B", "January"), ("b", "Jan"), ("h", "Jan"), ("A", "Wednesday"), ("a", "Wed"), ("u", "3"), ("w", "3")),
    *(("j", "001"), ("V", "01"), ("H", "00"), ("-H", "0"), ("I", "12"), ("-I", "12"), ("M", "00"), ("S", "00")),
    *(("f", "000000"), ("p", "AM"), ("F", DATE), ("D", "01/01/25"), ("x", "01/01/25"), ("R", "00:00")),
    *(("T", "00:00:00"), ("X", "00:00:00"), ("c", "Wed Jan  1 00:00:00 2025"), ("Z", ""), ("z", "")),
)
# A macro hides the function of the same name that transformers has for templates; the line break goes with its tag.
_DATED = (
    "{% macro strftime_now(format) %}{{ format"
    + "".join(f".replace('%{code}', '{text}')" for code, text in _WRITTEN)
    + " }}{% endmacro %}\n"
)


def filled(prompt: str, context: str, question: str) -> str:
    """Put texts in place of the two fields of a prompt."""
    return prompt.replace(FIELDS[0], context).replace(FIELDS[1], question)


def chat_prompt(loaded: Loaded, prompt: str, *, encoded: bool) -> str:
    """Write a chat template around a prompt with its two fields.

    Parameters
    ----------
    loaded : Loaded
        A model whose tokenizer has a chat template.
    prompt : str
        What the user says.
    encoded : bool
        Whether the prompt is for an encoder, whose decoder begins the answer: it ends where a turn is to be
        generated. Else it ends where the answer of a finished assistant turn begins.

    Raises
    ------
    EvaluationError
        If the template fails, changes the prompt, or places the answer nowhere, several times or never the same way.
    """
    first = _before_answer(loaded, prompt, _ANSWERS[0], encoded=encoded)
    second = _before_answer(loaded, filled(prompt, *_TRIAL), _ANSWERS[1], encoded=encoded)
    if any(first.count(field) != 1 for field in FIELDS) or filled(first, *_TRIAL) != second:
        fault = "changes the prompt, or what stands before an answer"
        raise EvaluationError(f"the chat template of {loaded.ref.name} {fault}: pass --no-chat")
    return first


def _before_answer(loaded: Loaded, prompt: str, answer: str, *, encoded: bool) -> str:
    said = {"role": "user", "content": prompt}
    if encoded:
        return _rendered(loaded, [said], add_generation_prompt=True)
    text = _rendered(loaded, [said, {"role": "assistant", "content": answer}])
    if text.count(answer) != 1:
        how = "changes the answer of a finished turn" if answer not in text else "writes an answer several times"
        raise EvaluationError(f"the chat template of {loaded.ref.name} {how}: pass --no-chat")
    return text.partition(answer)[0]


def _rendered(loaded: Loaded, turns: list[dict[str, str]], **more: Any) -> str:
    tokenizer = loaded.tokenizer
    try:
        template = _DATED + tokenizer.get_chat_template()
        text = tokenizer.apply_chat_template(
            turns, chat_template=template, tokenize=False, enable_thinking=False, **more
        )
    except Exception as error:  # whatever a template of somebody else's may raise
        reason = " ".join(str(error).split())
        raise EvaluationError(f"the chat template of {loaded.ref.name} fails ({reason}): pass --no-chat") from error
    return str(text)
