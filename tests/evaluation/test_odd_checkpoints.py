"""Checkpoints that are quantised, hold a text model among others, or are no whole model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.errors import BuildError
from builders.features.checkpoints import find_checkpoint
from builders.features.model_config import quantization_of
from evaluation.errors import EvaluationError
from evaluation.loading import load_model
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer
from tests.evaluation.conftest import MakeModel, sized, tokenizer_of
from tests.hub_server import HubServer

UNTIED = {"tie_word_embeddings": False}
VISION = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 8,
    "patch_size": 4,
}


@pytest.fixture(scope="module")
def llama(make_model: MakeModel) -> Path:
    return make_model("LlamaForCausalLM", "LlamaConfig", "bytes", **UNTIED)


def changed(folder: Path, copy: Path, **config: Any) -> Path:
    """A copy with more in its ``config.json``."""
    shutil.copytree(folder, copy)
    held = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    (copy / "config.json").write_text(json.dumps(held | config), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}, "8-bit (bitsandbytes)"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": False, "load_in_4bit": True}, "4-bit (bitsandbytes)"),
        ({"quant_method": "awq", "bits": 4}, "4-bit (awq)"),
        ({"quant_method": "fp8"}, "quantised (fp8)"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}},
            "8-bit (compressed-tensors)",
        ),
        ({"quant_method": "gptq", "bits": "4", "config_groups": [1]}, "quantised (gptq)"),
        ("odd", "None"),
        (None, "None"),
    ],
)
def test_how_weights_are_quantised_is_read_off_the_configuration(told: Any, shown: str) -> None:
    assert str(quantization_of({"quantization_config": told})) == shown


@pytest.fixture
def pretend() -> Iterator[str]:
    """A way of quantising that transformers knows, and that leaves the weights as they are."""
    from transformers.quantizers import HfQuantizer, auto
    from transformers.utils.quantization_config import QuantizationConfigMixin

    class PretendConfig(QuantizationConfigMixin):
        def __init__(self, **_: Any) -> None:
            self.quant_method = "pretend"  # type: ignore[assignment]

    class Pretend(HfQuantizer):
        requires_calibration = False
        is_trainable = False

        def validate_environment(self, *_: Any, device_map: Any = None, **__: Any) -> None:
            assert device_map == {"": "cpu"}  # it cannot be moved later

        def is_serializable(self, *_: Any, **__: Any) -> bool:
            return True

    auto.AUTO_QUANTIZATION_CONFIG_MAPPING["pretend"] = PretendConfig
    auto.AUTO_QUANTIZER_MAPPING["pretend"] = Pretend
    yield "pretend"
    del auto.AUTO_QUANTIZATION_CONFIG_MAPPING["pretend"], auto.AUTO_QUANTIZER_MAPPING["pretend"]


def test_a_result_says_that_a_model_is_quantised_and_how_many_weights_it_has(
    llama: Path, tmp_path: Path, pretend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = changed(llama, tmp_path / "q", quantization_config={"quant_method": pretend, "bits": 4})
    full = make_scorer(resolve_model(str(llama)), device="cpu").facts
    moved = pytest.fail
    monkeypatch.setattr("transformers.PreTrainedModel.to", lambda *_, **__: moved("quantised weights were moved"))
    facts = make_scorer(resolve_model(str(folder)), device="cpu").facts
    assert (full["dtype"], facts["dtype"]) == ("float32", "4-bit (pretend)")
    assert facts["parameters"] == full["parameters"]


@pytest.mark.parametrize("bits", [4, 8])
def test_a_model_that_bitsandbytes_quantised_is_scored(
    make_model: MakeModel, few: dict[str, pa.Table], tmp_path: Path, bits: int
) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    import transformers

    whole = make_model("LlamaForCausalLM", "LlamaConfig", "bytes", hidden_size=64, intermediate_size=128, **UNTIED)
    how: Any = transformers.BitsAndBytesConfig(**{f"load_in_{bits}bit": True})
    load: Any = transformers.AutoModelForCausalLM.from_pretrained
    load(whole, quantization_config=how, device_map={"": "cpu"}, dtype="float32").save_pretrained(tmp_path)
    for file in whole.glob("tokenizer*"):
        shutil.copy(file, tmp_path)
    full, scorer = (make_scorer(resolve_model(str(path)), device="cpu") for path in (whole, tmp_path))
    assert (scorer.facts["dtype"], scorer.facts["parameters"]) == (f"{bits}-bit (bitsandbytes)", 128_064)
    found, wanted = (np.log(one.score(few["qa"])) for one in (scorer, full))
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > (0.5 if bits == 4 else 0.95)


@pytest.mark.parametrize(
    ("package", "config"),
    [
        ("bitsandbytes", {"quant_method": "bitsandbytes", "load_in_8bit": True}),
        ("bitsandbytes", {"quant_method": "bitsandbytes", "load_in_4bit": True}),
        ("optimum", {"quant_method": "gptq", "bits": 4}),
        ("gptqmodel", {"quant_method": "awq", "bits": 4}),
        ("compressed_tensors", {"quant_method": "compressed-tensors", "config_groups": {}}),
        ("optimum.quanto", {"quant_method": "quanto", "weights": "int8"}),
    ],
)
def test_the_package_that_reads_quantised_weights_is_named(
    llama: Path, tmp_path: Path, package: str, config: dict[str, Any]
) -> None:
    if find_spec(package.partition(".")[0]):
        pytest.skip(f"{package} is installed")
    folder = changed(llama, tmp_path / "q", quantization_config=config)
    name = package.replace("_", "-").replace(".", "-")
    with pytest.raises(
        EvaluationError, match=rf"q needs a package that is not installed: .*pip install .*{name}"
    ) as told:
        load_model(resolve_model(str(folder)), device="cpu")
    assert "\n" not in str(told.value)


def test_a_text_model_among_others_is_scored_as_if_it_were_alone(
    llama: Path, few: dict[str, pa.Table], tmp_path: Path
) -> None:
    import torch
    import transformers

    alone = transformers.LlamaForCausalLM.from_pretrained(llama)
    tokenizer = tokenizer_of("bytes")
    config = transformers.LlavaConfig(
        text_config=alone.config,
        vision_config=transformers.CLIPVisionConfig(**VISION),
        image_token_index=len(tokenizer) - 1,
        **UNTIED,
    )
    model = transformers.LlavaForConditionalGeneration(config)
    model.model.language_model.load_state_dict(alone.model.state_dict())
    model.lm_head.load_state_dict(alone.lm_head.state_dict())
    with torch.no_grad():
        model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ref = resolve_model(str(tmp_path))
    assert ref.kind == "causal"
    assert load_model(ref, device="cpu").limit == load_model(resolve_model(str(llama)), device="cpu").limit == 96
    found, wanted = (make_scorer(resolve_model(str(path)), device="cpu").score(few["qa"]) for path in (tmp_path, llama))
    assert np.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("name", ["Gemma3", "Qwen2VL"])
def test_other_models_that_see_images_are_scored_on_text(few: dict[str, pa.Table], tmp_path: Path, name: str) -> None:
    import torch
    import transformers

    tokenizer = tokenizer_of("bytes")
    torch.manual_seed(7)
    if name == "Gemma3":
        text = sized("Gemma3TextConfig", len(tokenizer), head_dim=8, num_key_value_heads=1, sliding_window=16)
        vision: Any = transformers.SiglipVisionConfig(**VISION)
        config: Any = transformers.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    else:
        rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [1, 1, 2]}
        text = sized("Qwen2VLTextConfig", len(tokenizer), num_key_value_heads=1, rope_parameters=rope)
        vision = {"depth": 1, "embed_dim": 8, "num_heads": 2, "hidden_size": 16, "patch_size": 4}
        config = transformers.Qwen2VLConfig(text_config=text.to_dict(), vision_config=vision)
    getattr(transformers, f"{name}ForConditionalGeneration")(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ref = resolve_model(str(tmp_path))
    assert ref.kind == "causal"
    scorer: Any = make_scorer(ref, device="cpu", batch_size=3)
    scores = scorer.score(few["qa"])
    scorer._shares = False
    assert np.allclose(scorer.score(few["qa"]), scores, atol=1e-5)  # each prompt computed whole


ADAPTER = {"base_model_name_or_path": "org/base", "peft_type": "LORA"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"adapter_config.json": json.dumps(ADAPTER), "adapter_model.safetensors": ""},
            r"is a PEFT adapter of org/base: merge it with peft \(merge_and_unload\), save the whole model with its",
        ),
        ({"adapter_config.json": "{}", "config.json": "{}"}, "is a PEFT adapter of its base model: merge it"),
        ({"adapter_config.json": "{"}, "adapter_config.json is not valid JSON"),
        ({"m.Q4_K.gguf": "GGUF", "README.md": ""}, r"has its weights in m.Q4_K.gguf, a GGUF file, which is not read"),
        (
            {"m.gguf": "GGUF", "config.json": '{"architectures": ["LlamaForCausalLM"]}'},
            "has its weights in m.gguf, a GGUF file, which is not read: give the checkpoint that it was made from",
        ),
        ({"README.md": ""}, "has no config.json, so it is no model of transformers"),
    ],
)
def test_what_is_no_whole_model_is_told_from_a_folder_and_from_the_hub(
    hub_here: HubServer, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        (tmp_path / "model").mkdir(exist_ok=True)
        (tmp_path / "model" / name).write_text(text, encoding="utf-8")
    hub_here.publish("org/model", tmp_path / "model", kind="models")
    for name in (str(tmp_path / "model"), "org/model"):
        with pytest.raises(EvaluationError, match=f"^{name}:? {said}") as told:
            resolve_model(name)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("adapter_config.json", "is a PEFT adapter of its base model: merge it"),
        ("m.gguf", "has its weights in m.gguf, a GGUF file, which is not read"),
        ("README.md", "has no config.json, so it is no model of transformers"),
    ],
)
def test_an_encoder_that_is_no_whole_model_is_told_too(
    hub_here: HubServer, tmp_path: Path, file: str, said: str
) -> None:
    (tmp_path / file).write_text("{}", encoding="utf-8")
    hub_here.publish("org/model", tmp_path, kind="models")
    for name in (str(tmp_path), "org/model"):
        with pytest.raises(BuildError, match=f"^model {name} {said}"):
            find_checkpoint(name)
