"""Tables of text."""

from __future__ import annotations

from builders.reading import aligned


def test_columns_are_aligned_by_the_places_that_signs_take() -> None:
    """On a terminal each sign of 日本 takes two places, and an accent of its own takes none."""
    assert aligned([("日本", "1"), ("e\u0301a", "10"), ("name", "")], right=[1]) == [
        "日本   1",
        "e\u0301a    10",
        "name",
    ]
