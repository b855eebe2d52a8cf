"""One dataset repository on the Hub, as the owner of a token sees it; every failure is told in one line."""

from __future__ import annotations

import contextlib
import difflib
import functools
import hashlib
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from builders.disk import told_when_full
from builders.errors import BuildError, HubError
from builders.folder import sha256
from builders.hub_errors import Asked, ask, status_of, told, without_xet_elsewhere
from builders.hub_watch import Unusable
from builders.locks import held

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import DatasetInfo

T = TypeVar("T")
_TIMEOUT = 30  # seconds
_SCRATCH = "probesieve-hub-"

_NAME = re.compile(r"(?=.{1,96}$)[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")


def check_repo_id(repo_id: str) -> None:
    """Raise `BuildError` unless `repo_id` reads ORG/NAME and the Hub would take it."""
    parts = repo_id.split("/")
    named = len(parts) == 2 and all(_NAME.fullmatch(part) for part in parts)
    if not named or "--" in repo_id or ".." in repo_id or repo_id.endswith(".git"):
        raise BuildError(
            f"repository must be ORG/NAME such as org/unqover-religion (letters, digits, '_', '-', '.'), "
            f"not {repo_id!r}"
        )


@dataclass(frozen=True)
class RemoteFile:
    """What a commit's listing says of a file: `sha256` if the Hub keeps it as LFS, and its git blob id."""

    size: int
    sha256: str | None
    blob_id: str

    def holds(self, file: LocalFile) -> bool:
        """Whether it is this file to the last byte."""
        if self.sha256 is not None:
            return self.sha256 == file.sha256
        return self.size == file.size and self.blob_id == file.blob_id


@dataclass(frozen=True)
class LocalFile:
    """A file to send, its size and SHA-256."""

    content: Path | bytes
    size: int
    sha256: str

    @functools.cached_property
    def blob_id(self) -> str:
        """Its git blob id, for files that the Hub does not keep as LFS, which are small."""
        content = self.content if isinstance(self.content, bytes) else self.content.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class State:
    """Where ``main`` is now, and who may see it."""

    sha: str
    private: bool


