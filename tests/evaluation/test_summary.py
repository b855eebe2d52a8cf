"""The summary holds every aggregate and table, and prints how to read them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evaluation.metrics import METRICS, bias_table, model_intensity
from evaluation.summary import Summary, summarize
from tests.evaluation.scored import random_rows, scored


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summarize(scored(random_rows(0, subjects="ABCDE", attributes="abc")), seed=0)


def test_every_aggregate_has_its_n_and_interval(summary: Summary) -> None:
    stored = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert list(stored) == ["mu", "eta", "delta", "epsilon", "average_score"]
    for name, facts in stored.items():
        assert facts["n"] == 60  # ten pairs, two templates, three attributes
        assert facts["range"] == [0, 1]
        assert facts["ideal"] == METRICS[name].ideal
        assert facts["low"] <= (facts["value"] if facts["corrected"] is None else facts["corrected"]) <= facts["high"]
    joined = scored(random_rows(0, subjects="ABCDE", attributes="abc"))
    assert stored["mu"]["value"] == model_intensity(bias_table(joined))
    assert stored["mu"]["corrected"] < stored["mu"]["value"]


def test_tables_are_sorted_and_carry_intervals_p_and_q(summary: Summary) -> None:
    sizes = {
        "subject_attribute": 15,
        "subject": 5,
        "subject_class": 10,
        "group_attribute": 6,
        "group": 2,
        "group_class": 4,
    }
    assert {name: table.num_rows for name, table in summary.tables.items()} == sizes
    for name, table in summary.tables.items():
        columns = table.to_pydict()
        gamma = columns["gamma"]
        assert gamma == sorted(gamma, reverse=True)
        for low, value, high in zip(columns["gamma_low"], gamma, columns["gamma_high"], strict=True):
            assert low <= value <= high
        assert all(q >= p for p, q in zip(columns["p"], columns["q"], strict=True))
        assert sum(columns["n"]) == 120
        assert ("group" in columns) == name.startswith("group")
    assert summary.tables["subject_attribute"].column_names == [
        *("subject", "attribute", "n", "gamma", "gamma_low", "gamma_high", "p", "q", "eta", "eta_low", "eta_high")
    ]


def test_without_groups_and_classes_their_tables_are_left_out() -> None:
    rows = [{**row, "group1": None, "group2": None, "attribute_class": None} for row in random_rows(1)]
    assert list(summarize(scored(rows), seed=0).tables) == ["subject_attribute", "subject"]


def test_ends_that_are_not_known_are_null() -> None:
    table = summarize(scored(random_rows(0)[:1]), seed=0).tables["subject_attribute"]
    assert table["gamma_low"].null_count == table.num_rows == 2
    assert np.isfinite(table["gamma"].to_numpy()).all()
