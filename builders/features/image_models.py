"""timm models by name, from a folder, a file or the Hub, with or without their weights."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.errors import BuildError
from builders.features.model_config import read_config
from builders.features.weight_errors import LOADING_ERRORS, quiet_pickles, weights_line
from builders.folder import sha256
from builders.hub_files import fetch_timm, pin_model
from unqover_data.errors import one_line
from unqover_data.files import FileError

if TYPE_CHECKING:
    import torch
    from torch import nn

_HUB = "hf-hub:"
_CONFIG = "config.json"
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # timm saves either, or both
_SOURCES = ("url", "file", "state_dict", "hf_hub_id", "hf_hub_filename", "source", "custom_load", "label_offset")


@dataclass(frozen=True)
class Checkpoint:
    """What a model setting leads to.

    Attributes
    ----------
    architecture : str, optional
        Name in timm; None while only the Hub's ``config.json`` knows.
    file : Path, optional
        Weights of `architecture` in a file of their own.
    folder : Path, optional
        ``config.json`` and ``model.safetensors`` or ``pytorch_model.bin`` as timm saves them.
    repository, sha : str, optional
        A model repository of the Hub, and its commit.
    facts : mapping
        What tells these weights from others, for an identity.
    """

    architecture: str | None = None
    file: Path | None = None
    folder: Path | None = None
    repository: str | None = None
    sha: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_weights(self) -> bool:
        """Whether there is more than an architecture."""
        return any((self.file, self.folder, self.repository))


def find_checkpoint(model: str, weights: str | None, revision: str | None) -> Checkpoint:
    """Find what is named; of the Hub only the revision is asked.

    Parameters
    ----------
    model : str
        ``name`` or ``name.tag`` of timm, ``hf-hub:org/name``, or a folder as timm saves for the Hub.
    weights : str, optional
        A ``.safetensors`` or ``.pth`` file with weights for the architecture `model`.
    revision : str, optional
        Branch, tag or commit on the Hub; ``main`` if not given.

    Raises
    ------
    BuildError
        If `model` or `weights` is nothing of the kind.
    HubError
        If the Hub does not know it, or does not answer.
    """
    found = _find(model, revision)
    if revision and not found.repository:
        raise BuildError(f"revision {revision!r} is of the Hub, but model {model!r} is not from there; leave it out")
    if weights is None:
        return found
    file = Path(weights)
    if found.has_weights:
        raise BuildError(f"model {model!r} has weights of its own; leave out weights, or name the architecture alone")
    if file.suffix not in (".safetensors", ".pth", ".bin") or not file.is_file():
        raise BuildError(f"weights must be a .safetensors, .pth or .bin file that exists, not {weights!r}")
    return Checkpoint(found.architecture, file=file, facts={"weights_sha256": sha256(file)})


def _find(model: str, revision: str | None) -> Checkpoint:
    import timm

    if model.startswith(_HUB):
        return _on_hub(model.removeprefix(_HUB), revision)
    if Path(model).is_dir():
        folder = Path(model)
        if not (folder / _CONFIG).is_file():
            raise BuildError(f"model folder {model} has no {_CONFIG}; it must be as timm saves for the Hub")
        sums = "".join(sha256(path) for path in (folder / _CONFIG, _weights_in(folder)))
        digest = hashlib.sha256(sums.encode()).hexdigest()
        return Checkpoint(_architecture(folder), folder=folder, facts={"weights_sha256": digest})
    name, _, tag = model.partition(".")
    check_architecture(name)
    if not tag:
        return Checkpoint(name)
    config = timm.models.get_pretrained_cfg(model) if model in timm.list_pretrained(f"{name}.*") else None
    if config is None or not config.hf_hub_id:
        raise BuildError(f"timm has no weights {model!r}; {_tags(name)}")
    return _on_hub(config.hf_hub_id, revision)


def _weights_in(folder: Path) -> Path:
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    raise BuildError(f"model folder {folder} has no {' or '.join(_WEIGHTS)}; it must be as timm saves for the Hub")


def check_architecture(name: str) -> None:
    """Raise `BuildError` with close matches unless timm knows `name`."""
    import timm

    if not timm.is_model(name):
        close = difflib.get_close_matches(name, timm.list_models(), n=3)
        hint = f"did you mean {', '.join(close)}?" if close else "timm.list_models() lists all"
        raise BuildError(
            f"model {name!r} is no timm model and no folder; {hint} (a model of the Hub is written {_HUB}org/name)"
        )


def no_weights(name: str) -> BuildError:
    """Give the error for weights asked of an architecture that names none."""
    return BuildError(
        f"model {name!r} is an architecture without weights, so there is nothing to use without warm-up; "
        f"{_tags(name)}, or give a file as weights, a folder, or {_HUB}org/name"
    )


def _tags(name: str) -> str:
    import timm

    tagged = timm.list_pretrained(f"{name}.*")
    return f"timm has {', '.join(tagged)}" if tagged else f"timm has none for {name}"


def _on_hub(repository: str, revision: str | None) -> Checkpoint:
    sha = pin_model(repository, revision)
    return Checkpoint(repository=repository, sha=sha, facts={"model_sha": sha})


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = read_config(folder / _CONFIG)
    except FileError as error:
        raise BuildError(f"{folder / _CONFIG} {error}; save the model again") from error
    if not isinstance(config.get("architecture"), str):
        raise BuildError(f"{folder / _CONFIG} names no timm architecture; a model that timm saved is needed")
    for key in ("pretrained_cfg", "model_args"):
        if not isinstance(config.get(key, {}), dict):
            raise BuildError(f"{folder / _CONFIG} has a {key} that is no table; save the model again")
    for key in ("mean", "std"):
        value = config.get("pretrained_cfg", config).get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, int | float) for one in value):
            raise BuildError(f"{folder / _CONFIG} has a {key} that is no list of numbers; save the model again")
    return config


def _architecture(folder: Path) -> str:
    name = str(_config(folder)["architecture"]).partition(".")[0]
    check_architecture(name)
    return name


def create(architecture: str, *, classes: int, size: int, **rates: float) -> nn.Module:
    """Make a model with random weights.

    Raises
    ------
    BuildError
        If the model does not take `size` or one of the `rates`.
    """
    given: dict[str, Any] = {"num_classes": classes, **{name: rate for name, rate in rates.items() if rate}}
    if _registered(architecture).fixed_input_size:
        given["img_size"] = size
    return _made(architecture, **given)


def load(checkpoint: Checkpoint, *, size: int | None, **rates: float) -> nn.Module:
    """Make a model with the weights of a checkpoint and the output layer that they have; None for its own size.

    Raises
    ------
    BuildError
        If the weights are not those of the architecture, or the model does not take `size` or one of the `rates`.
    HubError
        If they cannot be fetched.
    """
    import timm

    given: dict[str, Any] = {name: rate for name, rate in rates.items() if rate}
    if checkpoint.file:
        architecture, file = str(checkpoint.architecture), checkpoint.file
        config = _registered(architecture).to_dict()
    else:
        folder = checkpoint.folder or fetch_timm(str(checkpoint.repository), str(checkpoint.sha))
        architecture, file = _architecture(folder), _weights_in(folder)
        written = _config(folder)
        config = {"label_names": written.get("label_names"), **written.get("pretrained_cfg", written)}
        given = {**written.get("model_args", {}), **given}
    state = read_weights(file)
    known = {entry.name for entry in fields(timm.models.PretrainedCfg)} - set(_SOURCES)
    config = {key: value for key, value in config.items() if key in known}
    config["num_classes"] = _classes(state, config)
    given.pop("num_classes", None)
    if config.get("fixed_input_size") and size:
        given["img_size"] = size
    try:
        model = _made(architecture, pretrained=True, pretrained_cfg={**config, "state_dict": state}, **given)
    except (RuntimeError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BuildError(f"{file} does not hold the weights of {architecture} ({reason})") from error
    model.pretrained_cfg.pop("state_dict", None)  # type: ignore[operator, union-attr]
    return model


def _registered(architecture: str) -> Any:
    """Give timm's own configuration of an architecture."""
    import timm

    return timm.models.get_pretrained_cfg(architecture) or timm.models.PretrainedCfg()


