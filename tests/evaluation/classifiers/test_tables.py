"""Tables over seeds."""

from __future__ import annotations

import pytest

from evaluation.classifiers.tables import Table, less, markdown


def test_differences_are_taken_seed_by_seed() -> None:
    assert less((0.9, 0.8), (0.5, 0.6)) == pytest.approx((0.4, 0.2))
    assert less((0.9,), (0.5, 0.6)) == pytest.approx((0.4, 0.3))
    assert less((0.9, 0.8), (0.5,)) == pytest.approx((0.4, 0.3))
    assert less((0.9,), (0.5,)) == pytest.approx((0.4,))


def test_a_table_in_markdown() -> None:
    """Of 0.90, 0.92 and 0.97 the mean is 0.93 and the deviation sqrt((0.0009 + 0.0001 + 0.0016) / 2) = 0.03606."""
    table = Table("T", ("a|b", "drop"), (("x", ((0.90, 0.92, 0.97), (-0.25,))), ("rows", (1234567, ()))), ("note",))
    assert markdown(table).splitlines() == [
        "### T",
        "",
        "|  | a\\|b | drop |",
        "|---|---|---|",
        "| x | 93.0 ± 3.6 | -25.0 |",
        "| rows | 1,234,567 |  |",
        "",
        "note",
    ]
