"""What a run that was stopped goes on from: damaged, it is begun anew, used as far as it is whole, or refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders.filtered_sets import NAMES
from tests.fuzz.built import probes
from tests.fuzz.damage import any_of, odd_file, parquet, raw, tree
from tests.fuzz.models import checkpoint, evaluate
from tests.fuzz.target import Target

ROWS = 8


class StopError(Exception):
    """The run was stopped."""


@contextlib.contextmanager
def _stopped(module: Any, name: str, call: int) -> Iterator[None]:
    """Stop what runs inside when it calls a function for the `call`-th time."""
    calls: list[str] = []
    kept = getattr(module, name)

    def stopping(*args: Any, **options: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            raise StopError
        return kept(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, stopping)
        with contextlib.suppress(StopError):
            yield


def _scores(folder: Path) -> None:
    from evaluation import run

    checkpoint(folder)
    with _small_shards(), _stopped(run, "_score_shard", 2):
        evaluate(folder / "qa", probes(), folder / "out")


def _go_on_scoring(folder: Path) -> None:
    with _small_shards():
        evaluate(folder / "qa", probes(), folder / "out")


@contextlib.contextmanager
def _small_shards() -> Iterator[None]:
    from evaluation import store

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "ROWS_PER_SHARD", 2)
        yield


class _Encoder:
    width = 3

    def encode(self, rows: Any) -> Any:
        from builders.features.encoder import Encoded

        values = np.array(rows["label"], np.float32)[:, None] + np.arange(3, dtype=np.float32)
        return Encoded(values, values)


def _text_rows() -> Any:
    from datasets import ClassLabel, Dataset, Features, Value

    kinds = Features(
        {"premise": Value("string"), "hypothesis": Value("string"), "label": ClassLabel(names=list(NAMES))}
    )
    columns = {"premise": ["a"] * ROWS, "hypothesis": ["b"] * ROWS, "label": [row % 3 for row in range(ROWS)]}
    return Dataset.from_dict(columns, features=kinds)


def _compute(folder: Path) -> None:
    from builders.features.store import compute_features

    compute_features(_Encoder(), _text_rows(), folder / "features", inputs={}, n_classes=3, chunk=2)


def _features(folder: Path) -> None:
    from builders.features import store

    with _stopped(store, "_check", 3):
        _compute(folder)


def _fine_tune(folder: Path) -> None:
    from builders.features.transformer import TransformerRecipe, TransformerSettings

    settings = TransformerSettings(model=str(folder / "classifier"), max_length=16, epochs=2, batch_size=4)
    recipe = TransformerRecipe(settings, inputs=("premise", "hypothesis"), names=NAMES, device="cpu")
    recipe.train(_text_rows(), folder / "work", seed=0)
    recipe.load(folder / "work")


def _fine_tuning(folder: Path) -> None:
    from builders.features import finetuning

    checkpoint(folder)
    with _stopped(finetuning, "settle", 2), pytest.MonkeyPatch.context() as patch:
        patch.setattr(finetuning, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
        _fine_tune(folder)


def _train_esim(folder: Path) -> None:
    from builders.features.esim import EsimRecipe, EsimSettings

    settings = EsimSettings(dimension=4, hidden=4, epochs=2, batch_size=4, minimum_count=1)
    recipe = EsimRecipe(settings, inputs=("premise", "hypothesis"), names=NAMES, device="cpu")
    recipe.train(_text_rows(), folder / "work", seed=0)
    recipe.load(folder / "work")


def _esim(folder: Path) -> None:
    from builders.features import esim

    with _stopped(esim, "save", 2):
        _train_esim(folder)


def _train_images(folder: Path) -> None:
    from tests.builders.features.image_sets import colours, recipe

    encoder = recipe(workers=0, epochs=2)
    encoder.train(colours(ROWS), folder / "work", seed=0)
    encoder.load(folder / "work")


def _images(folder: Path) -> None:
    from builders.features import image_training

    with _stopped(image_training, "_save", 1):
        _train_images(folder)


def _filter(folder: Path) -> None:
    import aflite

    rng = np.random.default_rng(0)
    try:
        aflite.filter_dataset(
            rng.normal(size=(60, 4)), rng.integers(2, size=60), n=30, m=2, t=20, k=5, tau=0.5, seed=0,
            checkpoint=folder / "run.npz",
        )  # fmt: skip
    except ValueError as error:  # of a library, which does not know what the builders raise
        from builders.errors import BuildError

        raise BuildError(str(error)) from error


TARGETS = {
    "unfinished-scores": Target(
        _scores,
        any_of(
            *(tree("out/*/*/*/.*/settings.json"), parquet("out/*/*/*/.*/*.parquet")),
            *(raw("out/*/*/*/.*/*"), odd_file("out/*/*/*/.*/*")),
        ),
        _go_on_scoring,
        8,
    ),
    "unfinished-features": Target(
        _features, any_of(tree("features/.*/facts.json"), raw("features/.*/*"), odd_file("features/.*/*")), _compute, 20
    ),
    "unfinished-fine-tuning": Target(
        _fine_tuning,
        any_of(
            *(tree("work/run.json"), tree("work/*/*.json"), raw("work/*/*"), raw("work/*"), odd_file("work/*/*")),
        ),
        _fine_tune,
        6,
    ),
    "unfinished-ESIM": Target(_esim, any_of(raw("work/*"), odd_file("work/*")), _train_esim, 6),
    "unfinished-image-training": Target(_images, any_of(raw("work/*"), odd_file("work/*")), _train_images, 4),
    "unfinished-filter": Target(_filter, any_of(raw("run.npz"), odd_file("run.npz")), _filter, 10),
}
