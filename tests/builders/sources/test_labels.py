"""Labels as numbers, names and ClassLabels, what counts as none, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from builders.errors import BuildError
from builders.sources.labels import label_codes, label_names

NAMES = ("entailment", "neutral", "contradiction")


def column(values: list[Any], feature: Any = None) -> Dataset:
    features = Features({"label": feature}) if feature else None
    return Dataset.from_dict({"label": values}, features=features)


def codes(values: list[Any], feature: Any = None, names: tuple[str, ...] = NAMES) -> list[int]:
    found = label_codes(column(values, feature), "label", names, split="dev")
    assert found.dtype == "int64"
    return found.tolist()


def test_numbers_are_places_and_texts_are_names() -> None:
    assert codes([2, 0, 1, -1, None]) == [2, 0, 1, -1, -1]
    assert codes([2.0, 0.0, float("nan"), None, -1.0]) == [2, 0, -1, -1, -1]
    assert codes(["neutral", "-", "", None, "contradiction", "-1"]) == [1, -1, -1, -1, 2, -1]
    assert codes(["2", "0", "1.0", "neutral"]) == [2, 0, 1, 1]
    assert codes([0, 1], Value("int8")) == [0, 1]
    assert codes(["neutral"], Value("large_string")) == [1]
    assert codes([None, None]) == [-1, -1]


def test_a_name_counts_before_a_place() -> None:
    assert codes([1, 3, 2, -1], names=("1", "2", "3")) == [0, 2, 1, -1]
    assert codes(["-", "+", ""], names=("+", "-")) == [1, 0, -1]


def test_declared_names_are_matched_by_name() -> None:
    shuffled = ClassLabel(names=["contradiction", "entailment", "neutral"])
    assert codes([0, 1, 2, -1, None], shuffled) == [2, 0, 1, -1, -1]
    assert codes([0, 2], ClassLabel(names=["0", "1", "2"])) == [0, 2]


def test_every_part_of_a_long_column_is_read() -> None:
    values = [i % 3 for i in range(25_000)]
    assert codes(values) == values


@pytest.mark.parametrize(
    ("values", "feature", "names", "parts"),
    [
        (
            ["neutral"] * 12_345 + ["netral"],
            None,
            NAMES,
            ("'netral'", "row 12345", "split dev", "did you mean neutral?"),
        ),
        ([0, 3], None, NAMES, ("'3'", "row 1", "entailment, neutral, contradiction")),
        ([-2], None, NAMES, ("'-2'", "row 0")),
        ([0.5], None, NAMES, ("'0.5'",)),
        ([" neutral"], None, NAMES, ("' neutral'",)),
        (["01"], None, NAMES, ("'01'",)),
        ([0, 1], ClassLabel(names=["yes", "no"]), NAMES, ("'yes'", "row 0")),
        ([True], None, NAMES, ("holds bool",)),
        ([["neutral"]], None, NAMES, ("holds list",)),
    ],
)
def test_others_are_refused(values: list[Any], feature: Any, names: tuple[str, ...], parts: tuple[str, ...]) -> None:
    with pytest.raises(BuildError) as caught:
        codes(values, feature, names)
    assert not [part for part in parts if part not in str(caught.value)], str(caught.value)


def test_a_declared_name_that_no_row_has_is_no_error() -> None:
    assert codes([1], ClassLabel(names=["other", "neutral"])) == [1]


def test_names_of_the_source() -> None:
    assert label_names({"a": column([0], ClassLabel(names=["b", "a"]))}, "label") == ("b", "a")
    assert label_names({"a": column(["cat", None]), "b": column(["ant", "-"])}, "label") == ("ant", "cat")
    assert label_names({"a": column([0, 3, -1])}, "label") == ("0", "1", "2", "3")
    for alone in ([0, 0, -1], ["cat", "cat"]):
        with pytest.raises(BuildError, match="two or more are needed"):
            label_names({"a": column(alone)}, "label")
    with pytest.raises(BuildError, match="no labels: column 'label' is empty in dev"):
        label_names({"dev": column([None, None])}, "label")
