"""Encoding with tiny models: what the features are, and what cannot be had."""

from __future__ import annotations

import dataclasses
import gc
import json
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.errors import BuildError, HubError
from builders.features import text_encoder
from builders.features.text_encoder import RowTokenizer, TransformerEncoder
from builders.features.transformer import TransformerRecipe, TransformerSettings
from tests.builders.features.text_models import NAMES, PAIR, classifier, recipe_of


@pytest.fixture(scope="module")
def bert(make_model):
    return make_model("BertModel")


def one_by_one(folder: Path, rows: Any, part: Any) -> np.ndarray:
    """The oracle: each pair alone through the model of transformers, without padding."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    made = []
    with torch.inference_mode():
        for row in rows:
            batch = tokenizer(*[row[name] for name in PAIR], truncation=True, max_length=24, return_tensors="pt")
            made.append(part(model, batch)[0].numpy())
    return np.array(made)


def bert_pooler(model: Any, batch: Any) -> Any:
    return model.bert(**batch).pooler_output


def roberta_dense(model: Any, batch: Any) -> Any:
    """Tanh of the head's first layer at the first token; the output layer comes next."""
    return model.classifier.dense(model.roberta(**batch).last_hidden_state[:, 0]).tanh()


def last_token(model: Any, batch: Any) -> Any:
    return model.transformer(**batch).last_hidden_state[:, -1]


def mean_of_all(model: Any, batch: Any) -> Any:
    return model.base_model(**batch).last_hidden_state.mean(1)


@pytest.mark.parametrize(
    ("name", "pooling", "side", "part"),
    [
        ("BertForSequenceClassification", "head", "right", bert_pooler),
        ("BertForSequenceClassification", "mean", "right", mean_of_all),
        ("RobertaForSequenceClassification", "head", "right", roberta_dense),
        ("RobertaForSequenceClassification", "mean", "right", mean_of_all),
        ("GPT2ForSequenceClassification", "head", "right", last_token),
        ("GPT2ForSequenceClassification", "head", "left", last_token),
        ("FNetForSequenceClassification", "mean", "right", mean_of_all),  # mixes padding with text, has no mask
        ("ConvBertForSequenceClassification", "mean", "right", mean_of_all),  # mixes padding with text, has a mask
    ],
)
def test_features_are_what_the_output_layer_sees(make_model, make_rows, name, pooling, side, part):
    sizes = {"GPT2": {"bos_token_id": 2, "eos_token_id": 3}, "ConvBert": {"embedding_size": 16, "conv_kernel_size": 3}}
    more = sizes.get(name.removesuffix("ForSequenceClassification"), {})
    folder, rows = classifier(make_model, name, side=side, **more), make_rows(60, seed=4)
    encoded = recipe_of(folder, pooling=pooling).load(None).encode(rows)
    np.testing.assert_allclose(encoded.features, one_by_one(folder, rows, part), atol=1e-5)
    logits = one_by_one(folder, rows, lambda model, batch: model(**batch).logits)
    np.testing.assert_allclose(encoded.logits, logits, atol=1e-5)


def test_features_do_not_depend_on_chunks(make_model, make_rows, monkeypatch):
    monkeypatch.setattr(text_encoder, "_ROWS_OF_BLOCK", 1024)
    encoder = recipe_of(classifier(make_model, "BertForSequenceClassification")).load(None)
    rows = make_rows(1500)  # more than a block
    whole = encoder.encode(rows)
    parts = [encoder.encode(rows.select(range(start, min(start + 400, 1500)))) for start in range(0, 1500, 400)]
    np.testing.assert_allclose(np.concatenate([part.features for part in parts]), whole.features, atol=1e-5)
    np.testing.assert_array_equal(encoder.encode(rows).features, whole.features)
    assert encoder.encode(rows.select([])).features.shape == (0, 16)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("pooling", ["head", "mean"])
