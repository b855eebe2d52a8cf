"""The metrics against hand-made numbers, the four properties, and an oracle of plain loops."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.errors import EvaluationError
from evaluation.intervals import count, intensity, mean_interval, table_intervals
from evaluation.metrics import (
    METRICS,
    Axis,
    By,
    attribute_errors,
    average_scores,
    bias_table,
    comparative_bias,
    model_count,
    model_intensity,
    positional_errors,
    subject_biases,
    views,
)
from evaluation.scores import ScoredRows
from evaluation.significance import sign_flip_p_values
from tests.evaluation.scored import Row, make_rows, random_rows, scored

PLANTED = {("A", "a"): 1 / 8, ("C", "a"): -1 / 8}


def planted(me: str, partner: str, template: str, attribute: str, first: bool, negated: bool) -> float:
    """Likes A for attribute a by 1/8 and C for its negation by as much; 1/16 more for whoever stands first."""
    like = PLANTED.get((me, attribute), 0.0)
    return 1 / 2 + (-like if negated else like) + (1 / 16 if first else 0)


def test_a_planted_preference_comes_out_exactly() -> None:
    rows = scored(make_rows(planted))
    # B(x) = (1/2 + like) - (1/2 - like) = 2 like; C(x1, x2) = like of x1 - like of x2.
    # For a: C(A, B) = 1/8, C(A, C) = 1/4, C(B, C) = 1/8; for b all are 0.
    assert comparative_bias(rows).tolist() == [1 / 8, 0] * 2 + [1 / 4, 0] * 2 + [1 / 8, 0] * 2
    table = bias_table(rows)
    # gamma(A, a) = (1/8 + 1/4) / 2 = 3/16, gamma(B, a) = (-1/8 + 1/8) / 2 = 0, gamma(C, a) = -3/16.
    assert table.gamma.tolist() == [[3 / 16, 0], [0, 0], [-3 / 16, 0]]
    assert table.eta.tolist() == [[1, 0], [0, 0], [-1, 0]]
    assert table.n.tolist() == [[4, 4]] * 3  # two partners, two templates
    assert table.collapse().gamma[:, 0].tolist() == [3 / 32, 0, -3 / 32]
    assert model_intensity(table) == 1 / 8  # (3/16 + 0 + 3/16) / 3
    assert model_count(table) == pytest.approx(1 / 3, abs=1e-15)  # (1/2 + 0 + 1/2) / 3
    assert set(positional_errors(rows)) == {1 / 16}
    # epsilon of a row is the mean of |s + 1/16| and |s - 1/16| with s the sum of both likes:
    # a: s = 1/8, 0, -1/8 for AB, AC, BC give 1/8, 1/16, 1/8; b: 1/16 thrice.
    assert attribute_errors(rows).tolist() == [1 / 8, 1 / 16] * 2 + [1 / 16, 1 / 16] * 2 + [1 / 8, 1 / 16] * 2
    assert attribute_errors(rows).mean() == pytest.approx(1 / 12, abs=1e-15)
    assert average_scores(rows).mean() == 17 / 32  # likes cancel between a and its negation; 1/16 for one of two


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1.0])
def test_a_constant_model_is_exactly_zero(value: float) -> None:
    rows = scored(make_rows(lambda *_: value))
    table = bias_table(rows)
    assert not table.gamma.any()
    assert not table.eta.any()
    assert (model_intensity(table), model_count(table)) == (0, 0)
    assert not positional_errors(rows).any()
    assert not attribute_errors(rows).any()
    for estimate in (intensity(rows, seed=0), count(rows, seed=0)):
        assert (estimate.value, estimate.corrected, estimate.low, estimate.high) == (0, 0, 0, 0)
    assert (sign_flip_p_values(views(rows), seed=0) == 1).all()
    delta = mean_interval(rows, positional_errors(rows))
    assert (delta.low, delta.high) == (0, 0)
    gamma = table_intervals(rows, views(rows))
    assert not gamma.low.any()
    assert not gamma.high.any()


@pytest.mark.parametrize(
    "score",
    [
        lambda *facts: 0.7 if facts[4] else 0.1,  # likes whoever stands first
        lambda *facts: 0.3 + 0.1 * facts[4] + 0.2 * facts[5],  # and the negation
        lambda *facts: {"A": 0.1, "B": 0.7, "C": 0.3}[facts[0]] + 0.1 * facts[4],  # a subject whatever is asked
        lambda *facts: {"a": 0.1, "b": 0.7}[facts[3]] * (0.3 if facts[5] else 0.9) + 0.1 * facts[4],  # an attribute
    ],
)
def test_errors_of_position_and_negation_alone_are_exactly_zero(score: object) -> None:
    table = bias_table(scored(make_rows(score)))  # type: ignore[arg-type]
    assert not table.gamma.any()
    assert not table.eta.any()


UNIT = st.floats(0, 1)
EIGHT = st.lists(UNIT, min_size=8, max_size=8)


def one_row(scores: list[float]) -> ScoredRows:
    code = np.zeros(1, dtype=np.int32)
    names = (("x", "y"), (), ("a",), (), ("t",))
    return ScoredRows(
        np.array([scores]), pa.array(["id"]), *names, code, code + 1, code - 1, code - 1, code, code - 1, code
    )


def c_of(scores: list[float]) -> float:
    return float(comparative_bias(one_row(scores))[0])


@given(EIGHT, UNIT, UNIT)
def test_position_does_not_count(s: list[float], bonus: float, share: float) -> None:
    """Property 1: the orders may change places, and favour whoever stands first."""
    assert c_of([s[i] for i in (2, 3, 0, 1, 6, 7, 4, 5)]) == c_of(s)
    tilted = [value + bonus * (i in (0, 3, 4, 7)) for i, value in enumerate(s)]
    assert c_of(tilted) == pytest.approx(c_of(s), abs=1e-12)


@given(EIGHT, UNIT, UNIT)
def test_only_what_depends_on_the_attribute_counts(s: list[float], one: float, two: float) -> None:
    """Property 2: negation turns the sign; a liking that negation leaves as it is does not count."""
    assert c_of(s[4:] + s[:4]) == -c_of(s)
    liked = [value + (two if i % 2 else one) for i, value in enumerate(s)]
    assert c_of(liked) == pytest.approx(c_of(s), abs=1e-12)


@given(EIGHT)
def test_the_subjects_are_complementary(s: list[float]) -> None:
    """Property 3: C(x1, x2) = -C(x2, x1), and C lies in [-1, 1]."""
    assert c_of([s[i] for i in (3, 2, 1, 0, 7, 6, 5, 4)]) == -c_of(s)
    assert -1 <= c_of(s) <= 1
    assert (np.abs(subject_biases(one_row(s))) <= 1).all()


@given(st.lists(UNIT, min_size=4, max_size=4))
def test_a_model_that_scores_both_alike_is_zero(s: list[float]) -> None:
    """Property 4: alike means the same score in the same place of the sentence."""
    first, second, first_negated, second_negated = s
    assert c_of([first, second, second, first, first_negated, second_negated, second_negated, first_negated]) == 0


def oracle(rows: list[Row], axis: Axis, by: By | None) -> dict[tuple[str, str], tuple[float, float, int]]:
    """gamma, eta and n of each cell, with loops."""
    cells = defaultdict(list)
    for row in rows:
        bias = []
        for s in ("s1", "s2"):
            asked = row[f"{s}_12"] + row[f"{s}_21"]
            negated = row[f"{s}_12_negated"] + row[f"{s}_21_negated"]
            bias.append(asked / 2 - negated / 2)
        c = (bias[0] - bias[1]) / 2
        column = row[by] if by else "all"
        cells[row[f"{axis}1"], column].append(c)
        cells[row[f"{axis}2"], column].append(-c)
    found = {}
    for key, values in cells.items():
        signs = [0 if abs(c) < 1e-12 else math.copysign(1, c) for c in values]
        found[key] = (sum(values) / len(values), sum(signs) / len(signs), len(values))
    return found


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.7, 1.0]))
def test_tables_agree_with_plain_loops(seed: int, share: float) -> None:
    rows = random_rows(seed, share=share, subjects="ABCDE", templates=("t0", "t1", "t2"), attributes="abc")
    # Eleventh parts are no binary fractions; halve and double what must tie, so that it does.
    rows = [{name: round(v * 64) / 64 if isinstance(v, float) else v for name, v in row.items()} for row in rows]
    if not rows:
        return
    joined = scored(rows)
    for axis in ("subject", "group"):
        for by in ("attribute", "attribute_class", "template", None):
            table, expected = bias_table(joined, axis=axis, by=by), oracle(rows, axis, by)  # type: ignore[arg-type]
            assert table.n.sum() == 2 * len(rows)
            for (name, column), (gamma, eta, n) in expected.items():
                place = table.rows.index(name), table.columns.index(column)
                assert table.n[place] == n
                assert table.gamma[place] == pytest.approx(gamma, abs=1e-12)
                assert table.eta[place] == pytest.approx(eta, abs=1e-12)
            assert np.isnan(table.gamma).sum() == table.gamma.size - len(expected)
    cells = oracle(rows, "subject", "attribute")
    of_subject = defaultdict(list)
    for (name, _), values in cells.items():
        of_subject[name].append(values)
    mu = sum(max(abs(v[0]) for v in some) for some in of_subject.values()) / len(of_subject)
    eta = sum(sum(abs(v[1]) for v in some) / len(some) for some in of_subject.values()) / len(of_subject)
    table = bias_table(joined)
    assert model_intensity(table) == pytest.approx(mu, abs=1e-12)
    assert model_count(table) == pytest.approx(eta, abs=1e-12)
    flat = oracle(rows, "subject", None)
    collapsed = table.collapse()
    for place, name in enumerate(table.rows):
        if name in of_subject:
            assert collapsed.gamma[place, 0] == pytest.approx(flat[name, "all"][0], abs=1e-12)


def test_row_errors_agree_with_plain_loops() -> None:
    rows = random_rows(3)
    joined = scored(rows)
    delta, epsilon, average = [], [], []
    for row in rows:
        delta.append(sum(abs(row[f"s{k}_12{n}"] - row[f"s{k}_21{n}"]) for k in "12" for n in ("", "_negated")) / 4)
        epsilon.append(
            sum(abs(row[f"s{k}_{o}"] - row[f"s{3 - k}_{o}_negated"]) for k in (1, 2) for o in ("12", "21")) / 4
        )
        average.append(sum(row[f"s{k}_{o}{n}"] for k in "12" for o in ("12", "21") for n in ("", "_negated")) / 8)
    np.testing.assert_allclose(positional_errors(joined), delta, atol=1e-15)
    np.testing.assert_allclose(attribute_errors(joined), epsilon, atol=1e-15)
    np.testing.assert_allclose(average_scores(joined), average, atol=1e-15)


def test_rows_without_groups_cannot_be_grouped() -> None:
    joined = scored([{**row, "group1": None, "group2": None} for row in random_rows(0)])
    with pytest.raises(EvaluationError, match="no row has a group and attribute to group by"):
        bias_table(joined, axis="group")


def test_only_the_views_of_members_count_for_a_group() -> None:
    rows = [{**row, "group1": None if row["subject1"] == "A" else row["group1"]} for row in random_rows(0)]
    table = bias_table(scored(rows), axis="group", by=None)
    assert table.n.sum() == sum(1 + (row["group1"] is not None) for row in rows)


def test_every_metric_says_how_to_read_it() -> None:
    for metric in METRICS.values():
        assert metric.low < metric.high
        assert metric.direction
        assert metric.ideal in (0, None)
    assert METRICS["mu"].range == "0 to 1"
