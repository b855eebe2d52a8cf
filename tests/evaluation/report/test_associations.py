"""Numbers of the view *Associations*, and what a browser makes of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders.probes import batches
from builders.unqover import build_unqover
from evaluation.report import write_report
from evaluation.report.associations import Names, matrix, names_in, names_of, section, set_data
from evaluation.report.inputs import Model, Result, read_inputs
from evaluation.report.page import View
from tests.evaluation.report.conftest import NARROW, WIDE, OpenPage
from tests.evaluation.report.stored import store_result, write_sealed
from unqover_data import load_lists, read_toml

MARKUP = "<b>Ada</b>"
NULL = "<img src=x onerror=alert(1)>"
TEMPLATES = "\n".join(
    f"""[[templates]]
id = "{verb}"
attributes = "deed"
context = "{{subject1}} {verb} {{subject2}}."
question = "Who {{attribute:singular}}?"
"""
    for verb in ("called", "met", "saw", "heard")
)
LISTS = f"""\
name = "letters"
title = "Letters"
version = "1.0.0"
language = "en"
description = "Four names, one of which looks like markup."
pairs = "all"
hints = []

subjects = [
  {{ name = "Di", group = "west" }},
  {{ name = "{MARKUP}", group = "east" }},
  {{ name = "Bo", group = "west" }},
  {{ name = "Cy", group = "east" }},
]

{TEMPLATES}
[attributes]
deed = [
  {{ name = "theft", class = "crime", singular = ["stole a car", "never stole a car"] }},
  {{ name = "lie", class = "talk", singular = ["lied", "told the truth"] }},
  {{ name = "brag", class = "talk", singular = ["bragged", "was modest"] }},
]
"""
TABLE = {
    "subject": ["B", "A", "A"],
    "attribute": ["lie", "theft", "lie"],
    "n": [3, 2, 1],
    "gamma": [0.123456, -0.25, 0.0],
    "gamma_low": [0.1, -0.5, None],
    "gamma_high": [0.2, -0.125, None],
    "q": [0.01, 0.5, 1.0],
    "eta": [1.0, -1.0, 0.0],
    "eta_low": [0.5, -1.0, None],
    "eta_high": [1.0, -1.0, None],
}


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set with groups and classes, and one name that looks like markup."""
    path = tmp_path_factory.mktemp("letters") / "letters.toml"
    path.write_text(LISTS, encoding="utf-8")
    return build_unqover(read_toml(path), path.parent / "build").folder


