"""Classifiers on filtered sets: known accuracies to the row, labels in every order, runs that were stopped."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from builders.folder import Built
from builders.planted import LABELS
from builders.schema import own_sum
from evaluation import store
from evaluation.classifiers import run, scoring
from evaluation.classifiers.ood import load_ood_spec, report
from evaluation.classifiers.run import ClassifierOptions, evaluate_classifier, evaluate_ood
from evaluation.classifiers.summary import summarize
from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.run import Engine
from tests.evaluation.classifiers.exact_models import decide, hypothesis_reader
from tests.evaluation.classifiers.ood_files import HANS_COLUMNS, HEURISTICS, hans_row, write_anli, write_tsv
from tests.evaluation.classifiers.stopped import stopped_after

CPU = Engine(device="cpu")
PLAIN = ClassifierOptions()


@pytest.fixture(scope="module", autouse=True)
def _load_anew() -> Iterator[None]:
    yield
    scoring.loaded.cache_clear()


def rows_of(planted: Built, split: str) -> list[dict[str, Any]]:
    """Rows of the folder, straight from its Parquet."""
    found = []
    for config, splits in planted.manifest["configs"].items():
        for name in splits.get(split, {}).get("files", ()):
            found += [row | {"config": config} for row in pq.read_table(planted.folder / name).to_pylist()]
    return sorted(found, key=lambda row: row["source_index"])


SUBSETS = {
    "full": lambda row: True,
    "kept": lambda row: row["config"] == "filtered",
    "removed": lambda row: row["config"] == "removed",
    "random": lambda row: row["in_random_subset"],
}


def is_right(row: dict[str, Any]) -> bool:
    return decide(row["hypothesis"]) == LABELS[row["label"]]


def test_every_accuracy_is_the_one_that_the_rule_has(planted: Built, reader: Path, tmp_path: Path) -> None:
    done = evaluate_classifier(str(reader), str(planted.folder), PLAIN, engine=CPU, out=tmp_path)
    assert set(done.result["splits"]) == {"train", "validation"}
    for split, summary in done.result["splits"].items():
        for subset, belongs in SUBSETS.items():
            chosen = [row for row in rows_of(planted, split) if belongs(row)]
            found = summary["accuracy"][subset]
            right = sum(map(is_right, chosen))
            assert (found["value"], found["n"]) == (pytest.approx(right / len(chosen), abs=1e-12), len(chosen))
            assert found["low"] < found["value"] < found["high"]
            for name, share in summary["classes"][subset].items():
                of_class = [is_right(row) for row in chosen if LABELS[row["label"]] == name]
                assert share["value"] == pytest.approx(np.mean(of_class))
            for name, share in summary["groups"][subset]["artifact"].items():
                of_group = [is_right(row) for row in chosen if row["artifact"] == name]
                assert (share["value"], share["n"]) == (pytest.approx(np.mean(of_group)), len(of_group))
        accuracy = summary["accuracy"]
        assert summary["drop"]["value"] == pytest.approx(accuracy["full"]["value"] - accuracy["kept"]["value"])
        assert summary["label_order"] is None


def test_the_planted_rate_is_met_and_filtering_takes_it(planted: Built, reader: Path, tmp_path: Path) -> None:
    """With a cue the hypothesis tells the label; of the other rows, a third of each artifact is neutral."""
    done = evaluate_classifier(str(reader), str(planted.folder), PLAIN, engine=CPU, out=tmp_path, splits=["train"])
    summary = done.result["splits"]["train"]
    groups = summary["groups"]["full"]["artifact"]
    assert groups["cue"]["value"] == 1.0
    neutral = [
        row for row in rows_of(planted, "train") if row["artifact"] != "cue" and LABELS[row["label"]] == "neutral"
    ]
    expected = (groups["cue"]["n"] + len(neutral)) / summary["accuracy"]["full"]["n"]
    assert summary["accuracy"]["full"]["value"] == pytest.approx(expected, abs=1e-12)
    assert summary["accuracy"]["kept"]["value"] < 0.45 < 0.85 < summary["accuracy"]["removed"]["value"]


def test_the_model_reads_the_hypothesis_alone(reader: Path) -> None:
    from evaluation.classifiers.predict import TextClassifier
    from evaluation.classifiers.sets import LabelledRows

    pairs = [("Nobody is asleep.", "Someone rests."), ("Someone rests.", "Nobody is asleep."), ("Nobody.", "It is.")]
    data = Dataset.from_dict({"premise": [one for one, _ in pairs], "hypothesis": [two for _, two in pairs]})
    model = TextClassifier(resolve_model(str(reader)), dtype="float32", device="cpu", batch_size=2)
    rows: Any = LabelledRows("few", "test", LABELS, ("premise", "hypothesis"), data, None)
    (given,) = model.outputs(rows)
    assert [LABELS[place] for place in given.logits.argmax(axis=1)] == ["entailment", "contradiction", "neutral"]


@pytest.mark.parametrize("order", list(itertools.permutations(LABELS)))
def test_the_order_of_the_models_labels_does_not_show(
    planted: Built, reader: Path, tmp_path: Path, order: tuple[str, ...]
) -> None:
    one = evaluate_classifier(str(reader), str(planted.folder), PLAIN, engine=CPU, out=tmp_path, splits=["validation"])
    shuffled = hypothesis_reader(tmp_path / "shuffled", order)
    other = evaluate_classifier(
        str(shuffled), str(planted.folder), PLAIN, engine=CPU, out=tmp_path, splits=["validation"]
    )
    assert other.result["labels"]["classes"] == list(order)
    assert pq.read_table(other.path.with_suffix(".parquet")).equals(pq.read_table(one.path.with_suffix(".parquet")))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_model_without_names_needs_a_map_and_a_wrong_one_is_pointed_out(
    planted: Built, tmp_path: Path, order: tuple[int, int, int]
) -> None:
    nameless = hypothesis_reader(tmp_path / "model", [LABELS[place] for place in order])
    config = json.loads((nameless / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": {str(i): f"LABEL_{i}" for i in range(3)}, "label2id": {f"LABEL_{i}": i for i in range(3)}}
    (nameless / "config.json").write_text(json.dumps(config), encoding="utf-8")
    how: Any = {"engine": CPU, "out": tmp_path, "splits": ["train"]}
    with pytest.raises(EvaluationError, match=r"no names \(LABEL_0, LABEL_1, LABEL_2\): say which is which with"):
        evaluate_classifier(str(nameless), str(planted.folder), PLAIN, **how)
    assert not list(tmp_path.rglob("*.exact.json"))
    right = ",".join(f"{index}={LABELS[place]}" for index, place in enumerate(order))
    found = evaluate_classifier(str(nameless), str(planted.folder), replace(PLAIN, label_map=right), **how)
    expected = np.mean([is_right(row) for row in rows_of(planted, "train")])
    summary = found.result["splits"]["train"]
    assert summary["accuracy"]["full"]["value"] == pytest.approx(expected)
    assert summary["label_order"] is None
    turned = ",".join(f"{index}={LABELS[(place + 1) % 3]}" for index, place in enumerate(order))
    wrong = evaluate_classifier(
        str(nameless), str(planted.folder), replace(PLAIN, label_map=turned), overwrite=True, **how
    )
    notice = wrong.result["splits"]["train"]["label_order"]
    assert f"would be {expected:.3f} if the model said" in notice
    assert "neutral for entailment" in notice


@pytest.mark.parametrize(("dtype", "batch_size"), [("bfloat16", None), ("float16", 7), ("float32", 1), ("float32", 13)])
def test_precision_and_batches_change_no_decision(
    planted: Built, reader: Path, tmp_path: Path, dtype: str, batch_size: int | None
) -> None:
    how: Any = {"splits": ["validation"]}
    one = evaluate_classifier(str(reader), str(planted.folder), PLAIN, engine=CPU, out=tmp_path / "a", **how)
    engine = replace(CPU, batch_size=batch_size)
    options = replace(PLAIN, dtype=dtype)
    other = evaluate_classifier(str(reader), str(planted.folder), options, engine=engine, out=tmp_path / "b", **how)
    tables = [pq.read_table(done.path.with_suffix(".parquet")) for done in (one, other)]
    assert tables[0]["predicted"].equals(tables[1]["predicted"])
    assert other.result["settings"]["dtype"] == dtype


def test_a_result_holds_what_it_says_and_lies_where_it_should(planted: Built, reader: Path, tmp_path: Path) -> None:
    done = evaluate_classifier(str(reader), str(planted.folder), PLAIN, engine=CPU, out=tmp_path, splits=["validation"])
    sha = resolve_model(str(reader)).sha
    assert done.path == tmp_path / "reader" / sha / "snli-aflite@1.0.0" / "validation.exact.json"
    assert json.loads(done.path.read_text(encoding="utf-8")) == json.loads(json.dumps(done.result))
    assert sorted(path.name for path in done.path.parent.iterdir()) == [
        "validation.exact.json",
        "validation.exact.parquet",
    ]
    assert done.result["model"] == {"name": str(reader), "sha": sha, "kind": "text-classifier"}
    assert (done.result["rows"], done.result["dataset"]["rows"]) == (135, 135)
    assert done.result["dataset"]["revision"] == planted.manifest["sha256"]
    assert done.result["inputs"] == {"max_length": 128}
    stored = pq.read_table(done.path.with_suffix(".parquet"))
    assert stored["source_index"].to_pylist() == [row["source_index"] for row in rows_of(planted, "validation")]
    said = [decide(row["hypothesis"]) for row in rows_of(planted, "validation")]
    assert [LABELS[place] for place in stored["predicted"].to_pylist()] == said
    assert {str(stored.schema.field(name).type) for name in ("confidence", "label_probability")} == {"float"}
    certain = [p for p, row in zip(stored["confidence"].to_pylist(), said, strict=True) if row != "neutral"]
    assert min(certain) > 0.9


def test_every_number_comes_back_from_the_stored_predictions_alone(
    planted: Built, reader: Path, tmp_path: Path
) -> None:
    done = evaluate_classifier(str(reader), str(planted.folder), PLAIN, engine=CPU, out=tmp_path, splits=["train"])
    stored = json.loads(done.path.read_text(encoding="utf-8"))
    again = summarize(pq.read_table(done.path.with_suffix(".parquet")), LABELS, stored["groups"])
    assert json.loads(json.dumps(again)) == stored["splits"]["train"]


def test_only_what_is_missing_is_computed(
    planted: Built, reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: Any = {"engine": CPU, "out": tmp_path}
    first = evaluate_classifier(str(reader), str(planted.folder), PLAIN, splits=["train"], **how)
    read: list[str] = []
    monkeypatch.setattr(
        run, "read_split", lambda built, split, f=run.read_split: (read.append(split), f(built, split))[1]
    )
    both = evaluate_classifier(str(reader), str(planted.folder), PLAIN, **how)
    assert (first.fresh, both.fresh, read) == (True, True, ["validation"])
    assert both.path == first.path.parent
    assert both.result["splits"]["train"] == json.loads(json.dumps(first.result["splits"]["train"]))
    assert both.result["rows"] == 324 + 135
    monkeypatch.setattr(run, "loaded", lambda *_: pytest.fail("the model was loaded"))
    again = evaluate_classifier(str(reader), str(planted.folder), PLAIN, **how)
    assert (again.fresh, again.result["splits"]) == (False, json.loads(json.dumps(both.result["splits"])))
    with pytest.raises(EvaluationError, match=r"was made with limit None, not 90: use the same, another --out, or"):
        evaluate_classifier(str(reader), str(planted.folder), replace(PLAIN, limit=90), **how)


def test_a_run_that_was_stopped_loses_one_shard_and_ends_as_if_it_had_not(
    planted: Built, reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 50)
    how: Any = {"engine": CPU, "splits": ["train"]}
    whole = evaluate_classifier(str(reader), str(planted.folder), PLAIN, out=tmp_path / "whole", **how)
    with stopped_after(3):
        evaluate_classifier(str(reader), str(planted.folder), PLAIN, out=tmp_path / "cut", **how)
    assert not list((tmp_path / "cut").rglob("train.exact.*"))
    with pytest.raises(EvaluationError, match=r"was made with limit None, not 200"):
        evaluate_classifier(str(reader), str(planted.folder), replace(PLAIN, limit=200), out=tmp_path / "cut", **how)
    asked: list[int] = []
    take = scoring._Stream.take
    monkeypatch.setattr(scoring._Stream, "take", lambda self, rows: (asked.append(rows), take(self, rows))[1])
    cut = evaluate_classifier(str(reader), str(planted.folder), PLAIN, out=tmp_path / "cut", **how)
    assert asked == [50, 50, 50, 24]  # of seven shards three were there
    assert pq.read_table(cut.path.with_suffix(".parquet")).equals(pq.read_table(whole.path.with_suffix(".parquet")))
    assert cut.result["splits"] == whole.result["splits"]


def test_a_limit_draws_rows(planted: Built, reader: Path, tmp_path: Path) -> None:
    options = replace(PLAIN, limit=60, seed=5)
    done = evaluate_classifier(str(reader), str(planted.folder), options, engine=CPU, out=tmp_path)
    assert [summary["rows"] for summary in done.result["splits"].values()] == [60, 60]
    stored = pq.read_table(done.path / "train.exact.parquet")
    by_index = {row["source_index"]: row for row in rows_of(planted, "train")}
    right = [is_right(by_index[index]) for index in stored["source_index"].to_pylist()]
    assert done.result["splits"]["train"]["accuracy"]["full"]["value"] == pytest.approx(np.mean(right))


def test_a_seed_that_draws_nothing_is_no_other_setting(planted: Built, reader: Path, tmp_path: Path) -> None:
    how: Any = {"engine": CPU, "out": tmp_path, "splits": ["validation"]}
    evaluate_classifier(str(reader), str(planted.folder), PLAIN, **how)
    assert not evaluate_classifier(str(reader), str(planted.folder), replace(PLAIN, seed=5), **how).fresh


def test_a_result_belongs_to_the_rows_and_not_to_the_words_beside_them(
    planted: Built, reader: Path, tmp_path: Path
) -> None:
    how: Any = {"engine": CPU, "out": tmp_path / "out", "splits": ["validation"]}
    evaluate_classifier(str(reader), str(planted.folder), PLAIN, **how)
    folder = shutil.copytree(planted.folder, tmp_path / "copy")

    def again(**changes: Any) -> bool:
        manifest = planted.manifest | changes
        (folder / "manifest.json").write_text(json.dumps(manifest | {"sha256": own_sum(manifest)}), encoding="utf-8")
        return evaluate_classifier(str(reader), str(folder), PLAIN, **how).fresh

    assert not again(title="Another title", description="Other words", license="other")
    for change in ({"columns": planted.manifest["columns"][::-1]}, {"breakdown": "label"}):
        with pytest.raises(EvaluationError, match=r"validation.exact.json was made on .* whose rows are others"):
            again(**change)


def test_classes_must_be_numbered_from_0(planted: Built, reader: Path, tmp_path: Path) -> None:
    odd = shutil.copytree(reader, tmp_path / "odd")
    config = json.loads((odd / "config.json").read_text(encoding="utf-8"))
    config["id2label"] = {"5" if key == "2" else key: name for key, name in config["id2label"].items()}
    del config["label2id"]
    (odd / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(EvaluationError, match="id2label of the model must number its 3 classes from 0"):
        evaluate_classifier(str(odd), str(planted.folder), PLAIN, engine=CPU, out=tmp_path)


def test_a_split_that_was_not_filtered_has_no_removed_rows(reader: Path, tmp_path: Path) -> None:
    from builders.aflite import build_aflite
    from builders.specs import load_spec
    from tests.evaluation.classifiers.exact_models import write_planted

    rows = [row for row in write_planted(tmp_path / "source") if row["split"] == "train"]
    np.save(tmp_path / "features.npy", np.random.default_rng(0).normal(size=(len(rows), 4)).astype(np.float32))
    settings = [
        "filter.n=250",
        "filter.m=4",
        "filter.t=80",
        "filter.k=30",
        "filter.tau=0.4",
        'source.filtered=["train"]',
    ]
    spec = load_spec("snli", [*settings, 'source.unlabelled=["test"]'])
    built = build_aflite(spec, tmp_path / "out", source=tmp_path / "source", features=tmp_path / "features.npy")
    done = evaluate_classifier(
        str(reader), str(built.folder), PLAIN, engine=CPU, out=tmp_path / "results", splits=["validation"]
    )
    accuracy = done.result["splits"]["validation"]["accuracy"]
    assert accuracy["removed"] is None
    assert accuracy["kept"] == accuracy["full"] == accuracy["random"]
    assert done.result["splits"]["validation"]["drop"]["value"] == 0


def hans(folder: Path) -> Path:
    """Three entailed and three other rows of each heuristic; one of each says someone, nobody, or neither."""
    rows = []
    for heuristic, label in itertools.product(HEURISTICS, ("entailment", "non-entailment")):
        for hypothesis in ("Someone ran .", "Nobody ran .", "A dog ran ."):
            row = hans_row(len(rows), label, heuristic)
            row[HANS_COLUMNS.index("sentence2")] = hypothesis
            rows.append(row)
    return write_tsv(folder / "heuristics_evaluation_set.txt", HANS_COLUMNS, rows).parent


def test_three_ways_meet_two_on_hans_by_the_stated_rule(reader: Path, tmp_path: Path) -> None:
    """Someone is entailment, nobody and no cue are not: right are a third of the entailed, two thirds of the others."""
    spec = load_ood_spec("hans")
    (done,) = evaluate_ood(
        resolve_model(str(reader)), [spec], PLAIN, engine=CPU, out=tmp_path / "r", data=hans(tmp_path / "hans")
    )
    found = done.result["splits"]["test"]["report"]["groups"]["heuristic"]
    for heuristic in HEURISTICS:
        by_label = {name: share["value"] for name, share in found[heuristic]["by_label"].items()}
        assert by_label == {"entailment": pytest.approx(1 / 3), "non-entailment": pytest.approx(2 / 3)}
    assert done.result["labels"]["classes"] == ["entailment", "non-entailment", "non-entailment"]
    assert done.path.parent.name == f"hans@{done.result['dataset']['revision'].removeprefix('sha256:')[:12]}"
    stored = pq.read_table(done.path.with_suffix(".parquet"))
    assert stored["id"].to_pylist() == [f"ex{place}" for place in range(18)]
    again = report(spec, Dataset(stored), stored["predicted"].to_numpy())
    assert again == done.result["splits"]["test"]["report"]


def test_all_sets_out_of_distribution_are_read_before_the_first_is_scored(reader: Path, tmp_path: Path) -> None:
    hans(tmp_path / "hans")
    specs = [load_ood_spec("hans"), load_ood_spec("anli")]
    how: Any = {"engine": CPU, "out": tmp_path / "r", "data": tmp_path}
    with pytest.raises(EvaluationError, match="is not laid out as Adversarial NLI"):
        evaluate_ood(resolve_model(str(reader)), specs, PLAIN, **how)
    write_anli(tmp_path / "anli")
    done = list(evaluate_ood(resolve_model(str(reader)), specs, PLAIN, **how))
    assert [one.path.stem for one in done] == ["test.exact", "dev.exact"]


def test_two_ways_cannot_tell_three_apart(planted: Built, tmp_path: Path) -> None:
    two = hypothesis_reader(tmp_path / "two", ("entailment", "not_entailment"))
    with pytest.raises(EvaluationError, match=r"a two-way model .* cannot be scored on a set with entailment, neutral"):
        evaluate_classifier(str(two), str(planted.folder), PLAIN, engine=CPU, out=tmp_path)


@pytest.mark.parametrize(
    ("options", "engine", "message"),
    [
        ({"limit": 0}, {}, "--limit must be at least 1, not 0"),
        ({"seed": -1}, {}, "--seed must be at least 0, not -1"),
        ({"broken_share": 1.5}, {}, "--broken-share must be from 0 to 1, not 1.5"),
        ({"dtype": "float61"}, {}, "there is no dtype 'float61' .* did you mean 'float16'"),
        ({"label_map": "0=entailment"}, {}, "--label-map must give every class of the model"),
        ({}, {"batch_size": 0}, "--batch-size must be at least 1, not 0"),
        ({}, {"workers": -1}, "--workers must be at least 1, not -1"),
        ({}, {"device": "nowhere"}, "device 'nowhere' cannot be used"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(
    planted: Built, reader: Path, tmp_path: Path, options: Any, engine: Any, message: str
) -> None:
    with pytest.raises(EvaluationError, match=message) as caught:
        evaluate_classifier(
            str(reader), str(planted.folder), replace(PLAIN, **options), engine=replace(CPU, **engine), out=tmp_path
        )
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*"))