class Repository:
    """A dataset repository; makes no request before a method is called.

    Parameters
    ----------
    repo_id : str
        ORG/NAME.
    write : bool
        Whether a token is required; it comes from HF_TOKEN or ``hf auth login`` and is in no message.

    Raises
    ------
    HubError
        If a token is required and there is none; from every method when the Hub says no.
    """

    def __init__(self, repo_id: str, *, write: bool = False) -> None:
        """Find the token and set the client up."""
        check_repo_id(repo_id)
        without_xet_elsewhere()
        _sweep()
        from huggingface_hub import HfApi, get_token

        self.id = repo_id
        with self._told("find a token for"):
            token = get_token()
        self._api: HfApi = HfApi(token=token or False, library_name="probesieve")
        if write and not token:
            raise HubError(
                f"no Hugging Face token was found: run `hf auth login`, or set HF_TOKEN to a token "
                f"that may write to {repo_id.split('/')[0]}"
            )

    @property
    def url(self) -> str:
        """The repository's page."""
        return f"{self._api.endpoint}/datasets/{self.id}"

    def check_token(self) -> None:
        """Raise `HubError` if the Hub does not know the token, or knows that it can only read."""

        def found() -> str | None:
            try:
                role: str | None = self._api.whoami().get("auth", {}).get("accessToken", {}).get("role")
            except Exception as error:  # asked too often, or a token that may not ask: proves nothing
                if (error.status if isinstance(error, Unusable) else status_of(error)) in (200, 401, None):
                    raise
                return None
            return role

        role = self._ask("find the owner of the token for", found)
        if role == "read":
            raise HubError(f"the token can only read: pushing to {self.id} needs one with write access")

    def state(self) -> State | None:
        """Where the repository is, None when it does not exist as far as the token can see."""
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

        def found() -> DatasetInfo | None:
            try:
                return self._api.dataset_info(self.id, timeout=_TIMEOUT)
            except GatedRepoError:
                raise
            except RepositoryNotFoundError:
                return None

        if (info := self._ask("read", found)) is None:
            return None
        if info.id != self.id:
            raise HubError(f"{self.id} is called {info.id} on the Hub; push to that name")
        return State(sha=str(info.sha), private=bool(info.private))

    def tags(self) -> list[str]:
        """Names of the tags, in the Hub's order."""
        refs = self._ask("read the tags of", lambda: self._api.list_repo_refs(self.id, repo_type="dataset"))
        return [tag.name for tag in refs.tags]

    def resolve(self, revision: str) -> str:
        """Commit sha of a branch, tag, pull request or commit, asked of the Hub and of no cache."""
        from huggingface_hub.errors import RevisionNotFoundError

        def found() -> DatasetInfo | None:
            try:
                return self._api.dataset_info(self.id, revision=revision, timeout=_TIMEOUT) if revision else None
            except RevisionNotFoundError:
                return None

        info = self._ask("read", found)
        if info is None or info.sha is None:
            known = [*self.tags(), "main"]
            close = difflib.get_close_matches(revision, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise HubError(f"{self.id} has no revision {revision!r}; {hint}")
        if info.gated:
            self._ask("read", lambda: self._api.auth_check(self.id, repo_type="dataset"))
        return info.sha

    def files(self, sha: str) -> dict[str, RemoteFile]:
        """Every file of a commit but ``.gitattributes``, which is the Hub's own."""
        from huggingface_hub.hf_api import RepoFile

        def listed() -> dict[str, RemoteFile]:
            tree = self._api.list_repo_tree(self.id, recursive=True, revision=sha, repo_type="dataset")
            return {
                entry.path: RemoteFile(entry.size, entry.lfs.sha256 if entry.lfs else None, entry.blob_id)
                for entry in tree
                if isinstance(entry, RepoFile) and entry.path != ".gitattributes"
            }

        return self._ask("list the files of", listed)

    @contextlib.contextmanager
    def downloaded(self, sha: str, name: str) -> Iterator[Path]:
        """Yield one file of a commit, fetched anew into a folder of its own that goes when the block ends."""
        with _scratch() as folder:

            def download() -> Path:
                with told_when_full(folder):
                    return Path(
                        self._api.hf_hub_download(
                            self.id, name, repo_type="dataset", revision=sha, local_dir=folder, force_download=True
                        )
                    )

            yield self._ask(f"load {name} of", download)

    def sum_of(self, sha: str, name: str) -> str:
        """SHA-256 of the bytes that the Hub serves for a file of a commit."""
        with self.downloaded(sha, name) as path:
            return sha256(path)

    def content_of(self, sha: str, name: str) -> bytes:
        """Return a small file of a commit."""
        with self.downloaded(sha, name) as path:
            return path.read_bytes()

    def create(self, *, private: bool) -> State:
        """Create the repository, private if asked for, else as its owner's settings say."""
        with self._told("create"):
            self._api.create_repo(self.id, repo_type="dataset", private=private or None)
        if (state := self.state()) is None:
            raise HubError(f"{self.id} was created but is not there; run the same command again")
        return state

    def commit(
        self, title: str, *, add: Mapping[str, LocalFile], delete: Iterable[str], parent: str, create_pr: bool
    ) -> tuple[str, str | None]:
        """Send files and deletions in one commit on `parent`; give its sha and the pull request's page.

        Raises
        ------
        BuildError
            If a file is not any more what its sum says; nothing was sent then.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        deletions = [CommitOperationDelete(path_in_repo=name, is_folder=False) for name in delete]
        additions = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=file.content) for name, file in add.items()]
        for one in additions:  # the client's own sums, which it took now
            if one.upload_info.sha256.hex() != add[one.path_in_repo].sha256:
                raise BuildError(f"{one.path_in_repo} was changed during the push; nothing was sent: push again")
        doing = "open a pull request on" if create_pr else "commit to"
        self._ask(  # which may be repeated, while a commit may not; what has arrived is not sent anew
            doing,
            lambda: self._api.preupload_lfs_files(self.id, additions, repo_type="dataset", create_pr=create_pr),
            write=True,
        )
        with self._told(doing):
            commit = self._api.create_commit(
                self.id,
                operations=[*deletions, *additions],
                commit_message=title,
                repo_type="dataset",
                parent_commit=parent,
                create_pr=create_pr,
            )
        return commit.oid, commit.pr_url

    def tag(self, name: str, sha: str) -> None:
        """Tag a commit and see that the tag leads to it; one that someone else made meanwhile is an error."""
        from huggingface_hub.errors import HfHubHTTPError

        def tagged() -> None:
            try:
                self._api.create_tag(self.id, tag=name, revision=sha, repo_type="dataset")
            except HfHubHTTPError as error:
                if status_of(error) != 409:
                    raise

        self._ask(f"set tag {name} on", tagged, write=True)
        if (found := self.resolve(name)) != sha:
            raise HubError(
                f"tag {name} of {self.id} was set by someone else meanwhile, at {found[:12]}; tags are never "
                f"moved, so commit {sha[:12]} stays untagged: build a higher version and push that"
            )

    def _ask(self, doing: str, action: Callable[[], T], *, write: bool = False) -> T:
        """Ask for what may be done twice, again where that may help; see `builders.hub_errors`."""
        return ask(action, Asked(doing, self.id, "dataset", write=write))

    def _told(self, doing: str) -> contextlib.AbstractContextManager[None]:
        """Turn whatever the client raises into a `HubError` of one line without the token."""
        return told(Asked(doing, self.id, "dataset", write=True))


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a folder of our own in the system's temporary one; what a killed run leaves of it, `_sweep` takes."""
    folder = Path(tempfile.gettempdir()) / f"{_SCRATCH}{secrets.token_hex(8)}"
    with held(folder.with_suffix(".lock"), HubError(f"{folder} is in use; run the same command again")):
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Remove what killed runs left in the temporary folder: all that no living process holds."""
    ours = re.compile(rf"({re.escape(_SCRATCH)}[0-9a-f]{{16}})(\.lock)?")  # and nothing of the user's own
    there = Path(tempfile.gettempdir())
    left = {there / name[1] for path in there.glob(f"{_SCRATCH}*") if (name := ours.fullmatch(path.name))}
    for folder in left:
        with (
            contextlib.suppress(OSError, BuildError, HubError),  # of another user, or in use
            held(folder.with_suffix(".lock"), HubError("in use")),
        ):
            shutil.rmtree(folder, ignore_errors=True)
