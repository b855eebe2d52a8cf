"""What a model's ``config.json`` may say: it is read before anything is made of it, since others wrote it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builders.hub_files import INDEXES, shards_of
from unqover_data.files import FileError, json_of, read_bytes

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


def check_fits(auto_class: str, folder: Path, *, bytes_each: int) -> None:
    """Refuse a model of transformers whose weights lie elsewhere, or as configured are more than the memory here.

    Weights of a checkpoint that has fewer are made up by transformers, so what the files hold is no limit.

    Parameters
    ----------
    auto_class : str
        With the head that is wanted.
    folder : Path
        With the ``config.json``.
    bytes_each : int
        Of a weight.

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
    read_config(folder / "config.json")
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
