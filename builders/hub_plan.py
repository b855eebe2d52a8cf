"""What a push would do: what is in the folder, what the repository holds, and what must not be touched."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builders.errors import BuildError, HubError
from builders.folder import MANIFEST, read_manifest, sha256, verify_folder
from builders.hub_client import LocalFile, RemoteFile, Repository
from builders.owner_words import CARD, SectionError, as_built, with_words, words

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
        Whether the tag is set on a commit that lists these files.
    loaded_back : bool
        Whether every file was loaded back and had its sum.
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
    published : bool
        Whether the tag was there already, on exactly these files, so that there was nothing to do.
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
    loaded_back: bool = False
    published: bool = False
    pull_request: str | None = None

    def summary(self) -> str:
        """Tell a person what happened and how to go on, in a few lines."""
        tag, seen = f"v{self.version}", "private " if self.private else ""
        size = f"{self.files} files, {self.bytes:,} bytes"
        load = f'  load_dataset("{self.repo_id}", revision="{tag}")'
        if self.dry_run:
            return self._would()
        checked = (
            "Loaded back, all SHA-256 sums agree"
            if self.loaded_back
            else "All sums that the Hub lists agree; nothing was loaded back (--verify does)"
        )
        if self.pull_request:
            return (
                f"{tag} of {self.repo_id} ({size}) waits for its merge: {self.pull_request}\n"
                f"{checked}; main and tags are untouched.\n"
                f"After the merge run the same push without --create-pr: it sets the tag {tag}."
            )
        if self.published:
            return f"{tag} of {self.repo_id} is published already ({size}).\n{checked}: {self.url}\n{load}"
        how = "main held it already, the tag was missing" if self.continued else f"commit {self.sha}"
        return f"Pushed {tag} to the {seen}dataset {self.repo_id} ({size}; {how}).\n{checked}: {self.url}\n{load}"

    def _would(self) -> str:
        tag, seen = f"v{self.version}", "private " if self.private else ""
        size = f"{self.files} files, {self.bytes:,} bytes"
        if self.published:
            return (
                f"Dry run, nothing was sent: {tag} of {self.repo_id} is published already, with these files ({size})."
            )
        lines = [f"Dry run, nothing was sent: {tag} of {self.repo_id} would be {size}."]
        lines += [f"The {seen}dataset repository would be created."] if self.created else []
        lines += [f"main holds exactly these files, only {tag} is missing."] if self.continued else []
        lines += [f"  send   {name}" for name in self.added]
        lines += [f"  delete {name}" for name in self.deleted]
        lines += (
            [f"Edited on the Hub since, would be replaced: {', '.join(self.overwritten)}"] if self.overwritten else []
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class Payload:
    """A folder that agrees with its manifest, as files to send; each was hashed once."""

    folder: Path
    manifest: Mapping[str, Any]
    files: Mapping[str, LocalFile]

    @classmethod
    def of(cls, folder: Path) -> Payload:
        """Verify a folder; `BuildError` as `verify_folder`, and if the marks in its card do not enclose a section."""
        manifest = verify_folder(folder)
        sums = {name: facts["sha256"] for name, facts in manifest["files"].items()}
        sums |= {MANIFEST: sha256(folder / MANIFEST)}
        files = {name: LocalFile(folder / name, (folder / name).stat().st_size, sums[name]) for name in sums}
        if CARD not in files:
            return cls(folder, manifest, files)
        content = (folder / CARD).read_bytes()
        try:
            words(content)
        except SectionError as error:
            raise BuildError(f"{folder / CARD}: {error}") from error
        return cls(folder, manifest, files | {CARD: _small(content)})

    def with_words_of(self, repo: Repository, sha: str, held: Mapping[str, RemoteFile]) -> Payload:
        """Return what to send to, or to expect at, a commit: the card carries the owner's words from there.

        Raises
        ------
        HubError
            If the marks there do not enclose a section, so that words of the owner could be lost.
        """
        if CARD not in held or CARD not in self.files or held[CARD].holds(self.files[CARD]):
            return self
        card = self.files[CARD].content
        assert isinstance(card, bytes)
        try:
            said = words(repo.content_of(sha, CARD))
        except SectionError as error:
            raise HubError(
                f"{CARD} of {repo.id} at {sha[:12]}: {error}; mend it on the Hub, then push again"
            ) from error
        if not said:
            return self
        if (own := words(card)) and own != said:
            _logger.warning("the owner's words in %s are not those on the Hub, which stay", self.folder / CARD)
        return replace(self, files={**self.files, CARD: _small(with_words(card, said))})

    def differs_from(self, held: Mapping[str, RemoteFile]) -> str:
        """Name the first file by which a commit's listing differs, '' if it does not."""
        for name in sorted(self.files.keys() | held.keys()):
            if name not in held:
                return f"{name} is missing there"
            if name not in self.files:
                return f"{name} is only there"
            if not held[name].holds(self.files[name]):
                return f"{name} differs"
        return ""


