"""A small probe set to train on."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.unqover import build_unqover
from evaluation.demo.run import LISTS
from unqover_data import read_toml

LEFT_OUT = tuple(f'  {{ name = "{town}" }}' for town in ("Elmovian", "Fostrian", "Galdish", "Holmaric"))


@pytest.fixture(scope="session")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe set of three of the towns."""
    lists = tmp_path_factory.mktemp("lists") / "few.toml"
    kept = (line for line in LISTS.read_text(encoding="utf-8").splitlines() if not line.startswith(LEFT_OUT))
    lists.write_text("\n".join(kept), encoding="utf-8")
    return build_unqover(read_toml(lists), tmp_path_factory.mktemp("build")).folder
