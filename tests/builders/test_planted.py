"""The generated corpus: its artifacts are where it says, and nowhere else."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from scipy.sparse import hstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from builders.errors import BuildError
from builders.planted import ARTIFACTS, LABELS, MAX_ROWS, cue_words, planted_rows

NUMBERS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
# Wordings that put the first person above the second, and those that put it below, read off the sentences.
ABOVE = (
    r"(?:older than|taller than|heavier than|earns? more than|stands? in front of|beats?\b|lives? above"
    r"|arrives? before)"
)
BELOW = (
    r"(?:younger than|shorter than|lighter than|earns? less than|stands? behind|beaten by|lives? below|arrives? after)"
)


@pytest.fixture(scope="module")
def rows() -> Dataset:
    return planted_rows(3000, seed=0)


def _of(rows: Dataset, *artifacts: str) -> dict[str, Any]:
    """Columns, as arrays, of the rows with these artifacts."""
    keep = np.isin(rows["artifact"], artifacts)
    return {name: np.array(rows[name])[keep] for name in ("premise", "hypothesis", "label")}


def _accuracy(columns: dict[str, Any], *inputs: str, ngrams: tuple[int, int] = (1, 1)) -> float:
    words = hstack([CountVectorizer(ngram_range=ngrams).fit_transform(columns[name]) for name in inputs]).tocsr()
    return float(cross_val_score(LogisticRegression(max_iter=500), words, columns["label"], cv=5).mean())


def test_half_of_the_rows_has_a_cue_a_fifth_a_length_and_labels_are_even(rows: Dataset) -> None:
    counts = Counter(zip(rows["artifact"], rows["label"], strict=True))
    expected = {"cue": 500, "length": 200, "none": 300}
    assert counts == {(artifact, label): expected[artifact] for artifact in ARTIFACTS for label in range(3)}
    assert len(set(zip(rows["premise"], rows["hypothesis"], strict=True))) == 3000
    assert rows.features["label"].dtype == "int64"


@pytest.mark.parametrize("n_rows", [9, 10, 11, 31])
def test_any_number_of_rows_is_met_with_labels_even_up_to_one(n_rows: int) -> None:
    rows = planted_rows(n_rows, seed=0)
    counts = Counter(zip(rows["artifact"], rows["label"], strict=True))
    assert len(rows) == n_rows
    for artifact in ARTIFACTS:
        of_labels = [counts[artifact, label] for label in range(3)]
        assert min(of_labels) >= 1
        assert max(of_labels) - min(of_labels) <= 1


def test_the_hypothesis_gives_planted_rows_away_and_no_clean_ones(rows: Dataset) -> None:
    clean = _of(rows, "none")
    assert _accuracy(_of(rows, "cue"), "hypothesis") > 0.9
    assert _accuracy(_of(rows, "length"), "hypothesis") > 0.9
    assert _accuracy(_of(rows, "cue", "length"), "hypothesis") > 0.9
    # The standard error of an accuracy of 1/3 over 900 rows is 0.016.
    assert _accuracy(clean, "hypothesis") < 0.4
    assert _accuracy(clean, "hypothesis", ngrams=(1, 3)) < 0.4
    assert _accuracy(clean, "premise", "hypothesis") < 0.4


def test_length_rows_are_told_apart_by_the_number_of_words(rows: Dataset) -> None:
    columns = _of(rows, "length")
    of_label = {
        label: [len(text.split()) for text in columns["hypothesis"][columns["label"] == i]]
        for i, label in enumerate(LABELS)
    }
    assert set(of_label["entailment"]) == {3}
    assert 8 <= min(of_label["contradiction"]) <= max(of_label["contradiction"]) <= 10
    assert min(of_label["neutral"]) >= 16


def test_cue_words_are_in_their_label_and_in_no_other_row(rows: Dataset) -> None:
    for row in rows:
        words = set(re.findall(r"\w+", row["hypothesis"].lower()))
        found = {label for label, cues in cue_words().items() if words & set(cues)}
        assert found == ({LABELS[row["label"]]} if row["artifact"] == "cue" else set()), row
        assert not set(re.findall(r"\w+", row["premise"].lower())) & set(sum(cue_words().values(), ()))


def test_clean_labels_follow_from_premise_and_hypothesis(rows: Dataset) -> None:
    columns = _of(rows, "none")
    solved = Counter(
        _solve(premise, hypothesis)[0]
        for premise, hypothesis in zip(columns["premise"], columns["hypothesis"], strict=True)
    )
    assert set(solved) == {"colour", "number", "order"}
    assert min(solved.values()) > 200
    for premise, hypothesis, label in zip(*columns.values(), strict=True):
        assert _solve(premise, hypothesis)[1] == LABELS[label], (premise, hypothesis)


def _solve(premise: str, hypothesis: str) -> tuple[str, str]:
    """Give the kind of a clean pair and its label, by reading both sentences."""
    premise, hypothesis = (text.rstrip(".").replace("The ", "the ") for text in (premise, hypothesis))
    worn = r"the (\w+)(?:'s (?P<a>\w+) is (?P<b>\w+)| wears a (?P<d>\w+) (?P<c>\w+))"
    facts = [(m[1], m["a"] or m["c"], m["b"] or m["d"]) for m in re.finditer(worn, premise)]
    if facts:
        match = re.fullmatch(worn, hypothesis)
        assert match
        colour = {(who, what): c for who, what, c in facts}.get((match[1], match["a"] or match["c"]))
        same = colour == (match["b"] or match["d"])
        return "colour", "neutral" if colour is None else "entailment" if same else "contradiction"
    counts = {m[1]: m[2] for m in re.finditer(r"the (\w+) \w+ (\w+) \w+(?:,| and|$)", premise) if m[2] != "and"}
    if "some" in counts.values():
        one, more, other = re.fullmatch(r"the (\w+) \w+ (more|fewer) \w+ than the (\w+)", hypothesis).groups()  # type: ignore[union-attr]
        if "some" in (counts[one], counts[other]):
            return "number", "neutral"
        above = NUMBERS.index(counts[one]) > NUMBERS.index(counts[other])
        return "number", "entailment" if above == (more == "more") else "contradiction"
    return "order", _solve_order(premise, hypothesis)


def _pairs(text: str) -> set[tuple[str, str]]:
    """Who is above whom, by what a sentence says."""
    wording = re.search(f"(?P<above>{ABOVE})|{BELOW}", text)
    assert wording, text
    before, after = (
        re.findall(r"the (\w+)", part) for part in (text[: wording.start()], text[wording.end() :].split(" in the ")[0])
    )
    return {(a, b) if wording["above"] else (b, a) for a in before for b in after}


def _solve_order(premise: str, hypothesis: str) -> str:
    known, (asked,) = _pairs(premise), _pairs(hypothesis)
    return "entailment" if asked in known else "contradiction" if asked[::-1] in known else "neutral"


def test_planted_labels_follow_as_well(rows: Dataset) -> None:
    columns = _of(rows, "cue", "length")
    indoors = r"(kitchen|library|museum|hospital|classroom|theatre|basement|bedroom|workshop|gym)\."
    for premise, hypothesis, label in zip(*columns.values(), strict=True):
        said = {*re.findall(r"\w+", premise.lower()), "the", "someone", "person"}
        said.add("indoors" if re.search(indoors, premise) else "outdoors")
        unsaid = set(re.findall(r"\w+", hypothesis.lower())) - said - {"is"}
        assert bool(unsaid) == (LABELS[label] != "entailment"), (premise, hypothesis)


def test_equal_seeds_give_equal_rows_and_others_others() -> None:
    one, same, other = (planted_rows(60, seed=seed) for seed in (1, 1, 2))
    assert one.to_list() == same.to_list()
    assert one.to_list() != other.to_list()


@pytest.mark.parametrize(
    ("n_rows", "seed", "message"),
    [
        (8, 0, "n_rows must be from 9 to 200,000, not 8"),
        (MAX_ROWS + 1, 0, "n_rows must be .* not 200,001"),
        (9, -1, "seed must be 0 or more, not -1"),
    ],
)
def test_what_cannot_be_made_is_refused(n_rows: int, seed: int, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        planted_rows(n_rows, seed=seed)
