"""A checkpoint is scored with its own head or not at all."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from builders.errors import HubError
from evaluation.errors import EvaluationError
from evaluation.loading import load_model
from evaluation.models import resolve_model
from tests.hub_faults import Fault
from tests.hub_server import HubServer

GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 96}
MODELS: dict[str, tuple[Any, ...]] = {
    "bert qa": ("BertForQuestionAnswering", "BertConfig", "wordpiece"),
    "bert mlm": ("BertForMaskedLM", "BertConfig", "wordpiece"),
    "bert": ("BertModel", "BertConfig", "wordpiece"),
    "roberta qa": ("RobertaForQuestionAnswering", "RobertaConfig", "bytes"),
    "roberta mlm": ("RobertaForMaskedLM", "RobertaConfig", "bytes"),
    "electra discriminator": ("ElectraForPreTraining", "ElectraConfig", "wordpiece"),
    "bert pretraining": ("BertForPreTraining", "BertConfig", "wordpiece"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", "bytes", GPT2),
    "llama untied": ("LlamaForCausalLM", "LlamaConfig", "bytes", {"tie_word_embeddings": False}),
    "llama base": ("LlamaModel", "LlamaConfig", "bytes", {"tie_word_embeddings": False}),
    "t5": (
        *("T5ForConditionalGeneration", "T5Config", "metaspace"),
        {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, "max_position_embeddings": None},
    ),
}


def folder_of(make_model: Any, name: str) -> Path:
    model, config, family, *more = MODELS[name]
    folder: Path = make_model(model, config, family, **(more[0] if more else {}))
    return folder


@pytest.mark.parametrize(
    ("name", "kind", "missing"),
    [
        ("bert mlm", "qa", r"qa_outputs.bias, qa_outputs.weight would be random"),
        ("gpt2", "qa", r"qa_outputs.bias, qa_outputs.weight would be random"),
        ("bert", "qa", r"a question-answering model \(BertForQuestionAnswering\): qa_outputs.bias"),
        ("t5", "qa", r"qa_outputs"),
        ("bert qa", "mlm", r"cls.predictions.bias.* and \d more would be random"),
        ("roberta qa", "mlm", r"lm_head"),
        ("bert", "mlm", r"cls.predictions"),
        ("electra discriminator", "mlm", r"generator_lm_head|generator_predictions"),
        ("llama base", "causal", r"lm_head.weight would be random"),
        ("roberta qa", "causal", r"lm_head"),
    ],
)
def test_a_missing_head_is_refused_by_name(make_model: Any, name: str, kind: str, missing: str) -> None:
    ref = resolve_model(str(folder_of(make_model, name)), kind=kind)
    with pytest.raises(EvaluationError, match=missing) as caught:
        load_model(ref)
    assert "\n" not in str(caught.value)
    assert "pass a checkpoint fine-tuned for it" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["bert qa", "bert mlm", "roberta mlm", "bert pretraining", "gpt2", "llama untied", "t5"]
)
def test_a_whole_checkpoint_is_loaded_tied_weights_and_all(make_model: Any, name: str) -> None:
    loaded = load_model(resolve_model(str(folder_of(make_model, name))))
    assert not loaded.model.training
    assert loaded.dtype == "float32"


def test_a_head_of_another_shape_is_refused(make_model: Any) -> None:
    folder = make_model("BertForQuestionAnswering", "BertConfig", "wordpiece", num_labels=3)
    config = json.loads((folder / "config.json").read_text())
    for field in ("id2label", "label2id"):
        config.pop(field, None)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EvaluationError, match=r"weights of other shapes than config.json .* qa_outputs.weight would"):
        load_model(resolve_model(str(folder)))


def test_a_checkpoint_without_its_layers_is_refused(make_model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "deeper"
    shutil.copytree(folder_of(make_model, "bert qa"), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(EvaluationError, match=r"bert.encoder.layer.2.* would be random"):
        load_model(resolve_model(str(folder)))


def test_what_cannot_be_loaded_is_one_clear_line(make_model: Any, tmp_path: Path) -> None:
    for change, message in (
        (lambda folder: (folder / "model.safetensors").unlink(), "cannot be loaded as a question-answering model"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "has damaged weights"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "cannot be loaded as a question|needs a package"),
    ):
        folder = tmp_path / "broken"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(folder_of(make_model, "bert qa"), folder)
        change(folder)
        with pytest.raises(EvaluationError, match=message) as caught:
            load_model(resolve_model(str(folder)))
        assert "\n" not in str(caught.value)
    ref = resolve_model(str(folder_of(make_model, "bert qa")), kind="seq2seq")
    with pytest.raises(EvaluationError, match="cannot be loaded as an encoder-decoder model"):
        load_model(ref)


def test_a_model_of_the_hub_is_the_one_of_its_folder(make_model: Any, hub_here: HubServer, tmp_path: Path) -> None:
    import torch

    folder = tmp_path / "model"
    shutil.copytree(folder_of(make_model, "bert qa"), folder)
    here = load_model(resolve_model(str(folder)))
    (folder / "mine.py").write_text("raise SystemExit", encoding="utf-8")
    (folder / "flax_model.msgpack").write_bytes(b"for another library")
    torch.save(here.model.state_dict(), folder / "pytorch_model.bin")
    sha = hub_here.publish("org/model", folder, kind="models", tag="v1")
    loaded = load_model(resolve_model("org/model", "v1"))
    assert loaded.ref.sha == sha
    assert loaded.tokenizer.get_vocab() == here.tokenizer.get_vocab()
    weights = here.model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in loaded.model.state_dict().items())
    (loaded.ref.folder / "model.safetensors").resolve().write_bytes(b"cut")
    fetched = {path.split("/")[-1] for how, path in hub_here.log if how == "GET" and "/resolve/" in path}
    assert not fetched & {"mine.py", "flax_model.msgpack", "pytorch_model.bin"}


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_fault_of_the_hub_is_not_taken_for_a_model_without_the_file(
    make_model: Any, hub_here: HubServer, name: str
) -> None:
    hub_here.publish("org/model", folder_of(make_model, "bert qa"), kind="models")
    hub_here.faults.append(Fault("HEAD", f"/{name}$", status=500))
    with pytest.raises(HubError, match=rf"cannot fetch {name} of org/model: {hub_here.url} answered 500"):
        load_model(resolve_model("org/model"))


def test_weights_that_were_damaged_in_the_cache_are_removed_when_they_cannot_be_loaded(
    make_model: Any, hub_here: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_here.publish("org/model", folder_of(make_model, "bert qa"), kind="models")
    ref = resolve_model("org/model")
    weights = ref.folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.resolve().write_bytes(b"\xff" * len(whole))
    monkeypatch.setattr("builders.hub_files._SMALL", 0)  # as for weights of a usual size
    with pytest.raises(EvaluationError, match=r"model.safetensors removed; run the same command again"):
        load_model(ref)
    assert load_model(resolve_model("org/model")).limit == 96
    assert weights.read_bytes() == whole


class Code:
    """What a pickle may hold besides tensors."""

    def __reduce__(self) -> Any:
        return (print, ("ran",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("old", None),
        (
            "later",
            r"pickle of protocol 4 or later, which .* not read: it is refused, because .* run code; convert",
        ),
        ("later code", r"pickle of protocol 4 or later, which .*: it is refused, because .* could run code; convert"),
        ("code", r"pickle that holds more than tensors \(print\): it is refused, because .* could run code; convert"),
        ("cut", r"has damaged weights \(.*\): get them again"),
        ("text", r"has damaged weights \(.*\): get them again"),
    ],
)
def test_a_pickle_that_holds_code_is_refused_and_a_broken_one_is_damaged(
    make_model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, message: str | None
) -> None:
    import torch

    folder = tmp_path / "pickled"
    shutil.copytree(folder_of(make_model, "bert qa"), folder)
    state: dict[str, Any] = dict(load_model(resolve_model(str(folder))).model.state_dict())
    (folder / "model.safetensors").unlink()
    file = folder / "pytorch_model.bin"
    protocol = {"old": 3, "later": 4}.get(change, 2)  # torch warns of any but 2, and warnings are errors here
    torch.save(state | ({"code": Code()} if change == "code" else {}), file, pickle_protocol=protocol)
    if change == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    elif change in ("text", "later code"):
        text = b"version https://git-lfs.github.com/spec/v1"
        file.write_bytes(text if change == "text" else pickle.dumps(Code(), protocol=5))
    if message is None:
        load_model(resolve_model(str(folder)))
        return
    with pytest.raises(EvaluationError, match=message) as caught:
        load_model(resolve_model(str(folder)))
    line = str(caught.value)
    assert "\n" not in line
    assert "weights_only" not in line
    assert ("damaged" in line) == (change in ("cut", "text"))
    assert "ran" not in capsys.readouterr().out


def test_code_in_a_repository_is_never_run(make_model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "custom"
    shutil.copytree(folder_of(make_model, "bert qa"), folder)
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass C: pass\nclass M: pass\n")
    config = json.loads((folder / "config.json").read_text())
    custom = {"AutoConfig": "mine.C", "AutoModelForQuestionAnswering": "mine.M"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "mine", "auto_map": custom}))
    with pytest.raises(EvaluationError, match="cannot be loaded as a question-answering model"):
        load_model(resolve_model(str(folder)))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("bert qa", 96),
        ("roberta qa", 95),  # 96 positions, less those up to the padding's (id 0)
        ("gpt2", 96),
        ("t5", None),  # relative positions
    ],
)
def test_the_limit_is_what_positions_allow(make_model: Any, name: str, limit: int | None) -> None:
    assert load_model(resolve_model(str(folder_of(make_model, name)))).limit == limit
