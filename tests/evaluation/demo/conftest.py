"""The demo's models, trained once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.unqover import build_unqover
from evaluation.demo.run import LISTS
from unqover_data import read_toml


@pytest.fixture(scope="session")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built probe set."""
    return build_unqover(read_toml(LISTS), tmp_path_factory.mktemp("build")).folder
