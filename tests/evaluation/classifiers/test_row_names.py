"""Names of rows that miscount or contradict each other."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.classifiers.difficulty import locate
from evaluation.classifiers.matching import Rows
from evaluation.classifiers.prediction_files import PredictionFile, read_predictions
from evaluation.errors import EvaluationError

NAMES = ("entailment", "neutral", "contradiction")
IDS = tuple(f"ex{row}" for row in range(12))
PAIRS = tuple((f"A man {row % 11}.", "He sleeps.") for row in range(12))  # rows 0 and 11 have the same texts
ROWS = Rows(NAMES, np.arange(12) % 3, np.arange(12), pair_ids=IDS, pairs=PAIRS, source_rows=12)


def read(folder: Path, rows: list[dict[str, Any]]) -> PredictionFile:
    path = folder / "p.jsonl"
    path.write_text("\n".join(json.dumps({**row, "pred": 1}) for row in rows))
    return read_predictions(path, NAMES)


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
    with pytest.raises(EvaluationError, match="sought by idx:"):
        locate(read(tmp_path, [{"idx": "-1"}]), ROWS)
    with pytest.raises(EvaluationError, match="sought by pairID:"):
        locate(read(tmp_path, [{"pairID": "none"}]), ROWS)
