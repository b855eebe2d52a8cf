"""A probe set to score on: a built folder, or a dataset on the Hub pinned to a commit."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from builders.folder import MANIFEST, Manifest, read_manifest, sha256
from builders.hub import resolve_revision
from builders.probes import schema
from builders.unqover import build_unqover
from evaluation.errors import EvaluationError
from unqover_data import BUNDLED, load_lists


@dataclass(frozen=True)
class ProbeSet:
    """Rows of one config, and what they are.

    Attributes
    ----------
    name, version : str
        As in the manifest.
    source : str
        Folder or Hub id.
    revision : str
        Commit on the Hub; for a folder the SHA-256 that its manifest has of itself.
    config : str
        ``qa`` or one of the ``mlm`` configs.
    rows : pyarrow.Table
        The columns of `builders.probes.schema`.
    """

    name: str
    version: str
    source: str
    revision: str
    config: str
    rows: pa.Table

    @property
    def facts(self) -> dict[str, Any]:
        """What a result says of it."""
        keys = ("name", "version", "source", "revision", "config")
        return {key: getattr(self, key) for key in keys} | {"rows": len(self.rows)}


def default_sets(out: Path) -> list[str]:
    """Give the folders of the four sets below `out`; one that is not there is built from the bundled lists."""
    folders = []
    for name in BUNDLED:
        folder = out / f"unqover-{name}"
        if not folder.is_dir():
            build_unqover(load_lists(name), out)
        folders.append(str(folder))
    return folders


def open_probe_set(source: str, *, config: str, revision: str | None = None) -> ProbeSet:
    """Read a config of a probe set, with its files checked against the manifest.

    Parameters
    ----------
    source : str
        A built folder, or a dataset's ORG/NAME on the Hub.
    config : str
        Which config.
    revision : str, optional
        Tag, branch or sha on the Hub; ``main`` by default.

    Raises
    ------
    EvaluationError
        If it is no probe set, lacks the config or a column, or has no rows.
    BuildError
        If a folder is unfinished or was edited.
    HubError
        If the Hub has no such dataset or revision, or cannot be reached.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        if revision is not None:
            raise EvaluationError(f"{source} is a folder and has no revision {revision!r}: leave it out")
        manifest = read_manifest(path)
        sha = str(manifest["sha256"])
    elif source.count("/") != 1 or source.startswith((".", "/", "~")):
        raise EvaluationError(
            f"{source} is neither a built folder nor ORG/NAME; build one with: probesieve build unqover"
        )
    else:
        sha = resolve_revision(source, revision or "main")
        path = _download(source, sha, config)
        manifest = read_manifest(path)
    if manifest.get("builder") != "unqover":
        raise EvaluationError(f"{source} is no probe set but a set of builder {manifest.get('builder')!r}")
    return ProbeSet(
        name=manifest["name"],
        version=manifest["version"],
        source=source,
        revision=sha,
        config=config,
        rows=_read(path, manifest, config),
    )


def _download(repo_id: str, sha: str, config: str) -> Path:
    from huggingface_hub import snapshot_download

    wanted = [MANIFEST, f"{config}/*"]
    return Path(snapshot_download(repo_id, repo_type="dataset", revision=sha, allow_patterns=wanted))


def _read(folder: Path, manifest: Manifest, config: str) -> pa.Table:
    configs: Mapping[str, Any] = manifest["configs"]
    if config not in configs:
        close = difflib.get_close_matches(config, configs, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise EvaluationError(f"{manifest['name']} has no config {config!r} (it has {', '.join(configs)}){hint}")
    names = configs[config]["test"]["files"]
    for name in names:
        if not (folder / name).is_file() or sha256(folder / name) != manifest["files"][name]["sha256"]:
            raise EvaluationError(f"{folder}: {name} is missing or was edited; build or fetch the set again")
    rows = pa.concat_tables(pq.read_table(folder / name) for name in names)
    missing = [column for column in schema(config).names if column not in rows.schema.names]
    if missing:
        raise EvaluationError(f"{folder}: config {config} lacks the column {', '.join(missing)}; build it again")
    if not len(rows):
        raise EvaluationError(f"{folder}: config {config} has no rows")
    if pc.count_distinct(rows["id"]).as_py() < len(rows):
        raise EvaluationError(f"{folder}: config {config} repeats an id; build it again")
    return rows
