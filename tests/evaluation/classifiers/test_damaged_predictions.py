"""Files of predictions that are damaged, or say one thing twice."""

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation.classifiers.prediction_files import read_predictions
from evaluation.errors import EvaluationError
from tests.evaluation.classifiers.test_difficulty import NAMES, Write, lines, texts


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.csv", "pairID,pred,pred\na,neutral,entailment\n", "more than one column 'pred'"),
        ("p.tsv", "pairID\tpair_id\tpred\na\tb\t1\n", "more than one column 'pairid'"),
        ("p.csv", "pairID,note,pred\na,neutral\n", "row 1 has fewer cells"),
        ("p.jsonl", '{"pairID": "a", "pred": 1, "pred": 2}', "has the key 'pred' twice"),
        ("p.json", '{"ex0": "neutral",\n "ex0": "entailment"}', "has the key 'ex0' twice"),
        ("p.jsonl", '{"pairID": "a", "pair_id": "b", "pred": 1}', "row 1 has two fields of one name"),
        ("p.jsonl", '{"index": 0, "pred": 1, "prediction": 2}', "row 1: prediction and pred mean the same but differ"),
        ("p.jsonl", '{"index": 0, "id": 1, "pred": 2}', "row 1: index and id mean the same but differ"),
        ("p.jsonl", '{"pred": 1, "gold_label": 0, "label": 2}', "row 1: goldlabel and label mean the same but differ"),
        ("p.jsonl", lines([{**texts(0), "sentence1": "x", "sentence2": "y", "pred": 1}]), "premise and sentence1 mean"),
        ("p.jsonl", '{"source_index": 1.5, "pred": 2}', "must be a whole number, not 1.5"),
        ("p.jsonl", '{"source_index": 1e999, "pred": 2}', "must be a whole number, not inf"),
        ("p.jsonl", '{"source_index": true, "pred": 2}', "must be a whole number, not True"),
        ("p.jsonl", "[" * 9000 + "]" * 9000, "line 1, is nested more than 32 deep"),
        ("p.json", "[" * 9000 + "]" * 9000, "is nested more than 32 deep"),
        ("p.json", "9" * 9000, "holds a whole number outside"),
        ("p.jsonl", '{"index": 0, "pred": ' + "9" * 4000 + "}", "line 1, holds a whole number outside"),
    ],
)
def test_what_is_said_twice_or_damaged_is_one_line(name: str, text: str, message: str, write: Write) -> None:
    with pytest.raises(EvaluationError, match=message) as raised:
        read_predictions(write(name, text), NAMES)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.xlsx", "", r"must end in one of \.jsonl"),
        ("p.jsonl", "", "it is empty"),
        ("p.csv", "pairID,label\n", "it is empty"),
        ("p.json", "3", "must hold an object or a list"),
        ("p.jsonl", '{"pairID": "a", "pred": 1}\n{"pairID": ', "line 2, is not valid JSON"),
        (
            "p.jsonl",
            lines([{"pairID": "a", "pred": 1}, {"pairID": "a"}]),
            "row 2 has no field 'pred'",
        ),
        ("p.csv", "pairID,label\na,neutral\nb,neutral,more\n", "row 2 has more cells than the header"),
        ("p.csv", "ex0,neutral\nex1,neutral\n", "no predictions: .*it has ex0, neutral"),
        ("p.jsonl", lines([{**texts(0), "label": 1}]), "no predictions: .*it has hypothesis, label, premise"),
        ("p.jsonl", lines([{"pairID": "a", "pred": "neutrl"}]), "row 1: 'neutrl' is none of the dataset's classes"),
        ("p.jsonl", lines([{"pairID": "a", "pred": 3}]), "row 1: 3 is none"),
        ("p.jsonl", lines([{"pairID": "a", "pred": 0.5}]), "row 1: 0.5 is none"),
        ("p.jsonl", lines([{"pairID": "a", "pred": None}]), "row 1: None is none"),
        ("p.jsonl", lines([{"pairID": "a", "pred": "non-entailment"}]), "'non-entailment' is none"),
        ("p.jsonl", lines([{"pairID": "a", "logits": [1, 2]}]), "scores of 2 classes, the dataset has 3"),
        ("p.jsonl", lines([{"logits": [1, 2, 3]}, {"logits": [1, 2]}]), "different lengths, 2, 3"),
        ("p.jsonl", lines([{"logits": [1, 2, "x"]}]), "scores that are not numbers"),
        ("p.jsonl", '{"logits": [1, 2, NaN]}', "not finite"),
        ("p.jsonl", lines([{"source_index": "x", "pred": 1}]), "source_index must be a whole number, not 'x'"),
        ("p.json", json.dumps([1, {"pred": 1}]), "mixes objects"),
    ],
)
def test_bad_files_are_one_line(name: str, text: str, message: str, write: Write) -> None:
    with pytest.raises(EvaluationError, match=message) as raised:
        read_predictions(write(name, text), NAMES)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3, 1)), r"shape \(rows, classes\), not float64 of shape \(2, 3, 1\)"),
        (np.zeros(3), "must hold whole numbers"),
        (np.zeros((2, 4)), "scores of 4 classes"),
        (np.zeros((0, 3)), "it is empty"),
        (np.array([0, 7]), "row 2: 7 is none"),
    ],
)
def test_bad_arrays_are_one_line(array: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", array)
    with pytest.raises(EvaluationError, match=message):
        read_predictions(tmp_path / "p.npy", NAMES)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_predictions(tmp_path / "nowhere.jsonl", NAMES)
    (tmp_path / "p.npy").write_bytes(b"not an array")
    with pytest.raises(EvaluationError, match="cannot be read as a NumPy array"):
        read_predictions(tmp_path / "p.npy", NAMES)
    np.savez(tmp_path / "p.npz", said=np.zeros(3, np.int64))
    (tmp_path / "p.npz").rename(tmp_path / "p.npy")
    with pytest.raises(EvaluationError, match="cannot be read as a NumPy array"):
        read_predictions(tmp_path / "p.npy", NAMES)
    (tmp_path / "p.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_predictions(tmp_path / "p.jsonl", NAMES)
