"""A probe set to score on: a built folder, or a dataset on the Hub pinned to a commit."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from builders.probes import schema
from builders.unqover import build_unqover
from evaluation.built_sets import BuiltSet, find_built
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
    rows_id : str
        See `evaluation.built_sets.BuiltSet.rows_id`.
    """

    name: str
    version: str
    source: str
    revision: str
    config: str
    rows: pa.Table
    rows_id: str

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
    built = find_built(source, revision)
    return ProbeSet(
        name=built.name,
        version=built.version,
        source=source,
        revision=built.revision,
        config=config,
        rows=read_rows(built, config),
        rows_id=built.rows_id(config),
    )


def read_rows(built: BuiltSet, config: str) -> pa.Table:
    """Read the rows of a config of a probe set.

    Raises
    ------
    EvaluationError, BuildError, HubError
        As `open_probe_set`.
    """
    if built.builder != "unqover":
        raise EvaluationError(f"{built.source} is no probe set but a set of builder {built.builder!r}")
    configs = built.manifest["configs"]
    if config not in configs:
        close = difflib.get_close_matches(config, configs, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise EvaluationError(f"{built.name} has no config {config!r} (it has {', '.join(configs)}){hint}")
    files = built.files(configs[config]["test"]["files"])
    rows = pa.concat_tables(pq.read_table(file) for file in files)
    missing = [column for column in schema(config).names if column not in rows.schema.names]
    if missing:
        raise EvaluationError(f"{built.source}: config {config} lacks the column {', '.join(missing)}; build it again")
    if not len(rows):
        raise EvaluationError(f"{built.source}: config {config} has no rows")
    if pc.count_distinct(rows["id"]).as_py() < len(rows):
        raise EvaluationError(f"{built.source}: config {config} repeats an id; build it again")
    return rows
