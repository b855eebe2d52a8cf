"""The page in a browser: opens offline without a complaint, draws, sorts, searches, and shows markup as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.report import write_report
from tests.evaluation.report.conftest import NARROW, WIDE, OpenPage


@pytest.fixture(scope="module")
def report(few_results: Path, few_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([few_results, few_folder], tmp_path_factory.mktemp("report") / "report.html")


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
        assert "undefined" not in panel.inner_text()
        opened.check()
