import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.classifiers.humans import Annotated, human_accuracy, humans_on, rate_by_rows, read_annotated
from evaluation.classifiers.matching import Rows
from evaluation.classifiers.metrics import wilson
from evaluation.errors import EvaluationError

SNLI = Path(__file__).parents[3].parent / "shared" / "data" / "snli"
FULL = {"e": "entailment", "n": "neutral", "c": "contradiction", "-": "-", "": ""}

# Gold, votes, and what is right of five: against gold, and against most of the other four.
#   E | E E E N E | 4 | leave out an E: E leads N 3 to 1, right, four times; leave out N: wrong        -> 4
#   N | N N N N N | 5 | always right                                                                  -> 5
#   C | C C C E N | 3 | leave out a C: C leads 2 to 1 to 1, right, three times; E or N: C leads, wrong -> 3
#   - | E E N N C |   | left out
#   E | E E E N N | 3 | leave out an E: E and N tie 2 to 2, half, three times; leave out N: wrong      -> 1.5
# Together 15 of 20 and 13.5 of 20.
BY_HAND = (("e", "eeene"), ("n", "nnnnn"), ("c", "cccen"), ("-", "eennc"), ("e", "eeenn"))


def annotate(path: Path, rows: Any) -> Annotated:
    lines = [
        json.dumps(
            {
                "gold_label": FULL[gold],
                "annotator_labels": [FULL[vote] for vote in votes],
                "sentence1": f"premise {place}",
                "sentence2": f"hypothesis {place}",
                "pairID": f"p{place}",
            }
        )
        for place, (gold, votes) in enumerate(rows)
    ]
    path.write_text("\n".join(lines) + "\n")
    return read_annotated(path)


def test_human_accuracy_by_hand(tmp_path: Path) -> None:
    found = human_accuracy(annotate(tmp_path / "a.jsonl", BY_HAND))
    assert (found.accuracy.value, found.accuracy.n) == (pytest.approx(15 / 20), 20)
    assert (found.against_others.value, found.against_others.n) == (pytest.approx(13.5 / 20), 20)
    assert (found.rows, found.without_gold, found.too_few) == (4, 1, 0)


def test_parts_by_hand(tmp_path: Path) -> None:
    annotated = annotate(tmp_path / "a.jsonl", BY_HAND)
    kept = human_accuracy(annotated, np.array([True, False, False, True, True]))
    assert (kept.accuracy.value, kept.rows, kept.without_gold) == (pytest.approx(7 / 10), 2, 1)
    assert kept.against_others.value == pytest.approx(5.5 / 10)
    removed = human_accuracy(annotated, np.array([False, True, True, False, False]))
    assert (removed.accuracy.value, removed.rows, removed.without_gold) == (pytest.approx(8 / 10), 2, 0)
    assert removed.to_json()["accuracy"]["n"] == 10


def test_blank_labels_are_no_answers(tmp_path: Path) -> None:
    # Three votes of E E N: 2 of 3 against gold. Others: leave out an E: tie, half, twice; leave out N: wrong: 1 of 3.
    # The row of one vote says nothing of how people agree.
    found = human_accuracy(annotate(tmp_path / "a.jsonl", [("e", ["e", "", "e", "n", ""]), ("n", ["n", "", ""])]))
    assert (found.accuracy.value, found.accuracy.n) == (pytest.approx(2 / 3), 3)
    assert found.against_others.value == pytest.approx(1 / 3)
    assert (found.rows, found.too_few) == (1, 1)


def test_the_interval_is_by_rows() -> None:
    # Share .8; residuals 1, 1, -1, -1 with squares summing to 4; variance 4/3 * 4 / 20² = 1/75; .8 * .2 * 75 = 12.
    found = rate_by_rows([5, 5, 3, 3], [5, 5, 5, 5])
    assert (found.low, found.high) == pytest.approx(wilson(0.8, 12))
    # Residuals 1, 1, 1, -3 with 12: variance 4/3 * 12 / 400 = .04, four labels' worth, as there are rows.
    assert rate_by_rows([5, 5, 5, 1], [5] * 4).low == pytest.approx(wilson(0.8, 4)[0])
    # Residuals of 2.5 with squares summing to 25: 3 labels' worth by n / (n - 1), but no less than the 4 rows.
    assert rate_by_rows([5, 5, 0, 0], [5] * 4).low == pytest.approx(wilson(0.5, 4)[0])
    # All alike: no more than 10 labels and no less than 2 rows.
    assert rate_by_rows([4, 4], [5, 5]).low == pytest.approx(wilson(0.8, 10)[0])
    assert rate_by_rows([5, 5], [5, 5]).low == pytest.approx(wilson(1, 2)[0])
    assert rate_by_rows([4], [5]).low == pytest.approx(wilson(0.8, 1)[0])
    # Rows of 5 and 4 labels: share 7/9, residuals 4 - 35/9 = 1/9 and 3 - 28/9 = -1/9: no more than 9 labels.
    assert rate_by_rows([4, 3], [5, 4]).high == pytest.approx(wilson(7 / 9, 9)[1])


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng, truth, inside = np.random.default_rng(2), 4 / 4.6, 0
    for _ in range(400):
        right = rng.binomial(5, rng.beta(4, 0.6, 80))
        found = rate_by_rows(right, np.full(80, 5))
        inside += found.low <= truth <= found.high
    assert 0.92 <= inside / 400 <= 0.98  # 95 % but for three standard errors; were labels independent trials: 87 %


