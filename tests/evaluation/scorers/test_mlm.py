"""Masked LMs: planted logits with scores known by hand, and plain transformers as oracle."""

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

BERT = ("BertForMaskedLM", "BertConfig", "wordpiece")
ROBERTA = ("RobertaForMaskedLM", "RobertaConfig")


def plant(scorer: Any, weights: dict[str, float]) -> None:
    """Make a model that weighs tokens as given and all others 1, at every position."""
    import torch

    loaded = scorer._loaded
    row = torch.zeros(len(loaded.tokenizer))
    for token, weight in weights.items():
        row[loaded.tokenizer.convert_tokens_to_ids(token)] = math.log(weight)
    scorer._head.cuts = False
    loaded.model.forward = lambda input_ids, **_: SimpleNamespace(logits=row.expand(*input_ids.shape, -1))


def kept(scorer: Any, table: pa.Table) -> pa.Table:
    return table.filter(pa.array(scorer.select(table)[0]))


def test_subjects_of_several_tokens_are_left_out_by_name(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer = make_scorer(resolve_model(str(make_model(*BERT))))
    mask, facts = scorer.select(few["mlm"])
    # 4 pairs of a female and a male name, 4 rows each; only Ann and Bob are one token.
    assert facts == {
        "subjects": 4,
        "subjects_left_out": ["Mary Lou", "Zebedee"],
        "rows": 16,
        "rows_kept": 4,
        "coverage": 0.25,
    }
    assert set(few["mlm"].filter(pa.array(mask))["subject1"].to_pylist()) == {"Ann"}
    with pytest.raises(EvaluationError, match=r"'(Mary Lou|Zebedee)' is not one token of .*: score the rows of select"):
        scorer.score(few["mlm"])


def test_a_planted_preference_gives_the_scores_computed_by_hand(make_model: Any, few: dict[str, pa.Table]) -> None:
    scorer: Any = make_scorer(resolve_model(str(make_model(*BERT))))
    plant(scorer, {"ann": 30.0, "bob": 5.0, "she": 40.0, "he": 2.0})
    rows = kept(scorer, few["mlm"])
    total = len(scorer._loaded.tokenizer) - 4 + 30 + 5 + 40 + 2
    np.testing.assert_allclose(scorer.score(rows), [[30 / total, 5 / total] * 4] * 4, rtol=1e-6)
    pooled: Any = make_scorer(resolve_model(str(make_model(*BERT))), pronouns=True)
    plant(pooled, {"ann": 30.0, "bob": 5.0, "she": 40.0, "he": 2.0})
    # Ann is female and "she" is likelier than "ann"; Bob is male and "he" is less likely than "bob".
    np.testing.assert_allclose(pooled.score(rows), [[40 / total, 5 / total] * 4] * 4, rtol=1e-6)
    for one in (scorer, pooled):
        one.select(rows)
    assert (scorer.facts["pronouns"], pooled.facts["pronouns"]) == (False, True)


def test_paper_counts_only_the_likeliest_tokens(make_model: Any, few: dict[str, pa.Table]) -> None:
    ref = resolve_model(str(make_model(*BERT)))
    weights = {"sent": 90.0, "ann": 30.0, "she": 20.0, "he": 7.0, "bob": 5.0}
    total = len(make_scorer(ref)._loaded.tokenizer) - 5 + sum(weights.values())  # type: ignore[attr-defined]
    rows = few["mlm"]
    expected = {
        # Ann 30 > she 20; of Bob 5 and he 7 the pronoun; Mary Lou (no token) and Zebedee (none) by pronoun alone.
        5: {"Ann": 30, "Mary Lou": 20, "Bob": 7, "Zebedee": 7},
        3: {"Ann": 30, "Mary Lou": 20, "Bob": 0, "Zebedee": 0},
        2: {"Ann": 30, "Mary Lou": 0, "Bob": 0, "Zebedee": 0},
    }
    for top, by_name in expected.items():
        scorer: Any = make_scorer(ref, "paper", top=top)
        plant(scorer, weights)
        assert scorer.select(rows)[0].all()
        names = [rows[f"subject{i}"].to_pylist() for i in (1, 2)]
        wanted = [[by_name[one] / total, by_name[two] / total] * 4 for one, two in zip(*names, strict=True)]
        np.testing.assert_allclose(scorer.score(rows), wanted, rtol=1e-6)
    plain: Any = make_scorer(ref, "paper", pronouns=False)
    plant(plain, weights)
    assert plain.score(rows).max() == pytest.approx(30 / total)


@pytest.mark.parametrize(("family", "token"), [("bytes", "ĠAnn"), ("bytes-plain-mask", "ĠAnn")])
def test_a_subject_is_the_token_that_it_is_behind_a_space(
    make_model: Any, few: dict[str, pa.Table], family: str, token: str
) -> None:
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = make_model(*ROBERTA, family)
    scorer = make_scorer(resolve_model(str(folder)))
    rows = kept(scorer, few["mlm"])
    assert set(rows["subject1"].to_pylist()) == {"Ann"}
    scores = scorer.score(rows)
    tokenizer, plain = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder)
    for i, row in enumerate(rows.to_pylist()):
        # The mask stands for a word with its space, so no token for a lone space may stand before it.
        text = f"{row['context_21']} {row['statement_negated']}".replace(" [MASK]", tokenizer.mask_token)
        inputs = tokenizer(text, return_tensors="pt")
        assert "Ġ" not in tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
        at = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            p = plain.eval()(**inputs).logits[0, at].softmax(-1)
        assert scores[i, 6] == pytest.approx(float(p[tokenizer.convert_tokens_to_ids(token)]), abs=1e-6)


