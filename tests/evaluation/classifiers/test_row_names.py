"""Names of rows that miscount or contradict each other."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.classifiers.difficulty import cross_model_difficulty, locate
from evaluation.classifiers.matching import Rows
from evaluation.classifiers.prediction_files import PredictionFile, read_predictions
from evaluation.errors import EvaluationError

NAMES = ("entailment", "neutral", "contradiction")
IDS = tuple(f"ex{row}" for row in range(12))
PAIRS = tuple((f"A man {row % 11}.", "He sleeps.") for row in range(12))  # rows 0 and 11 have the same texts
ROWS = Rows(NAMES, np.arange(12) % 3, np.arange(12), pair_ids=IDS, pairs=PAIRS, source_rows=12)


def read(folder: Path, rows: list[dict[str, Any]], inputs: tuple[str, ...] = ()) -> PredictionFile:
    path = folder / "p.jsonl"
    path.write_text("\n".join(json.dumps({**row, "pred": 1}) for row in rows))
    return read_predictions(path, NAMES, inputs=inputs)


@pytest.mark.parametrize("last", [5, 11, 12])
def test_an_index_from_1_without_gaps_is_refused(last: int, tmp_path: Path) -> None:
    file = read(tmp_path, [{"idx": row} for row in range(1, last + 1)])
    with pytest.raises(EvaluationError, match=rf"idx goes from 1 to {last}, .*looks as if it counts from 1; take 1"):
        locate(file, ROWS)


@pytest.mark.parametrize("numbers", [range(2, 12), (1, 3, 4), range(5), (1,)])
def test_an_index_of_some_rows_is_taken(numbers: range | tuple[int, ...], tmp_path: Path) -> None:
    places, how = locate(read(tmp_path, [{"index": row} for row in numbers]), ROWS)
    assert (how, np.flatnonzero(places >= 0).tolist()) == ("index", list(numbers))


@pytest.mark.parametrize("other", ["source_index", "pairID", "text"])
def test_names_that_contradict_each_other_are_refused(other: str, tmp_path: Path) -> None:
    def named(row: int) -> dict[str, Any]:
        if other == "text":
            return dict(zip(("premise", "hypothesis"), PAIRS[row], strict=True))
        return {other: row if other == "source_index" else IDS[row]}

    agreed = read(tmp_path, [{"index": row, **named(row)} for row in reversed(range(12))])
    assert (locate(agreed, ROWS)[0] >= 0).all()
    moved = read(tmp_path, [{"index": row, **named((row + 1) % 12)} for row in range(12)])
    with pytest.raises(EvaluationError, match=rf"^p\.jsonl: {other} and index contradict each other: source row"):
        locate(moved, ROWS)


def test_errors_name_the_column_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"p\.jsonl: idx '?0'? is there twice"):
        locate(read(tmp_path, [{"idx": 0}, {"idx": 0}]), ROWS)
    with pytest.raises(EvaluationError, match="by idx 0 found"):
        locate(read(tmp_path, [{"idx": "-1"}]), ROWS)
    with pytest.raises(EvaluationError, match="by pairID 0 found"):
        locate(read(tmp_path, [{"pairID": "none"}]), ROWS)


STRANGE: dict[str, dict[str, Any]] = {
    "pairID": {"pairID": "4705.jpg#0"},
    "premise": {"premise": "Nobody.", "hypothesis": "Nothing."},
    "claim": {"claim": "Nobody.", "evidence": "Nothing."},
}


@pytest.mark.parametrize("named", STRANGE)
@pytest.mark.parametrize("number", ["index", "source_index"])
def test_names_that_match_nothing_are_not_passed_over_for_a_number(named: str, number: str, tmp_path: Path) -> None:
    rows = [{number: row, **{k: f"{v}{row}" for k, v in STRANGE[named].items()}} for row in range(12)]
    inputs = ("claim", "evidence") if named == "claim" else ()
    theirs, ours = ("4705.jpg#00", "ex0") if named == "pairID" else ("Nobody.0 | Nothing.0", "A man 0. | He sleeps.")
    column = "pairID" if named == "pairID" else "text"
    with pytest.raises(EvaluationError) as refused:
        locate(read(tmp_path, rows, inputs), ROWS)
    said = str(refused.value)
    assert said.startswith("p.jsonl is not of these 12 rows: by ")
    assert f"by {column} 0 found (the file has '{theirs}', the split '{ours}')" in said
    assert f"by {number} 12 found (the file has '0', the split '0')" in said
    assert "\n" not in said


@pytest.mark.parametrize("names", [{"pairID": "a"}, {"premise": "a", "hypothesis": "b"}, {"guid": "dev-a"}])
def test_names_that_the_set_cannot_compare_are_not_passed_over_either(names: dict[str, str], tmp_path: Path) -> None:
    bare = Rows(NAMES, ROWS.labels, ROWS.source_index, source_rows=12)
    rows = [
        {**({} if "guid" in names else {"index": row}), **{k: f"{v}{row}" for k, v in names.items()}}
        for row in ROWS.source_index.tolist()
    ]
    with pytest.raises(EvaluationError, match=r"no such ids or texts to compare: add source_index, or leave them out"):
        locate(read(tmp_path, rows), bare)
    ours = [{"source_index": place, **row} for place, row in enumerate(rows)]
    assert locate(read(tmp_path, ours), bare)[1] == "source_index"


def test_texts_make_up_for_ids_of_another_kind(tmp_path: Path) -> None:
    rows = [{"uid": f"u{row}", "premise": PAIRS[row][0], "hypothesis": PAIRS[row][1]} for row in range(12)]
    assert locate(read(tmp_path, rows), ROWS)[1] == "text"


def test_the_texts_of_a_set_with_one_column_name_rows(tmp_path: Path) -> None:
    one = Rows(NAMES, ROWS.labels, ROWS.source_index, pairs=tuple((f"He {row}",) for row in range(12)))
    for column in ("remark", "text", "sentence"):
        places, how = locate(read(tmp_path, [{column: f"He {row}"} for row in (3, 1)], ("remark",)), one)
        assert (how, places[[1, 3]].tolist()) == ("text", [1, 0])
    with pytest.raises(EvaluationError, match="by text 0 found"):
        locate(read(tmp_path, [{"remark": f"She {row}", "index": row} for row in range(12)], ("remark",)), one)


KEPT = np.arange(12) < 6
MASKS = {"kept": KEPT, "removed": ~KEPT, "random": np.arange(12) % 2 == 0}
GOLD = ("true", "gold", "label", "gold_label", "True Label", "target", "ground_truth", "y_true")


@pytest.mark.parametrize("column", GOLD)
def test_gold_labels_are_checked_whatever_they_are_called(column: str, tmp_path: Path) -> None:
    labels = [int(label) for label in ROWS.labels]
    for gold, said in (([(label + 1) % 3 for label in labels], "neutral"), (["sports"] * 12, "none of its classes")):
        file = read(tmp_path, [{"pairID": IDS[row], column: gold[row]} for row in range(12)])
        with pytest.raises(
            EvaluationError, match=rf"in 12 of 12 rows \(row 1 of the file says {said}, the dataset ent"
        ):
            cross_model_difficulty(file, ROWS, MASKS)
    unknown = ["-", None, "", -1, "-1", float("nan")]
    file = read(tmp_path, [{"pairID": IDS[row], column: [*labels[:6], *unknown][row]} for row in range(12)])
    assert cross_model_difficulty(file, ROWS, MASKS).gold_differs == 0
    file = read(tmp_path, [{"pairID": IDS[row], column: unknown[row % 6]} for row in range(12)])
    assert cross_model_difficulty(file, ROWS, MASKS).gold_differs is None


def test_the_random_subset_is_scored_beside_the_others(tmp_path: Path) -> None:
    file = read(tmp_path, [{"index": row} for row in range(12)])  # always says 1
    found = cross_model_difficulty(file, ROWS, MASKS)
    assert found.random is not None
    assert (found.random.value, found.random.n) == (2 / 6, 6)  # of rows 0, 2, 4, 6, 8, 10 the labels of 4 and 10 are 1
    few = {**MASKS, "random": np.arange(12) == 11}
    some = read(tmp_path, [{"index": row} for row in range(2, 9)])
    assert cross_model_difficulty(some, ROWS, few).random is None


def test_what_guessing_explains_and_what_numbers_leave_out_is_said(tmp_path: Path) -> None:
    labels = np.arange(300) % 3
    rows = Rows(NAMES, labels, np.arange(300), pair_ids=tuple(f"ex{row}" for row in range(300)), source_rows=300)
    kept = np.arange(300) % 2 == 0
    masks = {"kept": kept, "removed": ~kept}

    def notices(said: Any, where: range, *, by: str = "index") -> tuple[str, ...]:
        path = tmp_path / "p.jsonl"
        names = {"index": str, "pairID": "ex{}".format}
        path.write_text("\n".join(json.dumps({by: names[by](row), "pred": int(said[row])}) for row in where))
        return cross_model_difficulty(read_predictions(path, NAMES), rows, masks).notices

    right, guessed = labels, np.random.default_rng(1).integers(0, 3, 300)
    mostly = np.where(guessed == 0, guessed, labels)
    assert notices(right, range(300)) == notices(mostly, range(300)) == ()
    (chance,) = notices(guessed, range(300))
    assert "on all 300 rows is not above chance (0.33" in chance
    (always,) = notices(np.full(300, 1), range(300))
    assert "accuracy 0.333 on all 300 rows is not above chance (0.333)" in always
    (partial,) = notices(right, range(100))
    assert partial.startswith("index finds 100 of 300 rows, and numbers do not show whether these are the file's rows")
    assert notices(right, range(100), by="pairID") == ()
