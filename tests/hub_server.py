"""A small Hub on 127.0.0.1: what `huggingface_hub` and `datasets` ask to push and load datasets and to load models.

Files called ``*.parquet`` are kept as LFS. Every request is in `HubServer.log`. `HubServer.hooks` see each
request first and may answer in the server's place, which is how tests make races; `HubServer.faults` (see
`tests.hub_faults`) spoil what is sent.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.hub_faults import Fault
from tests.hub_store import Account, Answer, File, Kind, Repo, refusal


class HubServer:
    """The server and all that it holds; a context manager that serves in a thread.

    `hooks` are called as ``hook(method, path)`` under the lock.
    """

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.accounts: dict[str, Account] = {}
        self.uploads: dict[str, bytes] = {}
        self.log: list[tuple[str, str]] = []
        self.hooks: list[Callable[[str, str], Answer | None]] = []
        self.faults: list[Fault] = []
        self.stopped = False
        self.ranges = True  # whether a part of a file may be asked for
        self.lock = threading.RLock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that go away
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Serve no more: whoever asks is refused the connection, and who has one loses it."""
        self.stopped = True
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def create(self, repo_id: str, *, private: bool = False, kind: Kind = "datasets") -> Repo:
        repo = self.repos[repo_id] = Repo(repo_id, kind, private=private)
        attributes = File(b"*.parquet filter=lfs diff=lfs merge=lfs -text\n", lfs=False)
        repo.add("refs/heads/main", {".gitattributes": attributes}, "initial commit", None)
        return repo

    def publish(self, repo_id: str, folder: Path, *, kind: Kind = "datasets", tag: str | None = None) -> str:
        """Put a folder's files on ``main`` of a repository, new or not, and tag the commit; return its sha."""
        repo = self.repos.get(repo_id) or self.create(repo_id, kind=kind)
        held = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        files = {name: File(path.read_bytes(), lfs=path.suffix in _LARGE) for name, path in held.items()}
        sha = repo.add("refs/heads/main", files, "published", repo.resolve("main"))
        if tag is not None:
            repo.refs[f"refs/tags/{tag}"] = sha
        return sha

    def writes(self) -> list[tuple[str, str]]:
        """The requests that are not for reading only."""
        reading = ("GET", "HEAD")
        return [(how, path) for how, path in self.log if how not in reading and "/paths-info/" not in path]

    def once(self, method: str, part: str, action: Callable[[], Answer | None]) -> None:
        """Do `action` at the next request with this method and part in its path; it may give the answer."""
        done: list[bool] = []

        def hook(called: str, path: str) -> Answer | None:
            if done or called != method or part not in path:
                return None
            done.append(True)
            return action()

        self.hooks.append(hook)


_LARGE = (".parquet", ".safetensors", ".bin")
_ID = r"(?P<id>[\w.-]+/[\w.-]+)"
_REPO = r"/api/(?P<kind>datasets|models)/" + _ID
_ROUTES: list[tuple[str, str, str]] = [
    ("GET", r"/api/whoami-v2", "whoami"),
    ("POST", r"/api/validate-yaml", "validate_yaml"),
    ("POST", r"/api/repos/create", "create"),
    ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", "upload"),
    ("POST", r"/(?P<kind>datasets)/(?P<id>[\w.-]+/[\w.-]+)\.git/info/lfs/objects/batch", "lfs_batch"),
    ("GET", r"/(?P<kind>datasets)/" + _ID + r"/resolve/(?P<rev>[^/]+)/(?P<path>.+)", "file"),
    ("GET", "/" + _ID + r"/resolve/(?P<rev>[^/]+)/(?P<path>.+)", "file"),
    ("GET", _REPO + r"(/revision/(?P<rev>[^/]+))?", "info"),
    ("GET", _REPO + r"/auth-check", "auth_check"),
    ("GET", _REPO + r"/tree/(?P<rev>[^/]+)(/(?P<path>.+))?", "tree"),
    ("GET", _REPO + r"/refs", "refs"),
    ("GET", _REPO + r"/commits/(?P<rev>[^/]+)", "commits"),
    ("POST", _REPO + r"/paths-info/(?P<rev>[^/]+)", "paths_info"),
    ("POST", _REPO + r"/preupload/(?P<rev>[^/]+)", "preupload"),
    ("POST", _REPO + r"/commit/(?P<rev>[^/]+)", "commit"),
    ("POST", _REPO + r"/tag/(?P<rev>[^/]+)", "tag"),
    ("POST", _REPO + r"/branch/(?P<rev>[^/]+)", "branch"),
]


