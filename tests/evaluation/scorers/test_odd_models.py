"""Checkpoints that want something else: scored where they can be, else told in one line that names the class."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.unqover import build_unqover
from evaluation import store
from evaluation.errors import EvaluationError
from evaluation.models import ModelRef, resolve_model
from evaluation.probe_sets import open_probe_set
from evaluation.run import Engine, Options, evaluate
from evaluation.scorers import make_scorer
from evaluation.scorers.base import decoder_start
from tests.evaluation.conftest import LISTS
from unqover_data import read_toml

T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "max_position_embeddings": None}
EXPERTS = {"num_experts": 2, "decoder_start_token_id": 0, "expert_capacity": 64, "initializer_factor": 1.5}
NO_LANGUAGE = {"languages": ["en_XX"], "default_language": None}


def scores(ref: ModelRef, table: pa.Table) -> Any:
    scorer = make_scorer(ref)
    return scorer.score(table.filter(pa.array(scorer.select(table)[0])))


@pytest.mark.parametrize(
    ("model", "config", "more", "kind", "line"),
    [
        (
            "BertForMaskedLM",
            "BertConfig",
            {"vocab_size": 40},
            "mlm",
            r"tokenizer has \d+ tokens and the model knows 40",
        ),
        ("BertForQuestionAnswering", "BertConfig", {"vocab_size": 40}, "qa", r"\(BertForQ.*\) .* the model knows 40"),
        ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 40}, "causal", r"\(GPT2LMHeadModel\) .* the model knows 40"),
        ("XmodForMaskedLM", "XmodConfig", NO_LANGUAGE, "mlm", "Input language unknown"),
        ("LxmertForQuestionAnswering", "LxmertConfig", {"num_qa_labels": 2}, "qa", "visual_feats"),
        ("LayoutLMForQuestionAnswering", "LayoutLMConfig", {}, "qa", "transformers has no such model"),
        ("T5ForQuestionAnswering", "T5Config", T5, "qa", r"\(T5ForQuestionAnswering\) .*decoder_start_token_id"),
        ("BertForMaskedLM", "BertConfig", {"max_position_embeddings": 8}, "mlm", "takes at most 8 tokens"),
        ("BertForQuestionAnswering", "BertConfig", {"max_position_embeddings": 8}, "qa", "takes at most 8 tokens"),
        ("LlamaForCausalLM", "LlamaConfig", {"max_position_embeddings": 8}, "causal", "takes at most 8 tokens"),
        (
            *("GPT2LMHeadModel", "GPT2Config"),
            {"n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2, "max_position_embeddings": None},
            *("causal", "takes at most 8 tokens"),
        ),
    ],
)
def test_what_cannot_be_scored_is_one_line(
    make_model: Any, few: dict[str, pa.Table], model: str, config: str, more: dict[str, Any], kind: str, line: str
) -> None:
    folder = make_model(model, config, "wordpiece", **more)
    table = few["mlm" if kind == "mlm" else "qa"]
    with pytest.raises(EvaluationError, match=line) as caught:
        scores(resolve_model(str(folder), kind=kind), table)
    assert "\n" not in str(caught.value)


def test_tokens_beyond_the_embedding_that_never_come_up_do_no_harm(
    make_model: Any, few: dict[str, pa.Table], tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    plain = make_model("BertForQuestionAnswering", "BertConfig", "wordpiece")
    folder = shutil.copytree(plain, tmp_path / "more")
    tokenizer = AutoTokenizer.from_pretrained(plain)
    tokenizer.add_tokens(["qqq", "qqqq"])
    tokenizer.save_pretrained(folder)
    more, fewer = (scores(resolve_model(str(path)), few["qa"]) for path in (folder, plain))
    assert (more == fewer).all()


def test_a_model_with_one_token_type_reads_texts_without_types(
    make_model: Any, few: dict[str, pa.Table], tmp_path: Path
) -> None:
    typed = make_model("RobertaForQuestionAnswering", "RobertaConfig", "bytes", type_vocab_size=1)
    untyped = shutil.copytree(typed, tmp_path / "untyped")
    said = json.loads((untyped / "tokenizer_config.json").read_text())
    names = {"model_input_names": ["input_ids", "attention_mask"]}
    (untyped / "tokenizer_config.json").write_text(json.dumps(said | names))
    one, other = (scores(resolve_model(str(folder)), few["qa"]) for folder in (typed, untyped))
    assert (one == other).all()


def test_a_mixture_of_experts_is_scored_as_plain_transformers_does(make_model: Any, few: dict[str, pa.Table]) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = ("SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", "metaspace")
    folder = make_model(*model, **T5, **EXPERTS)
    rows = few["qa"].slice(0, 1)
    found = scores(resolve_model(str(folder)), rows)
    row = rows.to_pylist()[0]
    tokenizer, plain = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    prompt = f"{row['context_12']}\nQuestion: {row['question']}\nAnswer:"
    answer = tokenizer(row["text1"], add_special_tokens=False)["input_ids"]
    start = tokenizer(row["text1"])["input_ids"][: -len(answer) - 1]  # [CLS], given to the decoder but not counted
    with torch.no_grad():
        given = torch.tensor([[0, *start, *answer[:-1]]])
        logp = plain(**tokenizer(prompt, return_tensors="pt", return_token_type_ids=False), decoder_input_ids=given)
    each = logp.logits[0, len(start) :].log_softmax(-1)[range(len(answer)), answer]
    assert found[0, 0] == pytest.approx(math.exp(float(each.mean())), abs=1e-6)


def test_the_token_that_a_decoder_begins_with_is_found_where_it_stands() -> None:
    nested = SimpleNamespace(decoder_start_token_id=5, bos_token_id=3)
    for config, generation, start in (
        ({"decoder_start_token_id": 7}, {"decoder_start_token_id": 6}, 6),
        ({"decoder_start_token_id": 7}, {}, 7),
        ({"decoder": nested}, {}, 5),
        ({"decoder": {"decoder_start_token_id": 0}}, {}, 0),
        ({"decoder": nested, "bos_token_id": 2}, {"bos_token_id": 1}, 5),
        ({}, {"bos_token_id": 1}, 1),  # as generate() begins
        ({}, {}, None),
    ):
        model = SimpleNamespace(config=SimpleNamespace(**config), generation_config=SimpleNamespace(**generation))
        assert decoder_start(model) == start


@pytest.mark.parametrize("shards", [0, 1])
def test_a_model_that_fails_in_a_later_batch_is_one_line(
    make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    (tmp_path / "few.toml").write_text(LISTS, encoding="utf-8")
    probes = open_probe_set(str(build_unqover(read_toml(tmp_path / "few.toml"), tmp_path).folder), config="qa")
    ref = resolve_model(str(make_model("DistilBertForQuestionAnswering", "DistilBertConfig", "bytes")))
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 8)
    scorer: Any = make_scorer(ref, batch_size=8)
    monkeypatch.setattr("evaluation.run._scorer", lambda *_: scorer)
    forward, calls = scorer._loaded.model.forward, []

    def failing(**inputs: Any) -> Any:
        calls.append(len(list(tmp_path.rglob("shard-*.parquet"))))
        if len(calls) > 1 and calls[-1] == shards:
            raise AssertionError("expected a picture\nof the page.")
        return forward(**inputs)

    scorer._loaded.model.forward = failing
    line = (
        r"\(DistilBertForQuestionAnswering\) cannot be scored as qa: AssertionError: expected a picture; pass another"
    )
    with pytest.raises(EvaluationError, match=line) as caught:
        evaluate(ref, probes, Options(), engine=Engine(device="cpu"), out=tmp_path / "results")
    assert isinstance(caught.value.__cause__, AssertionError)
    assert len(list(tmp_path.rglob("*.partial"))) == shards  # finished shards are kept for the next run


def test_memory_that_is_out_has_a_line_of_its_own(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer: Any = make_scorer(resolve_model(str(make_model("BertForQuestionAnswering", "BertConfig"))))

    def full(**_: Any) -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    scorer._loaded.model.forward = full
    with pytest.raises(EvaluationError, match="out of memory: pass a smaller --batch-size"):
        scorer.score(few["qa"])


def test_spans_that_do_not_stand_for_tokens_are_refused(make_model: Any) -> None:
    import torch

    from evaluation.loading import load_model
    from evaluation.scorers.base import Settings
    from evaluation.scorers.qa import QaScorer

    loaded = load_model(resolve_model(str(make_model("BertForQuestionAnswering", "BertConfig"))))
    logits = torch.zeros(1, 3)
    loaded.model.forward = lambda **_: SimpleNamespace(start_logits=logits, end_logits=logits)
    with pytest.raises(EvaluationError, match=r"\(BertForQuestionAnswering\) gives no start and end for each token"):
        QaScorer(loaded, Settings())


def test_a_first_text_without_a_token_of_its_own_is_encoded_with_its_second() -> None:
    from evaluation.scorers.encoding import Encoding, behind_first, encode_pairs

    def encode(one: Any, two: Any) -> list[Encoding]:
        return [
            Encoding([len(a + b), 2], [], [(0, len(a + b) - 1), (len(a + b) - 1, len(a + b))], [0, 0])
            for a, b in zip(one, two, strict=True)
        ]

    pairs = np.array([(0, 0), (0, 1)])
    encoded = encode_pairs(["a"], ["bcd", "efgh"], pairs, encode, behind_first)
    assert not encoded.apart
    assert encoded.head_lengths.tolist() == [2, 2]  # a head without tokens could not be read
