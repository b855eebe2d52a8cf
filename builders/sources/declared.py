"""What the card of a dataset repository declares to be its data: files of the repository, never of elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builders.errors import HubError
from builders.hub_files import fetch, files_of

_CARDS = ("README.md", ".huggingface.yaml")  # in which `datasets` looks


def check_declared(name: str, sha: str) -> None:
    """Raise `HubError` if the card of a dataset at a commit names files outside of its repository.

    `datasets` looks them up while it only prepares to load, by path on this machine and by address on others.
    """
    held = files_of(name, sha, "dataset")
    cards = [card for card in _CARDS if card in held]
    folder = fetch(name, sha, cards, "dataset")
    for card in cards:
        for pattern in _patterns(_content(folder / card)):
            if "://" in pattern or "::" in pattern or pattern.startswith(("/", "~")) or ".." in Path(pattern).parts:
                raise HubError(
                    f"{name} at {sha[:12]} declares data outside of its repository ({pattern!r} in {card}): it is not "
                    "read; download what you need and pass it with --source"
                )


def _content(card: Path) -> Any:
    import yaml
    from huggingface_hub import DatasetCard

    try:
        text = card.read_text(encoding="utf-8")
        return {"configs": DatasetCard(text).data.get("configs")} if card.suffix == ".md" else yaml.safe_load(text)
    except Exception:  # `datasets` cannot read it either, and says why
        return {}


def _patterns(content: Any) -> Iterator[str]:
    """Every text below ``data_files`` and ``data_dir`` of every config."""
    configs = content.get("configs") if isinstance(content, dict) else None
    for config in configs if isinstance(configs, list) else ():
        if isinstance(config, dict):
            yield from _texts([config.get("data_files"), config.get("data_dir")])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
