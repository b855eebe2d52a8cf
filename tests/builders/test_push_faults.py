"""A push through every fault of the Hub: one line, no tag on anything incomplete, and the same push again succeeds."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from builders.errors import BuildError, HubError
from builders.hub import push_folder
from builders.locks import held
from tests.hub_faults import Fault
from tests.hub_fixtures import REPO, TOKEN, Make, Run, contents, published, push
from tests.hub_server import HubServer

# The requests of a push of a new set, in their order.
REQUESTS = {
    "whoami": ("GET", "/api/whoami-v2"),
    "state": ("GET", r"/api/datasets/org/[\w-]+$"),
    "create": ("POST", "/api/repos/create"),
    "preupload": ("POST", "/preupload/"),
    "lfs batch": ("POST", "/objects/batch"),
    "upload": ("PUT", "/lfs/"),
    "validate": ("POST", "/validate-yaml"),
    "commit": ("POST", "/commit/main"),
    "tree": ("GET", "/tree/"),
    "tag": ("POST", "/tag/"),
    "revision": ("GET", "/revision/v1.0.0"),
    "head": ("HEAD", "/resolve/"),
    "file": ("GET", "/resolve/"),
}
FAULTS = {
    **{str(status): {"status": status} for status in (401, 403, 404, 409, 412, 429, 500, 503)},
    "cut": {"cut": -1},
    "cut in the middle": {"cut": 0.5},
    "answer lost": {"cut": -1, "acts": True},
    "500 after it was done": {"status": 500, "acts": True},
    "HTML": {"html": True},
    "slow": {"slow": 1},
}


def test_these_are_the_requests_of_a_push(pushing: HubServer, make_folder: Make) -> None:
    push_folder(make_folder(), REPO)
    pushing.log = [one for one in pushing.log if "agent-harnesses" not in one[1]]  # the client's own, of no account
    met = {
        name: [(how, path) for how, path in pushing.log if how == method and re.search(part, path)]
        for name, (method, part) in REQUESTS.items()
    }
    assert all(met.values())
    assert {one for some in met.values() for one in some} == set(pushing.log)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_push_through_a_fault(pushing: HubServer, make_folder: Make, fault: str) -> None:
    folder, failed = make_folder(), []
    for number, (how, path) in enumerate(REQUESTS.values()):
        repo = f"org/set-{number}"
        spoilt = Fault(how, path, **FAULTS[fault])  # type: ignore[arg-type]
        pushing.faults = [spoilt]
        pushing.uploads.clear()
        try:
            assert push_folder(folder, repo).tagged
            assert complete(pushing, repo, folder)
        except HubError as error:
            failed.append(str(error))
            complete(pushing, repo, folder)
        assert spoilt.seen
        pushing.faults = []
        again = push_folder(folder, repo)
        assert (again.tagged, again.loaded_back) == (True, True)
        assert complete(pushing, repo, folder)
    assert (not failed) == (fault == "slow")
    assert len(failed) in (0, *range(8, len(REQUESTS) + 1)), failed
    assert not [line for line in failed if "\n" in line or TOKEN in line or len(line) > 700]


def complete(hub: HubServer, repo: str, folder: Path) -> bool:
    """Whether the version is tagged; what is tagged must be the folder, to the byte."""
    if repo not in hub.repos or not (tags := hub.repos[repo].tags()):
        return False
    assert list(tags) == ["v1.0.0"]
    assert published(hub, "v1.0.0", repo) == contents(folder)
    return True


def test_what_is_sent_is_hashed_once(pushing: HubServer, make_folder: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """By us; once more by the Hub's client for its upload, and never again if nothing is loaded back."""
    hashed: list[str] = []
    digest = hashlib.file_digest

    def counted(file: BinaryIO, name: str) -> Any:
        hashed.append(Path(file.name).name)
        return digest(file, name)

    folder = make_folder(shards=2)
    monkeypatch.setattr(hashlib, "file_digest", counted)
    done = push_folder(folder, REPO, verify=False)
    assert (done.tagged, done.loaded_back) == (True, False)
    assert "nothing was loaded back" in done.summary()
    assert sorted(hashed) == ["manifest.json", "test-00000-of-00002.parquet", "test-00001-of-00002.parquet"]
    assert not [path for _, path in pushing.log if "/resolve/" in path]
    assert complete(pushing, REPO, folder)


