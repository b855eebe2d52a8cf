"""A push that is killed at its requests: what `tests.kill_loop` does where the output is a Hub."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from builders.folder import sha256
from builders.hub import push_folder
from tests.hub_server import HubServer
from tests.hub_store import Account, Answer
from tests.kill_children import Done, forked, limited

REPO, TOKEN = "org/unqover-few", "hf_owner"


class PushLoop:
    """As `tests.kill_loop.Loop`; each run has a Hub of its own, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.moments = folder, 0
        self.whole = {path.relative_to(folder).as_posix(): sha256(path) for path in folder.rglob("*") if path.is_file()}
        with serving() as url:
            done = forked(lambda: pushed(folder, url))
            if done.code:
                raise SystemExit(f"push: {done.said}")
            self.changes, self.seconds = state(url)["requests"], done.seconds

    def kills(self, moments: int) -> list[str]:
        """Kill at so many moments and give what was wrong."""
        faults = []
        requests = np.unique(np.linspace(1, self.changes, -(-moments // 2)).round().astype(int)).tolist()
        for number in requests:
            with serving() as url:
                killed = forked(lambda url=url, number=number: pushed(self.folder, url, fatal=number))
                faults += self._after(f"request {number} of {self.changes}", url, killed)
        for share in np.linspace(0.05, 0.98, moments - len(requests)):
            with serving() as url:
                killed = forked(lambda url=url: pushed(self.folder, url), after=float(share) * self.seconds)
                faults += self._after(f"after {share:.0%}", url, killed)
        return faults

    def full_disk(self, sizes: int) -> list[str]:
        """Let no file grow beyond some sizes while all is loaded back, and give what was wrong."""
        faults = []
        largest = max(path.stat().st_size for path in self.folder.rglob("*.parquet"))
        for size in (largest // 2, largest - 1, 0)[:sizes]:
            with serving() as url:
                full = forked(lambda url=url, size=size: limited(size, lambda: pushed(self.folder, url)))
                said = full.said.strip()
                if full.code != 2 or "no room is left for" not in said or "\n" in said:
                    faults.append(f"{size} bytes: code {full.code}, {said[-600:]}")
                faults += self._after(f"{size} bytes", url, full)
        return faults

    def _after(self, when: str, url: str, killed: Done) -> list[str]:
        """A tag is on all or there is none; the same push again sets it, and once more sends nothing."""
        self.moments += 1
        faults = []
        if killed.code not in (0, 2, -signal.SIGKILL):
            faults.append(f"{when}: {killed.said[-600:]}")
        if any(files != self.whole for files in state(url)["tags"].values()):
            faults.append(f"{when}: the tag is on something that is not whole")
        for _ in range(2):
            writes = state(url)["writes"]
            again = forked(lambda: pushed(self.folder, url))
            if again.code:
                faults.append(f"{when}: run again: {again.said[-600:]}")
        now = state(url)
        if list(now["tags"].values()) != [self.whole] or now["main"] != self.whole:
            faults.append(f"{when}: what is published differs")
        if now["writes"] != writes:
            faults.append(f"{when}: a push of what is published sent something")
        return faults + [
            f"{when}: {path.name} is left" for path in Path(tempfile.gettempdir()).glob("probesieve-hub-*")
        ]


def pushed(folder: Path, url: str, *, fatal: int | None = None) -> None:
    """Push, and die right before one of the requests."""
    from huggingface_hub import constants
    from huggingface_hub.utils import disable_progress_bars
    from huggingface_hub.utils._http import get_session

    disable_progress_bars()  # which are written to a file here, and that may not grow
    constants.ENDPOINT, constants.HF_HUB_DISABLE_XET = url, True
    constants.HUGGINGFACE_CO_URL_TEMPLATE = url + "/{repo_id}/resolve/{revision}/{filename}"
    os.environ.update(HF_ENDPOINT=url, HF_TOKEN=TOKEN)
    seen: list[Any] = []

    def asking(request: Any) -> None:
        seen.append(request)
        if len(seen) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    session: Any = get_session()
    session.event_hooks["request"].append(asking)
    push_folder(folder, REPO)


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Give the address of a new Hub, in a process of its own."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        with HubServer() as hub:
            hub.accounts[TOKEN] = Account("owner", orgs=("org",))
            hub.hooks.append(lambda _, path: Answer(200, _state(hub)) if path == "/state" else None)
            os.write(writing, hub.url.encode())
            signal.pause()
        os._exit(0)
    try:
        yield os.read(reading, 100).decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def state(url: str) -> dict[str, Any]:
    """Sums of the files on ``main`` and at each tag, and how many requests there were, of all and of writing ones."""
    with urllib.request.urlopen(f"{url}/state") as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def _state(hub: HubServer) -> dict[str, Any]:
    repo = hub.repos.get(REPO)

    def files(revision: str) -> dict[str, str]:
        assert repo is not None
        held = repo.commits[repo.resolve(revision)].files
        return {name: file.sha256 for name, file in held.items() if name != ".gitattributes"}

    return {
        "main": files("main") if repo else {},
        "tags": {tag: files(tag) for tag in repo.tags()} if repo else {},
        "requests": sum(path != "/state" for _, path in hub.log),
        "writes": len(hub.writes()),
    }
