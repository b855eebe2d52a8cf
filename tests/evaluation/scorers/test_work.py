"""Rows to distinct inputs and back, and the encoding of pairs by parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from evaluation.errors import EvaluationError
from evaluation.scorers.encoding import Encoding, encode_pairs, second_starts
from evaluation.scorers.work import ReadingsOf, make_work
from evaluation.scores import SCORE_COLUMNS


def test_every_reading_is_what_the_row_asks(few: dict[str, pa.Table]) -> None:
    rows = few["qa"].to_pylist()
    for by in ("span", "text"):
        work = make_work(few["qa"], "question", by=by, prefix=">> ")
        assert work.rows.shape == (16, 8)
        for row, readings in zip(rows, work.rows, strict=True):
            for column, reading in zip(SCORE_COLUMNS, readings, strict=True):
                subject, order, *negated = column.split("_")
                index, which = work.readings[reading]
                context, asked = work.inputs[index]
                assert work.contexts[context] == ">> " + row[f"context_{order}"]
                assert work.asked[asked] == row["question_negated" if negated else "question"]
                if by == "span":
                    assert work.contexts[context][slice(*work.spans[which])] == row[f"text{subject[1]}"]
                else:
                    assert work.texts[which] == (row[f"text{subject[1]}"], row[f"group{subject[1]}"])


def test_rows_read_from_parquet_and_from_datasets_are_the_same(few: dict[str, pa.Table]) -> None:
    plain = few["qa"]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        name = plain.schema.get_field_index("context_12")
        other = plain.set_column(name, "context_12", plain["context_12"].cast(pa.string()).cast(kind))
        spans = plain.schema.get_field_index("span1_12")
        other = other.set_column(spans, "span1_12", plain["span1_12"].cast(pa.list_(pa.int32())))
        one, two = (make_work(table, "question", by="span") for table in (plain, other))
        assert [one.contexts[c] for c in one.inputs[:, 0]] == [two.contexts[c] for c in two.inputs[:, 0]]
        assert one.rows.tolist() == two.rows.tolist()
    without = make_work(plain.drop_columns(["group1", "group2"]), "question", by="text")
    assert {group for _, group in without.texts} == {None}


def test_a_null_is_refused(few: dict[str, pa.Table]) -> None:
    rows = few["qa"].slice(0, 2)
    holed = rows.set_column(rows.schema.get_field_index("question"), "question", pa.array(["Who?", None]))
    with pytest.raises(EvaluationError, match="is null: build the set again"):
        make_work(holed, "question", by="text")


def test_readings_are_found_by_input(few: dict[str, pa.Table]) -> None:
    work = make_work(few["qa"], "question", by="text")
    readings, row = ReadingsOf(work)(np.array([3, 0, 5]))
    assert work.readings[readings, 0].tolist() == [[3, 0, 5][place] for place in row]
    assert len(readings) == sum((work.readings[:, 0] == i).sum() for i in (3, 0, 5))


def words(firsts: Sequence[str], seconds: Sequence[str], *, odd: bool = False) -> list[Encoding]:
    """Encode words by their length, with 0 around and between; an odd tokenizer looks at both texts at once."""
    encodings = []
    for first, second in zip(firsts, seconds, strict=True):
        one, two = ([len(word) for word in text.split()] for text in (first, second))
        two = [token + (len(one) if odd else 0) for token in two]
        sequence = [None, *[0] * len(one), None, *[1] * len(two), None]
        offsets = [(0, 0)] * len(sequence)
        encodings.append(Encoding([0, *one, 0, *two, 0], [int(s == 1) for s in sequence], offsets, sequence))
    return encodings


@pytest.mark.parametrize("odd", [False, True])
def test_inputs_put_together_are_those_encoded_whole(odd: bool) -> None:
    firsts, seconds = ["a bb", "ccc", "dd e f"], ["gg hh", "i", "jjj k"]
    pairs = np.array([(i, j) for i in range(3) for j in range(3)])
    calls: list[int] = []

    def encode(one: Sequence[str], two: Sequence[str]) -> list[Encoding]:
        calls.append(len(one))
        return words(one, two, odd=odd)

    encoded = encode_pairs(firsts, seconds, pairs, encode, second_starts)
    assert encoded.apart is not odd
    whole = words([firsts[i] for i, _ in pairs], [seconds[j] for _, j in pairs], odd=odd)
    assert [encoded.ids(i) for i in range(9)] == [one.ids for one in whole]
    assert [encoded.types(i) for i in range(9)] == [one.types for one in whole]
    assert encoded.lengths.tolist() == [len(one.ids) for one in whole]
    assert sum(calls) == (5 + 9 if odd else 5)  # each text once; all nine only where parts do not fit
