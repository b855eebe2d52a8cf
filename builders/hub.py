"""Pushing a built folder to the Hub as a tagged version, and finding published versions again.

The tag ``v<version>`` is the marker of a finished push: it is set after the commit's listing agrees with the
manifest, and never moved. A push that died before it is continued by running the same push again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builders.errors import BuildError, HubError
from builders.folder import MANIFEST, check_version, read_manifest, sha256, verify_folder
from builders.hub_client import RemoteFile, Repository, check_repo_id
from builders.hub_errors import Asked, offline
from builders.hub_files import recall, remember

_CARD = "README.md"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PushResult:
    """What a push did, or with `dry_run` what it would do.

    Attributes
    ----------
    repo_id, version : str
        Where to, and the version in the manifest.
    url : str
        Page of the version, of the pull request, or of the repository.
    sha : str or None
        Commit that holds the folder; after a dry run the one that ``main`` is at, if there is one.
    tag : str or None
        ``v<version>`` if `tagged`.
    tagged : bool
        Whether the tag was set and, loaded back, had the manifest's sums.
    pull_request : str or None
        Page of the pull request.
    files, bytes : int
        Size of the version, the manifest included.
    added, deleted : tuple of str
        Files that differ from what ``main`` had; files of an older version that the new one has no more.
    overwritten : tuple of str
        Those of `added` and `deleted` that were edited on the Hub since the version there was pushed.
    created, private : bool
        Whether the repository was created, and whether it is private.
    continued : bool
        Whether ``main`` held exactly these files already, so that only the tag was missing.
    dry_run : bool
        Whether nothing was sent.
    """

    repo_id: str
    version: str
    url: str
    files: int
    bytes: int
    added: tuple[str, ...]
    deleted: tuple[str, ...]
    overwritten: tuple[str, ...]
    created: bool
    private: bool
    continued: bool
    dry_run: bool
    sha: str | None = None
    tag: str | None = None
    tagged: bool = False
    pull_request: str | None = None

    def summary(self) -> str:
        """Tell a person what happened and how to go on, in a few lines."""
        tag, seen = f"v{self.version}", "private " if self.private else ""
        size = f"{self.files} files, {self.bytes:,} bytes"
        edited = ", ".join(self.overwritten)
        if self.dry_run:
            lines = [f"Dry run, nothing was sent: {tag} of {self.repo_id} would be {size}."]
            lines += [f"The {seen}dataset repository would be created."] if self.created else []
            lines += [f"main holds exactly these files, only {tag} is missing."] if self.continued else []
            lines += [f"  send   {name}" for name in self.added]
            lines += [f"  delete {name}" for name in self.deleted]
            lines += [f"Edited on the Hub since, would be replaced: {edited}"] if edited else []
            return "\n".join(lines)
        if self.pull_request:
            return (
                f"{tag} of {self.repo_id} ({size}) waits for its merge: {self.pull_request}\n"
                f"Loaded back from there, all SHA-256 sums are the manifest's; main and tags are untouched.\n"
                f"After the merge run the same push without --create-pr: it sets the tag {tag}."
            )
        how = "main held it already, the tag was missing" if self.continued else f"commit {self.sha}"
        return (
            f"Pushed {tag} to the {seen}dataset {self.repo_id} ({size}; {how}).\n"
            f"Loaded back from its tag, all SHA-256 sums are the manifest's: {self.url}\n"
            f'  load_dataset("{self.repo_id}", revision="{tag}")'
        )


def push_folder(
    folder: Path, repo_id: str, *, private: bool = False, create_pr: bool = False, dry_run: bool = False
) -> PushResult:
    """Push a built folder in one commit, tag it ``v<version>``, load the tag back and compare all sums.

    Everything that can be refused is refused before anything is sent. The token is that of ``hf auth login``
    or HF_TOKEN. Running it again after it was interrupted continues it.

    Parameters
    ----------
    folder : Path
        A built dataset folder.
    repo_id : str
        ORG/NAME of the dataset repository; created when it does not exist.
    private : bool
        Create it private; an existing public repository is refused.
    create_pr : bool
        Open a pull request instead; nothing is tagged before it is merged.
    dry_run : bool
        Check all that can be checked by reading, and send nothing.

    Raises
    ------
    BuildError
        If the folder or `repo_id` cannot be pushed.
    HubError
        If the Hub refuses, cannot be reached, holds what this push must not touch, or gives back other bytes.
    """
    check_repo_id(repo_id)
    manifest = verify_folder(folder)
    sums = _sums(folder, manifest)
    repo = Repository(repo_id, write=True)
    repo.check_token()
    plan = _plan(repo, folder, manifest, sums, private=private)
    tag = f"v{plan.version}"
    if create_pr and plan.continued:
        raise HubError(f"main of {repo_id} holds these files already: push without --create-pr to set {tag}")
    if dry_run:
        return plan
    if plan.sha is None:
        created = repo.create(private=private)
        plan = replace(plan, sha=created.sha, private=created.private)
    sha, pull_request = str(plan.sha), None
    if not plan.continued:
        sha, pull_request = _commit(repo, folder, sums, plan, parent=sha, create_pr=create_pr)
    done = replace(plan, dry_run=False, sha=sha, pull_request=pull_request)
    if pull_request:
        _compare_sums(repo, sha, sums, f"the pull request {pull_request}")
        return replace(done, url=pull_request)
    repo.tag(tag, sha)
    _compare_sums(repo, sha, sums, f"tag {tag}")
    return replace(done, url=f"{repo.url}/tree/{tag}", tag=tag, tagged=True)


def resolve_revision(repo_id: str, revision: str = "main") -> str:
    """Commit sha that a revision of a dataset means now, offline as the Hub said last.

    ``load_dataset`` may give another revision from its cache, with a warning only, when the one asked for
    cannot be had (huggingface/datasets issue 7928); a sha just given by the Hub is there to be had.

    Parameters
    ----------
    repo_id : str
        ORG/NAME.
    revision : str
        Tag, branch, ``refs/pr/N`` or commit sha.

    Raises
    ------
    BuildError
        If `repo_id` is no ORG/NAME.
    HubError
        If there is no such repository or revision, it is private or gated for this token, or no answer came.
    """
    check_repo_id(repo_id)
    asked = Asked("find", repo_id, "dataset", revision)
    if offline():
        return recall(asked)
    sha = Repository(repo_id).resolve(revision)
    remember(asked, sha)
    return sha


def verify_revision(folder: Path, repo_id: str, revision: str) -> str:
    """Fetch every file of a published revision anew, compare it with a folder, and give the commit sha.

    Raises
    ------
    BuildError
        If the folder disagrees with its own manifest.
    HubError
        As `resolve_revision`, and if the revision lacks a file, has one more, or gives other bytes for one.
    """
    check_repo_id(repo_id)
    sums = _sums(folder, verify_folder(folder))
    repo = Repository(repo_id)
    sha = repo.resolve(revision)
    if different := _different(folder, sums, repo.files(sha)):
        raise HubError(f"revision {revision} of {repo_id} is not {folder}: {different}")
    _compare_sums(repo, sha, sums, f"revision {revision}")
    return sha


def _sums(folder: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of every file that is pushed: those that the manifest lists, and the manifest last."""
    return {name: facts["sha256"] for name, facts in manifest["files"].items()} | {MANIFEST: sha256(folder / MANIFEST)}


