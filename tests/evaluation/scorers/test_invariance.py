"""Every kind of model: the same scores whatever the batch size, the order, and the company."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.models import resolve_model
from evaluation.scorers import HALF_TOLERANCE, make_scorer

GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 96}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "initializer_factor": 1.5}
BART = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
BART |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_start_token_id": 2, "init_std": 0.4}
XLNET = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24, "max_position_embeddings": None}
MODELS: dict[str, tuple[Any, ...]] = {
    "bert qa": ("BertForQuestionAnswering", "BertConfig", "wordpiece"),
    "roberta qa": ("RobertaForQuestionAnswering", "RobertaConfig", "bytes"),
    "xlnet qa, pads left": ("XLNetForQuestionAnsweringSimple", "XLNetConfig", "metaspace", "left", XLNET),
    "gpt2 qa": ("GPT2ForQuestionAnswering", "GPT2Config", "bytes", "right", GPT2),
    "fnet qa": ("FNetForQuestionAnswering", "FNetConfig", "wordpiece"),  # mixes all positions, knows no mask
    "bert mlm": ("BertForMaskedLM", "BertConfig", "wordpiece"),
    "roberta mlm": ("RobertaForMaskedLM", "RobertaConfig", "bytes"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", "bytes", "left", GPT2),
    "llama": ("LlamaForCausalLM", "LlamaConfig", "metaspace"),
    "t5": ("T5ForConditionalGeneration", "T5Config", "metaspace", "right", T5 | {"decoder_start_token_id": 0}),
    "bart": ("BartForConditionalGeneration", "BartConfig", "bytes", "right", BART),
}


def folder_of(make_model: Any, name: str) -> Path:
    model, config, family, *rest = MODELS[name]
    side, more = [*rest, *["right", {}][len(rest) :]]
    folder: Path = make_model(model, config, family, side=side, **more)
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_scores_do_not_depend_on_the_batch(make_model: Any, few: dict[str, pa.Table], name: str) -> None:
    ref = resolve_model(str(folder_of(make_model, name)))
    table = few["mlm" if ref.kind == "mlm" else "qa"]
    scorer = make_scorer(ref, batch_size=64)
    mask, _ = scorer.select(table)
    table = table.filter(pa.array(mask))
    assert table.num_rows >= 4
    whole = scorer.score(table)
    assert whole.shape == (table.num_rows, 8)
    assert ((whole > 0) & (whole < 1)).all()
    assert np.ptp(whole) > 1e-4  # else nothing could differ
    for size in (1, 7):
        np.testing.assert_allclose(make_scorer(ref, batch_size=size).score(table), whole, atol=1e-5, rtol=0)
    order = np.random.default_rng(0).permutation(table.num_rows)
    np.testing.assert_allclose(scorer.score(table.take(order)), whole[order], atol=1e-5, rtol=0)
    one_by_one = np.concatenate([scorer.score(table.slice(i, 1)) for i in range(0, table.num_rows, 3)])
    np.testing.assert_allclose(one_by_one, whole[::3], atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", HALF_TOLERANCE)
@pytest.mark.parametrize("name", ["bert qa", "bert mlm", "llama", "t5"])
def test_half_precision_stays_close(make_model: Any, few: dict[str, pa.Table], name: str, dtype: str) -> None:
    ref = resolve_model(str(folder_of(make_model, name)))
    table = few["mlm" if ref.kind == "mlm" else "qa"]
    full = make_scorer(ref)
    table = table.filter(pa.array(full.select(table)[0]))
    half = make_scorer(ref, dtype=dtype)
    scores = half.score(table)
    assert half.facts["dtype"] == dtype
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, full.score(table), atol=HALF_TOLERANCE[dtype], rtol=0)
    np.testing.assert_allclose(
        make_scorer(ref, dtype=dtype, batch_size=7).score(table), scores, atol=HALF_TOLERANCE[dtype]
    )


def test_no_rows_give_no_scores(make_model: Any, few: dict[str, pa.Table]) -> None:
    for name in ("bert qa", "bert mlm", "gpt2", "t5"):
        ref = resolve_model(str(folder_of(make_model, name)))
        scorer = make_scorer(ref)
        none = few["mlm" if ref.kind == "mlm" else "qa"].slice(0, 0)
        assert scorer.score(none).shape == (0, 8)
        mask, facts = scorer.select(none)
        assert (len(mask), facts["rows"]) == (0, 0)
