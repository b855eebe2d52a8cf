"""Sentence-transformers folders: the pooling that their ``modules.json`` names, in place of a head.

The modules of sentence-transformers, in plain torch: a transformer, then its hidden states pooled in one way or several
behind each other, then Normalize and Dense layers. Prompts that a folder may name are not put before texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.errors import BuildError
from builders.features.checkpoints import Checkpoint, told
from builders.features.representation import Forward
from builders.folder import sha256
from builders.hub_files import fetch, files_of
from builders.names import is_file_name
from unqover_data.files import FileError, json_of, read_bytes

MODULES = "modules.json"
_CONFIG, _WEIGHTS = "config.json", ("model.safetensors", "pytorch_model.bin")
_ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid")
_LATER = ("Normalize", "Dense", "Dropout")

Step = Callable[[Any], Any]


@dataclass(frozen=True)
class Module:
    """A module of a folder.

    Attributes
    ----------
    kind : str
        The last part of its type.
    path : str
        Where it lies in the folder.
    config : mapping
        Its configuration.
    weights : str or None
        The sum of its weights in a local folder, their name on the Hub, where a commit says which they are.
    """

    kind: str
    path: str
    config: Mapping[str, Any]
    weights: str | None


def read_modules(checkpoint: Checkpoint) -> tuple[Module, ...]:
    """Read the modules of a sentence-transformers folder behind its transformer; none of any other checkpoint.

    Raises
    ------
    BuildError
        If its files are no such modules.
    HubError
        If they cannot be fetched.
    """
    if not _has(checkpoint, MODULES):
        return ()
    listed = _json(checkpoint, MODULES)
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise BuildError(f"model {checkpoint.name}: {MODULES} must be a list of modules; get the model again")
    modules = []
    for entry in listed:
        kind, path = str(entry.get("type")).rpartition(".")[2], entry.get("path")
        if path == "" and kind == "Transformer":
            continue
        if not (isinstance(path, str) and is_file_name(path)):
            raise BuildError(
                f"model {checkpoint.name}: {MODULES} names the folder {path!r} of {kind}, which cannot be in it; set "
                "pooling to 'mean'"
            )
        name = f"{path}/{_CONFIG}"
        config = _json(checkpoint, name) if _has(checkpoint, name) else {}
        file = _weights_file(checkpoint, path)
        held = sha256(checkpoint.folder / file) if file and checkpoint.local else file
        modules.append(Module(kind, path, config if isinstance(config, dict) else {}, held))
    return tuple(modules)


def sentence_forward(
    checkpoint: Checkpoint, model: Any, modules: tuple[Module, ...], probe: Mapping[str, Any], device: str
) -> Forward:
    """Give what the modules of a folder make of a batch, tried on `probe`.

    Raises
    ------
    BuildError
        If one of them is of no kind that is known here.
    """
    import torch

    names = [module.kind for module in modules]
    if names[:1] != ["Pooling"] or any(name not in _LATER for name in names[1:]):
        raise BuildError(
            f"model {checkpoint.name}: {MODULES} has {', '.join(names) or 'a transformer alone'}, and only Pooling "
            f"followed by {' or '.join(_LATER)} is known; set pooling to 'mean', or pass its embeddings with --features"
        )
    ways = _ways(checkpoint, modules[0].config)
    steps = [_step(checkpoint, module, device) for module in modules[1:]]

    def forward(batch: Mapping[str, Any]) -> tuple[Any, None]:
        hidden = model(**batch)[0].float()
        made = torch.cat([way(hidden) for way in ways], 1)
        for step in steps:
            made = step(made)
        return made, None

    with torch.inference_mode():
        forward(probe)
    return forward


def _ways(checkpoint: Checkpoint, config: Mapping[str, Any]) -> list[Step]:
    """The ways of pooling that are switched on, in the order in which the library puts their vectors together."""
    import torch

    def weighted(hidden: Any) -> Any:
        weights = torch.arange(1, hidden.shape[1] + 1, device=hidden.device, dtype=hidden.dtype)[None, :, None]
        return (hidden * weights).sum(1) / weights.sum()

    known: dict[str, Step] = {
        "cls_token": lambda hidden: hidden[:, 0],
        "max_tokens": lambda hidden: hidden.amax(1),
        "mean_tokens": lambda hidden: hidden.mean(1),
        "mean_sqrt_len_tokens": lambda hidden: hidden.sum(1) / hidden.shape[1] ** 0.5,
        "weightedmean_tokens": weighted,
        "lasttoken": lambda hidden: hidden[:, -1],
    }
    prefix = "pooling_mode_"
    switched = {key.removeprefix(prefix) for key, on in config.items() if key.startswith(prefix) and on}
    named = config.get("pooling_mode") or ()  # of later versions of the library
    plain = {key.removesuffix("_token").removesuffix("_tokens"): key for key in known}
    switched |= {plain.get(str(name), str(name)) for name in (named if isinstance(named, list | tuple) else [named])}
    if not switched or switched - known.keys():
        given = ", ".join(sorted(switched - known.keys())) or "no way of pooling that is known"
        raise BuildError(f"model {checkpoint.name}: its Pooling module has {given}; set pooling to 'mean'")
    return [way for name, way in known.items() if name in switched]


def _step(checkpoint: Checkpoint, module: Module, device: str) -> Step:
    import torch

    if module.kind == "Normalize":
        return lambda made: torch.nn.functional.normalize(made, p=2, dim=1)
    if module.kind == "Dropout":
        return lambda made: made
    activation = str(module.config.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise BuildError(
            f"model {checkpoint.name}: its Dense module has the activation {activation}, and known are "
            f"{', '.join(_ACTIVATIONS)}; set pooling to 'mean'"
        )
    file = _weights_file(checkpoint, module.path)
    if file is None:
        raise BuildError(
            f"model {checkpoint.name}: its Dense module has no {' or '.join(_WEIGHTS)}; get the model again"
        )
    with told(checkpoint):
        weights = _weights(_path(checkpoint, file))
        width_out, width_in = weights["linear.weight"].shape
        linear = torch.nn.Linear(width_in, width_out, bias="linear.bias" in weights)
        linear.load_state_dict({name.removeprefix("linear."): value.float() for name, value in weights.items()})
    layer = torch.nn.Sequential(linear, getattr(torch.nn, activation)()).to(device).eval()
    return lambda made: layer(made)


def _weights_file(checkpoint: Checkpoint, module: str) -> str | None:
    """Find the file with a module's weights; None for one that has none."""
    return next((f"{module}/{name}" for name in _WEIGHTS if _has(checkpoint, f"{module}/{name}")), None)


def _weights(path: Path) -> dict[str, Any]:
    import torch
    from safetensors.torch import load_file

    return load_file(path) if path.suffix == ".safetensors" else torch.load(path, map_location="cpu", weights_only=True)


def _has(checkpoint: Checkpoint, name: str) -> bool:
    if checkpoint.local:
        return (checkpoint.folder / name).is_file()
    return name in files_of(checkpoint.name, checkpoint.revision, "model")


def _path(checkpoint: Checkpoint, name: str) -> Path:
    folder = checkpoint.folder if checkpoint.local else fetch(checkpoint.name, checkpoint.revision, [name], "model")
    return folder / name


def _json(checkpoint: Checkpoint, name: str) -> Any:
    try:
        return json_of(read_bytes(_path(checkpoint, name)))
    except FileError as error:
        raise BuildError(f"model {checkpoint.name}: {name} {error}; get the model again") from error