def _plan(
    repo: Repository, folder: Path, manifest: Mapping[str, Any], sums: Mapping[str, str], *, private: bool
) -> PushResult:
    """Look at what the repository holds, refuse what must not be pushed, and say what is to be sent."""
    version, tag = manifest["version"], f"v{manifest['version']}"
    state = repo.state()
    plan = PushResult(
        repo_id=repo.id,
        version=version,
        url=repo.url,
        files=len(sums),
        bytes=sum((folder / name).stat().st_size for name in sums),
        added=tuple(sums),
        deleted=(),
        overwritten=(),
        created=state is None,
        private=private if state is None else state.private,
        continued=False,
        dry_run=True,
        sha=state.sha if state else None,
    )
    if state is None:
        return plan
    if tag in repo.tags():
        same = not _different(folder, sums, repo.files(repo.resolve(tag)))
        what = "holds just this folder: nothing to push" if same else "is never moved: raise --version"
        raise HubError(f"{repo.id} has the tag {tag} already, which {what}")
    if private and not state.private:
        raise HubError(f"{repo.id} exists and is public: make it private in its settings, or leave out --private")
    held = repo.files(state.sha)
    if not _different(folder, sums, held):
        return replace(plan, added=(), continued=True)
    published = _published(repo, state.sha, held, manifest)
    _refuse_foreign(repo, held, sums, published)
    added = tuple(name for name in sums if name not in held or not held[name].holds(folder / name, sums[name]))
    deleted = tuple(name for name in held if name not in sums)
    overwritten = tuple(
        name
        for name in (*added, *deleted)
        if name in held and name != MANIFEST and _sum(repo, state.sha, name, held) != published.get(name)
    )
    if overwritten:
        _logger.warning("edited on the Hub since, this push replaces it: %s", ", ".join(overwritten))
    return replace(plan, added=added, deleted=deleted, overwritten=overwritten)


