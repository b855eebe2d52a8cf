"""Files of a repository at a commit, fetched once into the Hub's cache and checked there; the same without a network.

What the Hub said is kept beside the files: a commit by the name that was asked for (the client's own ``refs``), and
what a commit holds (``.probesieve``), so that `HF_HUB_OFFLINE` finds what an earlier run fetched, and sees what is
missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from builders.disk import told_when_full
from builders.errors import HubError
from builders.hub_errors import Asked, Kind, ask, cache_folder, missing_offline, offline, told, without_xet_elsewhere
from builders.names import is_file_name
from unqover_data.files import FileError

_SHA = re.compile(r"[0-9a-f]{40}")
_SMALL = 16 * 2**20  # bytes up to which a cached file is hashed each time it is used
# What a tokenizer or processor of transformers may be made of, at the top of a repository.
_SIDE_FILES = re.compile(r"[^/]+\.(json|txt|model|jinja|tiktoken|spm|bpe|codes)|[^/]*(vocab|tokenizer)[^/]*")
_NO_SIDE_FILES = re.compile(r".*\.(index\.json|safetensors|bin|h5|msgpack|onnx|pt|py|md)")
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_WEIGHTS = ("model.safetensors", INDEXES[0], "pytorch_model.bin", INDEXES[1])
_TIMM_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # timm saves either, or both


def pin_model(repo: str, revision: str | None = None) -> str:
    """Return the commit of a model's revision, ``main`` by default, as the Hub says, or offline as it said last.

    Raises
    ------
    BuildError
        If a Hub takes no such name.
    HubError
        If there is no such model or revision, it is gated, or cannot be asked; offline if it was not fetched before.
    """
    wanted = revision or "main"
    asked = Asked("find", repo, "model", wanted)
    with told(asked):
        from huggingface_hub.utils._validators import validate_repo_id

        validate_repo_id(repo)
    if offline():
        return recall(asked)
    without_xet_elsewhere()
    from huggingface_hub import HfApi

    api = HfApi(library_name="probesieve")
    sha = ask(lambda: str(api.model_info(repo, revision=wanted, timeout=30).sha), asked)
    remember(asked, sha)
    return sha


def fetch(repo: str, sha: str, names: Iterable[str], kind: Kind) -> Path:
    """Return the folder that holds the named files of a commit, with those that the cache lacks fetched.

    A file in the cache that is not what the Hub calls it (small ones are hashed) is fetched anew.

    Raises
    ------
    HubError
        If one is not there or cannot be fetched.
    """
    folder = cache_folder(repo, kind) / "snapshots" / sha
    for name in names:
        _fetch_one(folder, name, Asked(f"fetch {name} of", repo, kind, sha))
    return folder


def fetch_matching(repo: str, sha: str, choose: Callable[[Sequence[str]], Sequence[str]], kind: Kind) -> Path:
    """As `fetch`, with the names that `choose` takes of all that the commit holds."""
    held = files_of(repo, sha, kind)
    folder = cache_folder(repo, kind) / "snapshots" / sha
    for name in choose(list(held)):
        _fetch_one(folder, name, Asked(f"fetch {name} of", repo, kind, sha), size=held[name])
    return folder


def fetch_transformers(repo: str, sha: str) -> Path:
    """Return a folder from which transformers loads a model of the Hub without a network.

    It holds the side files of the commit and the weights that transformers prefers: safetensors, whole or in shards,
    else PyTorch's. No code and no weights for other libraries are fetched.
    """

    def choose(held: Sequence[str]) -> list[str]:
        if "config.json" not in held:
            adapter = ", but an adapter: merge it into its base model" if "adapter_config.json" in held else ""
            raise HubError(f"{repo} at {sha[:12]} has no config.json, so it is no model of transformers{adapter}")
        side = [name for name in held if _SIDE_FILES.fullmatch(name) and not _NO_SIDE_FILES.fullmatch(name)]
        weights = next((name for name in _WEIGHTS if name in held), None)
        if weights is None:
            return side
        shards = _shards(repo, sha, weights) if weights.endswith(".index.json") else []
        if lost := [name for name in shards if name not in held]:
            raise HubError(f"{repo} at {sha[:12]} has no {lost[0]}, which its {weights} names; give another revision")
        return [*side, weights, *shards]

    return fetch_matching(repo, sha, choose, "model")


def fetch_timm(repo: str, sha: str) -> Path:
    """Return a folder with ``config.json`` and the weights of a model that timm saved."""

    def choose(held: Sequence[str]) -> list[str]:
        weights = next((name for name in _TIMM_WEIGHTS if name in held), None)
        if weights is None or "config.json" not in held:
            raise HubError(
                f"{repo} has no config.json with {' or '.join(_TIMM_WEIGHTS)}; a model that timm saved is needed"
            )
        return ["config.json", weights]

    return fetch_matching(repo, sha, choose, "model")


def _shards(repo: str, sha: str, index: str) -> list[str]:
    path = fetch(repo, sha, [index], "model") / index
    try:
        return shards_of(path)
    except FileError as error:
        raise HubError(f"{repo} at {sha[:12]}: {index} {error}; give another revision") from error


def shards_of(index: Path) -> list[str]:
    """Return the files of weights that an index names, all beside it.

    Raises
    ------
    FileError
        If it names none, or what is elsewhere.
    """
    try:
        names = sorted({str(name) for name in json.loads(index.read_bytes())["weight_map"].values()})
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise FileError("names no weights") from error
    for name in names:
        if not is_file_name(name):
            raise FileError(f"names weights in {name!r}, which is no file beside it")
    return names


def files_of(repo: str, sha: str, kind: Kind) -> dict[str, int]:
    """Return name and size of every file of a commit; offline as the Hub said them last, or as the cache has them."""
    asked = Asked("list the files of", repo, kind, sha)
    held = noted(asked, sha, "files")
    if isinstance(held, dict):
        return held
    if offline():
        folder = cache_folder(repo, kind) / "snapshots" / sha
        found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        if kind == "dataset" or not found:
            raise HubError(missing_offline(asked))
        return {name: path.stat().st_size for name, path in found.items()}
    from huggingface_hub import HfApi

    api = HfApi(library_name="probesieve")
    info = api.model_info if kind == "model" else api.dataset_info

    def listed() -> dict[str, int]:
        files = info(repo, revision=sha, files_metadata=True, timeout=30).siblings
        return {file.rfilename: int(file.size or 0) for file in files or ()}

    held = ask(listed, asked)
    note(asked, sha, "files", held)
    return held


def _fetch_one(folder: Path, name: str, asked: Asked, size: int | None = None) -> None:
    path = folder / name
    if path.is_file() and _is_wrong(path, size):
        remove(path)
        if offline():
            raise HubError(
                f"{name} of {asked.repo} was damaged in the cache and is removed; "
                "run the same command once with HF_HUB_OFFLINE=0"
            )
    if path.is_file():
        return
    if offline():
        raise HubError(missing_offline(asked))
    from huggingface_hub import hf_hub_download

    def download() -> None:
        with told_when_full(path):
            hf_hub_download(asked.repo, name, revision=asked.revision, repo_type=asked.kind, library_name="probesieve")

    for _ in range(2):  # what arrives damaged is fetched once more
        ask(download, asked)
        if not damaged(path):
            return
        remove(path)
    raise HubError(f"{name} of {asked.repo} arrives damaged (its sum is wrong); run the same command again later")


def _is_wrong(path: Path, size: int | None) -> bool:
    """Whether a cached file is damaged: by its sum if it is small or not of this size, else by its size alone."""
    found = path.stat().st_size
    other = size is not None and size != found
    if other and not _has_sum(path):
        return True
    return (other or found <= _SMALL) and damaged(path)  # the size was noted, and a note may be damaged, too


def damaged(path: Path) -> bool:
    """Whether a file in the Hub's cache is not what it is called there: its SHA-256, or its git blob id."""
    if not _has_sum(path):
        return False
    blob = _blob(path)
    digest = hashlib.sha256()
    if len(blob.name) == 40:
        digest = hashlib.sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
    with blob.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest() != blob.name


