"""What tests of the Hub share: a server, folders to push, and steps for the real clients in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.folder import write_manifest
from tests.hub_server import HubServer
from tests.hub_store import Account

ROOT = Path(__file__).parents[1]
REPO = "org/unqover-religion"
TOKEN, READER, STRANGER, WRONG = "hf_owner", "hf_reader", "hf_stranger", "hf_wrong"
OLD, NEW = ["a", "b", "c"], ["a", "b", "d", "e"]

CARD = """---
license: apache-2.0
configs:
- config_name: qa
  default: true
  data_files:
  - split: test
    path: qa/test-*.parquet
dataset_info:
- config_name: qa
  features:
  - name: id
    dtype: string
  splits:
  - name: test
    num_bytes: {size}
    num_examples: {rows}
---
Rows of version {version}.
"""

Make = Callable[..., Path]
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        server.accounts[TOKEN] = Account("owner", orgs=("org",))
        server.accounts[READER] = Account("owner", orgs=("org",), role="read")
        server.accounts[STRANGER] = Account("stranger")
        yield server


@pytest.fixture
def hub_here(hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HubServer:
    """The Hub that the clients of this very process ask, without a token, with an empty cache and no pauses."""
    import datasets
    from huggingface_hub import constants

    cache = tmp_path / "home"
    for name, value in {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(cache / "hub"),
        "HF_TOKEN_PATH": str(cache / "token"),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_DISABLE_PROGRESS_BARS": True,
    }.items():
        monkeypatch.setattr(constants, name, value)
    for name, value in {
        "HF_ENDPOINT": hub.url,
        "HF_DATASETS_CACHE": cache / "datasets",
        "HF_HUB_OFFLINE": False,
    }.items():
        monkeypatch.setattr(datasets.config, name, value)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return hub


@pytest.fixture
def make_folder(tmp_path: Path) -> Make:
    def build(
        version: str = "1.0.0",
        ids: list[str] = OLD,
        shards: int = 1,
        config: str = "qa",
        split: str = "test",
        **facts: Any,
    ) -> Path:
        folder = tmp_path / f"folder{len(list(tmp_path.iterdir()))}"
        names = [f"qa/test-{i:05d}-of-{shards:05d}.parquet" for i in range(shards)]
        (folder / "qa").mkdir(parents=True)
        for i, name in enumerate(names):
            part = ids[i * len(ids) // shards : (i + 1) * len(ids) // shards]
            pq.write_table(pa.table({"id": part}), folder / name)
        card = CARD.format(version=version, rows=len(ids), size=len(ids))
        (folder / "README.md").write_text(card, encoding="utf-8")
        configs = {config: {split: {"rows": len(ids), "files": names}}}
        common = {"name": "unqover-religion", "version": version, "default_config": config}
        write_manifest(folder, common | {"configs": configs} | facts)
        return folder

    return build


@pytest.fixture
def run_steps(hub: HubServer, tmp_path: Path) -> Run:
    """Run steps in a new process with an empty cache; its whole output must be free of every token."""

    def steps(
        *todo: dict[str, Any], code: int = 0, endpoint: str = hub.url, home: Path | None = None
    ) -> list[dict[str, Any]]:
        cache = home or tempfile.mkdtemp(dir=tmp_path)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        env = kept | {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(Path(__file__).with_name("hub_steps.py")), json.dumps(todo)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        said = done.stdout + done.stderr
        assert not [token for token in (TOKEN, READER, STRANGER, WRONG) if token in said]
        return json.loads(done.stdout.splitlines()[-1]) if code == 0 else []

    return steps


def push(folder: Path, *, token: str | None = TOKEN, repo: str = REPO, **options: bool) -> dict[str, Any]:
    return {"do": "push", "folder": str(folder), "repo": repo, "token": token, "options": options}


def load(revision: str, *, token: str | None = None) -> dict[str, Any]:
    return {"do": "load", "repo": REPO, "revision": revision, "token": token}


def resolve(revision: str, *, token: str | None = None, repo: str = REPO) -> dict[str, Any]:
    return {"do": "resolve", "repo": repo, "revision": revision, "token": token}


def error(outcome: dict[str, Any], *parts: str, kind: str = "HubError") -> None:
    """Assert that an outcome is an error of one line that names what it should."""
    assert outcome.get("kind") == kind, outcome
    assert "\n" not in outcome["error"]
    assert not [part for part in parts if part not in outcome["error"]], outcome["error"]


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def published(hub: HubServer, revision: str, repo: str = REPO) -> dict[str, bytes]:
    files = hub.repos[repo].files(revision)
    files.pop(".gitattributes", None)
    return files
