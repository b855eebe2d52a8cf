"""The page in a browser: opens offline without a complaint, draws, sorts, searches, and shows markup as text."""

from __future__ import annotations

import codecs
import csv
import time
from pathlib import Path
from typing import Any

import pytest

from builders.unqover import build_unqover
from evaluation.report import write_report
from evaluation.report.page import Column, Section, Table, Text, page
from tests.evaluation.report.conftest import NARROW, WIDE, OpenPage
from tests.evaluation.report.stored import store_result
from unqover_data import load_lists

MARKUP = "<img src=x onerror=alert(1)>"
TURNED = "\u202ename"


@pytest.fixture(scope="module")
def report(few_results: Path, few_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([few_results, few_folder], tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def table_page(tmp_path: Path) -> Path:
    """A page of one table: names, some with markup or a formula, and numbers, one of them not known."""
    size = 130
    names = [MARKUP, "=1+1", " @a;b", TURNED, *(f"name {place}" for place in range(size - 4))]
    values = [None, *(float(place) for place in range(1, size))]
    columns = (
        Column("name", names, help=MARKUP),
        Column("value", values, "number", decimals=1),
        Column("ends", [[0.5] * size, values], "interval"),
    )
    blocks = (Text("before"), Table(f"A table {MARKUP}", columns, sort="name"))
    text = page(MARKUP, "", [Section("one", MARKUP, "", blocks)], warning="", footer="")
    path = tmp_path / "table.html"
    path.write_text(text, encoding="utf-8")
    return path


def first_cells(panel: Any, column: int = 0, count: int = 3) -> list[str]:
    return [row.locator("td").nth(column).inner_text() for row in panel.locator("tbody tr").all()[:count]]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_view_draws_at_both_widths(report: Path, open_page: OpenPage, width: int) -> None:
    opened = open_page(report, width)
    tabs = opened.page.locator("[role=tab]")
    for place in range(tabs.count()):
        panel = opened.show(tabs.nth(place).get_attribute("aria-controls"))
        assert panel.is_visible()
        for chart in panel.locator(".chart").all():
            assert chart.locator("svg.marks").count() == 1
            assert chart.get_attribute("aria-label")
        for table in panel.locator("table:visible").all():
            assert table.locator("tbody tr").count() > 0
        assert not {"undefined", "NaN", "null"} & set(panel.inner_text().split())
        opened.check()


def test_tabs_are_reached_by_keys_and_kept_in_the_address(report: Path, open_page: OpenPage) -> None:
    page = open_page(report).page
    names = [tab.get_attribute("aria-controls") for tab in page.locator("[role=tab]").all()]
    page.focus("[role=tab][aria-selected=true]")
    for key, name in (("ArrowRight", names[1]), ("ArrowLeft", names[0]), ("ArrowLeft", names[-1]), ("Home", names[0])):
        page.keyboard.press(key)
        assert page.locator("[role=tab][aria-selected=true]").get_attribute("aria-controls") == name
        assert [panel.get_attribute("id") for panel in page.locator("[role=tabpanel]:visible").all()] == [name]
        assert page.evaluate("document.activeElement.id") == f"tab-{name}"
    page.goto(f"{page.url.partition('#')[0]}#/{names[1]}")
    assert page.locator("[role=tabpanel]:visible").get_attribute("id") == names[1]


def test_a_table_is_sorted_searched_and_lengthened(table_page: Path, open_page: OpenPage) -> None:
    panel = open_page(table_page).show("one")
    assert panel.locator("tbody tr").count() == 100
    assert first_cells(panel)[:2] != ["name 0", "name 1"]  # signs before letters
    panel.get_by_role("button", name="value").click()
    assert first_cells(panel, 1) == ["129.0", "128.0", "127.0"]
    assert panel.locator("th").nth(1).get_attribute("aria-sort") == "descending"
    panel.get_by_role("button", name="value").click()
    assert first_cells(panel, 1) == ["1.0", "2.0", "3.0"]
    panel.get_by_role("button", name="Show more").click()
    assert panel.locator("tbody tr").count() == 130
    assert panel.locator("tbody tr").last.locator("td").nth(1).inner_text() == ""  # what is not known comes last
    panel.get_by_role("searchbox").fill("NAME 12")
    assert sorted(first_cells(panel, count=99)) == sorted(["name 12", *(f"name 12{place}" for place in range(6))])
    assert "of 7 rows, found among 130" in panel.get_by_role("status").inner_text()


def test_a_table_is_saved_as_csv(table_page: Path, open_page: OpenPage, tmp_path: Path) -> None:
    opened = open_page(table_page)
    panel = opened.show("one")
    panel.get_by_role("button", name="value").click()
    panel.get_by_role("button", name="value").click()
    with opened.page.expect_download() as download:
        panel.get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename.startswith("a-table-img")
    download.value.save_as(tmp_path / "saved.csv")
    assert (tmp_path / "saved.csv").read_bytes().startswith(codecs.BOM_UTF8)  # else a spreadsheet takes μ for two signs
    with (tmp_path / "saved.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["name", "value", "ends from", "ends to"]
    assert len(rows) == 130
    assert rows[0] == ["'=1+1", "1", "0.5", "1"]  # no spreadsheet takes it for a formula
    assert rows[1][0] == "' @a;b"
    assert rows[2][0] == "[U+202E]name"  # nor does it turn what follows
    assert b'"\' @a;b"' in (tmp_path / "saved.csv").read_bytes()
    assert rows[-1] == [MARKUP, "", "0.5", ""]


def test_markup_in_names_shows_as_text(few_folder: Path, table_page: Path, open_page: OpenPage, tmp_path: Path) -> None:
    opened = open_page(table_page)
    panel = opened.show("one")
    panel.get_by_role("searchbox").fill("img")
    assert first_cells(panel) == [MARKUP]
    assert opened.page.locator("h1").inner_text() == MARKUP
    assert opened.page.locator("img").count() == 0
    named = "org/<script>window.hit=1<script>"
    store_result(tmp_path / "results", few_folder, named, bias=0.1)
    opened = open_page(write_report([tmp_path / "results", few_folder], tmp_path / "report.html"))
    for tab in opened.page.locator("[role=tab]").all():
        panel = opened.show(tab.get_attribute("aria-controls"))
        assert opened.page.evaluate("window.hit") is None
    assert "<script>window.hit=1<script>" in opened.show("overview").inner_text()


@pytest.fixture(scope="module")
def gender_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five models on gender, 140 names by 70 occupations."""
    root = tmp_path_factory.mktemp("gender")
    folder = build_unqover(load_lists("gender"), root / "build", configs=["qa"]).folder
    for seed, tuned in enumerate(("squad", "newsqa", "squad2", "qa", "other")):
        name = f"org/model-{seed}-{tuned}"
        store_result(root / "results", folder, name, bias=0.1 * seed, sample="20000", parameters=10**seed, seed=seed)
    return write_report([root / "results", folder], root / "report.html")


def test_five_models_on_gender_stay_small_and_open_soon(gender_report: Path, open_page: OpenPage) -> None:
    assert gender_report.stat().st_size < 15_000_000
    start = time.monotonic()
    opened = open_page(gender_report)
    opened.page.wait_for_selector("[role=tabpanel][data-drawn=done]")
    seconds = time.monotonic() - start
    print(f"{gender_report.stat().st_size / 1e6:.1f} MB, drawn after {seconds:.2f} s")
    assert seconds < 10  # three on a quiet machine
    for tab in opened.page.locator("[role=tab]").all():
        opened.show(tab.get_attribute("aria-controls"))