def _has_sum(path: Path) -> bool:
    """Whether a cached file is called by its sum; a cache without links does not say."""
    blob = _blob(path)
    return blob != path and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", blob.name) is not None


def remove_damaged(files: Iterable[Path]) -> list[str]:
    """Remove those of some files that are damaged in the Hub's cache, and return their names."""
    wrong = [path for path in sorted(files) if damaged(path)]
    for path in wrong:
        remove(path)
    return [path.name for path in wrong]


def remove(path: Path) -> None:
    """Take a file out of the Hub's cache, so that it is fetched anew; what a link there leads to elsewhere stays."""
    from huggingface_hub import constants

    cache, end = Path(constants.HF_HUB_CACHE).resolve(), path.resolve()
    for place in (_blob(path), path, *([end] if cache in end.parents else [])):
        place.unlink(missing_ok=True)


def _blob(path: Path) -> Path:
    """What a link in a snapshot leads to in one step; without links, the file itself."""
    return Path(os.path.normpath(path.parent / path.readlink())) if path.is_symlink() else path


def remember(asked: Asked, sha: str) -> None:
    """Keep where a revision leads, in the place where the client looks for it."""
    if asked.revision and not _SHA.fullmatch(asked.revision):
        _write(cache_folder(asked.repo, asked.kind) / "refs", asked.revision, sha)


def recall(asked: Asked) -> str:
    """Return the commit to which a revision led when it was last asked for online; `HubError` if it never was."""
    revision = str(asked.revision)
    folder = cache_folder(asked.repo, asked.kind)
    sha = revision
    if not _SHA.fullmatch(revision):
        with contextlib.suppress(OSError, ValueError):
            sha = _inside(folder / "refs", revision).read_text(encoding="utf-8").strip()
    if not _SHA.fullmatch(sha) or not (folder / "snapshots" / sha).is_dir():
        raise HubError(missing_offline(asked))
    return sha


def note(asked: Asked, sha: str, what: str, facts: Any) -> None:
    """Keep what the Hub said of a commit."""
    _write(cache_folder(asked.repo, asked.kind) / ".probesieve", f"{sha}-{what}.json", json.dumps(facts))


def noted(asked: Asked, sha: str, what: str) -> Any:
    """Return what was kept of a commit, None for nothing."""
    path = cache_folder(asked.repo, asked.kind) / ".probesieve" / f"{sha}-{what}.json"
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if ".." in Path(name).parts or folder not in path.parents:
        raise ValueError(f"{name!r} leads out of {folder}")
    return path


def _write(folder: Path, name: str, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a cache that cannot be written does without
        path = _inside(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        new.write_text(text, encoding="utf-8")
        new.replace(path)
