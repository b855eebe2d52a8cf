"""The view of filtered sets in a browser: draws, picks labels, rows and squares, and shows markup as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.folder import Built
from builders.refilter import refilter
from evaluation.report import write_report
from tests.evaluation.report.classified import store_classified
from tests.evaluation.report.conftest import NARROW, ODD_NAMES, WIDE, OpenPage

MODEL = "org/<i>odd<i>"


@pytest.fixture(scope="module")
def report(filtered: Built, digits: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, then texts, then the texts cut again, which have no similarities."""
    root = tmp_path_factory.mktemp("report")
    cut = refilter(filtered.folder, root / "cut", version="1.1.0", n=200)
    store_classified(root / "results", filtered.folder, MODEL, wrong, split="train")
    return write_report([filtered.folder, digits.folder, cut.folder, root / "results"], root / "report.html")


def wrong(facts: pa.Table) -> Any:
    """Wrong on the kept rows of even places."""
    kept = np.array(facts["part"].to_pylist()) == "filtered"
    return kept & (facts["source_index"].to_numpy() % 2 == 0)


def views(panel: Any) -> tuple[Any, Any, Any]:
    """The rows of the images, of the texts, and of the texts cut again."""
    found = panel.locator(".filtering").all()
    assert len(found) == 3
    return found[0], found[1], found[2]


def labels(shown: Any) -> list[str]:
    return [one.inner_text() for one in shown.locator("li .label").all()]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_it_draws(report: Path, open_page: OpenPage, width: int) -> None:
    panel = open_page(report, width).show("filtering")
    images, texts, cut = views(panel)
    for chart in panel.locator(".chart").all():
        assert chart.locator("svg.marks").count() == 1
        assert len(chart.get_attribute("aria-label")) > 30
        box, inside = chart.bounding_box(), chart.locator("svg.marks").bounding_box()
        assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1
    assert all(images.evaluate("node => [...node.querySelectorAll('img')].map((one) => one.naturalWidth === 8)"))
    assert all(one.get_attribute("alt").startswith("Image with label") for one in images.locator("img").all())
    assert texts.locator("img").count() == 0
    assert "does not hold how alike its rows are" in cut.inner_text()
    assert cut.locator(".chart").count() == 0
    assert not {"undefined", "NaN", "null"} & set(panel.inner_text().split())


def test_a_label_is_picked(report: Path, open_page: OpenPage) -> None:
    _, texts, cut = views(open_page(report).show("filtering"))
    shown = texts.locator(".shown").first
    for name in ODD_NAMES[1:]:
        texts.get_by_role("combobox", name="Label").select_option(label=name)
        texts.page.wait_for_function(
            "(node) => node.querySelectorAll('svg.marks').length === 1", arg=shown.element_handle()
        )
        found = labels(shown)
        assert len(found) == 16
        assert {label.split(maxsplit=1)[1] for label in found} == {name}
    texts.get_by_role("combobox", name="Label").select_option(label="all labels")
    assert len(labels(shown)) == 24
    assert shown.locator(".chart").count() == 0
    cut.get_by_role("combobox", name="Label").select_option(label=ODD_NAMES[0])
    assert set(labels(cut.locator(".shown").first)) == {ODD_NAMES[0]}


def test_a_kept_row_is_picked(report: Path, open_page: OpenPage) -> None:
    images, texts, _ = views(open_page(report).show("filtering"))
    for view in (images, texts):
        near = view.locator(".shown").last
        before = near.inner_text()
        view.get_by_role("combobox", name="Kept row").select_option(index=5)
        assert near.inner_text() != before
        assert near.locator("li.kept").count() == 1
        assert near.locator("li.removed").count() == 4
        assert "cosine" in near.inner_text()
        kept, *removed = [label.split(maxsplit=2)[2] if label.startswith("cosine") else label for label in labels(near)]
        others = sum(label != kept for label in removed)
        assert f"Its nearest removed rows: {others} of 4 have another label" in near.inner_text()


def test_a_square_is_picked(report: Path, open_page: OpenPage) -> None:
    _, texts, _ = views(open_page(report).show("filtering"))
    chart = texts.locator(".shown .chart").first
    chart.scroll_into_view_if_needed()
    cells = chart.locator("svg .mark-rect.role-mark path")
    assert cells.count() == 16 * 16
    cells.nth(2 * 16 + 9).click()  # third row, tenth column
    chosen = texts.locator(".chosen")
    assert "kept 3 and removed 2: cosine" in chosen.inner_text()
    listed = texts.locator(".side").first.locator("li dd").all_inner_texts()
    assert chosen.locator("li.kept dd").all_inner_texts() == listed[4:6]
    assert chosen.locator("li.removed").count() == 1


def test_markup_is_text(report: Path, open_page: OpenPage) -> None:
    panel = open_page(report).show("filtering")
    assert "*not* <b>bold</b>" in panel.inner_text()
    assert panel.locator("b, i").count() == 0
    table = panel.locator(".table", has_text="Accuracy on snli-aflite 1.0.0")
    assert table.locator("tbody td").first.inner_text() == "<i>odd<i>"
