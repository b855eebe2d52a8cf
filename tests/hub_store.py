"""What the tests' Hub holds: accounts, and repositories of immutable commits with refs that point at them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

Kind = Literal["datasets", "models"]


class Answer(Exception):
    """A finished answer, raised where it is a refusal: status, JSON or bytes, headers."""

    def __init__(self, status: int, body: Any = None, **headers: str) -> None:
        super().__init__(status)
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def refusal(status: int, code: str = "", message: str = "") -> Answer:
    said = {"x_error_code": code} if code else {}
    return Answer(status, {"error": message or code}, **said, x_error_message=" ".join(message.split()) or code)


@dataclass(frozen=True)
class Account:
    """Who a token stands for, where they may write, and whether this token may."""

    name: str
    orgs: tuple[str, ...] = ()
    role: str = "write"


@dataclass(frozen=True)
class File:
    content: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def blob_id(self) -> str:
        facts = f"oid sha256:{self.sha256}\nsize {len(self.content)}\n"
        pointer = f"version https://git-lfs.github.com/spec/v1\n{facts}"
        stored = pointer.encode() if self.lfs else self.content
        return hashlib.sha1(b"blob %d\0" % len(stored) + stored).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.blob_id

    def listed(self, path: str) -> dict[str, Any]:
        facts = {"type": "file", "path": path, "size": len(self.content), "oid": self.blob_id}
        lfs = {"oid": self.sha256, "size": len(self.content), "pointerSize": 130}
        return facts | ({"lfs": lfs} if self.lfs else {})


@dataclass(frozen=True)
class Commit:
    files: dict[str, File]
    parent: str | None
    title: str


@dataclass
class Repo:
    """One repository; `readers` are the accounts that a gated one has accepted."""

    id: str
    kind: Kind = "datasets"
    private: bool = False
    gated: bool = False
    readers: set[str] = field(default_factory=set)
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)  # refs/heads/main, refs/tags/v1.0.0, refs/pr/1 -> sha

    def add(self, ref: str, files: dict[str, File], title: str, parent: str | None) -> str:
        facts = (parent, title, len(self.commits), sorted((path, file.etag) for path, file in files.items()))
        sha = hashlib.sha1(repr(facts).encode()).hexdigest()
        self.commits[sha] = Commit(files, parent, title)
        self.refs[ref] = sha
        return sha

    def resolve(self, revision: str) -> str:
        for ref in (f"refs/heads/{revision}", f"refs/tags/{revision}", revision):
            if ref in self.refs:
                return self.refs[ref]
        if revision in self.commits:
            return revision
        raise refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")

    def listing(self, revision: str) -> dict[str, dict[str, Any]]:
        """What the Hub tells of every file and folder, by path."""
        entries = {path: file.listed(path) for path, file in self.commits[self.resolve(revision)].files.items()}
        for folder in {str(parent) for path in entries for parent in PurePosixPath(path).parents} - {"."}:
            entries[folder] = {"type": "directory", "path": folder, "size": 0, "oid": "0" * 40}
        return dict(sorted(entries.items()))

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """Path and content of every file, for tests."""
        return {path: file.content for path, file in self.commits[self.resolve(revision)].files.items()}

    def tags(self) -> dict[str, str]:
        return {ref[10:]: sha for ref, sha in self.refs.items() if ref.startswith("refs/tags/")}
