"""Tables from training to Markdown, with a BERT of two layers on a set of 360 rows."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from builders.aflite import Machine
from builders.tables import from_table
from evaluation.built_sets import find_built
from evaluation.classifiers import bench
from evaluation.classifiers.bench import Bench, Source
from evaluation.classifiers.plans import Plan
from evaluation.classifiers.plans.spec import ModelPlan
from evaluation.classifiers.predict import load_classifier
from evaluation.classifiers.reproduce import reproduce
from evaluation.classifiers.seeds import score_seeds
from evaluation.classifiers.sets import read_split
from evaluation.classifiers.subsets import single_model_masks
from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from tests.evaluation.classifiers.ood_files import write_hans
from tests.evaluation.classifiers.test_subsets import anli_files
from tests.evaluation.classifiers.training_sets import TINY, build

CPU = Machine(device="cpu", workers=0)
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    root = tmp_path_factory.mktemp("set")
    built = build(root)
    table = {
        "title": "Hand",
        "note": "Small models.",
        "seeds": list(SEEDS),
        "sets": {"one": {"head": "Φ", "folder": str(built.folder), "features": str(root / "features.npy")}},
        "models": {
            "bert": {"head": "BERT", "blank": True, "settings": TINY},
            "hypothesis": {"head": "hypothesis only", "like": "bert", "inputs": ["hypothesis"]},
            "premise": {"head": "premise only", "like": "bert", "inputs": ["premise"]},
            "pmi": {"head": "PMI", "words": "hypothesis"},
        },
        "tables": [
            {
                "number": "1",
                "title": "Elsewhere",
                "kind": "out-of-distribution",
                "sets": ["one"],
                "models": ["bert"],
                "columns": [
                    {"head": "HANS", "on": "hans", "path": ["groups", "heuristic", "subsequence", "accuracy"]},
                    {"head": "R1", "on": "anli", "path": ["groups", "round", "R1", "accuracy"], "split": "test"},
                    {"head": "cue", "on": "one", "path": ["validation", "groups", "full", "kind", "cue"]},
                ],
                "tunings": [{"head": "+ R2", "on": "anli", "where": {"round": "R2"}}],
            },
            {
                "number": "3",
                "title": "Here",
                "kind": "in-distribution",
                "sets": ["one"],
                "models": ["pmi", "premise", "hypothesis"],
                "single_model": True,
                "note": "A note.",
            },
        ],
    }
    return from_table(Plan, table, "hand.toml")


@pytest.fixture(scope="module")
def out(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tables")
    reproduce(plan, out, tables=["3"], machine=CPU)
    return out


def stored(out: Path, number: int = 0) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((out / "tables.json").read_text())["tables"][number]
    return table


def test_cells_are_those_of_the_stored_results(out: Path) -> None:
    table = stored(out)
    assert table["title"] == "Table 3. Here"
    assert table["heads"] == ["all rows", "random rows", "one model, once", "Φ", "drop, Φ"]
    rows = dict(table["rows"])
    for place, (subset, of_result) in enumerate((("full", "full"), ("random", "random"), ("filtered", "kept"))):
        for seed in SEEDS:
            name = f"snli-aflite_{subset}_hypothesis_seed{seed}"
            (result,) = (out / "results" / name).rglob("validation.exact.json")
            accuracy = json.loads(result.read_text())["splits"]["validation"]["accuracy"][of_result]["value"]
            assert rows["hypothesis only"][3 if subset == "filtered" else place][seed] == pytest.approx(accuracy)
    whole, kept, drop = (rows["hypothesis only"][place] for place in (0, 3, 4))
    assert drop == pytest.approx([a - b for a, b in zip(whole, kept, strict=True)])
    shown = f"{100 * statistics.mean(whole):.1f} ± {100 * statistics.stdev(whole):.1f}"
    line = next(line for line in (out / "tables.md").read_text().splitlines() if line.startswith("| hypothesis only"))
    assert line.split(" | ")[1] == shown


def test_the_single_models_column_is_scored_on_the_rows_that_it_keeps(plan: Plan, out: Path) -> None:
    """Trained and scored by hand from the file of features and the stored predictions."""
    one = plan.sets["one"]
    for seed, value in zip(SEEDS, dict(stored(out)["rows"])["hypothesis only"][2], strict=True):
        mask = single_model_masks(find_built(str(one.folder)), Path(str(one.features)), seed=seed)["validation"]
        (file,) = (out / "results" / f"snli-aflite_single-model_hypothesis_seed{seed}").rglob("*.parquet")
        predictions = pq.read_table(file).to_pylist()
        hits = [row["label"] == row["predicted"] for row in predictions if mask[row["source_index"]]]
        assert len(hits) == mask.sum() > 0
        assert value == pytest.approx(sum(hits) / len(hits))


def test_models_that_see_no_cue_know_nothing(plan: Plan, out: Path) -> None:
    """Two thirds of the 120 validation rows have a cue in the hypothesis, and the labels are even: chance is a third.

    Whoever learned the cues has those right, and a third of the others by chance: 2/3 + 1/9 = 0.78.
    """
    rows = dict(stored(out)["rows"])
    assert len(rows["PMI"][0]) == 1
    assert rows["PMI"][0][0] > 2 / 3
    assert min(rows["hypothesis only"][0]) > 2 / 3
    assert max(rows["premise only"][0]) < 0.5
    assert rows["PMI"][4][0] > 0.15
    # What the filter keeps has fewer cues; the sizes are those of the folder.
    assert rows["rows to train on"][0] == 240
    assert rows["rows to train on"][1] == rows["rows to train on"][3] < 240


def test_a_partial_input_model_is_scored_on_its_column_alone(plan: Plan, out: Path) -> None:
    ref = resolve_model(str(out / "models" / "snli-aflite_full_hypothesis_seed0"))
    model = load_classifier(ref, dtype="float32", device="cpu", batch_size=None, workers=0)
    rows = read_split(find_built(str(plan.sets["one"].folder)), "validation")
    other = rows.data.map(lambda row: {"premise": "nobody because outdoors", "hypothesis": row["hypothesis"]})
    one, same = (
        np.concatenate([part.logits for part in model.outputs(replace(rows, data=d))]) for d in (rows.data, other)
    )
    np.testing.assert_array_equal(one, same)
    with pytest.raises(
        EvaluationError, match=r"reads the column hypothesis, which snli-aflite lacks \(it has question,"
    ):
        next(iter(model.outputs(replace(rows, inputs=("question", "sentence")))))


def test_what_is_there_is_not_made_again(plan: Plan, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (out / "tables.json").read_text()

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("builders.features.transformer.finetune", never)
    monkeypatch.setattr("evaluation.classifiers.scoring.load_classifier", never)
    text = reproduce(plan, out, tables=["3"], machine=CPU).text
    assert (out / "tables.json").read_text() == before
    assert text == (out / "tables.md").read_text()
    for part in ("Small models.", "mean ± standard deviation over 2 seeds", "A note.", "| PMI | "):
        assert part in text
    with pytest.raises(EvaluationError, match="no table '5'"):
        reproduce(plan, out, tables=["5"], machine=CPU)


def test_out_of_distribution_with_and_without_tuning(plan: Plan, tmp_path: Path) -> None:
    files = anli_files(tmp_path / "files")
    write_hans(files)
    one = replace(plan, seeds=(0,))
    text = reproduce(one, tmp_path, tables=["1"], machine=CPU, data=files, limit=60).text
    table = stored(tmp_path)
    assert [name for name, _ in table["rows"]] == [
        f"{source}{tuning}" for source in ("all rows", "random rows", "Φ") for tuning in ("", " + R2")
    ]
    assert table["heads"] == ["HANS", "R1", "cue"]
    for _, cells in table["rows"]:
        assert [len(cell) for cell in cells] == [1, 1, 1]
        # Four rows of HANS by heuristic, three of a round: shares of them.
        assert (4 * cells[0][0]) % 1 == 0
        assert (3 * cells[1][0]) % 1 == pytest.approx(0, abs=1e-9)
    name = "snli-aflite_full_60_bert_seed0"
    record = json.loads((tmp_path / "models" / f"{name}-anli-R2" / "training.json").read_text())
    assert (record["data"]["subset"], record["rows"]) == ("round=R2", 6)
    assert "At most 60 rows were used" in text
    assert "first looks" in text


def test_a_table_that_cannot_be_made_says_why_and_stops_no_other(plan: Plan, out: Path, tmp_path: Path) -> None:
    made = reproduce(plan, out, machine=CPU, data=tmp_path / "nowhere")
    assert made.missing == ("Table 1. Elsewhere",)
    assert "### Table 1. Elsewhere\n\nNot made: there is no " in made.text
    assert "### Table 3. Here\n\n|  | all rows" in made.text


def test_a_column_that_no_result_has(plan: Plan, out: Path) -> None:
    made = Bench(plan, out, machine=CPU)
    checkpoint = made.checkpoint(Source("all", "one", "full"), "hypothesis", 0)
    column = replace(plan.tables[0].columns[2], path=("validation", "groups", "full", "genre"))
    with pytest.raises(EvaluationError, match=r"the result on one has no 'genre' \(kind\)"):
        made.measure(checkpoint, column)
    with pytest.raises(EvaluationError, match="validation / groups of the result is no number"):
        made.measure(checkpoint, replace(column, path=("validation", "groups")))


def test_features_that_the_plan_does_not_name(plan: Plan, tmp_path: Path) -> None:
    nameless = replace(plan, sets={"one": replace(plan.sets["one"], features=None)})
    with pytest.raises(EvaluationError, match="set one has 0 files of features"):
        Bench(nameless, tmp_path, machine=CPU).features("one")


def test_a_set_is_built_from_its_spec(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def build_aflite(spec: Any, folder: Path, **_: Any) -> Any:
        asked.append((spec.folder_name, spec.filter.n, folder))
        return type("Built", (), {"folder": plan.sets["one"].folder})

    monkeypatch.setattr(bench, "build_aflite", build_aflite)
    entry = replace(plan.sets["one"], folder=None, build="planted-nli", values=("filter.n=4000",))
    made = Bench(replace(plan, sets={"mine": entry}, tables=()), tmp_path, machine=CPU)
    assert made.built("mine") is made.built("mine")
    assert asked == [("mine-aflite", 4000, tmp_path / "sets")]


def test_seeds_are_scored_together(plan: Plan, out: Path) -> None:
    folders = [out / "models" / f"snli-aflite_full_hypothesis_seed{seed}" for seed in SEEDS]
    table = score_seeds(folders, str(plan.sets["one"].folder), splits=["validation"], machine=CPU, out=out / "results")
    assert table.heads == ("full", "kept", "removed", "random")
    ((name, cells),) = table.rows
    assert (name, [len(cell) for cell in cells if isinstance(cell, tuple)]) == ("validation", [2, 2, 2, 2])
    assert list(cells[0]) == pytest.approx(dict(stored(out)["rows"])["hypothesis only"][0])  # type: ignore[arg-type]


def test_people_are_a_row_of_their_own(plan: Plan, tmp_path: Path) -> None:
    """All five annotators of a row with a cue agree with its label, and three of those of another."""
    built = Path(str(plan.sets["one"].folder))
    lines = []
    for line in (built.parent / "source" / "validation.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        names = ["entailment", "neutral", "contradiction"]
        gold, other = names[row["label"]], names[row["label"] - 1]
        labels = [gold] * 5 if row["kind"] == "cue" else [gold] * 3 + [other] * 2
        texts = {"sentence1": row["premise"], "sentence2": row["hypothesis"]}
        lines.append(json.dumps({"gold_label": gold, "annotator_labels": labels, **texts}) + "\n")
    (tmp_path / "dev.jsonl").write_text("".join(lines), encoding="utf-8")
    people = from_table(ModelPlan, {"head": "people", "annotators": "dev.jsonl"}, "hand.toml")
    table = replace(plan.tables[1], models=("people",))
    alone = replace(plan, models={"people": people}, tables=(table,))

    made = reproduce(alone, tmp_path / "there", machine=CPU, data=tmp_path)
    assert not made.missing
    row = dict(stored(tmp_path / "there")["rows"])["people"]
    kinds = load_dataset(str(built), "filtered", split="validation")["kind"]
    kept = statistics.mean(1.0 if kind == "cue" else 0.6 for kind in kinds)
    assert row[0] == pytest.approx([(81 + 39 * 0.6) / 120])
    assert row[3] == pytest.approx([kept])
    assert row[4] == pytest.approx([(81 + 39 * 0.6) / 120 - kept])
    assert len(row[2]) == len(SEEDS)
    assert "one annotator at a time against the gold label, of dev.jsonl." in made.text

    without = reproduce(alone, tmp_path / "without", machine=CPU, data=tmp_path / "empty")
    assert not without.missing
    assert dict(stored(tmp_path / "without")["rows"])["people"] == [[], [], [], [], []]
    assert "dev.jsonl is not there: pass the folder that has it as --data" in without.text
