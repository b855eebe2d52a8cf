"""Files of a Hub in its cache: fetched once, checked, healed, and found again without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import hub_errors
from builders.errors import BuildError, HubError
from builders.hub_files import fetch, fetch_transformers, files_of, pin_model
from tests.hub_faults import Fault
from tests.hub_server import HubServer

MODEL = "org/tiny"
WEIGHTS = bytes(range(256)) * 40


@pytest.fixture
def sha(hub_here: HubServer, tmp_path: Path) -> str:
    """A model of which only some files are needed."""
    folder = tmp_path / "tiny"
    (folder / "onnx").mkdir(parents=True)
    for name in ("tokenizer.json", "config.json", "vocab.txt", "README.md", "modeling.py", "onnx/model.onnx"):
        (folder / name).write_text(f'{{"file": "{name}"}}', encoding="utf-8")
    for name in ("model.safetensors", "pytorch_model.bin", "tf_model.h5", "training_args.bin"):
        (folder / name).write_bytes(WEIGHTS)
    return hub_here.publish(MODEL, folder, kind="models", tag="v1")


def got(hub: HubServer, name: str) -> int:
    return sum(how == "GET" and path.endswith(f"/{name}") for how, path in hub.log)


def cached(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "401": ({"status": 401}, "wants a token (401): run `hf auth login`"),
    "403": ({"status": 403}, "refuses it (403); see "),
    "404": ({"status": 404}, "answered 404 (an injected 404)"),
    "429": ({"status": 429}, "asks to slow down (429); wait a few minutes, then run the same command again"),
    "429 after 1 s": ({"status": 429, "retry_after": "1"}, "asks to slow down (429); wait 1 seconds"),
    "429 after a day": ({"status": 429, "retry_after": "86400"}, "slow down (429); wait 86,400 seconds"),
    "500": ({"status": 500}, "answered 500 (an injected 500); run the same command again later"),
    "502": ({"status": 502}, "answered 502"),
    "503 after 0 s": ({"status": 503, "retry_after": "0"}, "answered 503"),
    "cut before headers": ({"cut": -1}, "broke off again and again; run the same command again"),
    "HTML": ({"html": True}, "answers with a web page (HTML), as a proxy or a login page does"),
}
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "cut at once": ({"cut": 0.0}, "broke off again and again"),
    "truncated": ({"truncate": 0.5}, "broke off again and again"),
    "corrupt": ({"corrupt": True}, "arrives damaged (its sum is wrong)"),
}


PATHS = {
    "revision": (r"^/api/models/org/tiny/revision/v1$", f"cannot find {MODEL}: "),
    "listing": (r"^/api/models/org/tiny/revision/[0-9a-f]{40}$", f"cannot list the files of {MODEL}: "),
    "tokenizer": (r"/resolve/.*/tokenizer.json$", f"cannot fetch tokenizer.json of {MODEL}: "),
    "weights": (r"/resolve/.*/model.safetensors$", f"cannot fetch model.safetensors of {MODEL}: "),
}
CASES = [("tokenizer", fault) for fault in FAULTS]
CASES += [(part, fault) for part in ("revision", "listing", "weights") for fault in ("403", "429", "500", "HTML")]


@pytest.mark.parametrize(("part", "fault"), CASES)
def test_every_fault_is_one_line(hub_here: HubServer, sha: str, part: str, fault: str) -> None:
    (path, named), (how, said) = PATHS[part], FAULTS[fault]
    hub_here.faults.append(Fault("GET|HEAD", path, **how))
    with pytest.raises(HubError) as caught:
        fetch_transformers(MODEL, pin_model(MODEL, "v1"))
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(named), line
    assert said in line, line
    assert hub_here.url in line
    again = fault in ("429", "429 after 1 s", "500", "502", "503 after 0 s", "cut before headers")
    assert len(hub_here.faults[0].seen) == (hub_errors.TRIES if again else 1)
    hub_here.faults.clear()
    assert cached(fetch_transformers(MODEL, pin_model(MODEL, "v1"))) >= {"config.json", "model.safetensors"}


@pytest.mark.parametrize("fault", DATA)
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_body_that_never_arrives_whole_leaves_nothing_and_a_later_one_heals(
    hub_here: HubServer, sha: str, fault: str, name: str
) -> None:
    how, said = DATA[fault]
    hub_here.faults.append(Fault("GET", rf"/resolve/.*/{name}$", **how))
    with pytest.raises(HubError) as caught:
        fetch(MODEL, sha, [name], "model")
    assert said in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(hub_here.faults[0].seen) <= 30
    hub_here.faults.clear()
    folder = fetch(MODEL, sha, [name], "model")
    assert (folder / name).read_bytes() == hub_here.repos[MODEL].files(sha)[name]


@pytest.mark.parametrize(
    "how",
    [
        {"cut": 0.5, "times": 3},
        {"cut": -1, "times": 2},
        {"status": 503, "retry_after": "0", "times": 3},
        {"status": 429, "times": 2},
        {"truncate": 0.5, "times": 1},
        {"corrupt": True, "times": 1},
    ],
)
def test_what_passes_is_waited_out(hub_here: HubServer, sha: str, how: dict[str, Any]) -> None:
    hub_here.faults.append(Fault("GET", r"/resolve/.*/model.safetensors$", **how))
    folder = fetch_transformers(MODEL, sha)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert len(hub_here.faults[0].seen) == how["times"]


def test_a_server_that_is_never_content_is_asked_within_bounds(hub_here: HubServer, sha: str) -> None:
    """It ignores where to go on, and cuts each time: the client alone would begin anew for ever."""

    hub_here.faults.append(Fault("GET", r"/resolve/.*/model.safetensors$", cut=0.5))
    hub_here.ranges = False
    with pytest.raises(HubError, match="broke off again and again"):
        fetch(MODEL, sha, ["model.safetensors"], "model")
    assert len(hub_here.faults[0].seen) < 30


@pytest.mark.parametrize(
    ("method", "path", "named"),
    [
        ("GET", r"/revision/v1$", "cannot find org/tiny: "),
        ("GET", r"/revision/[0-9a-f]{40}$", "cannot list the files of org/tiny: "),
        ("HEAD", r"/tokenizer.json$", "cannot fetch tokenizer.json of org/tiny: "),
        ("GET", r"/model.safetensors$", "cannot fetch model.safetensors of org/tiny: "),
    ],
)
def test_a_server_that_takes_a_request_and_never_answers_is_given_up(
    hub_here: HubServer, sha: str, monkeypatch: pytest.MonkeyPatch, method: str, path: str, named: str
) -> None:
    monkeypatch.setattr("builders.hub_watch.SILENCE", 0.2)
    hub_here.faults.append(Fault(method, path, slow=60))
    with pytest.raises(HubError) as caught:
        fetch_transformers(MODEL, pin_model(MODEL, "v1"))
    line = str(caught.value)
    assert line.startswith(f"{named}{hub_here.url} does not answer, or stopped in the middle; run the same command")
    assert len(hub_here.faults[0].seen) == hub_errors.TRIES


def test_what_the_client_asks_without_a_limit_gets_one(
    hub_here: HubServer, sha: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It repeats such a request on its own; what is left of that are our tries."""
    from huggingface_hub import HfApi

    monkeypatch.setattr("builders.hub_watch.SILENCE", 0.2)
    asked = hub_errors.Asked("list the tree of", MODEL, "model")
    hub_here.faults += [Fault("GET", path, slow=60) for path in ("/tree/", "/refs")]
    for action in (lambda: list(HfApi().list_repo_tree(MODEL)), lambda: HfApi().list_repo_refs(MODEL)):
        with pytest.raises(HubError, match="does not answer"):
            hub_errors.ask(action, asked)
    assert [len(fault.seen) for fault in hub_here.faults] == [hub_errors.TRIES] * 2
    with pytest.raises(HubError, match="does not answer"), hub_errors.told(asked):
        HfApi().list_repo_refs(MODEL)


