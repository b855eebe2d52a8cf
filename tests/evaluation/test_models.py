"""From a name to a pinned checkpoint of a known kind, without any but 127.0.0.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders.errors import BuildError, HubError
from evaluation.errors import EvaluationError
from evaluation.models import find_kind, resolve_model
from tests.hub_faults import Fault
from tests.hub_server import HubServer


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
        ({"architectures": ["LlavaForConditionalGeneration"]}, "which has no head that can be scored"),  # no text model
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
    assert (first.kind, first.local, first.folder, len(first.sha)) == ("mlm", True, Path(name), 40)
    assert resolve_model(name) == first
    (tmp_path / "model" / "README.md").write_text("only words", encoding="utf-8")
    assert resolve_model(name).sha == first.sha
    (tmp_path / "model" / "model.safetensors").write_bytes(b"two")
    assert resolve_model(name).sha != first.sha
    assert resolve_model(name, kind="qa").kind == "qa"


def test_a_name_that_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    write_config(tmp_path / "model", architectures=["BertForMaskedLM"])
    for name, message in (
        (str(tmp_path), "has no config.json, so it is no model"),
        (str(tmp_path / "none"), "there is no folder .*none: pass a model folder or a Hub id"),
        ("./none", "there is no folder ./none"),
        (str(tmp_path / "mode"), "there is no folder .*mode; did you mean .*model?"),
        (str(tmp_path / "model" / "config.json"), "config.json is a file: pass a model folder"),
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
def published(hub_here: HubServer, tmp_path: Path) -> str:
    """The sha of org/model, which has a configuration and no weights."""
    write_config(tmp_path / "hub", architectures=["BertForQuestionAnswering"])
    return hub_here.publish("org/model", tmp_path / "hub", kind="models", tag="v1.0")


def test_a_revision_becomes_a_sha_before_anything_is_loaded(hub_here: HubServer, published: str) -> None:
    ref = resolve_model("org/model", "v1.0")
    assert (ref.sha, ref.kind, ref.local) == (published, "qa", False)
    paths = list(dict.fromkeys(path for _, path in hub_here.log if "agent" not in path))  # the client's own
    listed = [f"/api/models/org/model/revision/{revision}" for revision in ("v1.0", published)]
    assert paths == [*listed, f"/org/model/resolve/{published}/config.json"]


def test_what_the_hub_refuses_is_one_clear_line(hub_here: HubServer, published: str) -> None:
    hub_here.create("org/hidden", private=True, kind="models")
    hub_here.create("org/empty", kind="models")
    for name, revision, message in (
        ("org/none", None, r"org/none does not exist on http.*, or is private: check the name; run `hf auth login`"),
        ("org/hidden", None, r"org/hidden does not exist on http.*, or is private"),
        ("org/model", "v9", r"org/model has no revision 'v9' on http"),
        ("org/empty", None, "org/empty has no config.json, so it is no model"),
    ):
        with pytest.raises((HubError, EvaluationError), match=message) as caught:
            resolve_model(name, revision)
        assert "\n" not in str(caught.value)
    hub_here.repos["org/model"].gated = True
    with pytest.raises(HubError, match=rf"org/model is gated: ask for access at {hub_here.url}/org/model, log in with"):
        resolve_model("org/model")
    hub_here.faults.append(Fault("HEAD", "/config.json$", status=429))
    with pytest.raises(HubError, match=r"cannot fetch config.json of org/model: .* asks to slow down \(429\)"):
        resolve_model("org/model")


def test_a_hub_that_does_not_answer_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # where nothing listens
    with pytest.raises(HubError, match=r"cannot find org/model: no answer from http://127.0.0.1:9 .*check the network"):
        resolve_model("org/model")


def test_names_that_cannot_be_on_a_hub(hub_here: HubServer) -> None:
    with pytest.raises(BuildError, match=r"model 'model\.' is no name that a Hub takes"):
        resolve_model("model.")
    assert not hub_here.log


@pytest.mark.parametrize("name", ["resnet18.a1_in1k", "hf-hub:timm/resnet18.a1_in1k", "timm/resnet18.a1_in1k"])
def test_names_of_timm_lead_to_its_repositories(name: str, tmp_path: Path, hub_here: HubServer) -> None:
    write_config(tmp_path / "timm", architecture="resnet18", num_classes=1000)
    sha = hub_here.publish("timm/resnet18.a1_in1k", tmp_path / "timm", kind="models", tag="v1")
    ref = resolve_model(name, "v1")
    assert (ref.name, ref.path, ref.sha) == (name, "timm/resnet18.a1_in1k", sha)
    assert (ref.kind, ref.library, ref.local) == ("image-classifier", "timm", False)
