"""Causal and encoder-decoder models: plain transformers as oracle, and counts of what is computed."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer

LLAMA = ("LlamaForCausalLM", "LlamaConfig", "bytes")
MISTRAL = ("MistralForCausalLM", "MistralConfig", "metaspace")
T5 = ("T5ForConditionalGeneration", "T5Config", "metaspace")
T5_SIZES = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
BART = ("BartForConditionalGeneration", "BartConfig", "bytes")
BART_SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
BART_SIZES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_start_token_id": 2}
CHAT = (
    "{% for m in messages %}{% if m['role'] == 'user' %}[CLS]She: {{ m['content'] }} [SEP]"
    "{% else %} He:GAP{{ m['content'] }}[SEP]{% endif %}{% endfor %}{% if add_generation_prompt %} He:{% endif %}"
)


def with_chat(folder: Path, target: Path, gap: str = "") -> Path:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = CHAT.replace("GAP", gap)
    AutoModelForCausalLM.from_pretrained(folder).save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target


def without_end(tokenizer: Any, text: str, *, special: bool = True) -> list[int]:
    """Tokens of a text without the [SEP] that this tokenizer adds behind it, which is its end of text here."""
    ids: list[int] = tokenizer(text, add_special_tokens=special)["input_ids"]
    return ids[:-1] if special and ids[-1] == tokenizer.sep_token_id else ids


@pytest.mark.parametrize("joint", [False, True])
def test_causal_scores_are_those_of_plain_transformers(make_model: Any, few: dict[str, pa.Table], joint: bool) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = make_model(*LLAMA)
    scorer = make_scorer(resolve_model(str(folder)), joint=joint)
    assert scorer.facts["shares_prefix"]
    assert scorer.facts["prompt"] == "{context}\nQuestion: {question}\nAnswer:"
    scores = scorer.score(few["qa"])
    tokenizer, plain = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    for i in (0, 7, 13):
        row = few["qa"].slice(i, 1).to_pylist()[0]
        for column, (context, question, subject) in enumerate(
            [
                ("context_12", "question", "text1"),
                ("context_12", "question", "text2"),
                ("context_21", "question", "text1"),
            ]
        ):
            prompt = f"{row[context]}\nQuestion: {row[question]}\nAnswer:"
            # [CLS] and prompt, then the subject behind a space; the tokenizer's [SEP] is no part of either.
            start = len(tokenizer(prompt)["input_ids"]) - 1
            ids = tokenizer(f"{prompt} {row[subject]}")["input_ids"][:-1]
            with torch.no_grad():
                logp = plain(torch.tensor([ids])).logits[0].log_softmax(-1)
            each = [float(logp[at - 1, ids[at]]) for at in range(start, len(ids))]
            wanted = math.exp(sum(each) if joint else sum(each) / len(each))
            assert scores[i, column] == pytest.approx(wanted, abs=1e-6)


def test_what_prompts_share_is_computed_once(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer: Any = make_scorer(resolve_model(str(make_model(*LLAMA))), batch_size=3)
    seen: list[Any] = []
    forward = scorer._loaded.model.forward
    scorer._loaded.model.forward = lambda **inputs: (seen.append(inputs["input_ids"]), forward(**inputs))[1]
    rows = few["qa"]
    shared = scorer.score(rows)
    tokens = sum(ids.numel() for ids in seen)
    tokenizer = scorer._loaded.tokenizer
    contexts = {text for name in ("context_12", "context_21") for text in rows[name].to_pylist()}
    asked: dict[tuple[str, str], set[str]] = {}
    for row in rows.to_pylist():
        for order in ("context_12", "context_21"):
            for question in ("question", "question_negated"):
                asked.setdefault((row[order], row[question]), set()).update((row["text1"], row["text2"]))
    size = {text: len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in contexts}
    tails = sum(len(tokenizer(f"\nQuestion: {q}\nAnswer:", add_special_tokens=False)["input_ids"]) for _, q in asked)
    names = {name for subjects in asked.values() for name in subjects}
    more = {name: len(tokenizer(f" {name}", add_special_tokens=False)["input_ids"]) - 1 for name in names}
    # A context with its [CLS] once, a question with its cue once a context, a subject but for its last token.
    expected = sum(size.values()) + len(contexts) + tails + sum(more[name] for s in asked.values() for name in s)
    assert tokens == expected
    scorer._shares = False
    np.testing.assert_allclose(scorer.score(rows), shared, atol=1e-6)


def test_a_sliding_window_is_shared_rightly(make_model: Any, few: dict[str, pa.Table]) -> None:
    folder = make_model(*MISTRAL, sliding_window=6, num_key_value_heads=2)
    scorer: Any = make_scorer(resolve_model(str(folder)))
    assert scorer._shares
    shared = scorer.score(few["qa"])
    scorer._shares = False
    np.testing.assert_allclose(scorer.score(few["qa"]), shared, atol=1e-6)


def test_a_model_without_a_cache_to_share_is_scored_whole(make_model: Any, few: dict[str, pa.Table]) -> None:
    folder = make_model("RwkvForCausalLM", "RwkvConfig", "bytes")
    scorer = make_scorer(resolve_model(str(folder)), batch_size=5)
    assert not scorer.facts["shares_prefix"]
    scores = scorer.score(few["qa"])
    assert ((scores > 0) & (scores < 1)).all()


def test_a_model_that_looks_ahead_is_no_causal_lm(make_model: Any) -> None:
    folder = make_model("BertForMaskedLM", "BertConfig", "wordpiece")
    with pytest.raises(EvaluationError, match="attends to later tokens: it is no causal LM"):
        make_scorer(resolve_model(str(folder), kind="causal"))


@pytest.mark.parametrize("gap", ["", " "])
def test_a_chat_template_is_used_where_there_is_one(
    make_model: Any, few: dict[str, pa.Table], tmp_path: Path, gap: str
) -> None:
    folder = make_model(*LLAMA)
    chat = make_scorer(resolve_model(str(with_chat(folder, tmp_path / "chat", gap))))
    assert chat.facts["chat_template"] is True
    # The same prompt written by hand for the same weights; [CLS] comes from the template, so none is added to it.
    by_hand: Any = make_scorer(
        resolve_model(str(folder)), prompt="She: {context}\n{question} Answer with the name alone. [SEP] He:"
    )
    by_hand._prompts.lead = gap  # as the template writes it before what the assistant says
    np.testing.assert_allclose(chat.score(few["qa"]), by_hand.score(few["qa"]), atol=1e-6)
    off = make_scorer(resolve_model(str(tmp_path / "chat")), chat=False)
    np.testing.assert_allclose(
        off.score(few["qa"]), make_scorer(resolve_model(str(folder))).score(few["qa"]), atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "{context} Who?"}, r"prompt must have \{question\} once, and has it 0 times"),
        ({"prompt": "{context}{context}{question}"}, r"must have \{context\} once, and has it 2 times"),
        ({"chat": True}, "has no chat template"),
        ({"protocol": "paper"}, "protocol paper is for question-answering models and masked LMs, not kind 'causal'"),
    ],
)
def test_prompts_that_cannot_be_are_refused(make_model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        make_scorer(resolve_model(str(make_model(*LLAMA))), **options)


def test_a_prompt_may_ask_first_and_end_in_a_space(make_model: Any, few: dict[str, pa.Table]) -> None:
    ref = resolve_model(str(make_model(*LLAMA)))
    spaced = make_scorer(ref, prompt="{question} {context} Answer: ").score(few["qa"])
    tight = make_scorer(ref, prompt="{question} {context} Answer:").score(few["qa"])
    np.testing.assert_allclose(spaced, tight, atol=1e-6)
    assert abs(tight - make_scorer(ref).score(few["qa"])).max() > 1e-4


def test_a_prompt_that_is_too_long_is_one_clear_line(make_model: Any, few: dict[str, pa.Table]) -> None:
    ref = resolve_model(str(make_model(*LLAMA, max_position_embeddings=40)))
    with pytest.raises(EvaluationError, match=r"takes at most 40 tokens, and an input has \d+"):
        make_scorer(ref).score(few["qa"])


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize(("model", "sizes"), [(T5, T5_SIZES), (BART, BART_SIZES)])
def test_encoder_decoder_scores_are_those_of_plain_transformers(
    make_model: Any, few: dict[str, pa.Table], model: tuple[str, ...], sizes: dict[str, Any], joint: bool
) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = make_model(*model, **sizes)
    scores = make_scorer(resolve_model(str(folder)), joint=joint).score(few["qa"])
    tokenizer, plain = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    for i, column, context, subject in ((0, 0, "context_12", "text1"), (9, 3, "context_21", "text2")):
        row = few["qa"].slice(i, 1).to_pylist()[0]
        prompt = tokenizer(f"{row[context]}\nQuestion: {row['question']}\nAnswer:", return_tensors="pt")
        labels = tokenizer(text_target=row[subject])["input_ids"]  # [CLS] name [SEP]
        start = torch.tensor([[sizes["decoder_start_token_id"], *labels[:-1]]])
        with torch.no_grad():
            logp = (
                plain(input_ids=prompt["input_ids"], attention_mask=prompt["attention_mask"], decoder_input_ids=start)
                .logits[0]
                .log_softmax(-1)
            )
        each = [float(logp[at, token]) for at, token in enumerate(labels)][1:-1]
        wanted = math.exp(sum(each) if joint else sum(each) / len(each))
        assert scores[i, column] == pytest.approx(wanted, abs=1e-6)


def test_the_encoder_runs_once_for_both_subjects(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer: Any = make_scorer(resolve_model(str(make_model(*T5, **T5_SIZES))), batch_size=4)
    encoder, rows = scorer._loaded.model.get_encoder(), []
    encoder.register_forward_hook(lambda _module, _args, output: rows.append(output[0].shape[0]))
    scorer.score(few["qa"])
    asked = {
        (row[order], row[question])
        for row in few["qa"].to_pylist()
        for order in ("context_12", "context_21")
        for question in ("question", "question_negated")
    }
    assert sum(rows) == len(asked) == 64


def test_planted_preferences_give_the_scores_computed_by_hand(make_model: Any, few: dict[str, pa.Table]) -> None:
    import torch

    rows = few["qa"].filter(pa.compute.equal(few["qa"]["subject2"], "Bob"))
    for model, sizes in ((LLAMA, {}), (T5, T5_SIZES)):
        scorer: Any = make_scorer(resolve_model(str(make_model(*model, **sizes))))
        tokenizer = scorer._loaded.tokenizer
        row = torch.zeros(len(tokenizer))

        def forward(input_ids: Any = None, decoder_input_ids: Any = None, logits: Any = row, **_: Any) -> Any:
            ids = input_ids if decoder_input_ids is None else decoder_input_ids
            output = {"logits": logits.expand(*ids.shape, -1)}
            return SimpleNamespace(**output, get=output.get)

        scorer._loaded.model.forward = forward
        scorer._shares = False
        flat = scorer.score(rows)
        np.testing.assert_allclose(flat, 1 / len(tokenizer), rtol=1e-6)  # a constant model likes all names alike
        answer = tokenizer(" Bob" if model == LLAMA else "Bob", add_special_tokens=False)["input_ids"]
        row[answer] = math.log(11.0)
        high = 11 / (len(tokenizer) - len(set(answer)) + 11 * len(set(answer)))
        np.testing.assert_allclose(scorer.score(rows)[:, 1::2], high, rtol=1e-6)