def test_what_is_no_model_is_told_before_it_is_fetched(hub_here: HubServer, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/adapter_config.json").write_text("{}", encoding="utf-8")
    sha = hub_here.publish("org/adapter", tmp_path / "x", kind="models")
    with pytest.raises(HubError, match=r"has no config.json, so it is no model of transformers, but an adapter: merge"):
        fetch_transformers("org/adapter", sha)
    assert not [path for _, path in hub_here.log if "/resolve/" in path]


def test_the_pauses_are_those_asked_for_and_bounded(
    hub_here: HubServer, sha: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", lambda seconds: slept.append(seconds) if seconds else None)
    hub_here.faults.append(Fault("GET", "/revision/v1", status=429, retry_after="7", times=2))
    assert pin_model(MODEL, "v1") == sha
    assert slept == [7, 7]
    slept.clear()
    hub_here.faults[:] = [Fault("GET", "/revision/v1", status=503, times=3)]
    assert pin_model(MODEL, "v1") == sha
    assert slept == [1, 2, 4]
    slept.clear()
    hub_here.faults[:] = [Fault("GET", "/revision/v1", status=429, retry_after="50")]
    with pytest.raises(HubError, match="wait 50 seconds"):
        pin_model(MODEL, "v1")
    assert slept == [50, 50]


def test_only_what_is_needed_is_fetched_and_only_once(hub_here: HubServer, sha: str) -> None:
    folder = fetch_transformers(MODEL, pin_model(MODEL, "v1"))
    assert cached(folder) == {"config.json", "tokenizer.json", "vocab.txt", "model.safetensors"}
    before = len(hub_here.log)
    assert fetch_transformers(MODEL, sha) == folder
    assert len(hub_here.log) == before


def test_weights_in_shards_and_of_pytorch(hub_here: HubServer, tmp_path: Path) -> None:
    folder = tmp_path / "sharded"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "pytorch_model.bin").write_bytes(WEIGHTS)
    sha = hub_here.publish("org/bin", folder, kind="models")
    assert cached(fetch_transformers("org/bin", sha)) == {"config.json", "pytorch_model.bin"}
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folder / "model-1.safetensors").write_bytes(WEIGHTS)
    sha = hub_here.publish("org/sharded", folder, kind="models")
    with pytest.raises(HubError, match=r"has no model-2.safetensors, which its model.safetensors.index.json names"):
        fetch_transformers("org/sharded", sha)
    (folder / "model-2.safetensors").write_bytes(WEIGHTS[1:])
    sha = hub_here.publish("org/sharded", folder, kind="models")
    held = {"config.json", "model.safetensors.index.json", "model-1.safetensors", "model-2.safetensors"}
    assert cached(fetch_transformers("org/sharded", sha)) == held
    index["weight_map"]["b"] = "../model-2.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    sha = hub_here.publish("org/sharded", folder, kind="models")
    with pytest.raises(HubError, match=r"names weights in '../model-2.safetensors', which is no file beside it; give"):
        fetch_transformers("org/sharded", sha)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_that_was_cut_in_the_cache_is_fetched_anew(hub_here: HubServer, sha: str, name: str) -> None:
    path = fetch_transformers(MODEL, sha) / name
    path.resolve().write_bytes(path.read_bytes()[:7])
    fetch_transformers(MODEL, sha)
    assert path.read_bytes() == hub_here.repos[MODEL].files(sha)[name]
    assert got(hub_here, name) == 2


