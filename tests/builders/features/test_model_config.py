"""A configuration that no model has is refused before anything is made of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.errors import BuildError
from builders.features.checkpoints import find_checkpoint, first_line, load_tokenizer, load_weights
from builders.features.model_config import ModelFileError, check_fits, check_layers
from evaluation.errors import EvaluationError
from evaluation.loading import load_model
from evaluation.models import resolve_model

HEAD = "AutoModelForSequenceClassification"
BEFORE = {  # seen where the folder is looked at
    "no table": (["a"], "config.json holds no JSON object"),
    "digits": ('{"vocab_size": ' + "9" * 5_000 + "}", "config.json holds a whole number outside"),
    "deep": ('{"architectures": ' + "[" * 99_999, "config.json is nested more than 32 deep"),
    "layers": ({"num_hidden_layers": 10**9}, "config.json has num_hidden_layers 1000000000; the most is 2,000"),
    "no layers": ({"num_hidden_layers": 0}, "config.json has num_hidden_layers 0; the least is 1; get the model again"),
    "fewer than none": ({"n_layer": -3}, "config.json has n_layer -3; the least is 1"),
    "labels": ({"num_labels": 10**9, "id2label": None}, "has num_labels 1000000000; the most is 1,000,000"),
    "architecture": ({"architectures": [1]}, r"has architectures \[1\], which must be a list of names"),
    "architectures": ({"architectures": "BertModel"}, "has architectures 'BertModel', which must be a list of names"),
    "columns": ({"input_columns": 3}, "has input_columns 3, which must be a list of names"),
    "label names": ({"id2label": ["a", "b"]}, "has an id2label that is no table of names by number"),
    "label numbers": ({"id2label": {"9" * 99: "a"}}, "has an id2label that is no table of names by number"),
}
LOADING = {  # seen where weights are loaded
    "words": ({"vocab_size": 10**12}, r"config.json describes 64,\d+ GB .* \d+ GB of memory; pass a smaller model"),
    "positions": ({"max_position_embeddings": 10**12}, r"config.json describes 64,\d+ GB of weights"),
    "no number": ({"vocab_size": "many"}, "'vocab_size': .*many"),
    "activation": ({"hidden_act": "nope"}, "its files lack 'nope', or name it and transformers does not know it$"),
    "fewer layers": (
        {"num_hidden_layers": 1},
        r"has num_hidden_layers 1, and .*\(bert.encoder.layer.1.* unused",
    ),
    "negative": ({"hidden_size": -16}, "."),
    "heads": ({"num_attention_heads": -1}, "."),
    "kind": ({"model_type": 3}, "."),
    "unknown kind": ({"model_type": "x"}, "."),
    "type": ({"dtype": "x"}, "."),
    "positions below zero": ({"max_position_embeddings": -5}, "."),
}


def spoil(make_model: Any, folder: Path, change: Any) -> Path:
    """Copy a good classifier, with another config.json."""
    shutil.copytree(make_model("BertForSequenceClassification"), folder)
    path = folder / "config.json"
    config = json.loads(path.read_text()) | change if isinstance(change, dict) else change
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return folder


@pytest.mark.parametrize("name", BEFORE)
def test_an_odd_configuration_is_refused_where_the_folder_is_named(name: str, make_model: Any, tmp_path: Path) -> None:
    change, message = BEFORE[name]
    folder = str(spoil(make_model, tmp_path / "model", change))
    with pytest.raises(BuildError, match=message):
        find_checkpoint(folder)
    with pytest.raises(EvaluationError, match=message):
        resolve_model(folder)


@pytest.mark.parametrize("name", LOADING)
def test_an_odd_configuration_is_refused_before_weights_are_made(name: str, make_model: Any, tmp_path: Path) -> None:
    change, message = LOADING[name]
    folder = str(spoil(make_model, tmp_path / "model", change))
    with pytest.raises(EvaluationError, match=f"^{folder}.*{message}"):
        load_model(resolve_model(folder))
    if name not in ("heads", "positions below zero"):  # what the weights say to those is another matter
        with pytest.raises(BuildError, match=f"^model {folder}.*{message}"):
            load_weights(find_checkpoint(folder), HEAD, dtype="float32")


def test_a_tokenizer_that_stumbles_over_new_words_is_refused(make_model: Any, tmp_path: Path) -> None:
    folder = spoil(make_model, tmp_path / "model", {})
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"unk_token": "[UNK]"', '"unk_token": "[NEW]"'))
    with pytest.raises(EvaluationError, match="cannot be loaded as a text-classification model"):
        load_model(resolve_model(str(folder)))
    checkpoint = find_checkpoint(str(folder))
    model, _ = load_weights(checkpoint, HEAD, dtype="float32")
    with pytest.raises(BuildError, match="cannot be used"):
        load_tokenizer(checkpoint, model, max_length=8)


def test_the_look_at_sizes_leaves_chance_alone(make_model: Any) -> None:
    import torch

    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_fits(HEAD, make_model("BertForSequenceClassification"), bytes_each=4)
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_that_are_there_twice_are_counted_once(make_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil
    import transformers

    folder = make_model("BertForMaskedLM")
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    needed = 4 * sum(weight.numel() for weight in model.parameters())  # a tied one is one parameter
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=needed))
    assert 4 * check_fits("AutoModelForMaskedLM", folder, bytes_each=4) == needed
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=needed - 1))
    with pytest.raises(ModelFileError, match=r"a machine with more memory$"):
        check_fits("AutoModelForMaskedLM", folder, bytes_each=4)


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
@pytest.mark.parametrize("place", ["../other", "{}/other", "below"])
def test_weights_outside_the_folder_are_refused(place: str, suffix: str, make_model: Any, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    folder, other = spoil(make_model, tmp_path / "model", {}), tmp_path / "other"
    (folder / "below").mkdir()
    other.mkdir()
    weights = load_file(folder / "model.safetensors")
    for target in (folder / "below", other):
        shutil.copy(folder / "model.safetensors", target)
        torch.save(weights, target / "model.bin")
    (folder / "model.safetensors").unlink()
    name = f"{place.format(tmp_path)}/model.{suffix}"
    index = folder / f"{'pytorch_model' if suffix == 'bin' else 'model'}.{suffix}.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(weights, name)}))
    message = f"{index.name} names weights in '.*', which is no file beside it; get the model again"
    with pytest.raises(EvaluationError, match=message):
        load_model(resolve_model(str(folder)))
    with pytest.raises(BuildError, match=message):
        load_weights(find_checkpoint(str(folder)), HEAD, dtype="float32")


@pytest.mark.parametrize(
    ("more", "extra"),
    [
        ({}, "bert.pooler.dense.weight"),
        ({}, "cls.seq_relationship.weight"),
        ({}, "bert.embeddings.position_ids"),
        ({}, "bert.other.layer.9.weight"),
        ({}, "classifier.2.weight"),
        ({"num_nextn_predict_layers": 1}, "bert.encoder.layer.2.weight"),
    ],
)
def test_unused_weights_that_are_no_layers_of_the_model_are_no_fault(make_model: Any, more: Any, extra: str) -> None:
    import torch
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(make_model("BertForSequenceClassification"))
    model.classifier = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])  # as many as layers
    for name, value in more.items():
        setattr(model.config, name, value)
    check_layers(model, [extra])
    if more:
        delattr(model.config, *more)
        with pytest.raises(ModelFileError, match="num_hidden_layers 2"):
            check_layers(model, [extra])


@pytest.mark.parametrize("auto_class", ["AutoModel", "AutoModelForSequenceClassification"])
def test_layers_are_known_with_and_without_the_prefix_of_the_body(make_model: Any, auto_class: str) -> None:
    import transformers

    model = getattr(transformers, auto_class).from_pretrained(make_model("BertForSequenceClassification"))
    for prefix in ("", "bert."):
        check_layers(model, [f"{prefix}encoder.layer.1.extra.weight"])
        with pytest.raises(ModelFileError, match=r"encoder.layer.2.extra.weight"):
            check_layers(model, [f"{prefix}encoder.layer.2.extra.weight"])


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("Validation error for field 'x':\n\n    TypeError: odd\nmore"), "field 'x': TypeError: odd"),
        (ValueError("one\ntwo"), "one"),
        (ValueError("one:"), "one:"),
        (ValueError(), "ValueError"),
    ],
)
def test_a_line_that_ends_with_a_colon_goes_on(error: Exception, line: str) -> None:
    assert first_line(error).removeprefix("Validation error for ") == line
