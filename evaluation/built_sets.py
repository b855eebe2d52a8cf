"""A set that `builders` made: a folder, or a dataset on the Hub pinned to a commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.errors import BuildError
from builders.folder import MANIFEST, Manifest, read_manifest, sha256
from builders.hub import resolve_revision
from builders.hub_client import check_repo_id
from builders.hub_files import fetch, remove_damaged
from builders.lookup import close_folder, no_folder_either
from evaluation.errors import EvaluationError


@dataclass(frozen=True)
class BuiltSet:
    """What is known of a set before its rows are read.

    Attributes
    ----------
    source : str
        Folder or Hub id, as it was given.
    revision : str
        Commit on the Hub; for a folder the SHA-256 that its manifest has of itself.
    local : bool
        Whether it is a folder.
    folder : Path
        Where the manifest lies.
    manifest : dict
    """

    source: str
    revision: str
    local: bool
    folder: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """As in the manifest."""
        return str(self.manifest["name"])

    @property
    def version(self) -> str:
        """As in the manifest."""
        return str(self.manifest["version"])

    @property
    def builder(self) -> str | None:
        """``unqover`` for probe sets, ``aflite`` for filtered sets."""
        return self.manifest.get("builder")

    def rows_id(self, part: str) -> str:
        """Say by one name what scores on a part depend on: what the set is called, its rows, and how they are read.

        Words of the manifest such as the title do not count, so that results stay valid when they change.

        Parameters
        ----------
        part : str
            A config of a probe set, or a split of a filtered one.
        """
        sums = {
            config: [self.manifest["files"][name]["sha256"] for name in splits[split]["files"]]
            for config, splits in self.manifest["configs"].items()
            for split in splits
            if part == (config if self.builder == "unqover" else split)
        }
        facts = {name: self.manifest.get(name) for name in ("name", "version", "builder", "columns", "breakdown")}
        names = [*self.manifest["labels"]["filtered"]] if self.builder == "aflite" else None
        content = json.dumps({**facts, "labels": names, "files": sums}, sort_keys=True)
        return f"rows:{hashlib.sha256(content.encode()).hexdigest()}"

    def is_of(self, result: Mapping[str, Any]) -> bool:
        """Whether a stored result was made on these rows; those of earlier versions know no more than the revision."""
        part = result["dataset"]["config"] if "metrics" in result else next(iter(result["splits"]))
        same_rows = result["settings"].get("dataset") == self.rows_id(part)
        return same_rows or bool(result["dataset"]["revision"] == self.revision)

    def files(self, names: Iterable[str]) -> list[Path]:
        """Give files of the set, fetched if it is on the Hub, after a look at their sums.

        Raises
        ------
        EvaluationError
            If one is missing or was edited.
        """
        wanted = list(names)
        folder = self.folder if self.local else fetch(self.source, self.revision, wanted, "dataset")
        wrong = self._wrong(folder, wanted)
        if wrong and not self.local:
            remove_damaged(folder / name for name in wrong)
            fetch(self.source, self.revision, wrong, "dataset")
            wrong = self._wrong(folder, wrong)
        if wrong:
            raise EvaluationError(f"{folder}: {wrong[0]} is missing or was edited; build or fetch the set again")
        return [folder / name for name in wanted]

    def _wrong(self, folder: Path, names: Iterable[str]) -> list[str]:
        """Which files are not those of the manifest."""
        sums = {name: self.manifest["files"][name]["sha256"] for name in names}
        return [name for name in sums if not (folder / name).is_file() or sha256(folder / name) != sums[name]]


def find_built(source: str, revision: str | None = None) -> BuiltSet:
    """Read a set's manifest, and pin the set.

    Parameters
    ----------
    source : str
        A built folder, or a dataset's ORG/NAME on the Hub.
    revision : str, optional
        Tag, branch or sha on the Hub; ``main`` by default.

    Raises
    ------
    EvaluationError
        If it is neither.
    BuildError
        If a folder is unfinished, or its manifest was edited.
    HubError
        If there is neither such a folder nor such a dataset or revision on the Hub, or it cannot be reached.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        if revision is not None:
            raise EvaluationError(f"{source} is a folder and has no revision {revision!r}: leave it out")
        manifest = read_manifest(path)
        return BuiltSet(source, str(manifest["sha256"]), True, path, manifest)
    if path.exists():
        raise EvaluationError(f"{source} is a file: pass the folder of a built set, or ORG/NAME on the Hub")
    if not _is_on_hub(source):
        close = close_folder(source, Path("build"))
        raise EvaluationError(
            f"{source} is neither a built folder nor ORG/NAME{close or '; build one with: probesieve build unqover'}"
        )
    with no_folder_either(source):
        sha = resolve_revision(source, revision or "main")
    path = fetch(source, sha, [MANIFEST], "dataset")
    return BuiltSet(source, sha, False, path, read_manifest(path))


def _is_on_hub(source: str) -> bool:
    """Whether what is no folder can be a repository."""
    if source.startswith("build/"):  # where sets are built
        return False
    try:
        check_repo_id(source)
    except BuildError:
        return False
    return True