def test_a_row_without_tokens_is_one_of_padding_whatever_is_beside_it(make_model, make_rows, tmp_path, pooling, side):
    """Some tokenizers, like GPT-2's, add nothing to a text, so that an empty one makes no token."""
    from transformers import AutoTokenizer

    made = classifier(make_model, "GPT2ForSequenceClassification", side=side, bos_token_id=2, eos_token_id=3)
    folder = shutil.copytree(made, tmp_path / "model")
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"post_processor": None}))
    rows = make_rows(6).map(lambda row, place: dict.fromkeys(PAIR, "") if place in (2, 4) else row, with_indices=True)
    encoder = recipe_of(folder, pooling=pooling).load(None)
    among, alone = encoder.encode(rows).features, encoder.encode(rows.select([2, 4])).features
    padding = rows.select([0]).map(lambda _: {"premise": "[PAD]", "hypothesis": ""})
    np.testing.assert_allclose(among[[2, 4]], alone, atol=1e-5)
    np.testing.assert_allclose(alone, encoder.encode(padding).features[[0, 0]], atol=1e-5)
    assert np.isfinite(among).all()
    batch = RowTokenizer(AutoTokenizer.from_pretrained(folder), PAIR, 24).tensors(rows[2:3], "cpu")
    assert {name: values.tolist() for name, values in batch.items()} == {"input_ids": [[0]], "attention_mask": [[1]]}


