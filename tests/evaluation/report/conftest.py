"""A page in headless Chromium, without a network, that must not complain; small sets and results to report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from builders.unqover import build_unqover
from tests.evaluation.conftest import LISTS
from tests.evaluation.report.stored import store_result
from unqover_data import read_toml

WIDE, NARROW = 1440, 375


@dataclass
class Opened:
    """A page, what it wrote to the console, and what it asked the network for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def show(self, tab: str) -> Any:
        """Open a tab, wait until it is drawn, and give its panel."""
        self.page.click(f"#tab-{tab}")
        self.page.wait_for_selector(f"#{tab}[data-drawn=done]")
        return self.page.locator(f"#{tab}")

    def check(self) -> None:
        """Fail on complaints, on requests, and where the page is wider than the screen."""
        assert (self.complaints, self.requests) == ([], [])
        assert self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


OpenPage = Callable[..., Opened]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Give a browser; tests are skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(names)} is on PATH")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=120_000)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[OpenPage]:
    """Give what opens a file at a width in pixels; the page is checked again at the end of the test."""
    contexts, pages = [], []

    def open_file(path: Path, width: int = WIDE) -> Opened:
        context = chromium.new_context(viewport={"width": width, "height": 900}, offline=True, accept_downloads=True)
        context.set_default_timeout(30_000)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("request", lambda request: _note(opened.requests, request.url))
        opened.page.goto(path.resolve().as_uri())
        contexts.append(context)
        pages.append(opened)
        return opened

    yield open_file
    for opened in pages:
        opened.check()
    for context in contexts:
        context.close()


def _note(requests: list[str], url: str) -> None:
    if not url.startswith(("file:", "data:", "blob:")):
        requests.append(url)


@pytest.fixture(scope="session")
def few_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set of sixteen rows as a built folder: four names, two attributes, female and male."""
    path = tmp_path_factory.mktemp("few") / "few.toml"
    path.write_text(LISTS, encoding="utf-8")
    return build_unqover(read_toml(path), path.parent / "build").folder


@pytest.fixture(scope="session")
def few_results(few_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a masked LM, of two models tuned from it with a planted stereotype, and of another without one."""
    out = tmp_path_factory.mktemp("results")
    store_result(out, few_folder, "org/small-lm", kind="mlm", bias=0.02, noise=0.005, parameters=1_000, seed=1)
    store_result(out, few_folder, "org/small-squad", bias=0.1, noise=0.005, parameters=1_000, seed=2)
    store_result(
        out, few_folder, "org/small-newsqa", bias=0.2, noise=0.005, parameters=1_000, seed=3, context_prefix="newsqa"
    )
    store_result(out, few_folder, "org/other-squad", noise=0.005, parameters=5_000, seed=4)
    return out
