"""Numbers and words of the views, against results whose stereotypes were planted."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.errors import EvaluationError
from evaluation.report import WARNING, models, overview, ranks, report_text, write_report
from evaluation.report.inputs import Inputs, Model, read_inputs
from evaluation.report.page import Figure, Table, Text
from evaluation.report.tuning import families, stem, tuning
from tests.evaluation.report.stored import store_result, write_sealed


@pytest.fixture(scope="module")
def inputs(few_results: Path, few_folder: Path) -> Inputs:
    return read_inputs([few_results, few_folder])


def column(table: Table, name: str) -> list[Any]:
    return list(next(one for one in table.columns if one.name == name).values)


def test_what_a_model_was_tuned_for_is_read_off_kind_prefix_and_name() -> None:
    def of(name: str, kind: str, settings: str = "{}") -> str:
        return tuning(Model(name, "", kind, settings))

    assert of("org/squad-lm", "mlm") == "masked LM"
    assert of("org/bert_squad2", "qa") == "SQuAD"
    assert of("org/bert", "qa", '{"context_prefix": "newsqa"}') == "NewsQA"
    assert of("org/bert", "qa") == "question answering"
    assert stem(Model("a/BERT-large-uncased-whole-word-masking-finetuned-squad", "", "qa", "{}")) == (
        "bert-large-uncased-whole-word-masking"
    )
    assert stem(Model("org/qa", "", "qa", "{}")) == "qa"
    assert stem(Model("org/tiny-qa-plain", "", "qa", "{}")) != stem(Model("org/tiny-mlm-plain", "", "mlm", "{}"))


def test_models_stand_beside_their_base(few_results: Path) -> None:
    found = [
        (family.base.short if family.base else None, [model.short for model in family.models])
        for family in families(read_inputs([few_results]))
    ]
    assert found == [("small-lm", ["small-lm", "small-squad", "small-newsqa"]), (None, ["other-squad"])]
    told = families(read_inputs([few_results], bases=["other-squad=org/small-lm"]))
    assert [[model.short for model in family.models] for family in told] == [
        ["small-lm", "other-squad", "small-squad", "small-newsqa"]
    ]
    alone = read_inputs([few_results], bases=["small-squad=", "small-newsqa="])
    assert [family.base for family in families(alone)] == [None, None]
    assert not models.shift(alone)


def test_bars_show_what_is_stored(inputs: Inputs) -> None:
    section = models.section(inputs)
    assert section is not None
    figures = [block for block in section.blocks if isinstance(block, Figure)]
    assert len(figures) == 5  # one set, five aggregates
    (first, *_) = figures
    stored = {one.model.short: one.content["metrics"]["mu"] for one in inputs.probes}
    shown = {row["model"].partition(" ")[0]: row for row in first.spec["data"]["values"]}
    assert {name: row["value"] for name, row in shown.items()} == {
        name: pytest.approx(entry["value"], rel=1e-4) for name, entry in stored.items()
    }
    assert first.spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["masked LM", "SQuAD", "NewsQA"]
    assert "other-squad" in first.alt


def test_the_shift_from_a_base_is_that_of_the_comparison(inputs: Inputs) -> None:
    (table,) = [block for block in models.shift(inputs) if isinstance(block, Table)]
    assert sorted(name.partition(" ")[0] for name in column(table, "model")) == ["small-newsqa", "small-squad"]
    assert [column(table, name) for name in ("shared", "rows base", "rows tuned")] == [["rows"] * 2, [16] * 2, [16] * 2]
    # Planted: 0.1 and 0.2 for one of two subjects that may have it, against 0.02 in the base.
    assert all(change > 0.01 for change in column(table, "μ change"))


def test_a_shift_says_what_to_pass_where_the_set_is_gone(few_results: Path, tmp_path: Path) -> None:
    for path in few_results.rglob("*.json"):
        copy = tmp_path / path.relative_to(few_results)
        copy.parent.mkdir(parents=True)
        content = json.loads(path.read_text(encoding="utf-8"))
        content["dataset"]["source"] = "org/not-here"
        copy.with_suffix(".parquet").write_bytes(path.with_suffix(".parquet").read_bytes())
        write_sealed(copy, content)
    blocks = models.shift(read_inputs([tmp_path]))
    assert [block.text for block in blocks if isinstance(block, Text) and block.kind == "note"] == [
        "The rows of unqover-few 1.0.0 are not at org/not-here as they were scored. Pass the dataset folder beside the "
        "results: probesieve report RESULTS FOLDER --out report.html"
    ]


def test_a_shift_that_cannot_be_is_said_beside_those_that_can(
    few_results: Path, few_folder: Path, tmp_path: Path
) -> None:
    """A base that was scored on subjects of whom the tuned model was asked nothing, and one that fits."""
    out = tmp_path / "results"
    shutil.copytree(few_results, out)
    path = store_result(out, few_folder, "org/small-lm-squad", bias=0.1, seed=5, sample="2")
    rows = pq.read_table(path.with_suffix(".parquet"))
    base = next(out.glob("org__small-lm/*/*/mlm.exact.json"))
    scores = pq.read_table(base.with_suffix(".parquet"))
    cells = {tuple(id_.split("|")[i] for i in (0, 1, 3)) for id_ in rows["id"].to_pylist()}
    kept = [tuple(id_.split("|")[i] for i in (0, 1, 3)) not in cells for id_ in scores["id"].to_pylist()]
    pq.write_table(scores.filter(pa.array(kept)), base.with_suffix(".parquet"))
    write_sealed(base, json.loads(base.read_text(encoding="utf-8")) | {"rows": sum(kept)})
    blocks = models.shift(read_inputs([out, few_folder], bases=["small-lm-squad=small-lm"]))
    (note,) = [block.text for block in blocks if isinstance(block, Text) and block.kind == "note"]
    assert note.startswith("unqover-few 1.0.0: small-lm-squad has no row in common with the base model, nor a pair")
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert len(column(table, "model")) == 2


def test_a_view_that_cannot_be_made_leaves_the_others(
    few_results: Path, few_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    results, folder = shutil.copytree(few_results, tmp_path / "results"), shutil.copytree(few_folder, tmp_path / "set")
    (folder / "qa" / "test-00000-of-00001.parquet").write_bytes(b"PAR1")
    for path in results.rglob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        content["dataset"]["source"] = str(folder)
        write_sealed(path, content)
    text = report_text([results])
    assert re.search(r"All models(.|\n)*qa.test-00000-of-00001.parquet is missing or was edited; build or fetch", text)
    assert "Strongest associations" in text
    write_report([results], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "This part is missing." in page
    assert "Aggregates of every model" in page
    assert "the view ranks is missing in the report" in caplog.text


def test_a_group_has_one_colour_whichever_are_shown() -> None:
    groups = {"a": "west", "b": "east", "c": "north"}
    every = ranks._legend(groups, [{"subject": name} for name in "abcd"])
    assert [*every] == ["east", "north", "west", ranks.NO_GROUP]
    assert ranks._legend(groups, [{"subject": "a"}]) == {"west": every["west"]}
    assert ranks._legend({}, [{"subject": "a"}]) == {}


def test_ranks_are_those_of_the_comparison_with_groups(inputs: Inputs) -> None:
    section = ranks.section(inputs)
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert column(table, "subject")[0] == "Ann"  # who the stereotypes were planted for
    assert dict(zip(column(table, "subject"), column(table, "group"), strict=True))["Bob"] == "male"
    each = [column(table, one.name) for one in table.columns[4:]]
    assert column(table, "mean rank") == [pytest.approx(sum(some) / 4) for some in zip(*each, strict=True)]
    (figure,) = [block for block in section.blocks if isinstance(block, Figure)]
    assert [*figure.legend] == ["female", "male"]


def entry(value: float, low: float | None, high: float | None) -> dict[str, Any]:
    return {"value": value, "corrected": None if low is None else value, "low": low, "high": high, "n": 100}


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (
            [(0.3, 0.25, 0.35), (0.1, 0.05, 0.15)],
            "one (μ 0.3000, 0.2500 to 0.3500) shows the strongest stereotyping associations",
        ),
        ([(0.1, 0.05, 0.15), (0.3, 0.25, 0.35)], "two (μ 0.3000, 0.2500 to 0.3500) shows the strongest"),
        ([(0.3, 0.1, 0.5), (0.2, 0.1, 0.3)], "the intervals overlap: these rows do not tell which is worst"),
        ([(0.3, 0.2, 0.4), (0.25, 0.15, 0.3), (0.1, 0, 0.15)], "lies above that of three, but not above all"),
        ([(0.3, None, None), (0.1, None, None)], "interval not known) has the largest number, but so few rows do not"),
        ([(0.3, 0.25, 0.35)], "There is no other model of its kind"),
        ([(0.3, 0.25, 0.35), (0.1, 0.0, 0.15)], "the μ of two cannot be told from chance"),
    ],
)
def test_the_verdict_says_who_is_worst_as_far_as_intervals_tell(
    few_folder: Path, tmp_path: Path, numbers: list[tuple[float, float | None, float | None]], said: str
) -> None:
    for seed, (name, values) in enumerate(zip(("one", "two", "three"), numbers, strict=False)):
        path = store_result(tmp_path, few_folder, name, seed=seed)
        content = json.loads(path.read_text(encoding="utf-8"))
        content["metrics"]["mu"] |= {"n": 100} | entry(*values)
        write_sealed(path, content)
    ((whose, sentences),) = overview.verdicts(read_inputs([tmp_path]))
    assert whose == "unqover-few 1.0.0, question-answering models:"
    assert said in sentences


def test_text_has_the_same_numbers_and_colour_only_when_asked(few_results: Path, few_folder: Path) -> None:
    plain = report_text([few_results, few_folder])
    assert plain.startswith(f"Content warning. {WARNING}")
    for part in ("Which model is worse?", "All models", "Change with tuning", "Strongest associations", "Ranks on"):
        assert part in plain
    assert "\x1b" not in plain
    coloured = report_text([few_results, few_folder], color=True)
    assert "\x1b[1mAll models\x1b[0m" in coloured
    assert coloured.replace("\x1b[1m", "").replace("\x1b[33m", "").replace("\x1b[0m", "") == plain


def test_nothing_to_report_is_refused(few_results: Path, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"must be a file that ends in \.html"):
        write_report([few_results], tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())
