"""Wherever a run was cut, and however many processes it has: the same bytes as of one that was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from builders.features import images, text_encoder
from builders.folder import Built
from builders.planted import LABELS
from evaluation import store
from evaluation.classifiers.run import ClassifierOptions, evaluate_classifier
from evaluation.classifiers.scoring import loaded
from evaluation.run import Engine
from tests.builders.features.image_sets import colours, recipe
from tests.evaluation.classifiers.exact_models import save_tokenizer
from tests.evaluation.classifiers.stopped import stopped_after
from tests.evaluation.classifiers.test_image_classifiers import build_colours
from tests.evaluation.classifiers.test_parallel import counted

CPU = Engine(device="cpu", decoders=0)
SHARD = 70


@pytest.fixture(autouse=True)
def _shards_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As with 2,000 rows a shard and 1,024 a block: a shard is no whole number of blocks."""
    monkeypatch.setattr(store, "ROWS_PER_SHARD", SHARD)
    monkeypatch.setattr(text_encoder, "_ROWS_OF_BLOCK", 40)
    yield
    loaded.cache_clear()


def score(model: Path, built: Built, out: Path, engine: Engine = CPU) -> bytes:
    done = evaluate_classifier(
        str(model), str(built.folder), ClassifierOptions(), engine=engine, out=out, splits=["train"]
    )
    return done.path.with_suffix(".parquet").read_bytes()


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text classifier of chance weights whose sums are long enough to depend on what is beside a row."""
    folder = tmp_path_factory.mktemp("wide")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=save_tokenizer(folder),
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=384,
        num_labels=3,
        id2label=dict(enumerate(LABELS)),
        initializer_range=0.3,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_a_text_run_that_was_cut_after_any_shard_has_the_bytes_of_an_uncut_one(
    planted: Built, wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = score(wide, planted, tmp_path / "whole")
    for shards in range(1, -(-324 // SHARD)):
        with stopped_after(shards):
            score(wide, planted, tmp_path / str(shards))
        assert score(wide, planted, tmp_path / str(shards)) == whole, shards
    monkeypatch.setattr("evaluation.classifiers.scoring.in_parallel", counted([]))  # as each of two processes does it
    assert score(wide, planted, tmp_path / "two", replace(CPU, workers=2)) == whole


def test_an_image_run_that_was_cut_has_the_bytes_of_an_uncut_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 20)
    built = build_colours(tmp_path)
    model = tmp_path / "model"
    recipe(rand_augment_layers=0, epochs=1).train(colours(60), model, seed=0)
    engine = replace(CPU, batch_size=16)
    whole = score(model, built, tmp_path / "whole", engine)
    with stopped_after(1):
        score(model, built, tmp_path / "cut", engine)
    assert score(model, built, tmp_path / "cut", engine) == whole


@pytest.mark.parametrize(("rows", "size", "part"), [(100, 16, 30), (64, 16, 64), (7, 64, 3), (0, 8, None)])
def test_batches_of_a_part_do_not_depend_on_others(rows: int, size: int, part: int | None) -> None:
    batches: list[Any] = images.batches_in_order(rows, size, part=part)
    assert [row for batch in batches for _, row in batch] == list(range(rows))
    for first in range(0, rows, part or 1):
        last = min(rows, first + (part or rows))
        of_part = [[(0, row - first) for _, row in batch] for batch in batches if first <= batch[0][1] < last]
        assert of_part == images.batches_in_order(last - first, size)
