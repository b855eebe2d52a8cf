"""What a model's ``config.json`` may say: it is read before anything is made of it, since others wrote it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from unqover_data.files import FileError, json_of, read_bytes

MOST_LAYERS = 2_000
MOST_LABELS = 1_000_000


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
    return config


def _is_number(key: object) -> bool:
    return isinstance(key, str) and len(key) < 10 and key.isascii() and key.isdigit()


def check_fits(auto_class: str, folder: Path, *, bytes_each: int) -> None:
    """Refuse a model of transformers whose weights, as its configuration has them, no memory here can hold.

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
    FileError
        If it does not fit, or as `read_config`.
    Exception
        Whatever transformers raises for a configuration that it cannot use.
    """
    import torch
    import transformers

    own: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    read_config(folder / "config.json")
    config = transformers.AutoConfig.from_pretrained(str(folder), **own)
    with torch.random.fork_rng(devices=[]), torch.device("meta"):  # new weights must not depend on this look
        model = getattr(transformers, auto_class).from_config(config, trust_remote_code=False)
    needed = bytes_each * sum(weight.numel() for weight in model.state_dict().values())
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > here:
        raise FileError(f"describes {needed / 1e9:,.0f} GB of weights, and there are {here / 1e9:,.0f} GB of memory")
