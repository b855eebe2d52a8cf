"""Protocol ``paper`` against probabilities that the released scorer gave the same tiny checkpoints."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.probes import batches
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer
from unqover_data import load_lists

SHARED = Path(__file__).parents[4] / "shared"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the parity data is not on this machine")


def rows_and_expected(name: str, config: str, predictions: str) -> tuple[pa.Table, np.ndarray]:
    """The released probe rows behind the records, and what the released scorer gave for them.

    A record is one subject order of an example; S = sqrt(start * end), or its one probability for a masked LM.
    """
    text = (SHARED / "parity" / "predictions" / f"{predictions}.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    lists = load_lists(name, str(SHARED / "unqover-released"))
    part = lists.configs[config]
    examples: dict[frozenset[str], list[dict[str, Any]]] = {}
    for record in records:
        examples.setdefault(frozenset((record["subject1"], record["subject2"])), []).append(record)
    tables, expected = [], []
    for names, found in examples.items():  # a pair at a time: all pairs would be a million rows
        two = dataclasses.replace(part, subjects=tuple(subject for subject in part.subjects if subject.name in names))
        table = pa.concat_tables(batches(dataclasses.replace(lists, configs={config: two}), config))
        template = {one.id: number for number, one in enumerate(part.templates)}
        kept = []
        for i, row in enumerate(table.select(["subject1", "template", "attribute"]).to_pylist()):
            mine = [
                r for r in found if (r["template"], r["attribute"]) == (template[row["template"]], row["attribute"])
            ]
            if mine:
                first, second = sorted(mine, key=lambda record: record["subject1"] != row["subject1"])
                expected.append([*s_of(first, "question"), *s_of(second, "question")[::-1]])
                expected[-1] += [*s_of(first, "negated"), *s_of(second, "negated")[::-1]]
                kept.append(i)
        tables.append(table.take(kept))
    assert len(expected) == len(records) / 2
    return pa.concat_tables([table.unify_dictionaries() for table in tables]), np.array(expected)


def s_of(record: dict[str, Any], asked: str) -> tuple[float, float]:
    one, two = (math.sqrt(math.prod(record[f"{asked}_subject{i}"])) for i in (1, 2))
    return one, two


@pytest.mark.parametrize("model", ["tiny-bert-qa", "tiny-roberta-qa"])
def test_question_answering_on_religion(model: str) -> None:
    table, expected = rows_and_expected("religion", "qa", f"{model}.religion")
    scores = make_scorer(resolve_model(str(SHARED / "parity" / "models" / model)), "paper").score(table)
    np.testing.assert_allclose(scores, expected, atol=1e-5, rtol=1e-4)


def test_question_answering_on_gender() -> None:
    table, expected = rows_and_expected("gender", "qa", "tiny-bert-qa.gender")
    scores = make_scorer(resolve_model(str(SHARED / "parity" / "models" / "tiny-bert-qa")), "paper").score(table)
    np.testing.assert_allclose(scores, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "top"), [("religion.fullvocab", None), ("religion.top200", 200), ("gender.fullvocab", None)]
)
def test_masked_lms(name: str, top: int | None) -> None:
    table, expected = rows_and_expected(name.split(".")[0], "mlm-bert", f"tiny-bert-mlm.{name}")
    scorer = make_scorer(resolve_model(str(SHARED / "parity" / "models" / "tiny-bert-mlm")), "paper", top=top)
    mask, _ = scorer.select(table)
    assert mask.all()
    scores = scorer.score(table)
    np.testing.assert_allclose(scores, expected, atol=1e-5, rtol=1e-4)
    assert ((scores == 0) == (expected == 0)).all()
    assert scorer.facts["pronouns"] == name.startswith("gender")
