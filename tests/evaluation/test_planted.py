"""From a model whose preferences are known to the aggregates that follow from them, for every kind of model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.models import resolve_model
from evaluation.run import aggregates_of
from evaluation.scorers import make_scorer
from evaluation.scores import SCORE_COLUMNS
from tests.evaluation.scorers import test_generation, test_mlm, test_qa


def metrics_of(rows: pa.Table, scores: Any) -> dict[str, float]:
    columns = {"id": rows["id"]} | {name: scores[:, i] for i, name in enumerate(SCORE_COLUMNS)}
    return {name: entry["value"] for name, entry in aggregates_of(rows, pa.table(columns), seed=0)["metrics"].items()}


def test_a_question_answering_model_that_likes_one_name(make_model: Any, few: dict[str, pa.Table]) -> None:
    """One row, Ann and Bob; 13 tokens where "lied" is asked and 17 for its negation, as in the scorer's own test."""
    scorer: Any = make_scorer(resolve_model(str(make_model(*test_qa.BERT))))
    test_qa.plant(scorer, {"ann": 9.0}, {"ann": 4.0})
    rows = test_qa.letter_rows(few["qa"])
    ann, bob = math.sqrt(9 / 21 * 4 / 16), math.sqrt(1 / 21 * 1 / 16)
    ann_not, bob_not = math.sqrt(9 / 25 * 4 / 20), math.sqrt(1 / 25 * 1 / 20)
    # B(x) = S(x|a) - S(x|a'); C = (B(ann) - B(bob)) / 2; each subject has the one attribute, so mu = |C|.
    expected = {
        "mu": abs((ann - ann_not) - (bob - bob_not)) / 2,
        "eta": 1.0,
        "delta": 0.0,
        "epsilon": (abs(ann - bob_not) + abs(bob - ann_not)) / 2,
        "average_score": (ann + bob + ann_not + bob_not) / 4,
    }
    assert metrics_of(rows, scorer.score(rows)) == pytest.approx(expected, abs=1e-7)


def test_a_masked_lm_that_likes_one_name_whatever_is_asked(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer: Any = make_scorer(resolve_model(str(make_model(*test_mlm.BERT))))
    test_mlm.plant(scorer, {"ann": 30.0, "bob": 5.0})
    rows = test_mlm.kept(scorer, few["mlm"])
    total = len(scorer._loaded.tokenizer) - 2 + 30 + 5
    # The negation changes nothing, so no association is left: it is all attribute error, |30 - 5| of the total.
    expected = {"mu": 0.0, "eta": 0.0, "delta": 0.0, "epsilon": 25 / total, "average_score": 17.5 / total}
    assert metrics_of(rows, scorer.score(rows)) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("model", "sizes"), [(test_generation.LLAMA, {}), (test_generation.T5, test_generation.T5_SIZES)]
)
def test_a_generating_model_that_likes_all_alike(
    make_model: Any, few: dict[str, pa.Table], model: tuple[str, str], sizes: dict[str, Any]
) -> None:
    import torch

    scorer: Any = make_scorer(resolve_model(str(make_model(*model, **sizes))))
    flat = torch.zeros(len(scorer._loaded.tokenizer))

    def forward(input_ids: Any = None, decoder_input_ids: Any = None, **_: Any) -> Any:
        output = {"logits": flat.expand(*(input_ids if decoder_input_ids is None else decoder_input_ids).shape, -1)}
        return type("Output", (dict,), {"logits": output["logits"]})(output)

    scorer._loaded.model.forward = forward
    scorer._shares = False
    metrics = metrics_of(few["qa"], scorer.score(few["qa"]).round(12))
    assert [metrics[name] for name in ("mu", "eta", "delta", "epsilon")] == [0.0] * 4
    np.testing.assert_allclose(metrics["average_score"], 1 / len(flat), rtol=1e-6)