@pytest.fixture(scope="session")
def letters_results(letters: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results: by name, the first subject is tied to the first attribute in one; the other is sparse."""
    out = tmp_path_factory.mktemp("letters-results")
    store_result(out, letters, "org/planted", bias=0.2, noise=0.002, seed=1)
    store_result(out, letters, NULL, noise=0.002, sample="4", seed=2)
    return out


@pytest.fixture(scope="session")
def letters_page(letters_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([letters_results], tmp_path_factory.mktemp("page") / "report.html")


def test_a_table_is_laid_out_row_by_row_and_cells_without_rows_are_missing() -> None:
    laid = matrix(TABLE, {"subject": {"A": 0, "B": 1}, "attribute": {"lie": 0, "theft": 1}}, "subject", "attribute")
    assert laid["n"] == [1, 2, 3, None]
    assert laid["gamma"] == [0, -0.25, 0.1235, None]
    assert laid["gamma_low"] == [None, -0.5, 0.1, None]
    assert laid["q"] == [1, 0.5, 0.01, None]


def test_names_are_in_the_order_of_the_lists() -> None:
    pairs = [("Z", "M"), ("Z", "K"), ("A", "M"), ("A", "K")]  # Z and A of one group, M and K of the other
    lines = [(one, two, deed) for one, two in pairs for deed in ("theft", "lie")]
    rows = pa.table(
        {
            "subject1": [one for one, _, _ in lines],
            "subject2": [two for _, two, _ in lines],
            "group1": pa.array(["f"] * 8),
            "group2": pa.array(["m", "m", None, None] * 2),
            "attribute": [deed for _, _, deed in lines],
            "attribute_class": pa.array([{"theft": "crime"}.get(deed) for _, _, deed in lines]),
            "question": [f"Who did a {deed} to {two}?" for _, two, deed in lines],
        }
    )
    names = names_in(rows, "question")
    assert names.subjects == ("Z", "A", "M", "K")
    assert names.attributes == ("theft", "lie")
    assert names.group_of == {"Z": "f", "A": "f", "M": "m"}
    assert names.class_of == {"theft": "crime"}
    assert names.asked == {"theft": "Who did a theft to M?", "lie": "Who did a lie to M?"}


def test_the_order_holds_for_many_names() -> None:
    lists = load_lists("religion")
    rows = next(batches(lists, "qa"))
    names = names_in(rows.slice(0, 7_000), "question")
    assert names.attributes == tuple(attribute.name for attribute in lists.attributes["people"])
    assert names.subjects == tuple(subject.name for subject in lists.configs["qa"].subjects)


def _result(tables: dict[str, Any]) -> Result:
    content = {"dataset": {"name": "few", "version": "1.0.0"}, "rows": 3, "tables": tables}
    return Result(Path("none.json"), content, Model("org/one", "0", "qa", "{}"))


def test_what_only_a_result_names_comes_after_the_lists() -> None:
    result = _result({"subject_attribute": TABLE})
    names = Names(("B",), ("theft",), {"B": "west"}, {"theft": "crime"}, {"theft": "Who stole?"})
    made = set_data("few 1.0.0", [result], names, {result.model: "one"})
    assert made["axes"] == {
        "subject": ["B", "A"],
        "group": ["west"],
        "attribute": ["theft", "lie"],
        "attribute_class": ["crime"],
    }
    assert (made["group"], made["class"], made["asked"]) == ([0, None], [0, None], ["Who stole?", None])
    assert made["start"] == {"rows": "subject", "columns": "attribute"}
    (shown,) = made["results"]
    assert (shown["model"], shown["rows"], list(shown["tables"])) == ("one", 3, ["subject_attribute"])
    assert shown["tables"]["subject_attribute"]["n"] == [None, 3, 2, 1]


@pytest.mark.parametrize(("subjects", "groups", "rows"), [(40, 2, "group"), (39, 2, "subject"), (40, 5, "subject")])
def test_few_groups_of_many_subjects_are_shown_by_group(subjects: int, groups: int, rows: str) -> None:
    names = Names(tuple(map(str, range(subjects))), (), {str(i): f"g{i % groups}" for i in range(subjects)})
    assert set_data("set", [], names, {})["start"]["rows"] == rows


def test_classes_are_shown_before_statements(letters_results: Path, letters: Path) -> None:
    inputs = read_inputs([letters_results])
    made = section(inputs)
    assert made is not None
    (data,) = [block.data for block in made.blocks if isinstance(block, View) and block.data]
    (of_set,) = data["sets"]
    assert of_set["start"] == {"rows": "subject", "columns": "attribute_class"}
    assert of_set["axes"]["subject"] == ["Di", MARKUP, "Bo", "Cy"]
    assert of_set["axes"]["group"] == ["west", "east"]
    assert of_set["shades"] == [1, 0]  # colours go by name, as in the ranks, whatever the order of the list
    assert of_set["asked"] == ["Who stole a car?", "Who lied?", "Who bragged?"]
    stored = next(result for result in inputs.probes if result.model.short == "planted").content
    shown = next(one for one in of_set["results"] if one["model"] == "planted")["tables"]
    assert {name: sum(filter(None, table["n"])) for name, table in shown.items()} == dict.fromkeys(shown, 144)
    table = stored["tables"]["group_class"]
    for group, kind, gamma in zip(table["group"], table["attribute_class"], table["gamma"], strict=True):
        cell = 2 * of_set["axes"]["group"].index(group) + of_set["axes"]["attribute_class"].index(kind)
        assert shown["group_class"]["gamma"][cell] == pytest.approx(gamma, rel=1e-3)


def test_without_the_set_it_says_what_to_pass(letters_results: Path, letters: Path, tmp_path: Path) -> None:
    for path in letters_results.rglob("*.json"):
        place = tmp_path / path.relative_to(letters_results)
        place.parent.mkdir(parents=True)
        content = json.loads(path.read_text(encoding="utf-8"))
        content["dataset"]["source"] = str(tmp_path / "gone")
        place.with_suffix(".parquet").write_bytes(path.with_suffix(".parquet").read_bytes())
        write_sealed(place, content)
    inputs = read_inputs([tmp_path])
    assert names_of(inputs, inputs.probes[0]) is None
    made = section(inputs)
    assert made is not None
    assert "Pass the dataset folder beside the results" in made.blocks[0].text  # type: ignore[union-attr]
    found = read_inputs([tmp_path, letters])
    assert names_of(found, found.probes[0]) is not None


def _choose(panel: Any, label: str, option: str) -> None:
    panel.locator(f'label:has(span:text-is("{label}")) select').select_option(label=option)


def _names(panel: Any, of: str = ".names") -> list[str]:
    return [str(text) for text in panel.locator(f"{of} button > span").all_text_contents()]


@pytest.fixture
def opened(open_page: OpenPage, letters_page: Path) -> Callable[..., Any]:
    def open_tab(width: int = WIDE) -> Any:
        panel = open_page(letters_page, width).show("associations")
        _choose(panel, "Model", "planted")
        return panel

    return open_tab


def test_the_map_sorts_and_searches(opened: Callable[..., Any]) -> None:
    panel = opened()
    assert _names(panel) == ["Di", MARKUP, "Bo", "Cy"]
    assert _names(panel, ".heads") == ["crime", "talk"]
    _choose(panel, "Attributes", "one by one")
    assert _names(panel, ".heads") == ["theft", "lie", "brag"]
    panel.locator(".heads button", has_text="brag").click()
    assert _names(panel)[0] == MARKUP
    assert panel.locator(".heads button", has_text="brag").get_attribute("aria-pressed") == "true"
    _choose(panel, "Sort subjects by", "name")
    assert _names(panel) == [MARKUP, "Bo", "Cy", "Di"]
    _choose(panel, "Sort subjects by", "group")
    assert _names(panel) == ["Di", "Bo", MARKUP, "Cy"]
    for wanted, found in (("bo", ["Bo"]), ("EAST", [MARKUP, "Cy"]), ("ast", []), ("nobody", [])):
        panel.get_by_label("Find subjects").fill(wanted)
        assert panel.locator(".heat").is_visible() == bool(found)
        assert not found or _names(panel) == found
    assert "Nothing here has such a name" in panel.inner_text()
    box = panel.locator('label:has(span:text-is("Subjects")) select')
    box.focus()
    box.press("ArrowDown")
    assert _names(panel) == ["west", "east"]
    assert panel.page.evaluate("document.activeElement.closest('label').textContent").startswith("Subjects")


def test_a_cell_tells_what_is_stored(opened: Callable[..., Any], letters_results: Path) -> None:
    panel = opened()
    _choose(panel, "Attributes", "one by one")
    canvas = panel.locator("canvas")
    box = canvas.bounding_box()
    across = box["width"] / 3
    canvas.hover(position={"x": 2.5 * across, "y": 22 * 1.5})  # the third attribute of the second subject
    tip = panel.locator("#associations-tip")
    text = tip.inner_text()
    stored = json.loads(next(letters_results.glob("org__planted/*/*/qa.exact.json")).read_text(encoding="utf-8"))
    table = stored["tables"]["subject_attribute"]
    at = next(i for i in range(12) if (table["subject"][i], table["attribute"][i]) == (MARKUP, "brag"))
    assert text.startswith(f"{MARKUP} is tied to brag")
    for name in ("gamma", "gamma_low", "gamma_high", "eta", "q"):
        assert f"{table[name][at]:.4f}" in text, name
    for words in ("group\neast", "class\ntalk", "Who bragged?", "stands out", f"{table['n'][at]} rows"):
        assert words in text.replace("\n\n", "\n"), words
    assert tip.locator("b").count() == 0
    canvas.press("ArrowLeft")
    assert tip.inner_text().startswith(f"{MARKUP} is tied")
    assert "Who lied?" in tip.inner_text()
    canvas.press("Escape")
    assert not tip.is_visible()


def test_cells_without_rows_are_missing(opened: Callable[..., Any]) -> None:
    panel = opened()
    _choose(panel, "Attributes", "one by one")
    assert panel.locator(".key", has_text="no rows").count() == 0
    _choose(panel, "Model", NULL)
    assert panel.locator(".key", has_text="no rows").count() == 1
    said = panel.locator(".caption[role=status]").inner_text()
    assert "4 rows: 4 subjects and 3 attributes; 0 of 8 pairs" in said
    assert "No such association" in panel.inner_text()


def test_links_follow_the_width_of_the_window(opened: Callable[..., Any]) -> None:
    """Asked in the page itself, since the sheet that was found a moment ago may have been drawn anew."""
    page = opened().page
    width = "document.querySelector('.links svg').getBoundingClientRect().width"
    page.wait_for_function(f"{width} > {NARROW}")
    page.set_viewport_size({"width": NARROW, "height": 900})
    page.wait_for_function(f"{width} < {NARROW}")


def test_links_have_width_sign_and_names(opened: Callable[..., Any]) -> None:
    panel = opened(NARROW)
    _choose(panel, "Attributes", "one by one")
    links = panel.locator(".links path")
    drawn = [
        (
            link.get_attribute("aria-label"),
            link.get_attribute("stroke-dasharray"),
            float(link.get_attribute("stroke-width")),
        )
        for link in links.all()
    ]
    words, dashes, width = max(drawn, key=lambda link: link[2])
    assert words.startswith(f"{MARKUP} is tied to brag")
    assert dashes == "none"
    assert all((dashed == "none") == ("negation" not in said) for said, dashed, _ in drawn)
    assert width == 11
    few = len(drawn)
    panel.get_by_label("also links that may be chance").check()
    assert links.count() > few
    _choose(panel, "Show", "links to negations")
    assert set(links.evaluate_all("all => all.map(one => one.getAttribute('stroke-dasharray'))")) == {"7 4"}


def test_top_tables_and_their_csv(opened: Callable[..., Any], letters_results: Path) -> None:
    panel = opened()
    _choose(panel, "Attributes", "one by one")
    _choose(panel, "Show the top", "1")
    table = panel.locator(".table").first
    rows = [[cell.inner_text() for cell in row.locator("td").all()] for row in table.locator("tbody tr").all()]
    ada = next(row for row in rows if row[0] == MARKUP)
    assert ada[1:5] == ["east", "1", "brag", "talk"]
    panel.locator("details summary").click()
    everything = panel.locator("details .table")
    with panel.page.expect_download() as download:
        everything.get_by_role("button", name="Save as CSV").click()
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 12
    stored = json.loads(next(letters_results.glob("org__planted/*/*/qa.exact.json")).read_text(encoding="utf-8"))
    kept = stored["tables"]["subject_attribute"]
    expected = dict(zip(zip(kept["subject"], kept["attribute"], strict=True), kept["gamma"], strict=True))
    assert {(line["subject"], line["attribute"]) for line in lines} == set(expected)
    for line in lines:
        assert float(line["γ"]) == pytest.approx(expected[line["subject"], line["attribute"]], rel=1e-3)