@pytest.mark.parametrize("request_", ["preupload", "lfs batch", "upload", "tag", "tree"])
def test_a_push_waits_as_it_is_asked_to_and_within_bounds(
    pushing: HubServer,
    make_folder: Make,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    request_: str,
) -> None:
    """The client alone would sleep for five hours here, and say so in ten lines."""
    folder, slept = make_folder(), []
    monkeypatch.setattr("time.sleep", lambda seconds: slept.append(seconds) if seconds else None)
    pushing.faults = [Fault(*REQUESTS[request_], status=429, retry_after="7", times=2)]
    assert push_folder(folder, "org/patient").tagged
    assert slept == [7, 7]
    slept.clear()
    pushing.uploads.clear()
    pushing.faults = [Fault(*REQUESTS[request_], status=429, retry_after="3600")]
    with pytest.raises(HubError, match=r"asks to slow down \(429\); wait 3,600 seconds"):
        push_folder(folder, REPO)
    assert not slept
    assert "Retry" not in capfd.readouterr().err


def test_a_file_that_changes_during_the_push_is_not_sent(
    pushing: HubServer, make_folder: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder()

    def change() -> None:
        (folder / "qa" / "test-00000-of-00001.parquet").write_bytes(b"PAR1")

    pushing.once("POST", "/create", change)
    with pytest.raises(BuildError, match=r"qa/test-00000-of-00001\.parquet was changed during the push"):
        push_folder(folder, REPO)
    assert not pushing.repos[REPO].tags()
    assert set(pushing.repos[REPO].files()) == {".gitattributes"}


def test_a_full_disk_while_loading_back_is_told_as_such(
    pushing: HubServer, make_folder: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.HfApi.hf_hub_download", full)
        with pytest.raises(BuildError, match=f"no room is left for {tempfile.gettempdir()}/probesieve-hub-"):
            push_folder(folder, REPO)
    assert push_folder(folder, REPO).published


@pytest.mark.parametrize("request_", ["create", "upload", "commit", "tag", "revision"])
def test_a_push_killed_after_a_request(hub: HubServer, make_folder: Make, run_steps: Run, request_: str) -> None:
    """The process dies when it asks for the next thing; the same push in another one succeeds, and clears up."""
    folder = make_folder()
    how, path = REQUESTS[request_]
    run_steps({"do": "die after", "method": how, "path": path}, push(folder), code=9)
    complete(hub, REPO, folder)
    (done,) = run_steps(push(folder))
    assert done["result"]["tagged"]
    assert complete(hub, REPO, folder)


def test_what_a_killed_run_left_goes_with_the_next(
    pushing: HubServer, make_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    temporary, dead, living = tmp_path / "temporary", "probesieve-hub-" + "0" * 16, "probesieve-hub-" + "1" * 16
    (temporary / dead / "qa").mkdir(parents=True)
    (temporary / f"{dead}.lock").touch()
    (temporary / living).mkdir()
    own = ["probesieve-hub-notes", "probesieve-hub-notes.d"]  # of the user's
    for name in own:
        (temporary / name).mkdir()
    with held(temporary / f"{living}.lock", RuntimeError()):
        push_folder(make_folder(), REPO)
        assert sorted(path.name for path in temporary.iterdir()) == [living, f"{living}.lock", *own]
    push_folder(make_folder(), REPO)
    assert sorted(path.name for path in temporary.iterdir()) == own
