"""Equal inputs give equal bytes of a whole folder, wherever it and what it is made of lie."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_what_a_build_was_made_of_is_in_the_same_order_in_every_process() -> None:
    """Sets of texts come in another order in each process; with these seeds in two."""
    code = (
        "import json, types; from builders.aflite import _inputs; from builders.specs import load_spec; "
        "print(json.dumps(_inputs(load_spec('snli'), types.SimpleNamespace(revision='1'), 0.1, None, None)))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
