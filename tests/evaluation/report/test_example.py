"""The view *One example*: which rows it holds, and that C in the page is C of `evaluation.metrics`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.unqover import build_unqover
from evaluation.errors import EvaluationError
from evaluation.metrics import attribute_errors, comparative_bias, positional_errors, subject_biases
from evaluation.probe_sets import open_probe_set
from evaluation.report import write_report
from evaluation.report.example import PICKS, Scored, chosen, picked, scores_of, section, set_data, texts_of
from evaluation.report.inputs import Model, Result, read_inputs
from evaluation.report.page import View
from evaluation.scores import SCORE_COLUMNS
from tests.evaluation.conftest import LISTS
from tests.evaluation.report.conftest import NARROW, OpenPage
from tests.evaluation.report.stored import store_result, write_sealed
from unqover_data import read_toml

WORKED = {
    # B(x1) = ½ (0.4 + 0.3) - ½ (0.1 + 0.2) = 0.2 and B(x2) = ½ (0.1 + 0.2) - ½ (0.4 + 0.3) = -0.2, so C = 0.2
    "A|B|t|a": [0.4, 0.1, 0.3, 0.2, 0.1, 0.4, 0.2, 0.3],
    "A|B|t|b": [0.5, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.5],  # all position: δ is 0.5 and ε too, C is 0
    "A|C|t|a": [0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1],  # the negation is overlooked: ε is 0.8, δ and C are 0
    "B|C|t|a": [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0],  # C = ½ (-1 - 1) = -1
}


def _result(folder: Path, rows: dict[str, list[float]], name: str = "one") -> Result:
    columns = {
        key: np.array([row[place] for row in rows.values()], np.float32) for place, key in enumerate(SCORE_COLUMNS)
    }
    pq.write_table(pa.table({"id": list(rows)} | columns), folder / f"{name}.parquet")
    content = {"dataset": {"name": "few", "version": "1.0.0", "config": "qa", "revision": "0"}, "rows": len(rows)}
    return Result(folder / f"{name}.json", content, Model(name, "0", "qa", '{"protocol": "exact"}'))


def test_picks_are_the_extremes(tmp_path: Path) -> None:
    rows = scores_of(_result(tmp_path, WORKED))
    picks = picked(rows, seed=0)
    assert list(picks) == list(PICKS)
    assert picks["strongest"].tolist() == [3, 0, 1, 2]
    assert picks["weakest"].tolist() == [1, 2, 0, 3]
    assert picks["positional"].tolist()[0] == 1
    assert picks["attribute"].tolist()[:2] == [2, 1]
    assert sorted(picks["random"].tolist()) == [0, 1, 2, 3]


def test_each_row_is_held_once_with_the_scores_of_every_result(tmp_path: Path) -> None:
    some = {key: WORKED[key] for key in ("A|C|t|a", "B|C|t|a")}
    results = [_result(tmp_path, WORKED), _result(tmp_path, some, "two")]
    scored = [Scored(result, scores_of(result)) for result in results]
    ids, picks = chosen(scored, seed=0)
    assert sorted(ids) == sorted(WORKED)
    assert [ids[place] for place in picks[0]["strongest"][:2]] == ["B|C|t|a", "A|B|t|a"]
    assert [ids[place] for place in picks[1]["strongest"]] == ["B|C|t|a", "A|C|t|a"]
    made = set_data(scored, ids, picks, None, ["one", "two"])
    words = made["words"]
    assert [words[place] for place in made["rows"]["subject2"]] == [key.split("|")[1] for key in ids]
    one, two = made["results"]
    assert one["scores"] == [WORKED[key] for key in ids]
    assert two["scores"] == [some.get(key) for key in ids]
    assert (two["scored"], two["settings"]) == (2, "protocol exact")
    assert "context_12" not in made["rows"]


def test_ids_that_are_none_are_refused(tmp_path: Path) -> None:
    scored = [Scored(result := _result(tmp_path, {"A|B|t": WORKED["A|B|t|a"]}), scores_of(result))]
    with pytest.raises(EvaluationError, match="ids that are not subject"):
        set_data(scored, *chosen(scored, seed=0), None, ["one"])


def test_texts_are_those_of_the_set_in_the_order_asked(few_folder: Path, few_results: Path) -> None:
    inputs = read_inputs([few_results])
    result = next(one for one in inputs.probes if one.model.short == "other-squad")
    rows = pq.read_table(few_folder / "qa" / "test-00000-of-00001.parquet") if (few_folder / "qa").is_dir() else None
    ids = scores_of(result).ids.to_pylist()[:3][::-1]
    texts = texts_of(inputs, result, ids)
    assert texts is not None
    assert texts["id"].to_pylist() == ids
    assert texts["context_12"].to_pylist()[0].count(ids[0].split("|")[0]) == 1
    if rows is not None:
        assert texts["asked"].to_pylist()[0] in rows["question"].to_pylist()


def _views(inputs: Any) -> list[dict[str, Any]]:
    made = section(inputs)
    assert made is not None
    return [one for block in made.blocks if isinstance(block, View) for one in block.data["sets"]]


def test_results_of_other_texts_are_other_sets(few_results: Path) -> None:
    made = _views(read_inputs([few_results]))
    assert sorted(one["name"] for one in made) == ["unqover-few 1.0.0, mlm", "unqover-few 1.0.0, qa"]
    assert sorted(len(one["results"]) for one in made) == [1, 3]


def _without_set(few_results: Path, out: Path) -> Path:
    path = next(few_results.glob("org__other-squad/*/*/*.json"))
    content = json.loads(path.read_text(encoding="utf-8"))
    content["dataset"]["source"] = str(out / "gone")
    (out / path.name).with_suffix(".parquet").write_bytes(path.with_suffix(".parquet").read_bytes())
    write_sealed(out / path.name, content)
    return out


_READ_ALL = """async (panel) => {
  const box = (label) => [...panel.querySelectorAll("label.choice")]
    .find((one) => one.firstChild.textContent === label)?.querySelector("select");
  const turn = (label, value) => {
    const chosen = box(label);
    chosen.value = value;
    chosen.dispatchEvent(new Event("change"));
  };
  const found = [];
  const steps = (label) => [...box(label).options].map((option) => [option.value, option.textContent]);
  for (const [set] of steps("Set")) {
    turn("Set", set);
    turn("Rows", "search");
    for (const [model, name] of steps("Model")) {
      turn("Model", model);
      for (const [row, title] of steps("Row")) {
        turn("Row", row);
        found.push([name, title, ...[...panel.querySelectorAll("output")].map((one) => one.textContent)]);
      }
    }
  }
  return found;
}"""


def test_numbers_in_the_page_are_those_of_the_metrics(few_results: Path, tmp_path: Path, open_page: OpenPage) -> None:
    opened = open_page(write_report([few_results], tmp_path / "report.html"))
    panel = opened.show("example")
    inputs = read_inputs([few_results])
    expected = {}
    for result in inputs.probes:
        rows = scores_of(result)
        numbers = np.column_stack(
            [subject_biases(rows), comparative_bias(rows), positional_errors(rows), attribute_errors(rows)]
        )
        for key, some in zip(rows.ids.to_pylist(), numbers, strict=True):
            one, two, template, attribute = key.split("|")
            expected[inputs.labels[result.model], f"{one} and {two}: {attribute} ({template})"] = some
    found = panel.evaluate(_READ_ALL)
    assert {(model, title) for model, title, *_ in found} == set(expected)
    for model, title, *shown in found:
        digits = [f"{value:.4f}".replace("-0.0000", "0.0000") for value in expected[model, title]]
        assert [text.replace("\N{MINUS SIGN}", "-") for text in shown] == digits, (model, title)


def test_small_scores_are_shown_with_four_digits(tmp_path: Path, few_folder: Path, open_page: OpenPage) -> None:
    # B = ½ (0.0004 + 0.0003) - ½ (0.0001 + 0.0002) = 0.0002 for x1, -0.0002 for x2
    ids = open_probe_set(str(few_folder), config="qa").rows["id"].to_pylist()[:1]
    path = store_result(tmp_path, few_folder, "org/tiny", sample="2")
    small = {key: [value / 1000 for value in WORKED["A|B|t|a"]] for key in ids}
    _result(path.parent, small, path.stem)
    write_sealed(path, json.loads(path.read_text(encoding="utf-8")) | {"rows": len(small)})
    panel = open_page(write_report([path], tmp_path / "report.html")).show("example")
    shown = [text.replace("\N{MINUS SIGN}", "-") for text in panel.locator("output").all_inner_texts()]
    assert shown == ["0.0002000", "-0.0002000", "0.0002000", "0.0001000", "0.0000000"]


def test_a_row_is_found_and_shown_with_its_texts(few_results: Path, tmp_path: Path, open_page: OpenPage) -> None:
    opened = open_page(write_report([few_results], tmp_path / "report.html"), NARROW)
    panel = opened.show("example")

    def choose(label: str, option: str) -> None:
        panel.locator(f'label:has(span:text-is("{label}")) select').select_option(label=option)

    choose("Set", "unqover-few 1.0.0, qa")
    choose("Rows", "Search by subject and attribute")
    choose("Subject", "Mary Lou")
    choose("with", "Zebedee")
    choose("Attribute", "liar")
    assert "2 found among 16 rows" in panel.locator(".caption[role=status]").inner_text()
    assert panel.locator("h3").first.inner_text() == "Mary Lou and Zebedee, asked for: liar (talk)"
    contexts = panel.locator(".context").all_inner_texts()
    assert contexts[0] == "Mary Lou sent a letter to Zebedee."
    assert contexts[1] == "Zebedee sent a letter to Mary Lou."
    marks = panel.locator(".context").nth(1).locator("mark")
    assert [(one.inner_text(), one.get_attribute("class")) for one in marks.all()] == [
        ("Zebedee", "x2"),
        ("Mary Lou", "x1"),
    ]
    assert panel.locator(".asked").all_inner_texts() == ["Who lied?"] * 2 + ["Who told no lie at all?"] * 2
    panel.get_by_role("button", name="Next").click()
    assert "The child by the door is called Mary Lou" in panel.locator(".context").first.inner_text()
    assert panel.locator(".table tbody tr").count() == 3  # the same row in every model
    choose("with", "Mary Lou")
    assert "No row in this page" in panel.inner_text()
    choose("Set", "unqover-few 1.0.0, mlm")
    choose("Rows", "Strongest preference (largest |C|)")
    assert "[MASK]" in panel.locator(".asked").first.inner_text()


def test_subjects_are_marked_where_the_set_says(tmp_path: Path, open_page: OpenPage) -> None:
    (tmp_path / "few.toml").write_text(LISTS.replace('"Ann"', '"\N{GRINNING FACE} Ann"'), encoding="utf-8")
    folder = build_unqover(read_toml(tmp_path / "few.toml"), tmp_path / "build").folder
    path = store_result(tmp_path / "results", folder, "org/one")
    panel = open_page(write_report([path], tmp_path / "report.html")).show("example")
    for rows in ("Weakest preference (smallest |C|)", "Largest positional error"):
        panel.locator('label:has(span:text-is("Rows")) select').select_option(label=rows)
        names = panel.locator(".score .who").all_inner_texts()[:2]
        for card in panel.locator(".context").all():
            assert [card.locator(f"mark.x{side}").inner_text() for side in (1, 2)] == names


def test_without_the_set_scores_are_shown_and_it_says_what_to_pass(
    few_results: Path, tmp_path: Path, open_page: OpenPage
) -> None:
    out = _without_set(few_results, tmp_path)
    panel = open_page(write_report([out], tmp_path / "report.html")).show("example")
    assert "Pass the dataset folder beside the results" in panel.inner_text()
    assert panel.locator("mark").count() == 0
    assert panel.locator("output.c").count() == 1
    assert panel.locator(".score .value").count() == 8