def a_split(places: list[int]) -> Rows:
    pairs = tuple((f"premise {place}", f"hypothesis {place} ") for place in places)
    count = np.arange(len(places))
    return Rows(("entailment", "neutral", "contradiction"), count % 3, count, pairs=pairs)


def test_annotated_rows_are_found_in_a_split_by_their_texts(tmp_path: Path) -> None:
    annotated = annotate(tmp_path / "a.jsonl", BY_HAND)
    rows = a_split([4, 9, 1, 0])  # row 2 is not in the split, row 9 has no annotators
    kept = np.array([True, True, False, True])
    found = humans_on(annotated, rows, {"full": np.ones(4, dtype=bool), "kept": kept, "removed": ~kept})
    assert {name: (one.accuracy.value, one.rows) for name, one in found.items()} == {
        "full": (pytest.approx(12 / 15), 3),
        "kept": (pytest.approx(7 / 10), 2),
        "removed": (1.0, 1),
    }
    with pytest.raises(EvaluationError, match="warm-up has no row with a gold label"):
        humans_on(annotated, rows, {"warm-up": np.zeros(4, dtype=bool)})
    with pytest.raises(EvaluationError, match="none of the 5 annotated rows is in the split of 2 rows"):
        humans_on(annotated, a_split([7, 8]), {})
    with pytest.raises(EvaluationError, match="text pairs"):
        humans_on(annotated, Rows(("a", "b"), np.zeros(1, dtype=int), np.zeros(1, dtype=int)), {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "a.jsonl, line 1, is not valid JSON"),
        ("[1]", "line 1 is not a JSON object"),
        ('{"premise": "a", "hypothesis": "b", "gold_label": "neutral"}', "line 1 has no annotator_labels: .*original"),
        ('{"sentence1": "a", "annotator_labels": []}', "line 1 has no gold_label, hypothesis"),
        (
            '{"premise": "a", "hypothesis": "b", "gold_label": "neutral", "annotator_labels": "neutral"}',
            "must be a list",
        ),
        (
            '{"premise": "a", "hypothesis": "b", "gold_label": "neutral", "annotator_labels": ["neutrl"]}',
            "label 'neutrl' is none of entailment, neutral, contradiction",
        ),
        (
            '{"premise": "a", "hypothesis": "b", "gold_label": "non-entailment", "annotator_labels": []}',
            "label 'non-entailment' is none",
        ),
        ("", "has no rows"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line)
    with pytest.raises(EvaluationError, match=message) as raised:
        read_annotated(path)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(EvaluationError, match=r"nowhere\.jsonl cannot be read"):
        read_annotated(Path("nowhere.jsonl"))


def test_rows_without_gold_alone_give_no_accuracy(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="no human accuracy to give"):
        human_accuracy(annotate(tmp_path / "a.jsonl", [("-", "eennc")]))


@pytest.mark.skipif(not SNLI.is_dir(), reason="needs ../shared/data")
def test_snli() -> None:
    annotated = read_annotated(SNLI / "annotated.jsonl")
    rows = [json.loads(line) for line in (SNLI / "annotated.jsonl").read_text().split("\n") if line]
    agree = Counter(
        vote == row["gold_label"] for row in rows if row["gold_label"] != "-" for vote in row["annotator_labels"]
    )
    found = human_accuracy(annotated)
    assert (len(annotated), found.rows, found.without_gold, found.too_few) == (2566, 2527, 39, 0)
    assert found.accuracy.n == agree.total()
    assert found.accuracy.value == pytest.approx(agree[True] / agree.total())
    assert found.accuracy.value == pytest.approx(0.881, abs=0.0005)
    assert found.against_others.value < found.accuracy.value
    labelled = [json.loads(line) for line in (SNLI / "validation.jsonl").read_text().split("\n") if line]
    split = Rows(
        ("entailment", "neutral", "contradiction"),
        np.array([row["label"] for row in labelled]),
        np.arange(len(labelled)),
        pairs=tuple((row["premise"], row["hypothesis"]) for row in labelled),
    )
    everywhere = humans_on(annotated, split, {"full": np.ones(len(split), dtype=bool)})["full"]
    assert everywhere.rows == 2527
    assert everywhere.accuracy == found.accuracy
