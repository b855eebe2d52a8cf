"""Image encoders: trained, continued, and what their features are."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from builders.errors import BuildError
from tests.builders.features.image_sets import colours, recipe, stored, table


def test_a_trained_model_tells_colours_apart(tmp_path: Path) -> None:
    plain = recipe(epochs=12, rand_augment_layers=0)
    plain.train(colours(60), tmp_path, seed=0)
    rest = colours(60, seed=1)
    encoded = plain.load(tmp_path).encode(rest)
    assert encoded.logits is not None
    assert np.mean(encoded.logits.argmax(axis=1) == rest["label"][:]) > 0.9  # a guess is right in a third


def test_weights_do_not_depend_on_workers_or_callers_generators(trained_on_colours: Path, tmp_path: Path) -> None:
    torch.manual_seed(77)
    random.seed(77)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    recipe(workers=0).train(colours(30), tmp_path, seed=1)
    assert (tmp_path / "model.safetensors").read_bytes() == (trained_on_colours / "model.safetensors").read_bytes()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    np.testing.assert_equal(np.random.get_state(), before[2])  # noqa: NPY002


def test_another_seed_gives_other_weights(trained_on_colours: Path, tmp_path: Path) -> None:
    recipe().train(colours(30), tmp_path, seed=2)
    assert (tmp_path / "model.safetensors").read_bytes() != (trained_on_colours / "model.safetensors").read_bytes()


class Kill(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("epoch 2 of"):
            os.kill(os.getpid(), signal.SIGKILL)


def train_and_be_killed(folder: Path) -> None:
    logger = logging.getLogger("builders.features.image_training")
    logger.setLevel(logging.INFO)
    logger.addHandler(Kill())
    recipe(workers=1).train(colours(30), folder, seed=1)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_killed_run_goes_on_to_the_same_weights(
    trained_on_colours: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = multiprocessing.get_context("fork").Process(target=train_and_be_killed, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(BuildError, match="no finished model"):
        recipe().load(tmp_path)
    caplog.set_level("INFO", logger="builders.features.image_training")
    recipe(workers=2).train(colours(30), tmp_path, seed=1)
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("going on after epoch 1")
    assert [line[:12] for line in said[1:]] == ["epoch 2 of 3", "epoch 3 of 3"]
    assert (tmp_path / "model.safetensors").read_bytes() == (trained_on_colours / "model.safetensors").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors", "trained.json"]


def test_a_finished_run_is_not_run_again(trained_on_colours: Path) -> None:
    before = (trained_on_colours / "model.safetensors").stat().st_mtime_ns
    recipe().train(colours(30), trained_on_colours, seed=1)
    assert (trained_on_colours / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "seed", "rows", "named"),
    [({}, 3, 30, "seed = 1, not 3"), ({"epochs": 4}, 1, 30, "epochs = 3, not 4"), ({}, 1, 29, "rows = '30 rows")],
)
def test_a_folder_of_another_run_is_refused(
    trained_on_colours: Path, changes: dict[str, Any], seed: int, rows: int, named: str
) -> None:
    with pytest.raises(BuildError, match=named):
        recipe(**changes).train(colours(30).select(range(rows)), trained_on_colours, seed=seed)


def test_a_model_of_other_settings_is_not_loaded(trained_on_colours: Path) -> None:
    with pytest.raises(BuildError, match="image_size = 16, not 32"):
        recipe(image_size=32).load(trained_on_colours)


def test_a_loss_that_is_no_number_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"loss of epoch \d is (nan|inf); use a lower learning_rate"):
        recipe(learning_rate=1e30, optimizer="sgd").train(colours(30), tmp_path, seed=0)


@pytest.mark.parametrize("optimizer", ["sgd", "rmsprop"])
def test_other_optimizers_lower_the_loss(optimizer: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="builders.features.image_training")
    plain = recipe(optimizer=optimizer, learning_rate=0.01, epochs=6, rand_augment_layers=0, drop_rate=0.0)
    plain.train(colours(30), tmp_path, seed=0)
    losses = [float(record.getMessage().rpartition(" ")[2]) for record in caplog.records]
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_warm_up_rows_are_refused(rows: int, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=f"at least 2 rows, not {rows}"):
        recipe().train(colours(2).select(range(rows)), tmp_path, seed=0)


def test_labels_outside_the_names_are_refused(tmp_path: Path) -> None:
    rows = colours(4).remove_columns("label").add_column("label", [0, 1, 3, -1])
    with pytest.raises(BuildError, match="label 3 is outside the 3 names"):
        recipe().train(rows, tmp_path, seed=0)
    with pytest.raises(BuildError, match="need a column 'label'; they have image, source_index"):
        recipe().train(colours(4).remove_columns("label"), tmp_path, seed=0)


def test_features_are_what_the_classifier_gets(trained_on_colours: Path) -> None:
    encoder = recipe().load(trained_on_colours)
    encoded = encoder.encode(colours(20, seed=1))
    weights = load_file(trained_on_colours / "model.safetensors")
    by_hand = encoded.features @ weights["fc.weight"].numpy().T + weights["fc.bias"].numpy()
    assert encoded.features.shape == (20, encoder.width) == (20, 96)
    assert encoded.features.dtype == np.float32
    np.testing.assert_allclose(encoded.logits, by_hand, atol=1e-5)


def test_features_depend_on_neither_workers_nor_chunks(trained_on_colours: Path) -> None:
    rows = colours(20, seed=1)
    whole = recipe(workers=2).load(trained_on_colours).encode(rows)
    encoder = recipe(workers=0).load(trained_on_colours)
    np.testing.assert_array_equal(encoder.encode(rows).features, whole.features)
    parts = [encoder.encode(rows.select(range(start, stop))).features for start, stop in ((0, 3), (3, 20))]
    np.testing.assert_allclose(np.concatenate(parts), whole.features, atol=1e-5)


def test_the_width_is_that_before_the_classifier_and_not_of_the_trunk() -> None:
    from builders.features.images import ImageEncoder

    mobile = recipe(model="mobilenetv3_small_050", image_size=32)  # 288 channels, then a hidden layer of 1,024
    assert ImageEncoder(mobile, mobile.new_model(), with_logits=True).width == 1024


def test_models_of_a_fixed_size_take_the_size_asked_for() -> None:
    vision = recipe(model="test_vit", image_size=48)
    from builders.features.images import ImageEncoder

    encoded = ImageEncoder(vision, vision.new_model(), with_logits=True).encode(colours(3))
    assert encoded.features.shape == (3, 64)


def test_no_rows_and_features_that_are_no_numbers_are_refused(trained_on_colours: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no rows to encode"):
        recipe().load(trained_on_colours).encode(colours(2).select([]))
    weights = load_file(trained_on_colours / "model.safetensors")
    weights["layer4.0.bn2.bias"][0] = float("nan")
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "trained.json").write_text((trained_on_colours / "trained.json").read_text())
    with pytest.raises(BuildError, match="features of row 100 are not finite"):
        recipe().load(tmp_path).encode(colours(2))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_is_named_in_one_line(workers: int, trained_on_colours: Path) -> None:
    good = stored(np.zeros((8, 8, 3), np.uint8))
    cut = {"bytes": good["bytes"][:40], "path": None}
    for broken, said in (
        (cut, "cannot be read"),
        (None, "has no image"),
        ({"bytes": None, "path": "gone.png"}, "gone"),
    ):
        with pytest.raises(BuildError, match=said) as caught:
            recipe(workers=workers).load(trained_on_colours).encode(table([good, broken, good], [0, 0, 0]))
        assert "row 101 (source_index" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_column_that_holds_no_images_is_refused(trained_on_colours: Path) -> None:
    with pytest.raises(BuildError, match=r"'image' must be there and hold images; the columns are text \(Value\)"):
        recipe().load(trained_on_colours).encode(datasets.Dataset.from_dict({"text": ["a"]}))
