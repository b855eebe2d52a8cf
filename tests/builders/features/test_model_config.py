"""A configuration that no model has is refused before anything is made of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from builders.errors import BuildError
from builders.features.checkpoints import find_checkpoint, load_tokenizer, load_weights
from evaluation.errors import EvaluationError
from evaluation.loading import load_model
from evaluation.models import resolve_model

HEAD = "AutoModelForSequenceClassification"
BEFORE = {  # seen where the folder is looked at
    "no table": (["a"], "config.json holds no JSON object"),
    "digits": ('{"vocab_size": ' + "9" * 5_000 + "}", "config.json holds a whole number outside"),
    "deep": ('{"architectures": ' + "[" * 99_999, "config.json is nested more than 32 deep"),
    "layers": ({"num_hidden_layers": 10**9}, "config.json has num_hidden_layers 1000000000; the most is 2,000"),
    "labels": ({"num_labels": 10**9, "id2label": None}, "has num_labels 1000000000; the most is 1,000,000"),
    "architecture": ({"architectures": [1]}, r"has architectures \[1\], which must be a list of names"),
    "architectures": ({"architectures": "BertModel"}, "has architectures 'BertModel', which must be a list of names"),
    "columns": ({"input_columns": 3}, "has input_columns 3, which must be a list of names"),
    "label names": ({"id2label": ["a", "b"]}, "has an id2label that is no table of names by number"),
    "label numbers": ({"id2label": {"9" * 99: "a"}}, "has an id2label that is no table of names by number"),
}
LOADING = {  # seen where weights are loaded
    "words": ({"vocab_size": 10**12}, r"config.json describes 64,\d+ GB of weights, and there are \d+ GB of memory"),
    "positions": ({"max_position_embeddings": 10**12}, r"config.json describes 64,\d+ GB of weights"),
    "no number": ({"vocab_size": "many"}, "vocab_size"),
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

    from builders.features.model_config import check_fits

    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_fits(HEAD, make_model("BertForSequenceClassification"), bytes_each=4)
    assert torch.equal(torch.get_rng_state(), before)