def test_offline_finds_what_was_fetched_by_branch_tag_and_sha(
    hub_here: HubServer, sha: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision in (None, "v1"):
        fetch_transformers(MODEL, pin_model(MODEL, revision))
    asked = len(hub_here.log)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for revision in (None, "main", "v1", sha):
        folder = fetch_transformers(MODEL, pin_model(MODEL, revision))
        assert cached(folder) == {"config.json", "tokenizer.json", "vocab.txt", "model.safetensors"}
    assert len(hub_here.log) == asked
    for repo, revision in ((MODEL, "v2"), (MODEL, "0" * 40), ("org/other", "main"), (MODEL, "../../v1")):
        with pytest.raises(
            HubError, match=r"HF_HUB_OFFLINE is set and it is not in the cache; run the same command once"
        ):
            pin_model(repo, revision)
    (folder / "model.safetensors").unlink()
    with pytest.raises(HubError, match=rf"cannot fetch model.safetensors of {MODEL} at {sha}: HF_HUB_OFFLINE is set"):
        fetch_transformers(MODEL, sha)
    (folder / "config.json").resolve().write_bytes(b"{")
    with pytest.raises(HubError, match=r"config.json of org/tiny was damaged in the cache and is removed"):
        fetch_transformers(MODEL, sha)


def test_offline_a_commit_that_another_tool_fetched_will_do_for_a_model_only(
    hub_here: HubServer, sha: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import hf_hub_download

    for name in ("config.json", "model.safetensors"):
        hf_hub_download(MODEL, name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert cached(fetch_transformers(MODEL, pin_model(MODEL))) == {"config.json", "model.safetensors"}
    with pytest.raises(HubError, match="cannot list the files of org/tiny"):
        files_of(MODEL, sha, "dataset")


def test_names_that_no_hub_takes(hub_here: HubServer) -> None:
    with pytest.raises(BuildError, match=r"model 'model\.' is no name that a Hub takes"):
        pin_model("model.")
    assert hub_here.log == []
