"""Planted rows that were filtered, and a model whose every decision is known."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from builders.folder import Built
from tests.evaluation.classifiers.exact_models import build_planted, hypothesis_reader


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hypothesis_reader(tmp_path_factory.mktemp("reader") / "reader")


@pytest.fixture(autouse=True)
def _one_thread_and_quiet() -> None:
    import torch

    torch.set_num_threads(1)
    logging.getLogger("transformers").setLevel(logging.ERROR)
