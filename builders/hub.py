"""Pushing a built folder to the Hub as a tagged version, and finding published versions again.

The tag ``v<version>`` is the marker of a finished push: it is set after the commit's listing agrees with the
manifest, and never moved. The same push again continues one that died, or finds that all is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from builders.errors import HubError
from builders.hub_client import LocalFile, Repository, check_repo_id
from builders.hub_errors import Asked, offline
from builders.hub_files import recall, remember
from builders.hub_plan import Payload, PushResult, make_plan

LOADED_BACK = 10**9
"""Bytes up to which a push loads everything back, unless it is told."""


def push_folder(
    folder: Path,
    repo_id: str,
    *,
    private: bool = False,
    create_pr: bool = False,
    dry_run: bool = False,
    verify: bool | None = None,
) -> PushResult:
    """Push a built folder in one commit, compare what the Hub lists of it, tag it ``v<version>`` and load it back.

    Everything that can be refused is refused before anything is sent. The token is that of ``hf auth login``
    or HF_TOKEN. Running it again after it was interrupted continues it; where all is published already, it compares.
    What the owner wrote between the marks of the card on ``main`` is carried over.

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
    verify : bool, optional
        Whether to load every file back and compare its SHA-256; by default if they have at most `LOADED_BACK` bytes.
        The sums that the Hub lists are compared in any case.

    Raises
    ------
    BuildError
        If the folder or `repo_id` cannot be pushed.
    HubError
        If the Hub refuses, cannot be reached, holds what this push must not touch, or gives back other bytes.
    """
    check_repo_id(repo_id)
    payload = Payload.of(folder)
    repo = Repository(repo_id, write=True)
    repo.check_token()
    plan, payload = make_plan(repo, payload, private=private)
    if create_pr and plan.continued:
        raise HubError(f"main of {repo_id} holds these files already: push without --create-pr to set v{plan.version}")
    if dry_run:
        return plan
    done = _send(repo, payload, plan, create_pr=create_pr)
    load_back = done.bytes <= LOADED_BACK if verify is None else verify
    if load_back:
        what = f"the pull request {done.pull_request}" if done.pull_request else f"tag {done.tag}"
        _compare_sums(repo, str(done.sha), payload.files, what)
    return replace(done, loaded_back=load_back)


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

    Words of the owner in the card there, between its marks, are no difference.

    Raises
    ------
    BuildError
        If the folder disagrees with its own manifest.
    HubError
        As `resolve_revision`, and if the revision lacks a file, has one more, or gives other bytes for one.
    """
    check_repo_id(repo_id)
    payload = Payload.of(folder)
    repo = Repository(repo_id)
    sha = repo.resolve(revision)
    held = repo.files(sha)
    payload = payload.with_words_of(repo, sha, held)
    if different := payload.differs_from(held):
        raise HubError(f"revision {revision} of {repo_id} is not {folder}: {different}")
    _compare_sums(repo, sha, payload.files, f"revision {revision}")
    return sha


def _send(repo: Repository, payload: Payload, plan: PushResult, *, create_pr: bool) -> PushResult:
    """Do what a plan says, but for what is done already; say what was done."""
    plan = replace(plan, dry_run=False)
    if plan.published:
        return plan
    if plan.sha is None:
        created = repo.create(private=plan.private)
        plan = replace(plan, sha=created.sha, private=created.private)
    if not plan.continued:
        sha, pull_request = _commit(repo, payload, plan, create_pr=create_pr)
        plan = replace(plan, sha=sha)
        if pull_request:
            return replace(plan, pull_request=pull_request, url=pull_request)
    tag = f"v{plan.version}"
    repo.tag(tag, str(plan.sha))
    return replace(plan, tag=tag, tagged=True, url=f"{repo.url}/tree/{tag}")


def _commit(repo: Repository, payload: Payload, plan: PushResult, *, create_pr: bool) -> tuple[str, str | None]:
    """Send the folder in one commit, see that it lists what it should, give its sha and the pull request."""
    sha, pull_request = repo.commit(
        f"Publish version {plan.version}",
        add=payload.files,
        delete=plan.deleted,
        parent=str(plan.sha),
        create_pr=create_pr,
    )
    if different := payload.differs_from(repo.files(sha)):
        raise HubError(f"commit {sha[:12]} of {repo.id} is not the folder: {different}; it was not tagged, push again")
    return sha, pull_request


def _compare_sums(repo: Repository, sha: str, files: Mapping[str, LocalFile], what: str) -> None:
    """Fetch every file of a commit anew and raise `HubError` at the first whose SHA-256 is another."""
    for name, file in files.items():
        if (found := repo.sum_of(sha, name)) != file.sha256:
            raise HubError(
                f"{what} of {repo.id} gives other bytes than the folder's: SHA-256 of {name} at {sha[:12]} "
                f"is {found[:12]}..., not {file.sha256[:12]}...; do not use it, and report it to the Hub"
            )