@pytest.mark.parametrize("first", ["input_ids", "attention_mask"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_a_batch_for_training_is_what_the_tokenizer_pads(bert, make_rows, side, first):
    from transformers import AutoTokenizer

    names = sorted(["input_ids", "token_type_ids", "attention_mask"], key=lambda name: name != first)
    tokenizer = AutoTokenizer.from_pretrained(bert, padding_side=side, model_input_names=names)
    rows = make_rows(80)[:]
    texts = [list(rows[name]) for name in PAIR]
    expected = tokenizer(*texts, truncation=True, max_length=14, padding=True, return_tensors="np")
    made = RowTokenizer(tokenizer, PAIR, 14).tensors(rows, "cpu")
    assert made.keys() == expected.keys()
    for name, values in made.items():
        np.testing.assert_array_equal(values.numpy(), expected[name])


@pytest.mark.parametrize(("side", "most"), [("right", None), ("right", 5), ("left", None)])
def test_batches_hold_each_row_once_without_padding_and_are_as_large_as_they_may_be(bert, make_rows, side, most):
    from transformers import AutoTokenizer

    rows = make_rows(4200, seed=2)
    tokenizer = RowTokenizer(AutoTokenizer.from_pretrained(bert, padding_side=side), PAIR, 24)
    encoder = TransformerEncoder(tokenizer, _lengths_as_features, order=None, device="cpu", most_rows=most)
    blocks = list(encoder.batches(rows))
    assert [sorted(np.concatenate([places for places, _ in block])) for block in blocks] == [
        list(range(4096)),
        list(range(104)),
    ]
    for block in blocks:
        shapes = [tuple(batch["input_ids"].shape) for _, batch in block]
        for (size, length), following in zip(shapes, [*shapes[1:], (0, 0)], strict=True):
            room = min(most or 1024, 1024 // length)
            assert size == room if following[1] == length else size <= room
        assert all(batch["attention_mask"].all() for _, batch in block)
    np.testing.assert_array_equal(encoder.encode(rows).features[:, 0], tokenizer.lengths(rows))


def test_rows_are_tokenised_while_the_model_is_busy(bert, make_rows):
    from transformers import AutoTokenizer

    called = threading.Semaphore(0)
    tokenizer = AutoTokenizer.from_pretrained(bert)

    @dataclasses.dataclass(frozen=True)
    class Told(RowTokenizer):
        def tokens(self, rows: Any) -> Any:
            called.release()
            return super().tokens(rows)

    encoder = TransformerEncoder(Told(tokenizer, PAIR, 24), _lengths_as_features, order=None, device="cpu")
    assert called.acquire(blocking=False)  # for the row that shows the width
    blocks = encoder.batches(make_rows(5000))
    next(blocks)
    assert all(called.acquire(timeout=60) for _ in range(2)), "the second block waits until the first is done with"
    assert len(list(blocks)) == 1


def _lengths_as_features(batch: Any) -> tuple[Any, None]:
    return batch["attention_mask"].sum(1, keepdim=True), None


def test_tokenising_does_not_set_off_the_cycle_collector(bert, make_rows):
    """Each collection halts the model that computes meanwhile, by 0.2 s where all of torch is looked through."""
    from transformers import AutoTokenizer

    tokenizer, rows = RowTokenizer(AutoTokenizer.from_pretrained(bert), PAIR, 24), make_rows(6000)[:]
    seen: list[str] = []

    def see(phase: str, _: Any) -> None:
        seen.append(phase)

    gc.collect()
    gc.callbacks.append(see)
    try:
        tokenizer.tokens(rows)
    finally:
        gc.callbacks.remove(see)
    assert seen.count("stop") < 20  # 47 or more if many lists were there at once


def test_labels_of_a_classifier_are_put_in_our_order(make_model, make_rows):
    folder, rows = classifier(make_model, "BertForSequenceClassification"), make_rows(30)
    theirs = recipe_of(folder).load(None).encode(rows).logits
    turned = recipe_of(folder, names=("CONTRADICTION", "entailment", "Neutral")).load(None).encode(rows).logits
    np.testing.assert_array_equal(turned, theirs[:, [2, 0, 1]])
    others = recipe_of(folder, names=("yes", "no", "maybe")).load(None).encode(rows)
    assert others.logits is None
    assert others.features.shape == (30, 16)


def test_an_encoder_without_a_head_gives_pooler_or_mean(make_model, make_rows):
    import torch
    from transformers import AutoModel, AutoTokenizer

    rows = make_rows(20)
    for name, pooling, pooled in (
        ("BertModel", "head", True),
        ("BertModel", "mean", False),
        ("BertForMaskedLM", "head", False),
    ):
        folder = make_model(name)  # a masked LM has no weights for the pooler
        encoded = recipe_of(folder, pooling=pooling).load(None).encode(rows)
        assert encoded.logits is None
        model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
        with torch.inference_mode():
            made = model(**tokenizer(rows[7]["premise"], rows[7]["hypothesis"], return_tensors="pt"))
        expected = made.pooler_output[0] if pooled else made.last_hidden_state[0].mean(0)
        np.testing.assert_allclose(encoded.features[7], expected.numpy(), atol=1e-5)


def test_one_text_column_is_encoded_alone(make_model, make_rows):
    folder, rows = classifier(make_model, "RobertaForSequenceClassification"), make_rows(20)
    encoded = recipe_of(folder, inputs=("hypothesis",)).load(None).encode(rows)
    changed = rows.map(lambda row: {"premise": "cat"})
    np.testing.assert_array_equal(
        recipe_of(folder, inputs=("hypothesis",)).load(None).encode(changed).features, encoded.features
    )


def test_identity_is_the_content_and_not_the_place(bert, tmp_path):
    first = recipe_of(bert).identity()
    assert first["revision"].startswith("sha256:")
    assert (first["dtype"], first["pooling"], first["inputs"]) == ("float32", "head", list(PAIR))
    copy = shutil.copytree(bert, tmp_path / "copy")
    (copy / "README.md").write_text("no part of the model")
    assert recipe_of(copy).identity() == first
    assert str(bert) not in json.dumps(first)
    for field, value in (("pooling", "mean"), ("max_length", 20), ("dtype", "bfloat16")):
        assert recipe_of(bert, **{field: value}).identity() != first
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    assert recipe_of(copy).identity() != first


def test_a_local_folder_needs_no_network(make_model, make_rows, monkeypatch):
    folder = classifier(make_model, "BertForSequenceClassification")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    recipe = recipe_of(folder)
    assert recipe.identity()["model"] == "local folder"
    assert recipe.load(None).encode(make_rows(5)).features.shape == (5, 16)


def refused(says: str, call: Any) -> None:
    with pytest.raises((BuildError, HubError), match=says) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_settings_that_cannot_be_used_are_refused():
    for field, value, says in (
        ("epochs", 0, "epochs must be at least 1, not 0"),
        ("batch_size", 0, "batch_size must be"),
        ("learning_rate", -1.0, "learning_rate must be above 0"),
        ("epsilon", float("nan"), "epsilon must be above 0"),
        ("dtype", "half", "dtype must be one of auto"),
        ("dtype", "float16", "float16 needs a GPU"),
        ("pooling", "cls", "pooling must be one of head, mean"),
    ):
        refused(says, lambda field=field, value=value: recipe_of("org/model", **{field: value}))
    refused("one or two input columns, not 3", lambda: recipe_of("org/model", inputs=("a", "b", "c")))
    refused("two label names or more", lambda: recipe_of("org/model", names=("a",)))
    settings = TransformerSettings()
    refused("cpu or cuda, not 'tpu'", lambda: TransformerRecipe(settings, inputs=PAIR, names=NAMES, device="tpu"))
    assert dataclasses.is_dataclass(settings)


def test_models_that_cannot_be_had_are_refused(tmp_path, bert, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "empty").mkdir()
    refused("no config.json", lambda: recipe_of(tmp_path / "empty").identity())
    refused("a folder that exists, not", lambda: recipe_of(tmp_path / "nowhere").identity())
    refused("not 'a b'", lambda: recipe_of("a b").identity())
    refused("is no name that a Hub takes", lambda: recipe_of("org/-.bad--").identity())
    refused("local folder; leave it out", lambda: recipe_of(bert, revision="main").identity())
    refused(
        "org/none at main: HF_HUB_OFFLINE is set and it is not in the cache", lambda: recipe_of("org/none").identity()
    )


def test_an_encoder_of_the_hub_is_the_one_of_its_folder_and_needs_the_hub_once(
    make_model, make_rows, hub_here, monkeypatch
):
    from tests.hub_faults import Fault

    folder, rows = classifier(make_model, "BertForSequenceClassification"), make_rows(20)
    sha = hub_here.publish("org/bert", folder, kind="models", tag="v1")
    here = recipe_of(folder).load(None).encode(rows).features
    hub_here.faults.append(Fault("GET", "/tokenizer.json$", cut=-1))
    with pytest.raises(HubError, match=r"cannot fetch tokenizer.json of org/bert: .* broke off"):
        recipe_of("org/bert", revision="v1").load(None)
    hub_here.faults.clear()
    first = recipe_of("org/bert", revision="v1")
    np.testing.assert_array_equal(first.load(None).encode(rows).features, here)
    assert first.identity()["revision"] == sha
    asked = len(hub_here.log)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for revision in ("v1", sha):
        again = recipe_of("org/bert", revision=revision)
        np.testing.assert_array_equal(again.load(None).encode(rows).features, here)
    assert len(hub_here.log) == asked


def without(folder: Path, target: Path, drop: str) -> Path:
    """Copy a model without the weights whose names begin like `drop`."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(folder, target)
    tensors = load_file(target / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(drop)}
    assert len(kept) < len(tensors)
    save_file(kept, target / "model.safetensors", metadata={"format": "pt"})
    return target


def test_an_encoder_without_weights_is_refused(tmp_path, bert, make_model, make_rows):
    rows = make_rows(20)

    def both(folder: Path, says: str) -> None:
        refused(says, lambda: recipe_of(folder).train(rows, tmp_path / f"run-{folder.name}", seed=0))
        refused(says, lambda: recipe_of(folder).load(None))

    both(
        without(bert, tmp_path / "holes", "encoder.layer.1"),
        r"no weights for \S*encoder\.layer\.1\.\S+, .* and 13 more",
    )
    config_only = shutil.copytree(bert, tmp_path / "config-only")
    (config_only / "model.safetensors").unlink()
    both(config_only, "cannot be used: .*no file named.*model.safetensors|cannot be used: .*model.safetensors")
    cut = shutil.copytree(bert, tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:200])
    both(cut, "damaged weights|cannot be used")
    headless = without(classifier(make_model, "BertForSequenceClassification"), tmp_path / "headless", "classifier")
    refused("no weights for classifier.bias, classifier.weight", lambda: recipe_of(headless).load(None))
    no_tokenizer = shutil.copytree(bert, tmp_path / "no-tokenizer")
    for path in no_tokenizer.glob("tokenizer*"):
        path.unlink()
    both(no_tokenizer, "tokenizer|cannot be used")
    refused("max_length must be at most 64, .* not 65", lambda: recipe_of(bert, max_length=65).load(None))
    refused("no rows", lambda: recipe_of(bert).train(rows.select([]), tmp_path / "none", seed=0))
    refused("holds no fine-tuned model", lambda: recipe_of(bert).load(tmp_path))
    roberta = make_model("RobertaModel")  # two of its 64 positions are reserved, and one more
    refused("max_length must be at most 63", lambda: recipe_of(roberta, max_length=64).load(None))


def test_a_model_that_is_no_classifier_or_brings_code_is_refused(tmp_path, bert, make_rows):
    def changed(name: str, **facts: Any) -> Path:
        folder = shutil.copytree(bert, tmp_path / name)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**config, **facts}), encoding="utf-8")
        (folder / "own.py").write_text("raise SystemExit('this must not run')")
        return folder

    own = changed("own", model_type="own-type", auto_map={"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"})
    refused("code of its own, which is never run", lambda: recipe_of(own).load(None))
    clip = changed("vision", model_type="clip_vision_model", architectures=["CLIPVisionModel"])
    says = "transformers has no such model of its architecture"
    refused(says, lambda: recipe_of(clip).train(make_rows(20), tmp_path / "run", seed=0))
