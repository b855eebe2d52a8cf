"""The page as a file: escaped, equal for equal inputs, and small enough."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from builders import pictures
from evaluation.errors import EvaluationError
from evaluation.report import write_report
from evaluation.report.page import Column, Figure, Section, Table, Text, View, _vega, as_json, page, rounded
from tests.evaluation.report.stored import store_result
from unqover_data.signs import visible

MARKUP = "<script>alert('x')</script>"


def test_markup_and_separators_of_others_are_escaped_everywhere() -> None:
    nasty = f"{MARKUP}\u2028\u202e\u200b&\"'"
    blocks = (
        Text(nasty, lead=nasty),
        Figure(nasty, {"data": {"values": [{"name": nasty}]}}, nasty, nasty, {nasty: ("#000000", "circle")}),
        Table(nasty, [Column(nasty, [nasty], help=nasty)], nasty),
        View("table", {nasty: nasty}),
    )
    text = page(nasty, nasty, [Section("one", nasty, nasty, blocks)], warning=nasty, footer=nasty)
    assert MARKUP not in text
    data = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert not [sign for sign in "\u2028\u202e\u200b" if sign in text]
    assert "[U+2028][U+202E][U+200B]" in text
    read, shown = json.loads(data[1]), visible(nasty)  # as cards and the terminal have it
    assert read[1]["spec"]["data"]["values"] == [{"name": shown}]
    assert read[2]["columns"][0]["values"] == [shown]
    assert read[3]["data"] == {shown: shown}


def test_json_holds_no_number_that_is_none() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        as_json([float("nan")])
    assert as_json(rounded([1 / 3, None, 1e-9, 2.0])) == "[0.33333,null,1e-09,2]"


def test_nothing_in_the_page_is_fetched(few_results: Path, few_folder: Path, tmp_path: Path) -> None:
    text = write_report([few_results, few_folder], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe)|(src|href)=|url\(|@import", markup)


def test_equal_inputs_give_equal_bytes(few_results: Path, few_folder: Path, tmp_path: Path) -> None:
    one, other = (
        write_report(paths, tmp_path / f"{number}.html").read_bytes()
        for number, paths in enumerate(([few_results, few_folder], [few_folder, few_results]))
    )
    assert one == other


def test_names_with_markup_are_text_in_a_whole_report(few_folder: Path, tmp_path: Path) -> None:
    store_result(tmp_path, few_folder, f"org/{MARKUP.replace('/', '')}")
    text = write_report([tmp_path, few_folder], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_a_long_table_is_cut_to_its_ends() -> None:
    table = Table("Rows", [Column("row", [*range(12)], "count", decimals=0)], note="a note")
    cut = table.ends()
    assert cut.title == "Rows, the first and the last 5 of 12"
    assert cut.columns[0].values == [0, 1, 2, 3, 4, 7, 8, 9, 10, 11]
    assert (cut.note, cut.columns[0].decimals) == ("a note", 0)
    assert table.ends(6) is table


def test_under_a_limit_on_address_space_a_child_makes_the_charts_or_one_line_says_why_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = page("one", "", [], warning="", footer="")
    monkeypatch.setattr("resource.getrlimit", lambda _: (10**9, 10**9))
    _vega.cache_clear()
    assert page("one", "", [], warning="", footer="") == whole
    _vega.cache_clear()
    monkeypatch.setattr(pictures, "_CHILD", "import os; os.abort()")
    with pytest.raises(EvaluationError, match=r"need vl-convert, .* \(ulimit -v\): run it without"):
        page("one", "", [], warning="", footer="")
