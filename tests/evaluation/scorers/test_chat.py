"""Chat templates: answers are scored where a finished turn has them, on any day, or the template is refused."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pyarrow as pa
import pytest

from evaluation.errors import EvaluationError
from evaluation.loading import Loaded, load_model
from evaluation.models import resolve_model
from evaluation.scorers.base import Settings
from evaluation.scorers.causal import CausalScorer
from evaluation.scorers.prompts import EXAMPLE
from evaluation.scorers.seq2seq import Seq2SeqScorer
from tests.evaluation.scorers.test_generation import LLAMA, T5, T5_SIZES

TURNS = "{%% for m in messages %%}{%% if m.role == 'user' %%}%s{%% else %%}%s{%% endif %%}{%% endfor %%}"
OPEN = "{%% if add_generation_prompt %%}%s{%% endif %%}"
USER = "[CLS]She: {{ m.content }}\n"
HARMONY = (
    "{%- macro system() -%}{{- '|system|Date: ' + strftime_now('%Y-%m-%d') + '|end|' -}}{%- endmacro -%}"
    "[CLS]{{ system() }}"
    + TURNS % ("|user|{{ m.content }}|end|", "|assistant|final|message|{{ m.content }}|return|")
    + OPEN % "|assistant|"
)
EMPTY_THOUGHTS = TURNS % (USER, "He:\n<think>\n\n</think>\n\n{{ m.content }}[SEP]") + OPEN % "He:\n"
THINKS_FIRST = TURNS % (USER, "He: {{ m.content | trim }}[SEP]") + OPEN % "He: <think>\n"
NEXT_LINE = TURNS % (USER, "He:\n{{ m.content }}[SEP]") + OPEN % "He:"
SPACE = TURNS % (USER, "He: {{ m.content }}[SEP]") + OPEN % "He: "
PLACED = {
    # What stands before the user's words, between them and the answer, and the answer's own space.
    "harmony": (HARMONY, "[CLS]|system|Date: 2025-01-01|end||user|", "|end||assistant|final|message|", ""),
    "empty thoughts": (EMPTY_THOUGHTS, "[CLS]She: ", "\nHe:\n<think>\n\n</think>\n\n", ""),
    "thinks first": (THINKS_FIRST, "[CLS]She: ", "\nHe:", " "),
    "next line": (NEXT_LINE, "[CLS]She: ", "\nHe:\n", ""),
    "space": (SPACE, "[CLS]She: ", "\nHe:", " "),
}


@pytest.fixture(scope="module")
def loaded(make_model: Any) -> Loaded:
    return load_model(resolve_model(str(make_model(*LLAMA, max_position_embeddings=300))))


@pytest.mark.parametrize("name", PLACED)
def test_scores_are_those_of_the_answer_of_a_finished_turn(loaded: Loaded, few: dict[str, pa.Table], name: str) -> None:
    import torch

    loaded.tokenizer.chat_template, opening, closing, lead = PLACED[name]
    scorer = CausalScorer(loaded, Settings())
    scores = scorer.score(few["qa"].slice(0, 1))
    row = few["qa"].slice(0, 1).to_pylist()[0]
    said = f"{row['context_12']}\n{row['question']} Answer with the name alone."
    for column in (0, 1):
        subject = row[f"text{column + 1}"]
        prompt = loaded.tokenizer(opening + said + closing, add_special_tokens=False)["input_ids"]
        ids = loaded.tokenizer(opening + said + closing + lead + subject, add_special_tokens=False)["input_ids"]
        assert ids[: len(prompt)] == prompt
        with torch.no_grad():
            logp = loaded.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        each = [float(logp[at - 1, ids[at]]) for at in range(len(prompt), len(ids))]
        assert scores[0, column] == pytest.approx(math.exp(sum(each) / len(each)), rel=1e-4)
    shown = f"{opening}{EXAMPLE[0]}\n{EXAMPLE[1]} Answer with the name alone.{closing}{lead}"
    assert scorer.facts["prompt_example"] == shown
    assert scorer.facts["prompt_sha256"] == hashlib.sha256(shown.encode()).hexdigest()
    assert scorer.facts["chat_date"] == "2025-01-01"


def test_a_template_is_told_one_day_in_every_form(loaded: Loaded) -> None:
    form = "%A, %-d %B %Y / %a %d %b %y / %m %j %H:%M:%S %p"
    now = "{% if strftime_now is defined %}{% set now = strftime_now('" + form + "') %}{{ now }}{% endif %}"
    loaded.tokenizer.chat_template = now + SPACE
    shown = CausalScorer(loaded, Settings()).facts["prompt_example"]
    assert shown.startswith("Wednesday, 1 January 2025 / Wed 01 Jan 25 / 01 001 00:00:00 AM[CLS]She: The man")


@pytest.mark.parametrize("start", ["\n", "  {% if true %}\nx{% endif %}", " \n ", "{#- note -#} ", "{%- set a = 1 %}"])
def test_a_template_without_a_date_is_rendered_as_by_transformers(loaded: Loaded, start: str) -> None:
    loaded.tokenizer.chat_template = start + SPACE
    shown = CausalScorer(loaded, Settings()).facts["prompt_example"]
    said = f"{EXAMPLE[0]}\n{EXAMPLE[1]} Answer with the name alone."
    turns = [{"role": "user", "content": said}, {"role": "assistant", "content": "Ann"}]
    assert loaded.tokenizer.apply_chat_template(turns, tokenize=False) == f"{shown}Ann[SEP]"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            TURNS % (USER, "{{ raise_exception('roles must end with the user') }}"),
            "fails .roles must end with the user",
        ),
        (TURNS % (USER, ""), "changes the answer of a finished turn"),
        (TURNS % (USER, "He: {{ m.content | upper }}"), "changes the answer of a finished turn"),
        (TURNS % (USER, "He: {{ m.content }}") + "{{ messages[-1].content }}", "writes an answer several times"),
        (TURNS % (USER, "He ({{ m.content | length }}): {{ m.content }}"), "changes the prompt, or what stands before"),
        (TURNS % ("{{ m.content | tojson }}", "{{ m.content }}"), "changes the prompt, or what stands before"),
        (TURNS % ("{{ m.content | upper }}", "{{ m.content }}"), "changes the prompt, or what stands before"),
        (TURNS % (USER + "{{ lipsum() }}", "{{ m.content }}"), "changes the prompt, or what stands before"),
    ],
)
def test_an_answer_that_cannot_be_placed_is_refused_in_one_line(loaded: Loaded, template: str, message: str) -> None:
    loaded.tokenizer.chat_template = template
    with pytest.raises(EvaluationError, match=rf"the chat template of .* {message}.*: pass --no-chat$"):
        CausalScorer(loaded, Settings())
    assert CausalScorer(loaded, Settings(chat=False)).facts["chat_template"] is False


def test_an_encoder_reads_up_to_where_a_turn_is_generated(make_model: Any) -> None:
    loaded = load_model(resolve_model(str(make_model(*T5, **T5_SIZES))))
    loaded.tokenizer.chat_template = THINKS_FIRST
    shown = Seq2SeqScorer(loaded, Settings()).facts["prompt_example"]
    assert shown.endswith("Answer with the name alone.\nHe: <think>\n")
