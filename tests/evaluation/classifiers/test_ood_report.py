from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

from evaluation.classifiers.ood import load_ood_spec, read_ood, report
from evaluation.errors import EvaluationError
from tests.evaluation.classifiers.ood_files import (
    DIAGNOSTIC_COLUMNS,
    SHARED,
    write_anli,
    write_hans,
    write_jsonl,
    write_stress,
    write_tsv,
)

# As the authors of HANS have predictions, of models of three labels too: what is not entailment is non-entailment.
# Rows 4h to 4h + 3 are of heuristic h; in each the first two are entailed.
PREDICTIONS = """\
pairID,gold_label
ex0,entailment
ex1,neutral
ex2,entailment
ex3,entailment
ex4,entailment
ex5,entailment
ex6,contradiction
ex7,entailment
ex11,contradiction
ex10,non-entailment
ex9,non-entailment
ex8,non-entailment
"""


def test_hans_from_a_prediction_file_by_hand(tmp_path: Path) -> None:
    spec = load_ood_spec("hans")
    rows = read_ood(spec, write_hans(tmp_path)).rows
    guesses = dict(line.split(",") for line in PREDICTIONS.splitlines()[1:])
    found = report(spec, rows, np.array([int(guesses[name] != "entailment") for name in rows["id"]]))
    entailed = {name: scores["by_label"]["entailment"] for name, scores in found["groups"]["heuristic"].items()}
    others = {name: scores["by_label"]["non-entailment"] for name, scores in found["groups"]["heuristic"].items()}
    # Counted off the file: ex0 right and ex1 wrong; ex4 and ex5 right; ex8 and ex9 wrong.
    assert {name: (one["value"], one["n"]) for name, one in entailed.items()} == {
        "lexical_overlap": (1 / 2, 2),
        "subsequence": (1.0, 2),
        "constituent": (0.0, 2),
    }
    # ex2 and ex3 wrong; ex6 right and ex7 wrong; ex10 and ex11 right.
    assert {name: (one["value"], one["n"]) for name, one in others.items()} == {
        "lexical_overlap": (0.0, 2),
        "subsequence": (1 / 2, 2),
        "constituent": (1.0, 2),
    }
    assert list(entailed) == ["lexical_overlap", "subsequence", "constituent"]
    assert found["groups"]["heuristic"]["subsequence"]["accuracy"]["value"] == 3 / 4
    assert found["groups"]["subcase"]["constituent_entailment"]["accuracy"]["value"] == 0
    assert found["all"]["accuracy"]["value"] == 6 / 12
    assert found["all"]["by_label"]["non-entailment"]["value"] == 3 / 6
    assert found["references"][0]["accuracy"]["lexical_overlap"] == 0.946


def test_a_model_that_follows_the_heuristics_on_the_shared_hans() -> None:
    if not (SHARED / "hans").is_dir():
        pytest.skip("needs the shared copy of HANS")
    spec = load_ood_spec("hans")
    rows = read_ood(spec, SHARED / "hans").rows
    found = report(spec, rows, np.zeros(len(rows), dtype=np.int64))  # always entailment
    for scores in found["groups"]["heuristic"].values():
        assert {name: one["value"] for name, one in scores["by_label"].items()} == {
            "entailment": 1.0,
            "non-entailment": 0.0,
        }
    assert len(found["groups"]["subcase"]) == 30


