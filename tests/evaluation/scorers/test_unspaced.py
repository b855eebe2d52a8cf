"""Languages that put no spaces between words: no space is joined to an answer or counts as part of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders.probes import batches
from evaluation.loading import Loaded, load_model
from evaluation.models import resolve_model
from evaluation.scorers.base import Settings
from evaluation.scorers.causal import CausalScorer
from evaluation.scorers.prompts import Prompts, uncounted
from evaluation.scorers.seq2seq import Seq2SeqScorer
from tests.evaluation import conftest
from tests.evaluation.scorers.test_generation import CHAT, T5_SIZES
from unqover_data import read_toml

LISTS = """\
name = "zh"
title = "Names"
version = "1.0.0"
language = "zh"
description = "Names."
pairs = "all"
subjects = [{ name = "张" }, { name = "李娜" }, { name = "Bob" }]

[[templates]]
id = "letter"
attributes = "job"
context = "{subject1}给{subject2}写了信。"
question = "谁{attribute:verb}？"

[attributes]
job = [{ name = "cook", class = "work", verb = ["是厨师", "不是厨师"] }]
"""
ENGLISH, CHINESE = "{context}\nQuestion: {question}\nAnswer:", "{context}\n问题：{question}\n回答："


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    path = tmp_path_factory.mktemp("zh") / "zh.toml"
    path.write_text(LISTS, encoding="utf-8")
    return pa.concat_tables(batches(read_toml(path), "qa"))


@pytest.fixture(scope="module")
def make_chinese(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Make a model whose tokenizer knows some Chinese: " 张" is two tokens of it, the space and the name."""

    def make(model: str, config: str, family: str, **more: Any) -> Loaded:
        import torch
        import transformers

        with pytest.MonkeyPatch.context() as patch:
            known = ["张给李写了信。谁是厨师？张。", "张", "李", *["Who? Bob. Question: Answer:"] * 4] * 4
            patch.setattr(conftest, "CORPUS", known)
            tokenizer = conftest.tokenizer_of(family)
        torch.manual_seed(5)
        folder: Path = tmp_path_factory.mktemp("model")
        sized = conftest.sized(config, len(tokenizer), max_position_embeddings=300, **more)
        getattr(transformers, model)(sized).eval().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return load_model(resolve_model(str(folder)))

    return make


@pytest.fixture(scope="module")
def causal(make_chinese: Any) -> Loaded:
    loaded: Loaded = make_chinese("LlamaForCausalLM", "LlamaConfig", "bytes")
    assert len(loaded.tokenizer(" 张", add_special_tokens=False)["input_ids"]) == 2
    return loaded


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize(
    ("prompt", "chat", "leads"),
    [(ENGLISH, False, ("", "", " ")), (CHINESE, False, ("", "", "")), (ENGLISH, True, (" ", " ", " "))],
)
def test_a_space_is_neither_joined_to_an_answer_nor_counted(
    causal: Loaded, rows: pa.Table, prompt: str, chat: bool, leads: tuple[str, ...], shares: bool
) -> None:
    import torch

    tokenizer = causal.tokenizer
    tokenizer.chat_template = CHAT.replace("GAP", " ") if chat else None
    scorer = CausalScorer(causal, Settings(prompt=prompt))
    assert scorer._shares
    scorer._shares = shares
    scores = scorer.score(rows)
    lead_of = dict(zip(("张", "李娜", "Bob"), leads, strict=True))
    for i, row in enumerate(rows.to_pylist()):
        text = prompt.format(context=row["context_12"], question=row["question"])
        text = f"[CLS]She: {text} [SEP] He:" if chat else text
        for column, subject in enumerate((row["text1"], row["text2"])):
            before = tokenizer(text + lead_of[subject] * (subject != "Bob"), add_special_tokens=not chat)["input_ids"]
            before = before[:-1] if before[-1] == tokenizer.sep_token_id else before
            ids = (
                before
                + tokenizer(lead_of[subject] * (subject == "Bob") + subject, add_special_tokens=False)["input_ids"]
            )
            whole = tokenizer(text + lead_of[subject] + subject, add_special_tokens=not chat)["input_ids"]
            assert whole in (ids, [*ids, tokenizer.sep_token_id])
            with torch.no_grad():
                logp = causal.model(torch.tensor([ids])).logits[0].log_softmax(-1)
            each = [float(logp[at - 1, ids[at]]) for at in range(len(before), len(ids))]
            assert scores[i, column] == pytest.approx(math.exp(sum(each) / len(each)), rel=1e-4)


def test_a_space_before_a_rare_word_of_a_script_with_spaces_is_part_of_it(causal: Loaded) -> None:
    causal.tokenizer.chat_template = None
    answer = Prompts(causal, Settings()).answer("Answer:", "Zoë")
    assert causal.tokenizer.convert_ids_to_tokens(answer.ids)[0] == "Ġ"
    assert answer.uncounted == 0


def test_bytes_of_a_sign_are_no_space_though_they_are_written_as_nothing() -> None:
    from transformers import ByT5Tokenizer

    tokenizer = ByT5Tokenizer()
    for text, spaces in (("张", 0), (" 张", 1), ("  ส", 2)):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert uncounted(tokenizer, ids, text.strip()) == spaces


def test_a_decoder_is_given_the_space_of_its_tokenizer_and_it_does_not_count(make_chinese: Any, rows: pa.Table) -> None:
    import torch

    loaded = make_chinese("T5ForConditionalGeneration", "T5Config", "metaspace", **T5_SIZES)
    row = rows.slice(0, 1).to_pylist()[0]
    scores = Seq2SeqScorer(loaded, Settings()).score(rows.slice(0, 1))
    for column, (subject, pieces) in enumerate((("张", ["▁张"]), ("李娜", ["▁", "李", "[UNK]"]))):
        labels = loaded.tokenizer(text_target=subject)["input_ids"]
        assert loaded.tokenizer.convert_ids_to_tokens(labels) == ["[CLS]", *pieces, "[SEP]"]
        prompt = loaded.tokenizer(ENGLISH.format(context=row["context_12"], question=row["question"]))["input_ids"]
        with torch.no_grad():
            given = {"input_ids": torch.tensor([prompt]), "decoder_input_ids": torch.tensor([[0, *labels[:-1]]])}
            logp = loaded.model(**given).logits[0].log_softmax(-1)
        each = [float(logp[at, token]) for at, token in enumerate(labels)][1 + (pieces[0] == "▁") : -1]
        assert scores[0, column] == pytest.approx(math.exp(sum(each) / len(each)), rel=1e-4)
