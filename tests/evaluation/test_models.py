"""From a name to a pinned checkpoint of a known kind, without a network."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest

from builders.errors import HubError
from evaluation import models
from evaluation.errors import EvaluationError
from evaluation.models import find_kind, resolve_model

SHA = "0123456789" * 4


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("BertForQuestionAnswering", "qa"),
        ("XLNetForQuestionAnsweringSimple", "qa"),
        ("RobertaForMaskedLM", "mlm"),
        ("BertForPreTraining", "mlm"),
        ("GPT2LMHeadModel", "causal"),
        ("Qwen3ForCausalLM", "causal"),
        ("BrandNewForCausalLM", "causal"),
        ("T5ForConditionalGeneration", "seq2seq"),
        ("BartForConditionalGeneration", "seq2seq"),
        ("MarianMTModel", "seq2seq"),
        ("RobertaForSequenceClassification", "text-classifier"),
        ("BrandNewForSequenceClassification", "text-classifier"),
        ("ViTForImageClassification", "image-classifier"),
        ("DeiTForImageClassificationWithTeacher", "image-classifier"),
    ],
)
def test_the_kind_comes_from_the_architecture(architecture: str, kind: str) -> None:
    config = {"architectures": [architecture], "is_encoder_decoder": kind == "seq2seq"}
    assert find_kind(config) == kind


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "names no architecture in its config.json; pass --kind"),
        ({"architectures": ["BertModel"]}, "BertModel, which has no head that can be scored"),
        ({"architectures": ["LlavaForConditionalGeneration"]}, "which has no head that can be scored"),
        ({"architectures": ["XLMWithLMHeadModel"]}, "which can be causal or mlm; pass --kind"),
        ({"architectures": ["BertForMaskedLM", "BertForQuestionAnswering"]}, "which can be mlm or qa; pass --kind"),
    ],
)
def test_an_architecture_of_no_kind_or_of_two_is_one_clear_line(config: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        find_kind(config)


def write_config(folder: Path, **config: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def test_a_folder_is_pinned_by_its_content(tmp_path: Path) -> None:
    name = write_config(tmp_path / "model", architectures=["BertForMaskedLM"])
    (tmp_path / "model" / "model.safetensors").write_bytes(b"one")
    first = resolve_model(name)
    assert (first.kind, first.local, first.revision, len(first.sha)) == ("mlm", True, None, 40)
    assert resolve_model(name) == first
    (tmp_path / "model" / "README.md").write_text("only words", encoding="utf-8")
    assert resolve_model(name).sha == first.sha
    (tmp_path / "model" / "model.safetensors").write_bytes(b"two")
    assert resolve_model(name).sha != first.sha
    assert resolve_model(name, kind="qa").kind == "qa"


def test_a_name_that_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    for name, message in (
        (str(tmp_path), "is no model folder: it has no config.json"),
        (str(tmp_path / "none"), "there is no folder .*none: pass a model folder or a Hub id"),
        ("./none", "there is no folder ./none"),
    ):
        with pytest.raises(EvaluationError, match=message):
            resolve_model(name)
    with pytest.raises(EvaluationError, match=r"no kind 'mln' \(known: qa, mlm, causal, .*\); did you mean 'mlm'"):
        resolve_model(write_config(tmp_path / "model"), kind="mln")
    with pytest.raises(EvaluationError, match="revision 'v1' cannot be had of the local folder"):
        resolve_model(write_config(tmp_path / "model"), "v1")
    (tmp_path / "model" / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"config.json is not valid JSON"):
        resolve_model(str(tmp_path / "model"))


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """A Hub that has org/model at one commit; gives what was asked for."""
    asked: list[Any] = []
    write_config(tmp_path / "hub", architectures=["BertForQuestionAnswering"])

    def model_info(_self: Any, name: str, *, revision: str | None, timeout: float) -> Any:
        asked.append((name, revision))
        return SimpleNamespace(sha=SHA)

    def download(name: str, file: str, *, revision: str) -> str:
        asked.append((name, file, revision))
        return str(tmp_path / "hub" / file)

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return asked


def test_a_revision_becomes_a_sha_before_anything_is_loaded(online: list[Any]) -> None:
    ref = resolve_model("org/model", "v1.0")
    assert (ref.sha, ref.revision, ref.kind, ref.local) == (SHA, SHA, "qa", False)
    assert online == [("org/model", "v1.0"), ("org/model", "config.json", SHA)]


def hub_error(name: str) -> Exception:
    """An error of the Hub's client without the HTTP answer that it wants, of whichever library."""
    from huggingface_hub import errors

    def plain(self: Exception, *args: Any) -> None:
        Exception.__init__(self, *args)

    made: Exception = type(name, (getattr(errors, name),), {"__init__": plain, "__str__": lambda _: "no"})("no")
    return made


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("GatedRepoError", "org/model is gated: accept its terms"),
        ("RepositoryNotFoundError", "the Hub has no model org/model that you may read"),
        ("RevisionNotFoundError", "org/model has no revision 'v9' on the Hub"),
        ("HfHubHTTPError", "cannot ask .* about org/model"),
        (OSError("no route"), r"cannot ask .* about org/model \(no route\): check the network, or pass a local folder"),
    ],
)
def test_what_the_hub_refuses_is_one_clear_line(
    online: list[Any], monkeypatch: pytest.MonkeyPatch, error: str | Exception, message: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error if isinstance(error, Exception) else hub_error(error)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    with pytest.raises(HubError, match=message) as caught:
        resolve_model("org/model", "v9")
    assert "\n" not in str(caught.value)


def test_offline_only_the_cache_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match=r"offline .* org/model at main is not in the cache: go online once, or pass"):
        resolve_model("org/model")
    with pytest.raises(EvaluationError, match=r"model 'model\.' is neither a folder nor a Hub id"):
        resolve_model("model.")
    snapshot = tmp_path / SHA
    write_config(snapshot, architectures=["GPT2LMHeadModel"])
    path = str(snapshot / "config.json")
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_, **__: path)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *_, **__: path)
    ref = resolve_model("org/model")
    assert (ref.sha, ref.kind) == (SHA, "causal")


@pytest.mark.parametrize("name", ["resnet18.a1_in1k", "hf-hub:timm/resnet18.a1_in1k", "timm/resnet18.a1_in1k"])
def test_names_of_timm_lead_to_its_repositories(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(tmp_path, architecture="resnet18", num_classes=1000)
    asked: list[tuple[str, str | None]] = []
    monkeypatch.setattr(models, "_hub_sha", lambda path, revision: (asked.append((path, revision)), SHA)[1])
    monkeypatch.setattr(models, "_hub_config", lambda path, sha: tmp_path / "config.json")
    ref = resolve_model(name, "v1")
    assert asked == [("timm/resnet18.a1_in1k", "v1")]
    assert (ref.name, ref.path, ref.sha) == (name, "timm/resnet18.a1_in1k", SHA)
    assert (ref.kind, ref.library, ref.local) == ("image-classifier", "timm", False)
