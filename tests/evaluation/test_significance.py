"""Sign flips against the binomial law and brute force, and false discovery against a hand-made example."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evaluation.metrics import Views, views
from evaluation.significance import false_discovery_q, sign_flip_p_values
from tests.evaluation.scored import random_rows, scored


def cells(*values: list[float]) -> Views:
    """A table with one row, and one column for each list of values."""
    flat = np.array([v for some in values for v in some])
    cell = np.repeat(np.arange(len(values)), [len(some) for some in values])
    code = np.zeros(len(flat), dtype=np.int32)
    return Views(("x",), tuple(map(str, range(len(values)))), cell, code, code, flat, np.sign(flat))


def test_few_rows_are_flipped_in_all_ways() -> None:
    rng = np.random.default_rng(0)
    values = [rng.normal(0.5, 1, size=n).tolist() for n in (1, 2, 5, 8, 8, 11)]
    p = sign_flip_p_values(cells(*values), seed=0)[0]
    for some, found in zip(values, p, strict=True):
        patterns = itertools.product((1, -1), repeat=len(some))
        sums = [sum(s * v for s, v in zip(signs, some, strict=True)) for signs in patterns]
        assert found == sum(abs(s) >= abs(sum(some)) - 1e-9 for s in sums) / len(sums)
    assert p[0] == 1  # a single row is as far from 0 either way


def test_five_rows_of_one_sign_and_size() -> None:
    # Only all plus and all minus are as far: 2 of 2^5.
    assert sign_flip_p_values(cells([0.1] * 5), seed=0)[0, 0] == 2 / 32


def test_many_rows_agree_with_the_binomial_law() -> None:
    """Values of one size: the sum is that of n coin tosses, of which k were heads."""
    from scipy.stats import binomtest

    cases = [(30, 20), (40, 28), (41, 30), (400, 225)]
    p = sign_flip_p_values(cells(*([0.2] * k + [-0.2] * (n - k) for n, k in cases)), seed=1)[0]
    for (n, k), found in zip(cases, p, strict=True):
        expected = binomtest(k, n).pvalue
        # The standard error of a share p of 9,999 flips.
        assert found == pytest.approx(expected, abs=4 * np.sqrt(expected / 9_999) + 2e-4)


def test_thousands_of_rows_are_taken_as_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = cells(np.random.default_rng(3).normal(0.03, 1, size=6_000).tolist())
    fast = sign_flip_p_values(seen, seed=0)[0, 0]
    monkeypatch.setattr("evaluation.significance._MANY", 10_000)
    slow = sign_flip_p_values(seen, seed=0)[0, 0]
    assert fast == pytest.approx(slow, abs=0.01)
    assert fast < 0.05


def test_one_row_that_outweighs_all_is_not_taken_as_normal() -> None:
    values = [1.0, *([1e-9, -1e-9] * 3_500)]
    # Either sign of the one is as far from 0; the normal law would say 0.32.
    assert sign_flip_p_values(cells(values), seed=0, flips=999)[0, 0] == 1


def test_p_is_even_where_there_is_nothing_and_small_where_there_is() -> None:
    rng = np.random.default_rng(2)
    nothing = cells(*rng.normal(size=(300, 25)).tolist())
    p = sign_flip_p_values(nothing, seed=0)[0]
    assert np.mean(p < 0.1) == pytest.approx(0.1, abs=0.06)
    assert np.mean(p < 0.5) == pytest.approx(0.5, abs=0.1)
    assert sign_flip_p_values(cells(rng.normal(2, 1, size=25).tolist()), seed=0)[0, 0] == 1 / 10_000


def test_p_does_not_depend_on_scale_and_is_nan_without_rows() -> None:
    joined = scored(random_rows(0, share=0.4, subjects="ABCD"))
    seen = views(joined)
    p = sign_flip_p_values(seen, seed=0)
    assert np.isnan(p).sum() == p.size - len(np.unique(seen.cell))
    tiny = seen._replace(gamma=seen.gamma * 1e-30)
    np.testing.assert_array_equal(sign_flip_p_values(tiny, seed=0), p)


def test_false_discovery_by_hand() -> None:
    """The 15 p-values of Benjamini and Hochberg (1995, section 3.2): at 0.05 the first four are discoveries."""
    small = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p = np.array([*small, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1])
    q = false_discovery_q(p)
    assert (q <= 0.05).tolist() == [True] * 4 + [False] * 11
    # q of the i-th is the smallest of p(j) 15 / j for j >= i.
    assert q[0] == pytest.approx(0.0001 * 15)
    assert q[2] == pytest.approx(0.0019 * 15 / 3)
    assert q[3] == pytest.approx(0.0095 * 15 / 4)
    assert q[4] == pytest.approx(0.0201 * 15 / 5)  # 0.0603; the next ones are 0.0695, 0.0639, 0.0645, ...
    assert q[5] == q[6] == pytest.approx(0.0298 * 15 / 7)
    assert q[14] == 1
    shuffled = np.random.default_rng(0).permutation(15)
    np.testing.assert_allclose(false_discovery_q(p[shuffled].reshape(3, 5)), q[shuffled].reshape(3, 5))


def test_false_discovery_leaves_out_what_is_not_known() -> None:
    q = false_discovery_q(np.array([[0.02, np.nan], [0.5, np.nan]]))
    assert q[:, 0].tolist() == [0.04, 0.5]
    assert np.isnan(q[:, 1]).all()
    assert len(false_discovery_q(np.array([]))) == 0
