"""Languages that inflect: which form of a subject is scored, in each order and at a mask that names its form."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.probes import batches
from evaluation.loading import Loaded, load_model
from evaluation.models import resolve_model
from evaluation.scorers.base import Settings
from evaluation.scorers.causal import CausalScorer
from evaluation.scorers.mlm import MlmScorer
from evaluation.scorers.seq2seq import Seq2SeqScorer
from tests.evaluation import conftest
from tests.evaluation.scorers.test_generation import T5_SIZES
from tests.evaluation.scorers.test_mlm import plant
from unqover_data import ProbeLists

SPOKEN = ["Anna Annae Petrus Petro epistulam misit dedit. Quis coquit numquam? Cui placet, quod coquit?"] * 16


@pytest.fixture(scope="module")
def make_latin(tmp_path_factory: pytest.TempPathFactory) -> Any:
    def make(model: str, config: str, family: str, **more: Any) -> Loaded:
        import torch
        import transformers

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conftest, "CORPUS", SPOKEN)
            tokenizer = conftest.tokenizer_of(family)
        torch.manual_seed(5)
        folder: Path = tmp_path_factory.mktemp("model")
        getattr(transformers, model)(conftest.sized(config, len(tokenizer), **more)).eval().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return load_model(resolve_model(str(folder)))

    return make


def test_a_masked_lm_scores_both_subjects_in_the_form_of_the_mask(make_latin: Any, latin_lists: ProbeLists) -> None:
    scorer: Any = MlmScorer(make_latin("BertForMaskedLM", "BertConfig", "wordpiece"), Settings())
    weights = {"anna": 30.0, "petrus": 5.0, "annae": 7.0, "petro": 2.0}
    plant(scorer, weights)
    rows = pa.concat_tables(batches(latin_lists, "mlm"))
    assert scorer.select(rows)[0].all()
    total = len(scorer._loaded.tokenizer) - 4 + sum(weights.values())
    wanted = [[30 / total, 5 / total] * 4, [7 / total, 2 / total] * 4]
    np.testing.assert_allclose(scorer.score(rows), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "model", "more"),
    [
        (CausalScorer, ("LlamaForCausalLM", "LlamaConfig", "bytes"), {"max_position_embeddings": 200}),
        (Seq2SeqScorer, ("T5ForConditionalGeneration", "T5Config", "bytes"), T5_SIZES),
    ],
)
def test_a_generating_model_scores_subjects_as_they_stand_in_each_order(
    make_latin: Any, latin_lists: ProbeLists, kind: Any, model: tuple[str, ...], more: dict[str, Any]
) -> None:
    import torch

    loaded = make_latin(*model, **more)
    tokenizer = loaded.tokenizer
    row = pa.concat_tables(batches(latin_lists, "qa")).slice(0, 1)
    scores = kind(loaded, Settings()).score(row)[0]
    for column, (order, word) in enumerate((("12", "Anna"), ("12", "Petro"), ("21", "Annae"), ("21", "Petrus"))):
        cells = row.to_pylist()[0]
        text = f"{cells[f'context_{order}']}\nQuestion: {cells['question']}\nAnswer:"
        prompt = tokenizer(text)["input_ids"]
        if kind is CausalScorer:
            start, ids = len(prompt) - 1, tokenizer(f"{text} {word}")["input_ids"][:-1]
            given = {"input_ids": torch.tensor([ids])}
        else:
            labels = tokenizer(text_target=word)["input_ids"][:-1]
            start, ids = 2, [0, *labels]
            given = {"input_ids": torch.tensor([prompt]), "decoder_input_ids": torch.tensor([ids])}
        with torch.no_grad():
            logp = loaded.model(**given).logits[0].log_softmax(-1)
        each = [float(logp[at - 1, ids[at]]) for at in range(start, len(ids))]
        assert scores[column] == pytest.approx(math.exp(sum(each) / len(each)), rel=1e-4)