def _made(architecture: str, **given: Any) -> nn.Module:
    import timm

    try:
        model: nn.Module = timm.create_model(architecture, **given)
    except (RuntimeError, KeyError):  # of weights, see `load`
        raise
    except Exception as error:  # whatever the arguments in somebody else's file may raise
        settings = ", ".join(f"{name} = {value}" for name, value in given.items() if not name.startswith("pretrained"))
        reason = " ".join(str(error).split())
        raise BuildError(
            f"{architecture} cannot be made with {settings} ({reason}); a rate of 0 is not passed"
        ) from error
    return model


def _classes(state: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    """Outputs of the classifier that the weights have, 0 for none."""
    named = config.get("classifier") or ()
    first = named if isinstance(named, str) else next(iter(named), "")
    weight = state.get(f"{first}.weight")
    return len(weight) if weight is not None else 0


def read_weights(file: Path) -> dict[str, Any]:
    """Read tensors by name; no code in a file is run.

    Raises
    ------
    BuildError
        If the file is not readable as weights.
    """
    import torch
    from safetensors.torch import load_file

    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        with quiet_pickles():
            state = torch.load(file, map_location="cpu", weights_only=True)
    except LOADING_ERRORS as error:
        line = weights_line(error, [file]) or f"weights that cannot be read: {one_line(error)}"
        raise BuildError(f"{file} has {line}") from error
    state = state.get("state_dict", state) if isinstance(state, dict) else None
    if not state or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise BuildError(f"{file} holds no weights: a mapping of names to tensors is needed")
    return dict(state)


class Forward:
    """A model on its device: pixels in, in the arithmetic and the memory layout chosen for it."""

    def __init__(self, model: Any, device: torch.device, dtype: str) -> None:
        import torch

        self.model = model.to(device, memory_format=torch.channels_last)
        self.device = device
        self._dtype = getattr(torch, dtype)
        self._mean, self._std = (
            torch.tensor(model.pretrained_cfg[name], device=device).view(1, -1, 1, 1) * 255 for name in ("mean", "std")
        )

    def inputs(self, pixels: torch.Tensor) -> torch.Tensor:
        """Normalise pixels, uint8 of shape (batch, 3, size, size), as the model's timm configuration says."""
        import torch

        moved = pixels.to(self.device, non_blocking=True)
        return ((moved.float() - self._mean) / self._std).contiguous(memory_format=torch.channels_last)

    def autocast(self) -> Any:
        """Give the context of a forward pass."""
        import torch

        return torch.autocast(self.device.type, dtype=self._dtype, enabled=self._dtype != torch.float32)

    def encoded(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Give what the classifier gets, float32 of shape (batch, d), and what it makes of it, in evaluation mode."""
        import torch

        self.model.eval()
        with torch.inference_mode(), self.autocast():
            maps = self.model.forward_features(self.inputs(pixels))
            features = self.model.forward_head(maps, pre_logits=True)
            outputs = self.model.forward_head(maps)
        return features.flatten(1).float(), outputs.float()

    def logits(self, pixels: torch.Tensor) -> torch.Tensor:
        """Give the classifier's output, float32 of shape (batch, K), in evaluation mode."""
        import torch

        self.model.eval()
        with torch.inference_mode(), self.autocast():
            outputs: torch.Tensor = self.model(self.inputs(pixels))
        return outputs.float()

    def width(self, size: int) -> int:
        """Give d, found with an image of `size` pixels; raise `BuildError` if the model cannot take that size."""
        import torch

        try:
            features, _ = self.encoded(torch.zeros((1, 3, size, size), dtype=torch.uint8))
        except (RuntimeError, AssertionError) as error:
            reason = " ".join(str(error).split())[:200]
            raise BuildError(f"the model cannot take images of image_size {size} ({reason})") from error
        return features.shape[1]
