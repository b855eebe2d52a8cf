"""Tables across models and subjects, against small ones made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.comparison import bias_shift, gamma_by_subject, rank_subjects, shared_extremes, top_pairs
from evaluation.errors import EvaluationError
from evaluation.metrics import BiasTable, bias_table
from tests.evaluation.scored import make_rows, scored


def table(gamma: list[list[float]]) -> BiasTable:
    values = np.array(gamma)
    n = np.where(np.isnan(values), 0, 2)
    return BiasTable(("x", "y")[: len(gamma)], tuple("abcd")[: len(gamma[0])], values, np.sign(values), n)


def test_ranks_by_hand() -> None:
    gammas = {"m1": {"x": 0.3, "y": 0.1, "z": 0.2, "only": 1.0}, "m2": {"x": 0.0, "y": 0.5, "z": 0.0}}
    # m1: x, z, y; m2: y first, x and z share ranks 2 and 3.
    assert rank_subjects(gammas).to_pylist() == [
        {"subject": "x", "mean": 1.75, "sd": pytest.approx(0.75 * 2**0.5), "m1": 1, "m2": 2.5},
        {"subject": "y", "mean": 2, "sd": pytest.approx(2**0.5), "m1": 3, "m2": 1},
        {"subject": "z", "mean": 2.25, "sd": pytest.approx(0.25 * 2**0.5), "m1": 2, "m2": 2.5},
    ]
    assert rank_subjects({"m1": gammas["m1"]})["sd"].to_pylist() == [None] * 4


def test_ranking_nothing_is_refused() -> None:
    with pytest.raises(EvaluationError, match="zero models"):
        rank_subjects({})
    with pytest.raises(EvaluationError, match="the models m1, m2 have no subject in common"):
        rank_subjects({"m1": {"x": 0.1}, "m2": {"y": 0.1}})


def test_top_pairs_in_all_and_for_each() -> None:
    some = table([[0.1, -0.2, 0.4], [0.3, float("nan"), 0.4]])
    assert [(r["subject"], r["attribute"], r["gamma"]) for r in top_pairs(some, 3).to_pylist()] == [
        ("x", "c", 0.4),
        ("y", "c", 0.4),
        ("y", "a", 0.3),
    ]
    assert [(r["subject"], r["attribute"], r["n"]) for r in top_pairs(some, 3, each=True).to_pylist()] == [
        ("x", "c", 2),
        ("x", "a", 2),
        ("x", "b", 2),
        ("y", "c", 2),
        ("y", "a", 2),
    ]


def test_shared_extremes_by_hand() -> None:
    # With k = 2: m1 has c, b on top and a, d at the bottom; m2 has c, a on top and b, d at the bottom.
    one, two = table([[0.1, 0.2, 0.3, 0.0]]), table([[0.3, 0.2, 0.5, -0.1]])
    assert shared_extremes({"m1": one, "m2": two}, 2).to_pylist() == [
        {"subject": "x", "end": "top", "attribute": "c", "models": 2, "gamma": pytest.approx(0.4)},
        {"subject": "x", "end": "bottom", "attribute": "d", "models": 2, "gamma": pytest.approx(-0.05)},
    ]
    of_any = shared_extremes({"m1": one, "m2": two}, 2, models=1).to_pylist()
    assert [(r["end"], r["attribute"], r["models"]) for r in of_any] == [
        ("top", "c", 2),
        ("top", "a", 1),
        ("top", "b", 1),
        ("bottom", "d", 2),
        ("bottom", "a", 1),
        ("bottom", "b", 1),
    ]
    assert shared_extremes({"m1": table([[0.1, 0.2]]), "m2": table([[0.2, 0.1]])}, 1).num_rows == 0
    with pytest.raises(EvaluationError, match="zero models"):
        shared_extremes({})


def liking(**likes: float) -> object:
    """A model that likes each subject by so much, for every attribute."""
    return lambda me, partner, template, attribute, first, negated: 0.5 + (-1 if negated else 1) * likes[me]


def test_bias_shift_is_taken_over_shared_rows() -> None:
    # C(x1, x2) is the difference of likes. Base: A, B differ by 1/8, so gamma is 1/8 and -1/8 and mu is 1/8.
    base = scored(make_rows(liking(A=1 / 8, B=0.0), subjects="AB"))  # type: ignore[arg-type]
    tuned = scored(make_rows(liking(A=0.0, B=1 / 4, C=0.5), subjects="ABC"))  # type: ignore[arg-type]
    (line,) = bias_shift(base, {"m": tuned}).to_pylist()
    assert line == {
        "model": "m",
        "shared": "rows",
        "n_base": 4,
        "n": 4,  # the rows of A and B: two templates, two attributes
        "mu_base": 1 / 8,
        "mu": 1 / 4,
        "mu_shift": 1 / 8,
        "eta_base": 1,
        "eta": 1,
        "eta_shift": 0,
        "rank_correlation": pytest.approx(-1),
    }
    with pytest.raises(EvaluationError, match="m has no row in common with the base model"):
        bias_shift(base, {"m": scored(make_rows(liking(C=0.1, D=0.2), subjects="CD"))})  # type: ignore[arg-type]


def test_a_rank_correlation_that_is_not_defined_is_null() -> None:
    base = scored(make_rows(lambda *_: 0.5))
    assert bias_shift(base, {"m": base})["rank_correlation"].to_pylist() == [None]
    assert gamma_by_subject(bias_table(base)) == {"A": 0, "B": 0, "C": 0}


def test_a_shift_between_other_templates_is_taken_over_the_pairs_and_attributes_of_both() -> None:
    # The released lists ask language models in other sentences: no row id is shared. A and B stand with a in both; the
    # base was asked of C besides, in three templates, and of b; the tuned model names the pair the other way round.
    base = scored(make_rows(liking(A=1 / 8, B=0.0, C=0.5), templates=("l0", "l1", "l2")))  # type: ignore[arg-type]
    tuned = scored(make_rows(liking(A=0.0, B=1 / 4), subjects="BA", attributes="a"))  # type: ignore[arg-type]
    (line,) = bias_shift(base, {"m": tuned}).to_pylist()
    assert {key: line[key] for key in ("shared", "n_base", "n")} == {"shared": "pairs", "n_base": 3, "n": 2}
    assert (line["mu_base"], line["mu"], line["rank_correlation"]) == (1 / 8, 1 / 4, pytest.approx(-1))