def _commit(
    repo: Repository, folder: Path, sums: Mapping[str, str], plan: PushResult, *, parent: str, create_pr: bool
) -> tuple[str, str | None]:
    """Send the folder in one commit, see that it lists what it should, give its sha and the pull request."""
    sha, pull_request = repo.commit(
        f"Publish version {plan.version}",
        add={name: folder / name for name in sums},
        delete=plan.deleted,
        parent=parent,
        create_pr=create_pr,
    )
    if different := _different(folder, sums, repo.files(sha)):
        raise HubError(f"commit {sha[:12]} of {repo.id} is not the folder: {different}; it was not tagged, push again")
    return sha, pull_request


def _published(
    repo: Repository, sha: str, held: Mapping[str, RemoteFile], manifest: Mapping[str, Any]
) -> dict[str, str]:
    """SHA-256 of the files of the version on ``main``, empty if none; refuse another set or a newer one."""
    if MANIFEST not in held:
        return {}
    with repo.downloaded(sha, MANIFEST) as path:
        try:
            there = read_manifest(path.parent)
            check_version(there["version"])
            sums = {name: facts["sha256"] for name, facts in there["files"].items()}
        except (BuildError, AttributeError, KeyError, TypeError) as error:
            raise HubError(f"{repo.id} has a {MANIFEST} that is not ours; push to another name") from error
    if there["name"] != manifest["name"]:
        raise HubError(f"{repo.id} holds {there['name']}, not {manifest['name']}; push to another name")
    editions = [one.get("lists", {}).get("edition") for one in (there, manifest)]
    if editions[0] != editions[1]:
        raise HubError(f"{repo.id} holds edition {editions[0]} of the lists, not {editions[1]}; push to another name")
    if _number(there["version"]) > _number(manifest["version"]):
        raise HubError(
            f"{repo.id} is at version {there['version']} and main would go back to {manifest['version']}; "
            f"build it with a higher --version"
        )
    return sums


def _refuse_foreign(
    repo: Repository, held: Mapping[str, RemoteFile], sums: Mapping[str, str], published: Mapping[str, str]
) -> None:
    """Raise `HubError` if ``main`` has a file that no version brought; a lone card may be replaced."""
    ours = set(sums) if published else {_CARD}
    foreign = sorted(held.keys() - ours - published.keys() - ({MANIFEST} if published else set()))
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise HubError(
            f"{repo.id} holds {foreign[0]}{more}, which no version of this dataset brought; "
            f"delete what is foreign there first, or push to another name"
        )


def _different(folder: Path, sums: Mapping[str, str], held: Mapping[str, RemoteFile]) -> str:
    """Name the first file by which a commit's listing differs from the folder, '' if it does not."""
    for name in sorted(sums.keys() | held.keys()):
        if name not in held:
            return f"{name} is missing there"
        if name not in sums:
            return f"{name} is only there"
        if not held[name].holds(folder / name, sums[name]):
            return f"{name} differs"
    return ""


def _compare_sums(repo: Repository, sha: str, sums: Mapping[str, str], what: str) -> None:
    """Fetch every file of a commit anew and raise `HubError` at the first whose SHA-256 is another."""
    for name, expected in sums.items():
        if (found := repo.sum_of(sha, name)) != expected:
            raise HubError(
                f"{what} of {repo.id} gives other bytes than the folder's: SHA-256 of {name} at {sha[:12]} "
                f"is {found[:12]}..., not {expected[:12]}...; do not use it, and report it to the Hub"
            )


def _sum(repo: Repository, sha: str, name: str, held: Mapping[str, RemoteFile]) -> str:
    return held[name].sha256 or repo.sum_of(sha, name)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
