"""What an ESIM's training leaves in its folder, and how it goes on from there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.atomic import whole_file
from builders.errors import BuildError
from builders.unfinished import read_state, told_when_damaged

if TYPE_CHECKING:
    import torch

    from builders.features.esim_model import Esim


def state(
    model: Esim, optimiser: torch.optim.Optimizer, facts: Mapping[str, Any], epochs: int, device: torch.device
) -> dict[str, Any]:
    """Collect all that decides the epochs to come."""
    import torch

    return {
        "facts": facts,
        "epochs": epochs,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "random": torch.get_rng_state(),
        "device_random": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }


def resume(
    path: Path, model: Esim, optimiser: torch.optim.Optimizer, facts: Mapping[str, Any], device: torch.device
) -> int:
    """Put a checkpoint's state back, if there is one, and give the number of whole epochs."""
    import torch

    if not path.is_file():
        return 0
    stored = read_state(path)
    with told_when_damaged(path):
        check_facts(stored["facts"], facts, path.parent)
        model.load_state_dict(stored["model"])
        optimiser.load_state_dict(stored["optimiser"])
        torch.set_rng_state(stored["random"])
        if device.type == "cuda" and stored["device_random"] is not None:
            torch.cuda.set_rng_state(stored["device_random"], device)
        return int(stored["epochs"])


def save(content: Mapping[str, Any], path: Path) -> None:
    """Write a file that is there whole or not at all."""
    import torch

    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        torch.save(content, file)


def check_facts(stored: Mapping[str, Any], expected: Mapping[str, Any], folder: Path) -> None:
    """Raise `BuildError` naming the first thing that a training in `folder` has otherwise."""
    for name in sorted(stored.keys() | expected.keys()):
        if stored.get(name) != expected.get(name):
            raise BuildError(
                f"{folder} holds an ESIM trained with {name} = {stored.get(name)!r}, not {expected.get(name)!r}; train"
                " in another folder, or remove this one"
            )


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one CPU thread: the products are small, so others mostly wait, and sums do not depend on them."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
