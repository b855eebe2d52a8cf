"""What a model's ``config.json`` may say: it is read before anything is made of it, since others wrote it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.hub_files import INDEXES, shards_of
from unqover_data.files import FileError, json_of, read_bytes

ADAPTER = "adapter_config.json"
MOST_LAYERS = 2_000
MOST_LABELS = 1_000_000
_LAYERS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
_NUMBERED = re.compile(r"(.+?)\.(\d+)\.")


class ModelFileError(Exception):
    """Files of a model that do not go together, or not with this machine, as one line with what to do."""


def read_config(path: Path) -> dict[str, Any]:
    """Read a ``config.json``.

    Raises
    ------
    FileError
        If it is no table, or says what no model can be.
    OSError
        If it cannot be read.
    """
    config = json_of(read_bytes(path))
    if not isinstance(config, dict):
        raise FileError("holds no JSON object")
    for key in ("architectures", "input_columns"):
        names = config.get(key)
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise FileError(f"has {key} {names!r}, which must be a list of names")
    labels = config.get("id2label")
    if labels is not None and not (isinstance(labels, dict) and all(map(_is_number, labels))):
        raise FileError("has an id2label that is no table of names by number")
    for key, value in config.items():
        most = MOST_LABELS if key == "num_labels" else MOST_LAYERS if key.endswith(("layer", "layers")) else None
        if most is not None and isinstance(value, int) and value > most:
            raise FileError(f"has {key} {value}; the most is {most:,}")
        if key in _LAYERS and isinstance(value, int) and value < 1:
            raise FileError(f"has {key} {value}; the least is 1")
    return config


def _is_number(key: object) -> bool:
    return isinstance(key, str) and len(key) < 10 and key.isascii() and key.isdigit()


@dataclass(frozen=True)
class Quantization:
    """How the weights of a checkpoint are stored, if not as floating-point numbers.

    Attributes
    ----------
    method : str
        As transformers calls it: ``bitsandbytes``, ``gptq``, ``awq``, ``compressed-tensors`` and others.
    bits : int or None
        Of a weight; None where its ``config.json`` does not say.
    """

    method: str
    bits: int | None

    def __str__(self) -> str:
        return f"{self.bits}-bit ({self.method})" if self.bits else f"quantised ({self.method})"


def quantization_of(config: Mapping[str, Any]) -> Quantization | None:
    """Give how the weights of a checkpoint are quantised, None if they are not.

    Examples
    --------
    >>> str(quantization_of({"quantization_config": {"quant_method": "gptq", "bits": 4}}))
    '4-bit (gptq)'
    """
    told = config.get("quantization_config")
    if not isinstance(told, dict):
        return None
    groups = told.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    bits = weights.get("num_bits") if isinstance(weights, dict) else told.get("bits")
    bits = 4 if told.get("load_in_4bit") is True else 8 if told.get("load_in_8bit") is True else bits
    return Quantization(str(told.get("quant_method")), bits if isinstance(bits, int) and 0 < bits <= 16 else None)


def without_config(names: Iterable[str], adapter: Mapping[str, Any] | None = None) -> str:
    """Say what files are that are no whole model of transformers, and what to do.

    Parameters
    ----------
    names : iterable of str
        Of the files.
    adapter : mapping, optional
        What ``adapter_config.json`` holds, if it was read.
    """
    names = sorted(names)
    if ADAPTER in names:
        base = (adapter or {}).get("base_model_name_or_path") or "its base model"
        return (
            f"is a PEFT adapter of {base}: merge it with peft (merge_and_unload), save the whole model with its "
            "tokenizer, and give that folder"
        )
    if gguf := next((name for name in names if name.endswith(".gguf")), None):
        return (
            f"has its weights in {gguf}, a GGUF file, which is not read: give the checkpoint that it was made from, "
            "with config.json and safetensors"
        )
    return "has no config.json, so it is no model of transformers"


def check_fits(auto_class: str, folder: Path, *, bytes_each: float) -> int:
    """Refuse a model of transformers whose weights lie elsewhere, or as configured are more than the memory here.

    Weights of a checkpoint that has fewer are made up by transformers, so what the files hold is no limit.

    Parameters
    ----------
    auto_class : str
        With the head that is wanted.
    folder : Path
        With the ``config.json``.
    bytes_each : float
        Of a weight; of those that are quantised, at most as many as their bits take.

    Returns
    -------
    int
        Number of its weights, before they were quantised.

    Raises
    ------
    ModelFileError
        If it does not fit, or an index of shards names what is not in the folder.
    FileError
        As `read_config`.
    Exception
        Whatever transformers raises for a configuration that it cannot use.
    """
    import psutil
    import torch
    import transformers

    own: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    quantized = quantization_of(read_config(folder / "config.json"))
    if quantized and quantized.bits:
        bytes_each = min(bytes_each, quantized.bits / 8)
    for index in INDEXES:
        if (folder / index).is_file():
            try:
                shards_of(folder / index)
            except FileError as error:
                raise ModelFileError(f"{index} {error}; get the model again") from error
    config = transformers.AutoConfig.from_pretrained(str(folder), **own)
    with torch.random.fork_rng(devices=[]), torch.device("meta"):  # new weights must not depend on this look
        model = getattr(transformers, auto_class).from_config(config, trust_remote_code=False)
    weights = {id(weight): weight for weight in model.state_dict(keep_vars=True).values()}  # tied ones are there once
    needed = bytes_each * sum(weight.numel() for weight in weights.values())
    here = psutil.virtual_memory().total
    if needed > here:
        raise ModelFileError(
            f"config.json describes {needed / 1e9:,.0f} GB of weights, and there are {here / 1e9:,.0f} GB of memory; "
            "pass a smaller model, a smaller dtype, or use a machine with more memory"
        )
    return sum(weight.numel() for weight in model.parameters())


def check_layers(model: Any, unexpected: Iterable[str]) -> None:
    """Refuse a checkpoint that has more layers of a stack than its configuration.

    Parameters
    ----------
    model
        Of transformers, loaded.
    unexpected : iterable of str
        Weights of the checkpoint that it does not use. Heads, poolers and tables of others are no fault.

    Raises
    ------
    ModelFileError
        If one is of a layer behind the last of a stack that has as many layers as the configuration says.
    """
    count = getattr(model.config, "num_hidden_layers", None)
    if not isinstance(count, int) or getattr(model.config, "num_nextn_predict_layers", None):
        return  # layers that predict further tokens lie behind the last and are left out by design
    stacks: dict[str, set[int]] = defaultdict(set)
    own = f"{model.base_model_prefix}."
    keys = list(model.state_dict())
    for key in [key for key in keys if key.startswith(own)] or keys:  # a head's parts are no layers
        if numbered := _NUMBERED.match(key.removeprefix(own)):
            stacks[numbered[1]].add(int(numbered[2]))
    for key in sorted(unexpected):
        numbered = _NUMBERED.match(key.removeprefix(own))
        if numbered and int(numbered[2]) >= count and stacks.get(numbered[1]) == set(range(count)):
            raise ModelFileError(
                f"config.json has num_hidden_layers {count}, and the weights have more layers ({key}), which would go "
                "unused; get the model again, with the config.json that its weights were saved with"
            )
