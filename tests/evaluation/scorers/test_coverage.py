"""Rows that a model cannot score are left out and counted, and the subjects named that are why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer
from evaluation.scorers.coverage import covered, reasons
from evaluation.text import _remarks


def hidden(table: pa.Table, name: str, place: int) -> pa.Table:
    """Put a zero-width space into a name, which tokenizers drop; contexts, texts and spans change with it."""
    rows = table.to_pylist()
    new = f"{name[:place]}\u200b{name[place:]}"
    for row in rows:
        for order in ("12", "21"):
            at = row[f"context_{order}"].find(name)
            for span in (row[f"span1_{order}"], row[f"span2_{order}"]):
                span[:] = [end + (end > at >= 0) for end in span]
            row[f"context_{order}"] = row[f"context_{order}"].replace(name, new)
        for text in ("text1", "text2"):
            row[text] = new if row[text] == name else row[text]
    return pa.Table.from_pylist(rows, table.schema)


@pytest.mark.parametrize("protocol", ["exact", "paper"])
def test_a_subject_whose_tokens_cannot_be_told_is_left_out_by_name(
    make_model: Any, few: dict[str, pa.Table], protocol: str
) -> None:
    scorer = make_scorer(resolve_model(str(make_model("BertForQuestionAnswering", "BertConfig"))), protocol)
    rows = hidden(few["qa"], "Bob", 1)
    mask, facts = scorer.select(rows)
    has_bob = np.array(rows["subject2"].to_pylist()) == "Bob"
    unknown = (np.array(rows["subject2"].to_pylist()) == "Zebedee") & (protocol == "exact")
    assert mask.tolist() == (~has_bob & ~unknown).tolist()
    assert facts["subjects_unplaced"] == ["Bob"]
    assert facts["subjects_left_out"] == (["Zebedee"] if protocol == "exact" else [])
    assert (facts["rows"], facts["rows_kept"]) == (16, mask.sum())
    kept = few["qa"].filter(pa.array(mask))
    np.testing.assert_array_equal(scorer.score(rows.filter(pa.array(mask))), scorer.score(kept))
    if has_bob.any():
        with pytest.raises(EvaluationError, match="spell the subject"):
            scorer.score(rows)


def test_each_place_of_a_subject_is_looked_at(make_model: Any, few: dict[str, pa.Table]) -> None:
    """The same name, which can be told behind a space and not inside a word of letters that the vocabulary lacks."""
    rows = few["qa"].filter(pa.compute.equal(few["qa"]["template"], "letter")).to_pylist()
    rows = [row for row in rows if "Zebedee" not in (row["text1"], row["text2"])]
    odd = rows[0]
    odd["context_21"] = odd["context_21"].replace(odd["text1"], f"{odd['text1']}\u0f00")
    table = pa.Table.from_pylist(rows, few["qa"].schema)
    scorer = make_scorer(resolve_model(str(make_model("BertForQuestionAnswering", "BertConfig"))))
    mask, facts = scorer.select(table)
    assert mask.tolist() == [False, *[True] * (len(rows) - 1)]
    assert facts["subjects_unplaced"] == [odd["subject1"]]


def test_a_subject_counts_as_lacking_only_where_no_row_can_have_it() -> None:
    names = {"subject1": ["Ann", "Ann", "Eve", "Eve"], "subject2": ["Bob", "Eve", "Bob", "Zoe"]}
    lacking = np.array([[False, True], [False, False], [True, True], [False, False]])
    keep = ~lacking.any(axis=1)
    assert covered(pa.table(names), keep, lacking) == {
        "subjects": 4,
        "subjects_left_out": ["Bob"],
        "subjects_left_out_in_part": ["Eve"],
        "rows": 4,
        "rows_kept": 2,
        "coverage": 0.5,
    }


def test_many_names_are_cut() -> None:
    names = [f"n{i:02}" for i in range(40)]
    assert reasons({"subjects_left_out": names}).endswith("n10, n11 and 28 more")
    assert reasons({"rows": 3}) == ""
    assert reasons({"subjects_unplaced": ["Bob"]}) == "its tokens do not tell from the words around them Bob"


def test_the_output_counts_rows_and_does_not_round_them_away() -> None:
    rows = {"rows": 81000, "rows_kept": 200, "coverage": 200 / 81000}
    names = {"subjects_left_out": ["Bob"], "subjects_left_out_in_part": ["Eve"]}
    said = _remarks({"coverage": rows | names, "means": {}, "scorer": {}, "metrics": {"mu": {"low": 0.1}}})
    why = "its vocabulary lacks Bob; and in some of their forms or places Eve"
    assert said == [f"200 of 81,000 rows can be scored with this model: {why}"]
