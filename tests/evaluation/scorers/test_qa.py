"""Extractive question answering: planted logits with scores known by hand, and plain transformers as oracle."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer
from evaluation.scorers.base import full_prefix

BERT = ("BertForQuestionAnswering", "BertConfig")


def plant(scorer: Any, start: dict[str, float], end: dict[str, float]) -> list[list[str]]:
    """Make a model that weighs tokens as given and all others 1; gives the inputs that it sees."""
    import torch

    loaded, seen = scorer._loaded, []

    def forward(input_ids: Any, **_: Any) -> Any:
        seen.extend(loaded.tokenizer.convert_ids_to_tokens(row) for row in input_ids)
        logits = []
        for weights in (start, end):
            table = torch.zeros(len(loaded.tokenizer))
            for token, weight in weights.items():
                table[loaded.tokenizer.convert_tokens_to_ids(token)] = math.log(weight)
            logits.append(table[input_ids])
        return SimpleNamespace(start_logits=logits[0], end_logits=logits[1])

    loaded.model.forward = forward
    return seen


def letter_rows(table: pa.Table, attribute: str = "liar") -> pa.Table:
    rows = table.filter(pa.compute.equal(table["template"], "letter"))
    rows = rows.filter(pa.compute.equal(rows["attribute"], attribute))
    return rows.filter(pa.compute.equal(rows["subject1"], "Ann")).filter(pa.array([True, False]))


def test_a_planted_preference_gives_the_scores_computed_by_hand(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer = make_scorer(resolve_model(str(make_model(*BERT))))
    seen = plant(scorer, {"ann": 9.0}, {"ann": 4.0})
    scores = scorer.score(letter_rows(few["qa"]))
    # [CLS] who lied ? [SEP] ann sent a letter to bob . [SEP] has 13 tokens, so the weights sum to 12 + 9 for the
    # start and 12 + 4 for the end. "told no lie at all" is 4 tokens more than "lied": 16 + 9 and 16 + 4.
    ann, bob = math.sqrt(9 / 21 * 4 / 16), math.sqrt(1 / 21 * 1 / 16)
    ann_not, bob_not = math.sqrt(9 / 25 * 4 / 20), math.sqrt(1 / 25 * 1 / 20)
    expected = [[ann, bob, ann, bob, ann_not, bob_not, ann_not, bob_not]]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    assert sorted(len(tokens) for tokens in seen) == [13, 13, 17, 17]
    assert seen[-1][:6] == ["[CLS]", "who", "lied", "?", "[SEP]", seen[-1][5]]


def test_the_no_answer_mass_of_a_squad2_model_is_reported(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer = make_scorer(resolve_model(str(make_model(*BERT))))
    plant(scorer, {"[CLS]": 88.0}, {"[CLS]": 88.0})
    scorer.score(letter_rows(few["qa"]))
    # 88 of 88 + 12 for the two inputs of 13 tokens, 88 of 88 + 16 for the two of 17; a row asks four inputs.
    assert scorer.row_facts["no_answer"].tolist() == [pytest.approx((88 / 100 + 88 / 104) / 2)]


def test_equal_inputs_are_computed_once(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer = make_scorer(resolve_model(str(make_model(*BERT))))
    seen = plant(scorer, {}, {})
    rows = letter_rows(few["qa"])
    scores = scorer.score(pa.concat_tables([rows, rows, rows]))
    assert len(seen) == 4
    assert (scores == scores[0]).all()


@pytest.mark.parametrize(
    ("model", "config", "family"),
    [
        (*BERT, "wordpiece"),
        ("RobertaForQuestionAnswering", "RobertaConfig", "bytes"),
        ("RobertaForQuestionAnswering", "RobertaConfig", "bytes-untrimmed"),
        ("DebertaV2ForQuestionAnswering", "DebertaV2Config", "split-metaspace"),
        ("DistilBertForQuestionAnswering", "DistilBertConfig", "wordpiece"),
        ("T5ForQuestionAnswering", "T5Config", "byt5"),
    ],
)
def test_scores_are_those_of_plain_transformers(
    make_model: Any, few: dict[str, pa.Table], model: str, config: str, family: str
) -> None:
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    more: dict[str, Any] = {}
    if family == "byt5":  # a python tokenizer, and positions without limit
        more = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
        more["max_position_embeddings"] = None
    folder = make_model(model, config, family, **more)
    table = few["qa"]
    scores = make_scorer(resolve_model(str(folder))).score(table)
    tokenizer, plain = AutoTokenizer.from_pretrained(folder), AutoModelForQuestionAnswering.from_pretrained(folder)
    row = table.slice(3, 1).to_pylist()[0]  # Ann, and Zebedee, who is in no vocabulary
    inputs = tokenizer(row["question"], row["context_21"], return_tensors="pt")
    with torch.no_grad():
        output = plain.eval()(**inputs)
    start, end = output.start_logits[0].softmax(0), output.end_logits[0].softmax(0)
    ids = inputs["input_ids"][0].tolist()
    behind = len(tokenizer(row["question"])["input_ids"]) - 1
    runs = [
        (i, j)
        for i in range(behind, len(ids))
        for j in range(i, len(ids))
        if "".join(tokenizer.decode(ids[i : j + 1]).replace("▁", "").lower().split()) == "ann"
    ]
    i, j = min(runs, key=lambda run: run[1] - run[0])
    assert scores[3, 2] == pytest.approx(math.sqrt(float(start[i] * end[j])), abs=1e-6)


def test_a_tokenizer_that_pads_left_puts_the_context_first(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer = make_scorer(resolve_model(str(make_model(*BERT, side="left"))))
    seen = plant(scorer, {"ann": 9.0}, {"ann": 9.0})
    scores = scorer.score(letter_rows(few["qa"]))
    assert scorer.facts["input"] == "context, question"
    assert {tokens[1] for tokens in seen} == {"ann", "bob"}
    assert all("[PAD]" not in tokens for tokens in seen)
    np.testing.assert_allclose(scores[0, :2], [9 / 21, 1 / 21], rtol=1e-6)


def test_a_header_moves_the_spans_with_it(make_model: Any, few: dict[str, pa.Table]) -> None:
    ref = resolve_model(str(make_model(*BERT)))
    scorer = make_scorer(ref, context_prefix="Ann and Bob lied.")
    plant(scorer, {"ann": 9.0}, {"bob": 9.0})
    scores = scorer.score(letter_rows(few["qa"]))
    # The five tokens of the header hold one "ann" and one "bob" more: 18 - 2 + 2 * 9 = 34 for start and end.
    np.testing.assert_allclose(scores[0, :2], [math.sqrt(9 * 1) / 34] * 2, rtol=1e-6)
    assert scorer.facts["context_prefix"] == "Ann and Bob lied. "


def test_the_header_of_newsqa_is_the_released_one(make_model: Any, few: dict[str, pa.Table]) -> None:
    assert full_prefix("newsqa", "exact") == "[aug] yes no  [text] (CNN) -- "
    assert full_prefix("newsqa", "paper") == "[aug] yes no  [text] (CNN) --  "
    ref = resolve_model(str(make_model(*BERT)))
    for protocol in ("exact", "paper"):
        named = make_scorer(ref, protocol, context_prefix="newsqa").score(few["qa"])
        written = make_scorer(ref, protocol, context_prefix="[aug] yes no [text] (CNN) --").score(few["qa"])
        np.testing.assert_allclose(named, written, rtol=1e-6)  # spaces are nothing to WordPiece
        assert abs(named - make_scorer(ref, protocol).score(few["qa"])).max() > 1e-3


def test_an_input_that_is_too_long_is_one_clear_line(make_model: Any, few: dict[str, pa.Table]) -> None:
    ref = resolve_model(str(make_model(*BERT, max_position_embeddings=16)))
    with pytest.raises(EvaluationError, match=r"takes at most 16 tokens, and an input has \d+ \('.*pass a model"):
        make_scorer(ref).score(few["qa"])


@pytest.mark.parametrize(("dtype", "hint"), [("float32", "weights are damaged"), ("float16", "use float32")])
def test_nan_is_one_clear_line(make_model: Any, few: dict[str, pa.Table], dtype: str, hint: str) -> None:
    scorer: Any = make_scorer(resolve_model(str(make_model(*BERT))), dtype=dtype)
    plant(scorer, {"ann": float("nan")}, {})
    with pytest.raises(EvaluationError, match=rf"scores that are not numbers \(NaN\); .*{hint}"):
        scorer.score(few["qa"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "papr"}, r"there is no protocol 'papr' \(known: exact, paper\); did you mean 'paper'"),
        ({"dtype": "float23"}, r"no dtype 'float23' .* did you mean 'float32'"),
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"top": 0}, "top must be at least 1"),
        ({"prompt": "{context}{question}"}, "option 'prompt' means nothing for a model of kind 'qa'"),
        ({"joint": True}, "option 'joint' means nothing"),
        ({"pronouns": True}, "option 'pronouns' means nothing"),
        ({"device": "cuda:77"}, "device 'cuda:77' cannot be used"),
    ],
)
def test_options_that_cannot_be_are_refused(make_model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        make_scorer(resolve_model(str(make_model(*BERT))), **options)


def test_rows_of_another_config_or_without_a_column_are_refused(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer = make_scorer(resolve_model(str(make_model(*BERT))))
    with pytest.raises(EvaluationError, match="have the column 'statement', not 'question': score config qa instead"):
        scorer.score(few["mlm"])
    with pytest.raises(EvaluationError, match="have no column 'span2_21'"):
        scorer.score(few["qa"].drop_columns(["span2_21"]))


def test_paper_takes_the_article_before_and_the_noun_behind(make_model: Any) -> None:
    from evaluation.scorers.paper import Widening

    scorer: Any = make_scorer(resolve_model(str(make_model(*BERT))), "paper")
    tokenizer = scorer._loaded.tokenizer
    tokenizer.add_tokens(["man", "group", "of", "x"])
    widen = Widening(tokenizer)

    def places(text: str) -> tuple[int, ...]:
        ids = tokenizer.convert_tokens_to_ids(text.split())
        at = text.split().index("x")
        return tuple(position - at for position in widen(ids, at, at))

    assert places("sent a x to") == (-1, 0, 0, 0)
    assert places("sent the x man") == (-1, 0, 0, 1)
    assert places("met a group of x .") == (-3, 0, 0, 1)
    assert places("met group of x sent") == (0, 0, 0, 0)
    assert places("x") == (0, 0, 0, 0)
