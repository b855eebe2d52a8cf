"""Joining scores to probe rows, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from evaluation.errors import EvaluationError
from evaluation.scores import SCORE_COLUMNS, ScoredRows
from tests.evaluation.scored import random_rows, scored, tables


def test_scores_are_joined_by_id_in_the_order_of_the_probe_rows() -> None:
    rows = random_rows(0)
    probe, scores = tables(rows)
    shuffled = scores.take(np.random.default_rng(1).permutation(len(scores)))
    joined = ScoredRows.from_tables(probe, shuffled)
    assert joined.ids.to_pylist() == [row["id"] for row in rows]
    assert joined.scores.tolist() == [[row[name] for name in SCORE_COLUMNS] for row in rows]
    assert joined.subjects == ("A", "B", "C")
    assert [joined.subjects[code] for code in joined.subject2] == [row["subject2"] for row in rows]
    assert [joined.groups[code] for code in joined.group1] == [row["group1"] for row in rows]
    assert [joined.attribute_classes[code] for code in joined.attribute_class] == [r["attribute_class"] for r in rows]
    assert [joined.templates[code] for code in joined.template] == [row["template"] for row in rows]


def test_dictionary_columns_chunks_and_float32_are_read_alike() -> None:
    probe, scores = tables(random_rows(0))
    encoded = pa.table({name: probe[name].dictionary_encode() for name in probe.column_names})
    chunks = pa.concat_tables([encoded.slice(0, 5), encoded.slice(5)])
    narrow = pa.table(
        {name: scores[name].cast(pa.float32()) if name != "id" else scores[name] for name in scores.column_names}
    )
    plain, other = ScoredRows.from_tables(probe, scores), ScoredRows.from_tables(chunks, narrow)
    assert other.subjects == plain.subjects
    assert (other.subject2 == plain.subject2).all()
    np.testing.assert_allclose(other.scores, plain.scores, atol=1e-7)


def test_missing_groups_and_classes_are_minus_one() -> None:
    rows = [{**row, "group1": None, "group2": None, "attribute_class": None} for row in random_rows(0)]
    joined = scored(rows)
    assert (joined.groups, joined.attribute_classes) == ((), ())
    assert set(joined.group2) == set(joined.attribute_class) == {-1}


def test_a_subset_is_taken_when_asked_for() -> None:
    probe, scores = tables(random_rows(0))
    kept = [3, 0, 7]
    joined = ScoredRows.from_tables(probe, scores.take(kept), subset=True)
    assert joined.ids.to_pylist() == probe["id"].take([0, 3, 7]).to_pylist()
    assert joined.scores[1].tolist() == [scores[name][3].as_py() for name in SCORE_COLUMNS]


def test_take_keeps_names() -> None:
    joined = scored(random_rows(0))
    few = joined.take(np.array([2, 5]))
    assert few.subjects == joined.subjects
    assert few.ids.to_pylist() == joined.ids.take([2, 5]).to_pylist()
    assert len(joined.take(joined.subject1 == 1)) == int((joined.subject1 == 1).sum())


def _with(scores: pa.Table, name: str, row: int, value: float) -> pa.Table:
    values = scores[name].to_numpy().copy()
    values[row] = value
    return scores.set_column(scores.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda p, s: (p.drop_columns("subject1"), s),
            r"probe rows lack the column 'subject1'; did you mean 'subject2'",
        ),
        (lambda p, s: (p, s.drop_columns("s2_21_negated")), r"scores lack the column 's2_21_negated'; did you mean"),
        (lambda p, s: (p, s.slice(0, 0)), r"the scores have zero rows"),
        (lambda p, s: (p.slice(0, 0), s), r"the probe rows have zero rows"),
        (
            lambda p, s: (p, s.slice(1)),
            r"1 of 12 probe rows have no scores \(the first is 'A\|B\|t0\|a'\); score the rest",
        ),
        (lambda p, s: (p.slice(2), s), r"2 of 12 scores have an id that is not in the probe rows \(the first is 'A\|B"),
        (lambda p, s: (p.slice(0, 6), s.slice(3)), r"6 of 9 .*, and 3 of 6 rows have no scores; are they of another"),
        (lambda p, s: (p, pa.concat_tables([s, s.slice(4, 1)])), r"the scores repeat the id 'A\|C\|t0\|a' \(2 times\)"),
        (lambda p, s: (pa.concat_tables([p, p]), s), r"the probe rows repeat the id"),
        (lambda p, s: (p, _with(s, "s1_21", 3, float("nan"))), r"1 of 12 rows .* s1_21 = nan in 'A\|B\|t1\|b'"),
        (lambda p, s: (p, _with(s, "s2_12_negated", 0, 1.5)), r"s2_12_negated = 1.5 in"),
        (lambda p, s: (p, _with(s, "s1_12", 0, -0.1)), r"s1_12 = -0.1 in"),
        (lambda p, s: (p, s.set_column(1, "s1_12", s["s1_12"].cast(pa.string()))), r"must hold numbers, not string"),
        (lambda p, s: (p.set_column(1, "subject1", pa.nulls(12, pa.string())), s), r"'subject1' .* empty in 12 rows"),
        (lambda p, s: (p, s.set_column(0, "id", pa.nulls(12, pa.string()))), r"'id' of the scores is empty in 12"),
    ],
)
def test_bad_input_is_one_line(change: Callable[[pa.Table, pa.Table], tuple[pa.Table, pa.Table]], message: str) -> None:
    with pytest.raises(EvaluationError, match=message) as raised:
        ScoredRows.from_tables(*change(*tables(random_rows(0))))
    assert "\n" not in str(raised.value)


def test_a_null_score_is_refused_and_rounding_above_one_is_not() -> None:
    probe, scores = tables(random_rows(0))
    holes = scores.set_column(2, "s2_12", pa.array([None] + [0.5] * 11))
    with pytest.raises(EvaluationError, match="s2_12 = nan"):
        ScoredRows.from_tables(probe, holes)
    joined = ScoredRows.from_tables(probe, _with(scores, "s1_12", 0, 1 + 1e-7))
    assert joined.scores[0, 0] == 1.0
