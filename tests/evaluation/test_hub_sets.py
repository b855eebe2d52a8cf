"""Built sets on a Hub: faults in one line, damage healed, and the same set without a network."""

from __future__ import annotations

from typing import Any

import pytest

from builders.errors import HubError
from evaluation.built_sets import find_built
from evaluation.errors import EvaluationError
from tests.hub_faults import Fault
from tests.hub_fixtures import REPO, Make
from tests.hub_server import HubServer

FILES = ["qa/test-00000-of-00002.parquet", "qa/test-00001-of-00002.parquet"]


@pytest.fixture
def sha(hub_here: HubServer, make_folder: Make) -> str:
    return hub_here.publish(REPO, make_folder(shards=2), tag="v1.0.0")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"status": 403}, "refuses it (403)"),
        ({"status": 404}, "answered 404"),
        ({"status": 500}, "answered 500"),
        ({"status": 429, "retry_after": "0"}, "asks to slow down (429)"),
        ({"cut": -1}, "broke off again and again"),
        ({"html": True}, "answers with a web page"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["manifest.json", FILES[1]])
def test_every_fault_is_one_line(hub_here: HubServer, sha: str, fault: dict[str, Any], said: str, name: str) -> None:
    hub_here.faults.append(Fault("GET|HEAD", f"/{name}$", **fault))
    with pytest.raises(HubError) as caught:
        find_built(REPO).files(FILES)
    line = str(caught.value)
    assert line.startswith(f"cannot fetch {name} of {REPO}: ")
    assert hub_here.url in line
    assert said in line
    assert "\n" not in line


def test_what_is_damaged_in_the_cache_is_fetched_anew(
    hub_here: HubServer, sha: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find_built(REPO)
    paths = [first.folder / "manifest.json", *first.files(FILES)]
    whole = [path.read_bytes() for path in paths]
    for most in (2**20, 0):  # small files are hashed when they are found, large ones by the manifest
        monkeypatch.setattr("builders.hub_files._SMALL", most)
        for path in paths[most == 0 :]:
            path.resolve().write_bytes(path.read_bytes()[:-5])
        again = find_built(REPO)
        assert [path.read_bytes() for path in (again.folder / "manifest.json", *again.files(FILES))] == whole
    hub_here.faults.append(Fault("GET", f"/{FILES[0]}$", corrupt=True))  # and never right again
    paths[1].resolve().write_bytes(b"")
    with pytest.raises(HubError, match=rf"{FILES[0]} of {REPO} arrives damaged"):
        find_built(REPO).files(FILES)


def test_a_file_that_is_not_the_manifests_is_refused(hub_here: HubServer, make_folder: Make) -> None:
    folder = make_folder(shards=2)
    (folder / FILES[0]).write_bytes((folder / FILES[1]).read_bytes())
    hub_here.publish(REPO, folder)
    with pytest.raises(EvaluationError, match=rf"{FILES[0]} is missing or was edited"):
        find_built(REPO).files(FILES)


def test_offline_by_branch_tag_and_sha(hub_here: HubServer, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for revision in (None, "v1.0.0"):
        find_built(REPO, revision).files(FILES[:1])
    asked = len(hub_here.log)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for revision in (None, "main", "v1.0.0", sha):
        built = find_built(REPO, revision)
        assert built.revision == sha
        assert built.files(FILES[:1])[0].is_file()
    with pytest.raises(HubError, match=rf"cannot fetch {FILES[1]} of {REPO} .* HF_HUB_OFFLINE is set"):
        built.files(FILES)
    with pytest.raises(HubError, match=rf"cannot find {REPO} at v2.0.0: HF_HUB_OFFLINE is set .* HF_HUB_OFFLINE=0"):
        find_built(REPO, "v2.0.0")
    assert len(hub_here.log) == asked
