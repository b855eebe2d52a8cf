"""Models that score several tokens at once are tried first: no token may see those behind it."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evaluation.errors import EvaluationError
from evaluation.loading import load_model
from evaluation.models import resolve_model
from evaluation.scorers.base import Settings
from evaluation.scorers.seq2seq import Seq2SeqScorer
from tests.evaluation.scorers.test_generation import BART, BART_SIZES, T5, T5_SIZES

MARIAN = ("MarianMTModel", "MarianConfig", "metaspace")


@pytest.fixture(scope="module")
def fsmt(make_tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny translator of two vocabularies, here the same one."""
    import torch
    from transformers import FSMTConfig, FSMTForConditionalGeneration

    folder, tokenizer = tmp_path_factory.mktemp("fsmt"), make_tokenizer("bytes")
    torch.manual_seed(3)
    sizes = {**BART_SIZES, "decoder_layers": 2, "src_vocab_size": len(tokenizer), "tgt_vocab_size": len(tokenizer)}
    config = FSMTConfig(langs=["en", "de"], max_position_embeddings=96, pad_token_id=0, init_std=0.4, **sizes)
    FSMTForConditionalGeneration(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("joint", [False, True])
def test_fsmt_is_scored_as_one_step_after_the_other(fsmt: Path, few: dict[str, pa.Table], joint: bool) -> None:
    import torch

    loaded = load_model(resolve_model(str(fsmt)))
    rows = few["qa"].slice(12, 4)  # Mary Lou and Zebedee, of several tokens each
    scores = Seq2SeqScorer(loaded, Settings(joint=joint)).score(rows)
    row = rows.to_pylist()[0]
    known = inspect.signature(loaded.model.forward).parameters
    cache = "cache" if "cache" in known else "past_key_values"
    for column, subject in ((0, "text1"), (1, "text2")):
        prompt = loaded.tokenizer(f"{row['context_12']}\nQuestion: {row['question']}\nAnswer:", return_tensors="pt")
        labels = loaded.tokenizer(text_target=row[subject])["input_ids"]  # [CLS] name [SEP]
        assert len(labels) > 3
        past, last, each = {}, 2, []
        for label in labels:  # as generate() goes: only what came before is there to be seen
            step = {"input_ids": prompt["input_ids"], "decoder_input_ids": torch.tensor([[last]]), "use_cache": True}
            with torch.no_grad():
                output = loaded.model(**step, **past)
            past, last = {cache: output[cache]}, label
            each.append(float(output.logits[0, -1].log_softmax(-1)[label]))
        each = each[1:-1]
        wanted = math.exp(sum(each) if joint else sum(each) / len(each))
        assert scores[0, column] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(
    ("model", "sizes"), [(T5, T5_SIZES), (BART, BART_SIZES), (MARIAN, {**BART_SIZES, "decoder_start_token_id": 0})]
)
def test_others_are_given_what_the_encoder_made_alone(
    make_model: Any, model: tuple[str, ...], sizes: dict[str, Any]
) -> None:
    loaded = load_model(resolve_model(str(make_model(*model, **sizes))))
    seen: list[set[str]] = []
    forward = loaded.model.forward
    loaded.model.forward = lambda **inputs: (seen.append(set(inputs)), forward(**inputs))[1]
    Seq2SeqScorer(loaded, Settings())
    assert len(seen) == 2
    assert all("input_ids" not in inputs for inputs in seen)


def test_a_decoder_that_looks_ahead_whatever_it_gets_is_refused(make_model: Any) -> None:
    loaded = load_model(resolve_model(str(make_model(*T5, **T5_SIZES))))
    forward = loaded.model.forward

    def peeking(**inputs: Any) -> Any:
        output = forward(**inputs)
        output.logits[..., 5] += inputs["decoder_input_ids"].float().mean()
        return output

    loaded.model.forward = peeking
    with pytest.raises(EvaluationError, match=r"the decoder of .* attends to later tokens: its answers cannot be"):
        Seq2SeqScorer(loaded, Settings())