class _Handler(BaseHTTPRequestHandler):
    """Answers one request: find the route, check who asks, act."""

    hub: HubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits some 40 ms

    def do_GET(self) -> None:
        if self.hub.stopped:
            self.close_connection = True
            return
        body = self._body()
        target = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(target.query).items()}
        with self.hub.lock:
            self.hub.log.append((self.command, target.path))
            fault = next((fault for fault in self.hub.faults if fault.meets(self.command, target.path)), None)
            answer = None if fault and fault.answers else self._answered(target.path, body)
        if fault is None:
            assert answer is not None
            self._send(answer)
        else:
            self._send_wrong(fault.spoilt(answer), fault)

    def _answered(self, path: str, body: bytes) -> Answer:
        answers = (hook(self.command, path) for hook in self.hub.hooks)
        try:
            return next(filter(None, answers), None) or self._route(path, body)
        except Answer as refused:
            return refused

    do_HEAD = do_POST = do_PUT = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, answer: Answer, fault: Fault | None = None) -> None:
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        content = fault.body(content) if fault else content
        self.send_response(answer.status)
        common = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        for name, value in (common | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(fault.kept(content) if fault else content)

    def _send_wrong(self, answer: Answer, fault: Fault) -> None:
        fault.wait()
        with contextlib.suppress(ConnectionError):  # the client need not wait
            if fault.cut != -1:
                self._send(answer, fault)
        self.close_connection = self.close_connection or fault.cut is not None

    def _route(self, path: str, body: bytes) -> Answer:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.account = self.hub.accounts.get(token)
        if token and self.account is None:
            raise refusal(401, message="Invalid credentials in Authorization header")
        method = "GET" if self.command == "HEAD" else self.command
        for verb, pattern, name in _ROUTES:
            if verb == method and (match := re.fullmatch(pattern, path)):
                found = {key: unquote(value) for key, value in match.groupdict().items() if value is not None}
                kind = found.pop("kind", "models")
                repo = (self._repo(found.pop("id"), kind),) if "id" in found else ()
                return getattr(self, f"_{name}")(*repo, body=body, **found)
        raise refusal(404, message=f"no such page: {path}")

    def _repo(self, repo_id: str, kind: str) -> Repo:
        repo = self.hub.repos.get(repo_id)
        if repo is None or repo.kind != kind or (repo.private and not self._member(repo_id)):
            raise refusal(404 if self.account else 401, "RepoNotFound", "Repository not found")
        return repo

    def _member(self, repo_id: str) -> bool:
        owner = repo_id.split("/")[0]
        return self.account is not None and owner in (self.account.name, *self.account.orgs)

    def _may_write(self, repo_id: str, *, pull_request: bool = False) -> None:
        if self.account is None:
            raise refusal(401, message="Invalid username or password.")
        if self.account.role != "write" or not (pull_request or self._member(repo_id)):
            raise refusal(403, message="You don't have the rights to do this")

    def _may_load(self, repo: Repo) -> None:
        accepted = self.account is not None and self.account.name in repo.readers
        if repo.gated and not accepted and not self._member(repo.id):
            message = f"Access to dataset {repo.id} is restricted."
            raise refusal(403 if self.account else 401, "GatedRepo", message)

    def _whoami(self, body: bytes) -> Answer:
        if self.account is None:
            raise refusal(401, message="Invalid username or password.")
        orgs = [{"name": name} for name in self.account.orgs]
        token = {"displayName": "test", "role": self.account.role}
        return Answer(200, {"name": self.account.name, "orgs": orgs, "auth": {"accessToken": token}})

    def _validate_yaml(self, body: bytes) -> Answer:
        if not json.loads(body)["content"].startswith("---\n"):
            return Answer(400, {"errors": [{"message": "the card has no metadata"}], "warnings": []})
        return Answer(200, {"errors": [], "warnings": []})

    def _create(self, body: bytes) -> Answer:
        asked = json.loads(body)
        repo_id = f"{asked.get('organization') or getattr(self.account, 'name', '')}/{asked['name']}"
        self._may_write(repo_id)
        if repo_id in self.hub.repos:
            raise refusal(409, message="You already created this dataset repo")
        self.hub.create(repo_id, private=asked.get("visibility") == "private" or bool(asked.get("private")))
        return Answer(200, {"url": f"{self.hub.url}/datasets/{repo_id}", "name": repo_id})

    def _info(self, repo: Repo, body: bytes, rev: str = "main") -> Answer:
        sha = repo.resolve(rev)
        files = sorted(repo.commits[sha].files.items())
        siblings = [{"rfilename": path, "size": len(file.content), "blobId": file.blob_id} for path, file in files]
        gated = "manual" if repo.gated else False
        facts = {"id": repo.id, "sha": sha, "private": repo.private, "gated": gated, "disabled": False}
        return Answer(200, {**facts, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0})

    def _auth_check(self, repo: Repo, body: bytes) -> Answer:
        self._may_load(repo)
        return Answer(200, {})

    def _tree(self, repo: Repo, body: bytes, rev: str, path: str = "") -> Answer:
        start = f"{path}/" if path else ""
        below = {name: entry for name, entry in repo.listing(rev).items() if name.startswith(start)}
        if not below:
            raise refusal(404, "EntryNotFound", f"{path} does not exist on {rev!r}")
        deep = self.query.get("recursive", "").lower() in ("1", "true")
        return Answer(200, [entry for name, entry in below.items() if deep or "/" not in name[len(start) :]])

    def _paths_info(self, repo: Repo, body: bytes, rev: str) -> Answer:
        asked = json.loads(body)["paths"] if body.startswith(b"{") else parse_qs(body.decode())["paths"]
        listing = repo.listing(rev)
        return Answer(200, [listing[path] for path in asked if path in listing])

    def _refs(self, repo: Repo, body: bytes) -> Answer:
        def under(start: str) -> list[dict[str, str]]:
            found = ((ref, sha) for ref, sha in repo.refs.items() if ref.startswith(start))
            return [{"name": ref.removeprefix(start), "ref": ref, "targetCommit": sha} for ref, sha in found]

        prs = {"pullRequests": under("refs/pr/")} if "include_prs" in self.query else {}
        return Answer(200, {"branches": under("refs/heads/"), "tags": under("refs/tags/"), "converts": [], **prs})

    def _commits(self, repo: Repo, body: bytes, rev: str) -> Answer:
        def history(sha: str | None) -> Iterator[dict[str, Any]]:
            while sha is not None:
                commit = repo.commits[sha]
                when = "2026-01-01T00:00:00.000Z"
                yield {"id": sha, "title": commit.title, "message": "", "date": when, "authors": []}
                sha = commit.parent

        return Answer(200, list(history(repo.resolve(rev))))

    def _preupload(self, repo: Repo, body: bytes, rev: str) -> Answer:
        self._may_write(repo.id, pull_request="create_pr" in self.query)
        held = repo.commits[repo.resolve(rev)].files
        answers = []
        for asked in json.loads(body)["files"]:
            mode = "lfs" if asked["path"].endswith(".parquet") else "regular"
            oid = {"oid": held[asked["path"]].etag} if asked["path"] in held else {}
            answers.append({"path": asked["path"], "uploadMode": mode, "shouldIgnore": False, **oid})
        return Answer(200, {"files": answers})

    def _lfs_batch(self, repo: Repo, body: bytes) -> Answer:
        self._may_write(repo.id, pull_request=True)
        objects = json.loads(body)["objects"]
        for item in objects:
            if item["oid"] not in self.hub.uploads:
                item["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{item['oid']}"}}
        return Answer(200, {"transfer": "basic", "objects": objects})

    def _upload(self, body: bytes, oid: str) -> Answer:
        if hashlib.sha256(body).hexdigest() != oid:
            raise refusal(400, message="the content is not what was announced")
        self.hub.uploads[oid] = body
        return Answer(200, {})

    def _commit(self, repo: Repo, body: bytes, rev: str) -> Answer:
        pull_request = "create_pr" in self.query
        self._may_write(repo.id, pull_request=pull_request)
        lines = [json.loads(line) for line in body.splitlines() if line]
        header, parent = lines[0]["value"], repo.resolve(rev)
        if header.get("parentCommit", parent) != parent:
            raise refusal(412, message="A commit has happened since. Please refresh and try again.")
        files = dict(repo.commits[parent].files)
        for line in lines[1:]:
            path, value = line["value"]["path"], line["value"]
            if line["key"] == "file":
                files[path] = File(base64.b64decode(value["content"]), lfs=False)
            elif line["key"] == "lfsFile":
                files[path] = File(self.hub.uploads[value["oid"]], lfs=True)
            else:
                gone = [name for name in files if name == path or name.startswith(path.rstrip("/") + "/")]
                if not gone:
                    raise refusal(404, "EntryNotFound", f"A file with this name doesn't exist: {path}")
                files = {name: file for name, file in files.items() if name not in gone}
        number = sum(ref.startswith("refs/pr/") for ref in repo.refs) + 1
        sha = repo.add(f"refs/pr/{number}" if pull_request else f"refs/heads/{rev}", files, header["summary"], parent)
        page = f"{self.hub.url}/datasets/{repo.id}"
        opened = {"pullRequestUrl": f"{page}/discussions/{number}"} if pull_request else {}
        return Answer(200, {"success": True, "commitOid": sha, "commitUrl": f"{page}/commit/{sha}", **opened})

    def _tag(self, repo: Repo, body: bytes, rev: str) -> Answer:
        self._may_write(repo.id)
        ref = f"refs/tags/{json.loads(body)['tag']}"
        if ref in repo.refs:
            raise refusal(409, message="Tag reference exists already")
        repo.refs[ref] = repo.resolve(rev)
        return Answer(200, {})

    def _branch(self, repo: Repo, body: bytes, rev: str) -> Answer:
        self._may_write(repo.id)
        if f"refs/heads/{rev}" in repo.refs:
            raise refusal(409, message="Reference already exists")
        start = json.loads(body or b"{}").get("startingPoint", "main")
        repo.refs[f"refs/heads/{rev}"] = repo.resolve(start)
        return Answer(200, {})

    def _file(self, repo: Repo, body: bytes, rev: str, path: str) -> Answer:
        self._may_load(repo)
        sha = repo.resolve(rev)
        file = repo.commits[sha].files.get(path)
        if file is None:
            raise Answer(404, {}, x_error_code="EntryNotFound", x_error_message=path, x_repo_commit=sha)
        content = file.content
        named = f"inline; filename*=UTF-8''{quote(path.split('/')[-1])}"
        headers = {"ETag": f'"{file.etag}"', "X-Repo-Commit": sha, "X-Linked-Etag": f'"{file.etag}"'}
        headers |= {
            "X-Linked-Size": str(len(content)),
            "Accept-Ranges": "bytes",
            "Content-Disposition": named,
        }
        headers |= {"Content-Type": "application/octet-stream"}
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if part is None or not self.hub.ranges:
            return Answer(200, content, **headers)
        first, last = int(part[1]), min(int(part[2] or len(content)), len(content) - 1)
        if first > last:
            return Answer(416, None, Content_Range=f"bytes */{len(content)}")
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return Answer(206, content[first : last + 1], **headers)