def test_diagnostics_correlations_against_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    logic = rng.integers(0, 4, 60)  # bits: negation, conditionals
    spec = load_ood_spec("diagnostics")
    rows = [
        (
            "" if number % 3 else "Factivity",
            "" if number % 5 else "Restrictivity",
            ";".join(name for bit, name in ((1, "Negation"), (2, "Conditionals")) if logic[number] & bit),
            "" if number % 7 else "World knowledge",
            "News",
            "p",
            "h",
            spec.labels[label],
        )
        for number, label in enumerate(labels)
    ]
    read = read_ood(spec, write_tsv(tmp_path / "diagnostic-full.tsv", DIAGNOSTIC_COLUMNS, rows)).rows
    predicted = np.where(rng.random(60) < 0.6, labels, rng.integers(0, 3, 60))
    found = report(spec, read, predicted)
    chosen = {
        ("category", "lexical_semantics"): np.arange(60) % 3 == 0,
        ("category", "predicate_argument_structure"): np.arange(60) % 5 == 0,
        ("category", "logic"): logic > 0,
        ("category", "knowledge"): np.arange(60) % 7 == 0,
        ("logic", "Negation"): (logic & 1) > 0,
        ("logic", "Conditionals"): (logic & 2) > 0,
        ("domain", "News"): np.ones(60, dtype=bool),
    }
    for (column, value), mask in chosen.items():
        scores = found["groups"][column][value]
        assert scores["n"] == mask.sum()
        assert scores["matthews"] == pytest.approx(matthews_corrcoef(labels[mask], predicted[mask]))
        assert scores["accuracy"]["value"] == pytest.approx((labels == predicted)[mask].mean())
    assert found["metrics"] == ["matthews", "accuracy"]
    assert next(iter(found["groups"]["category"])) == "lexical_semantics"


def test_stress_kinds_are_over_rows_and_over_tests(tmp_path: Path) -> None:
    write_stress(tmp_path)
    rows = [{"sentence1": "a", "sentence2": "b", "gold_label": "contradiction"} for _ in range(6)]
    write_jsonl(tmp_path / "Antonym" / "multinli_0.9_antonym_matched.jsonl", rows)
    spec = load_ood_spec("stress")
    read = read_ood(spec, tmp_path).rows
    found = report(spec, read, np.full(len(read), spec.labels.index("neutral")))
    # Competence: 6 wrong and 1 right of antonymy, 1 right of numerical reasoning.
    competence = found["groups"]["kind"]["competence"]
    assert competence["accuracy"]["value"] == 2 / 8
    assert competence["mean_over_test"] == pytest.approx((1 / 7 + 1) / 2)
    assert found["groups"]["test"]["antonymy"]["accuracy"]["value"] == 1 / 7
    # Numerical reasoning has no halves: 16 rows, 1 of them neither matched nor mismatched.
    assert {name: scores["n"] for name, scores in found["groups"]["half"].items()} == {"matched": 10, "mismatched": 5}
    assert [scores["n"] for scores in found["groups"]["kind"].values()] == [8, 6, 2]


def test_some_of_the_rows_can_be_scored(tmp_path: Path) -> None:
    spec = load_ood_spec("anli")
    rows = read_ood(spec, write_anli(tmp_path)).rows
    found = report(spec, rows.select([2, 0]), np.array([2, 1]))
    assert {name: scores["accuracy"]["value"] for name, scores in found["groups"]["round"].items()} == {
        "R1": 0.0,
        "R3": 1.0,
    }


@pytest.mark.parametrize(
    ("predicted", "said"),
    [
        (np.array([0, 1]), r"must be one a row of anli \(3\), not of shape \(2,\)"),
        (np.array([0, 1, 3]), "prediction 3 is no label of Adversarial NLI: they are 0 to 2"),
        (np.array([0, 1, -1]), "prediction -1 is no label"),
        (np.array([0.0, 1.0, 2.0]), "must be whole numbers, indexes into the labels, not float64"),
    ],
)
def test_predictions_that_are_not_one_label_a_row(tmp_path: Path, predicted: np.ndarray, said: str) -> None:
    spec = load_ood_spec("anli")
    rows = read_ood(spec, write_anli(tmp_path)).rows
    with pytest.raises(EvaluationError, match=said):
        report(spec, rows, predicted)


def test_no_rows_are_no_score(tmp_path: Path) -> None:
    spec = load_ood_spec("anli")
    rows = read_ood(spec, write_anli(tmp_path)).rows.select([])
    with pytest.raises(EvaluationError, match="has no rows to score"):
        report(spec, rows, np.array([], dtype=np.int64))
