"""Equal inputs give equal bytes of a whole folder, wherever it and what it is made of lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from builders.folder import Built
from builders.refilter import refilter
from builders.unqover import build_unqover
from tests.builders.filtered_sets import build
from unqover_data import load_lists


def tree(folder: Path) -> dict[str, bytes]:
    """Content of every file, by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _refiltered(root: Path) -> Built:
    stored = build(root, "filter.tau=0.7", "filter.n=100", easy_share=0.4)
    return refilter(stored.folder, root / "cut", version="1.1.0", n=200)


BUILDS: dict[str, Callable[[Path], Built]] = {
    "filtered": build,
    "refiltered": _refiltered,
    "probes": lambda root: build_unqover(load_lists("religion"), root, configs=["qa"]),
}


@pytest.mark.parametrize("name", BUILDS)
def test_two_builds_of_the_same_are_the_same_bytes(name: str, tmp_path: Path) -> None:
    first, second = (BUILDS[name](tmp_path / place) for place in ("one", "another/place"))
    assert tree(first.folder) == tree(second.folder)