def make_plan(repo: Repository, payload: Payload, *, private: bool) -> tuple[PushResult, Payload]:
    """Look at what the repository holds, refuse what must not be pushed, and say what is to be sent."""
    version, tag = payload.manifest["version"], f"v{payload.manifest['version']}"
    state = repo.state()
    plan = PushResult(
        repo_id=repo.id,
        version=version,
        url=repo.url,
        files=len(payload.files),
        bytes=sum(file.size for file in payload.files.values()),
        added=tuple(payload.files),
        deleted=(),
        overwritten=(),
        created=state is None,
        private=private if state is None else state.private,
        continued=False,
        dry_run=True,
        sha=state.sha if state else None,
    )
    if state is None:
        return plan, payload
    if private and not state.private:
        raise HubError(f"{repo.id} exists and is public: make it private in its settings, or leave out --private")
    if tag in repo.tags():
        sha, payload = _at_tag(repo, payload, tag)
        url = f"{repo.url}/tree/{tag}"
        return replace(plan, added=(), sha=sha, url=url, tag=tag, tagged=True, published=True), payload
    held = repo.files(state.sha)
    payload = payload.with_words_of(repo, state.sha, held)
    files = payload.files
    if not payload.differs_from(held):
        return replace(plan, added=(), continued=True), payload
    published = _published(repo, state.sha, held, payload.manifest)
    _refuse_foreign(repo, held, files, published)
    added = tuple(name for name in files if name not in held or not held[name].holds(files[name]))
    deleted = tuple(name for name in held if name not in files)
    overwritten = tuple(
        name
        for name in (*added, *deleted)
        if name in held and name != MANIFEST and _sum(repo, state.sha, name, held) != published.get(name)
    )
    if overwritten:
        _logger.warning("edited on the Hub since, this push replaces it: %s", ", ".join(overwritten))
    return replace(plan, added=added, deleted=deleted, overwritten=overwritten), payload


def _at_tag(repo: Repository, payload: Payload, tag: str) -> tuple[str, Payload]:
    """Return the commit of a tag that holds just this; raise `HubError` if it holds anything else."""
    sha = repo.resolve(tag)
    held = repo.files(sha)
    payload = payload.with_words_of(repo, sha, held)
    if not (different := payload.differs_from(held)):
        return sha, payload
    if _manifest_there(repo, sha, held, payload.manifest) is None:
        raise HubError(f"{repo.id} has the tag {tag} on files that are no set of ours; push to another name")
    raise HubError(
        f"{repo.id} has the tag {tag} already, with other files ({different}), and a tag is never moved: "
        f"build the folder again with a higher --version"
    )


def _manifest_there(
    repo: Repository, sha: str, held: Mapping[str, RemoteFile], manifest: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Manifest of a commit, None without one; refuse one that is not ours or of another set."""
    if MANIFEST not in held:
        return None
    with repo.downloaded(sha, MANIFEST) as path:
        try:
            there = read_manifest(path.parent)
        except BuildError as error:
            raise HubError(f"{repo.id} has a {MANIFEST} that is not ours; push to another name") from error
    if there["name"] != manifest["name"]:
        raise HubError(f"{repo.id} holds {there['name']}, not {manifest['name']}; push to another name")
    editions = [one.get("lists", {}).get("edition") for one in (there, manifest)]
    if editions[0] != editions[1]:
        raise HubError(f"{repo.id} holds edition {editions[0]} of the lists, not {editions[1]}; push to another name")
    sums = {name: facts["sha256"] for name, facts in there["files"].items()}
    return {"version": there["version"], "sums": sums}


def _published(
    repo: Repository, sha: str, held: Mapping[str, RemoteFile], manifest: Mapping[str, Any]
) -> dict[str, str]:
    """SHA-256 of the files of the version on ``main``, empty if none; refuse another set or a newer one."""
    there = _manifest_there(repo, sha, held, manifest)
    if there is None:
        return {}
    if _number(there["version"]) > _number(manifest["version"]):
        raise HubError(
            f"{repo.id} is at version {there['version']} and main would go back to {manifest['version']}; "
            f"build it with a higher --version"
        )
    sums: dict[str, str] = there["sums"]
    return sums


def _refuse_foreign(
    repo: Repository, held: Mapping[str, RemoteFile], files: Mapping[str, LocalFile], published: Mapping[str, str]
) -> None:
    """Raise `HubError` if ``main`` has a file that no version brought; a lone card may be replaced."""
    ours = set(files) if published else {CARD}
    foreign = sorted(held.keys() - ours - published.keys() - ({MANIFEST} if published else set()))
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise HubError(
            f"{repo.id} holds {foreign[0]}{more}, which no version of this dataset brought; "
            f"delete what is foreign there first, or push to another name"
        )


def _sum(repo: Repository, sha: str, name: str, held: Mapping[str, RemoteFile]) -> str:
    """SHA-256 of a file of a commit as a manifest has it."""
    if name == CARD:
        return hashlib.sha256(as_built(repo.content_of(sha, name))).hexdigest()
    return held[name].sha256 or repo.sum_of(sha, name)


def _small(content: bytes) -> LocalFile:
    return LocalFile(content, len(content), hashlib.sha256(content).hexdigest())


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