@pytest.mark.parametrize(
    ("model", "config", "family", "more"),
    [
        ("AlbertForMaskedLM", "AlbertConfig", "metaspace", {"embedding_size": 8}),
        ("DistilBertForMaskedLM", "DistilBertConfig", "wordpiece", {}),
        ("ElectraForMaskedLM", "ElectraConfig", "wordpiece", {"embedding_size": 8}),
        ("DebertaV2ForMaskedLM", "DebertaV2Config", "split-metaspace", {}),
        ("MPNetForMaskedLM", "MPNetConfig", "wordpiece", {}),
        ("XLMRobertaForMaskedLM", "XLMRobertaConfig", "split-metaspace", {}),
    ],
)
def test_only_the_logits_at_the_mask_are_computed_and_are_the_same(
    make_model: Any, few: dict[str, pa.Table], model: str, config: str, family: str, more: dict[str, Any]
) -> None:
    scorer: Any = make_scorer(resolve_model(str(make_model(model, config, family, **more))))
    assert scorer.facts["mask_only_logits"]
    rows, shapes = kept(scorer, few["mlm"]), []
    head = scorer._loaded.model.get_output_embeddings()
    head.register_forward_hook(lambda _module, _args, output: shapes.append(output.shape))
    cut = scorer.score(rows)
    assert {shape[1] for shape in shapes} == {1}
    scorer._head.cuts = False
    np.testing.assert_allclose(cut, scorer.score(rows), atol=1e-6)
    assert max(shape[1] for shape in shapes) > 10


def test_a_head_that_needs_all_positions_gets_them(make_model: Any) -> None:
    import torch

    from evaluation.loading import load_model
    from evaluation.scorers.head import MaskedHead
    from evaluation.scorers.masks import Masks

    class Averaging(torch.nn.Module):
        """A head whose logits at one position depend on all."""

        def __init__(self, head: torch.nn.Module) -> None:
            super().__init__()
            self.head = head

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.head(hidden + hidden.mean(1, keepdim=True))
            return logits

    loaded = load_model(resolve_model(str(make_model(*BERT))))
    loaded.model.cls = Averaging(loaded.model.cls)
    assert not MaskedHead(loaded, Masks(loaded.tokenizer, "it")).cuts


def test_what_is_no_masked_lm_text_is_refused(make_model: Any, few: dict[str, pa.Table]) -> None:
    rows = few["mlm"].slice(0, 2)
    scorer = make_scorer(resolve_model(str(make_model(*BERT))))
    unmasked = rows.set_column(rows.schema.get_field_index("statement"), "statement", pa.array(["Ann lied."] * 2))
    with pytest.raises(EvaluationError, match=r"needs exactly one mask, not 0: 'Ann lied\."):
        scorer.score(unmasked)
    with pytest.raises(EvaluationError, match="have the column 'question', not 'statement': score config mlm instead"):
        scorer.select(few["qa"])
    other = rows.set_column(rows.schema.get_field_index("group1"), "group1", pa.array(["west"] * 2))
    with pytest.raises(EvaluationError, match="pronouns need the groups female and male, not 'west'"):
        make_scorer(resolve_model(str(make_model(*BERT))), pronouns=True).select(other)


def test_a_header_goes_before_the_context(make_model: Any, few: dict[str, pa.Table]) -> None:
    ref = resolve_model(str(make_model(*BERT)))
    scorer = make_scorer(ref, context_prefix="She lied.")
    rows = kept(scorer, few["mlm"])
    moved = rows
    for name in ("context_12", "context_21"):
        texts = pa.array([f"She lied. {text}" for text in rows[name].to_pylist()])
        moved = moved.set_column(rows.schema.get_field_index(name), name, texts)
    np.testing.assert_allclose(scorer.score(rows), make_scorer(ref).score(moved), atol=1e-6)
