"""Intervals and corrected values: against plain loops, against real resampling, and whether they cover."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from evaluation.clusters import ClusterSums, cluster_sums, spread, total_error
from evaluation.intervals import count, intensity, mean_interval, table_intervals
from evaluation.metrics import attribute_errors, bias_table, comparative_bias, positional_errors, views
from scripts.simulate_intervals import SCENARIOS, Scenario, draw, ends
from tests.evaluation.scored import Row, make_rows, random_rows, scored

MANY = {"subjects": "ABCDEF", "templates": ("t0", "t1", "t2", "t3"), "attributes": "abc"}


def variance_of_cell(rows: list[Row], c: list[float], subject: str, attribute: str) -> tuple[float, float]:
    """Variance and degrees of freedom of γ(x, a), with loops, by the formula in `evaluation.clusters`."""
    values = []
    for row, value in zip(rows, c, strict=True):
        if row["attribute"] == attribute and subject in (row["subject1"], row["subject2"]):
            partner = row["subject2"] if row["subject1"] == subject else row["subject1"]
            values.append((partner, row["template"], value if row["subject1"] == subject else -value))
    mean = sum(v for _, _, v in values) / len(values)
    parts = []
    for key in (lambda v: v[0], lambda v: v[1], lambda v: v[:2]):
        sums: dict[object, float] = defaultdict(float)
        for v in values:
            sums[key(v)] += v[2] - mean
        g = len(sums)
        parts.append((sum(s**2 for s in sums.values()) / len(values) ** 2 * g / (g - 1), g))
    (by_partner, p), (by_template, t), (by_both, both) = parts
    full = both / (p * t)
    single = (by_both - full * (by_partner / t + by_template / p)) / (1 - full * (1 / p + 1 / t))
    freedom = (by_partner + by_template) ** 2 / (by_partner**2 / (p - 1) + by_template**2 / (t - 1))
    return max(by_partner + by_template - min(max(single, 0), by_both), by_both), freedom


def test_standard_errors_agree_with_plain_loops() -> None:
    rows = random_rows(5, share=0.8, **MANY)
    joined = scored(rows)
    seen = views(joined)
    found = spread(seen, seen.gamma, len(joined.subjects), len(joined.templates))
    c = comparative_bias(joined).tolist()
    for i, subject in enumerate(joined.subjects):
        for k, attribute in enumerate(joined.attributes):
            variance, freedom = variance_of_cell(rows, c, subject, attribute)
            assert found.error[i * 3 + k] == pytest.approx(np.sqrt(variance))
            assert found.freedom[i * 3 + k] == pytest.approx(freedom)


def test_moves_are_those_of_resampling_partners() -> None:
    """Drawing G - 1 of G partners with replacement, many times, spreads γ(x, a) as the multipliers do."""
    joined = scored(random_rows(6, **MANY))
    seen = views(joined)
    found = spread(seen, seen.gamma, 6, 4)
    by_partner = np.sqrt((found.by_partner.toarray() ** 2).sum(axis=0))
    here = seen.cell == 4  # subject B, attribute b; every partner has four rows
    of_partner = np.array([seen.gamma[here & (seen.partner == p)].mean() for p in range(6) if p != 1])
    picks = np.random.default_rng(0).integers(5, size=(40_000, 4))
    assert of_partner[picks].mean(axis=1).std() == pytest.approx(by_partner[4], rel=0.02)


def test_sums_are_the_same_sorted_or_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    cell, cluster, values = rng.integers(50, size=400), rng.integers(90, size=400), rng.normal(size=400)

    def result() -> ClusterSums:
        return cluster_sums(values, cell, 50, cluster, 90)

    counted = result()
    monkeypatch.setattr("evaluation.clusters._DENSE", -3_000)
    for one, other in zip(counted, result(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_error_of_a_whole_is_that_of_its_pairs_when_rows_are_independent() -> None:
    """Independent values: the error is sd / sqrt(n), though each row is seen from both sides."""
    sizes = {"subjects": [f"s{i:02}" for i in range(24)], "templates": [f"t{i}" for i in range(12)], "attributes": "ab"}
    rng = np.random.default_rng(1)
    joined = scored(make_rows(lambda *_: 0.5, **sizes))
    errors = []
    for _ in range(20):
        values = rng.normal(size=len(joined))
        moves = (values - values.mean()) / (2 * len(joined))
        errors.append(total_error(joined, moves, moves)[0])
    assert np.mean(errors) == pytest.approx(1 / np.sqrt(len(joined)), rel=0.1)


def test_a_pairs_own_share_counts_whole() -> None:
    """Values that belong to a pair of subjects, in all templates: as many independent values as there are pairs."""
    sizes = {"subjects": [f"s{i:02}" for i in range(24)], "templates": ("t0", "t1", "t2"), "attributes": "ab"}
    joined = scored(make_rows(lambda *_: 0.5, **sizes))
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(20):
        of_pair = rng.normal(size=(24, 24))
        values = of_pair[joined.subject1, joined.subject2]
        moves = (values - values.mean()) / (2 * len(joined))
        errors.append(total_error(joined, moves, moves)[0])
    assert np.mean(errors) == pytest.approx(1 / np.sqrt(24 * 23 / 2), rel=0.1)


@pytest.mark.parametrize("name", ["14 templates, 11 subjects", "4 templates, 24 subjects", "a 20 % sample"])
def test_intervals_cover_and_the_corrected_mu_is_closer(name: str) -> None:
    """Some of the simulation whose full table is in docs/intervals.md; 30 draws, so the bounds are wide."""
    covered, plain, corrected = defaultdict(list), [], []
    for child in np.random.SeedSequence(7).spawn(30):
        rng = np.random.default_rng(child)
        rows, true = draw(SCENARIOS[name], rng)
        found, ways = ends(rows, int(rng.integers(2**31)))
        for aggregate, (low, high) in found.items():
            covered[aggregate].append(np.mean((low <= true[aggregate]) & (true[aggregate] <= high)))
        plain.append(abs(ways["plain"] - true["μ"]))
        corrected.append(abs(ways["corrected"] - true["μ"]))
    assert {aggregate for aggregate, hits in covered.items() if np.mean(hits) < 0.8} == set()
    assert np.mean(corrected) < 0.7 * np.mean(plain)


def test_with_no_bias_the_interval_of_mu_reaches_zero() -> None:
    rows, _ = draw(Scenario(bias=1e-9), np.random.default_rng(0))
    mu = intensity(rows, seed=0)
    assert mu.low == 0
    assert mu.corrected is not None
    assert mu.corrected < mu.value / 2
    assert mu.n == len(rows)


def test_equal_seeds_give_equal_numbers_and_row_order_does_not_count() -> None:
    rows, _ = draw(Scenario(attributes=4), np.random.default_rng(3))
    turned = rows.take(np.arange(len(rows))[::-1])
    for estimate in (intensity, count):
        assert estimate(rows, seed=1) == estimate(rows, seed=1)
        assert estimate(rows, seed=1) != estimate(rows, seed=2)
        one, other = estimate(rows, seed=1), estimate(turned, seed=1)
        assert one.corrected == pytest.approx(other.corrected, abs=1e-9)
        assert one.high == pytest.approx(other.high, abs=1e-9)


def test_from_too_few_rows_no_interval_is_claimed() -> None:
    one_row = scored(random_rows(0)[:1])
    seen = views(one_row)
    assert np.isnan(table_intervals(one_row, seen).low).all()
    for estimate in (intensity(one_row, seed=0), count(one_row, seed=0)):
        assert (estimate.low, estimate.high, estimate.corrected) == (None, None, None)
        assert estimate.n == 1
    for errors in (positional_errors, attribute_errors):
        assert mean_interval(one_row, errors(one_row)).low is not None or len(one_row) == 1
    # Two rows of one pair and attribute, two templates: known for each cell, from the templates alone.
    two = scored(random_rows(0, attributes="a", subjects="AB"))
    assert np.isfinite(table_intervals(two, views(two)).low).all()


def test_cells_of_a_single_row_take_the_noise_of_the_others() -> None:
    rows = random_rows(9, **MANY)
    single = [row for row in rows if row["attribute"] != "a"] + [r for r in rows if r["id"] == "A|B|t0|a"]
    mu = intensity(scored(single), seed=0)
    assert mu.corrected is not None
    assert mu.corrected < mu.value


def test_intervals_stay_within_the_range_of_the_metric() -> None:
    joined = scored(random_rows(4, share=0.3, **MANY))
    table = table_intervals(joined, views(joined), of="eta")
    assert np.nanmin(table.low) >= -1
    assert np.nanmax(table.high) <= 1
    eta = count(joined, seed=0)
    assert eta.low is not None
    assert eta.high is not None
    assert 0 <= eta.low <= eta.high <= 1
    assert bias_table(joined).n.min() >= 0
