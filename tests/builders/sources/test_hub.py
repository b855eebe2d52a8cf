"""Datasets of the Hub at a resolved commit, and what it may refuse, each told in one line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Image, Value

from builders.errors import HubError
from builders.sources.hub import read_hub
from builders.sources.spec import SourceSpec
from tests.builders.sources.reading import NAMES, png
from tests.hub_faults import Fault
from tests.hub_fixtures import ROOT, STRANGER, TOKEN, error
from tests.hub_server import HubServer
from tests.hub_store import Answer, File, Repo

REPO = "org/snli"


def parquet(rows: Dataset | dict[str, Any]) -> File:
    file = io.BytesIO()
    if isinstance(rows, Dataset):
        rows.to_parquet(file)
    else:
        pq.write_table(pa.table(rows), file)
    return File(file.getvalue(), lfs=True)


def nli_rows(*labels: int, names: tuple[str, ...] = NAMES) -> File:
    features = Features(
        {
            "premise": Value("string"),
            "hypothesis": Value("string"),
            "label": ClassLabel(names=list(names)),
            "idx": Value("int32"),
        }
    )
    rows = {
        "premise": ["None" for _ in labels],
        "hypothesis": [f"h{i}" for i in range(len(labels))],
        "label": list(labels),
        "idx": list(range(len(labels))),
    }
    return parquet(Dataset.from_dict(rows, features=features))


def put(hub: HubServer, files: dict[str, File], repo_id: str = REPO) -> Repo:
    repo = hub.repos.get(repo_id) or hub.create(repo_id)
    repo.add("refs/heads/main", files, "data", repo.resolve("main"))
    return repo


def spec(**fields: Any) -> dict[str, Any]:
    inputs = {"premise": "premise", "hypothesis": "hypothesis"}
    return {"id": REPO, "inputs": inputs, "names": NAMES, **fields}


def read(
    hub: HubServer, tmp_path: Path, *steps: dict[str, Any], endpoint: str | None = None, offline: bool = False
) -> list[dict[str, Any]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    env = kept | {"HF_ENDPOINT": endpoint or hub.url, "HF_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    env |= {"HF_HUB_OFFLINE": "1"} if offline else {}
    script = Path(__file__).with_name("hub_steps.py")
    command = [sys.executable, str(script), json.dumps(steps), str(tmp_path / "work")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    outcomes: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return outcomes


@pytest.fixture
def snli(hub: HubServer) -> Repo:
    put(
        hub,
        {"data/train-00000-of-00001.parquet": nli_rows(0, -1, 2, 1), "data/test-00000-of-00001.parquet": nli_rows(-1)},
    )
    repo = hub.repos[REPO]
    repo.refs["refs/tags/v1"] = repo.resolve("main")
    shuffled = {"data/train-00000-of-00001.parquet": nli_rows(0, 1, names=("contradiction", "entailment", "neutral"))}
    return put(hub, shuffled)


def test_a_revision_is_resolved_and_read(hub: HubServer, snli: Repo, tmp_path: Path) -> None:
    outcomes = read(hub, tmp_path, {"spec": spec(revision="v1")}, {"spec": spec()}, {"spec": spec(revision="v1")})
    first, second, again = (outcome["result"] for outcome in outcomes)
    assert first["revision"] == snli.resolve("v1")
    assert first["origin"] == "org/snli (Hub)"
    assert first["unlabelled"] == {"train": 1, "test": 1}
    train = first["splits"].pop("train")
    assert not first["splits"]
    assert train["columns"] == ["premise", "hypothesis", "label", "source_index", "idx"]
    assert (train["names"], train["mapped"]) == (list(NAMES), True)
    assert train["rows"] == [
        {"premise": "None", "hypothesis": f"h{i}", "label": label, "source_index": i, "idx": i}
        for i, label in ((0, 0), (2, 2), (3, 1))
    ]
    assert second["revision"] == snli.resolve("main")
    assert [row["label"] for row in second["splits"]["train"]["rows"]] == [2, 0]  # matched by name
    assert second["splits"]["train"]["mapped"]
    assert again["splits"]["train"] == train


def test_images_of_the_hub(hub: HubServer, tmp_path: Path) -> None:
    features = Features({"img": Image(), "fine": ClassLabel(names=["cat", "dog"])})
    rows = {"img": [{"bytes": png(grey), "path": None} for grey in range(3)], "fine": [1, -1, 0]}
    put(hub, {"train.parquet": parquet(Dataset.from_dict(rows, features=features))}, "org/pets")
    fields = {"id": "org/pets", "inputs": {"image": "img"}, "label": "fine"}
    (outcome,) = read(hub, tmp_path, {"spec": fields})
    assert read(hub, tmp_path, {"spec": fields}, endpoint="http://127.0.0.1:9", offline=True) == [outcome]
    train = outcome["result"]["splits"]["train"]
    assert (train["names"], train["pixels"], train["columns"]) == (
        ["cat", "dog"],
        [0, 2],
        ["image", "label", "source_index"],
    )
    assert [row["source_index"] for row in train["rows"]] == [0, 2]


def test_files_of_images_of_the_hub(hub: HubServer, tmp_path: Path) -> None:
    names = [f"train/{'cat' if grey < 2 else 'dog'}/{grey}.png" for grey in range(4)]
    put(hub, {name: File(png(grey), lfs=grey > 1) for grey, name in enumerate(names)}, "org/pets")
    asked = {"spec": {"id": "org/pets", "inputs": {"image": "image"}}}
    online = read(hub, tmp_path, asked)
    train = online[0]["result"]["splits"]["train"]
    assert (train["names"], train["pixels"]) == (["cat", "dog"], [0, 1, 2, 3])
    assert read(hub, tmp_path, asked, offline=True) == online
    (snapshot,) = tmp_path.glob("home/hub/datasets--org--pets/snapshots/*")
    (snapshot / names[2]).resolve().write_bytes(png(7))
    error(read(hub, tmp_path, asked, offline=True)[0], f"{names[2]} of org/pets was damaged in the cache")
    assert read(hub, tmp_path, asked) == online


def test_what_is_not_there_is_named_with_what_is(hub: HubServer, snli: Repo, tmp_path: Path) -> None:
    card = "---\nconfigs:\n" + "".join(
        f"- config_name: {name}\n  data_files:\n  - split: train\n    path: {name}/train.parquet\n"
        for name in ("qnli", "mnli")
    )
    glue = {"README.md": File(f"{card}---\n".encode(), lfs=False)}
    put(hub, glue | {f"{name}/train.parquet": nli_rows(0, 1) for name in ("qnli", "mnli")}, "org/glue")
    put(hub, {"train.parquet": File(b"no Parquet", lfs=True)}, "org/broken")
    put(hub, {"notes.md": File(b"nothing", lfs=False)}, "org/empty")
    outcomes = read(
        hub,
        tmp_path,
        {"spec": spec(id="org/none")},
        {"spec": spec(revision="v2")},
        {"spec": spec(revision="v1", filtered=["train", "dev"])},
        {"spec": spec(id="org/glue")},
        {"spec": spec(id="org/glue", config="qnl")},
        {"spec": spec(id="org/glue", config="qnli")},
        {"spec": spec(id="org/broken")},
        {"spec": spec(id="org/empty")},
        {"spec": spec(inputs={"premise": "sentence1", "hypothesis": "hypothesis"}, label="gold")},
        {"spec": spec(revision="v1", filtered=["test"])},
        {"spec": spec(id="snli")},
    )
    error(outcomes[0], "org/none does not exist")
    error(outcomes[1], "no revision 'v2'", "v1")
    error(outcomes[2], "no split 'dev'", "train, test", "--filter-splits", kind="BuildError")
    error(outcomes[3], "org/glue needs a config", "qnli, mnli")
    error(outcomes[4], "org/glue has no config 'qnl'", "qnli, mnli")
    assert outcomes[5]["result"]["origin"] == "org/glue, config qnli (Hub)"
    assert len(outcomes[5]["result"]["splits"]["train"]["rows"]) == 2
    error(outcomes[6], "org/broken at", "cannot be loaded")
    error(outcomes[7], "org/empty at", "cannot be loaded")
    error(outcomes[8], "no column 'sentence1' and no column 'gold'", "premise", kind="BuildError")
    error(outcomes[9], "'test' has no labels", kind="BuildError")
    error(outcomes[10], "ORG/NAME", kind="BuildError")


def test_a_split_that_is_not_there_is_told_before_any_data_is_fetched(
    hub: HubServer, snli: Repo, tmp_path: Path
) -> None:
    read(hub, tmp_path, {"spec": spec(filtered=["dev"])})
    assert not [path for how, path in hub.log if how == "GET" and path.endswith(".parquet")]


def test_a_gated_source_names_the_page_of_its_terms(hub: HubServer, snli: Repo, tmp_path: Path) -> None:
    snli.gated = True
    page = "https://huggingface.co/datasets/org/snli"
    outcomes = read(
        hub,
        tmp_path,
        {"spec": spec(page=page)},
        {"spec": spec(page=page), "token": STRANGER},
        {"spec": spec()},
        {"spec": spec(page=page), "token": TOKEN},
    )
    for outcome in outcomes[:2]:
        error(outcome, "org/snli is gated", page, "hf auth login")
    error(outcomes[2], "org/snli is gated", "/datasets/org/snli", "hf auth login")
    assert outcomes[3]["result"]["revision"] == snli.resolve("main")


def test_faults_on_the_way(hub: HubServer, snli: Repo, tmp_path: Path) -> None:
    steps = {"spec": spec()}
    (outcome,) = read(hub, tmp_path, steps, endpoint="http://127.0.0.1:9")
    error(outcome, "no answer from http://127.0.0.1:9")
    hub.hooks.append(lambda how, path: Answer(403, {}) if path.endswith(".parquet") else None)
    (outcome,) = read(hub, tmp_path, steps)
    error(outcome, "cannot fetch data/train-00000-of-00001.parquet of org/snli", f"{hub.url} refuses it (403)")
    hub.hooks.clear()
    assert "result" in read(hub, tmp_path, steps)[0]


def test_a_cached_revision_is_not_taken_for_another(hub: HubServer, snli: Repo, tmp_path: Path) -> None:
    assert "result" in read(hub, tmp_path, {"spec": spec(revision="v1")})[0]
    resolved: list[str] = []

    def gone_once_resolved(how: str, path: str) -> Answer | None:
        if resolved and "/revision/" not in path:
            return Answer(403, {})
        resolved.extend([path] if path.endswith("/revision/main") else [])
        return None

    hub.hooks.append(gone_once_resolved)
    (outcome,) = read(hub, tmp_path, {"spec": spec()})
    error(outcome, snli.resolve("main")[:12], "org/snli could not be had")


def test_offline_reads_what_an_earlier_run_read(hub: HubServer, snli: Repo, tmp_path: Path) -> None:
    configs = "- {config_name: qnli, default: true, data_files: qnli/*}\n- {config_name: mnli, data_files: mnli/*}"
    glue = f"---\nconfigs:\n{configs}\n---\n"
    files = {f"{name}/train.parquet": nli_rows(*labels) for name, labels in (("qnli", (0, 1)), ("mnli", (2,)))}
    put(hub, {"README.md": File(glue.encode(), lfs=False), **files}, "org/glue")
    sha = snli.resolve("v1")
    steps = [{"spec": spec(**fields)} for fields in ({"revision": "v1"}, {}, {"revision": sha})]
    steps += [{"spec": spec(id="org/glue", config=config)} for config in (None, "mnli")]
    online = read(hub, tmp_path, *steps)
    assert all("result" in outcome for outcome in online), online
    asked = len(hub.log)
    wanting = [{"spec": spec(revision="v2")}, {"spec": spec(id="org/glue", config="qnli")}]
    again = read(hub, tmp_path, *steps, *wanting, offline=True)
    assert again[: len(steps)] == online
    error(again[-2], "cannot find org/snli at v2", "HF_HUB_OFFLINE is set", "run the same command once with")
    error(again[-1], "cannot load org/glue", "HF_HUB_OFFLINE is set")
    assert len(hub.log) == asked


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/revision/main$", {"status": 503, "retry_after": "0"}),
        ("/revision/main$", {"truncate": 0.5}),
        ("/tree/", {"status": 403}),
        ("/tree/", {"html": True}),
        ("/tree/", {"cut": -1}),
        ("/tree/", {"slow": 60}),
        ("/README.md$", {"status": 403}),
        ("/README.md$", {"status": 404}),
        ("/README.md$", {"status": 500}),
        ("/README.md$", {"cut": -1}),
        ("/README.md$", {"truncate": 0.5}),
        ("/train-[^/]*.parquet$", {"status": 403}),
        ("/train-[^/]*.parquet$", {"status": 429, "retry_after": "0"}),
        ("/train-[^/]*.parquet$", {"cut": -1}),
        ("/train-[^/]*.parquet$", {"truncate": 0.5}),
        ("/train-[^/]*.parquet$", {"corrupt": True}),
    ],
    ids=str,
)
def test_every_fault_is_one_line_and_a_later_run_heals(
    hub_here: HubServer, snli: Repo, monkeypatch: pytest.MonkeyPatch, path: str, fault: dict[str, Any]
) -> None:
    monkeypatch.setattr("builders.hub_watch.SILENCE", 0.3)
    card = {"README.md": File(b"---\nlicense: mit\n---\nRows.\n", lfs=False)}
    put(hub_here, snli.commits[snli.resolve("v1")].files | card)
    hub_here.faults.append(Fault("GET|HEAD", path, **fault))
    asked = SourceSpec(**spec(revision="main"))
    with pytest.raises(HubError) as caught:
        read_hub(asked)
    line = str(caught.value)
    assert "\n" not in line
    assert REPO in line
    assert hub_here.url in line or "arrives damaged" in line
    assert path != "/train-[^/]*.parquet$" or "data/train-00000-of-00001.parquet" in line
    assert str(fault.get("status", "")) in line
    assert len(hub_here.faults[0].seen) < 40
    hub_here.faults.clear()
    assert read_hub(asked).splits["train"]["hypothesis"][:] == ["h0", "h1", "h2", "h3"]


@pytest.mark.parametrize("name", ["snli-train.arrow", "dataset_info.json"])
def test_what_was_prepared_and_is_damaged_is_never_read(
    hub_here: HubServer, snli: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked = SourceSpec(**spec(revision="v1"))
    whole = read_hub(asked).splits["train"].to_dict()
    (prepared,) = (tmp_path / "home/datasets").rglob(name)
    content = prepared.read_bytes()
    damaged = content.replace(b"h1", b"h2") if name.endswith(".arrow") else content[:-9]
    assert damaged != content
    for step in ("online", "offline", "healed", "offline again"):
        if step in ("online", "offline"):
            prepared.write_bytes(damaged)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", step.startswith("offline"))
        if step == "offline":
            with pytest.raises(HubError, match=r"cannot load org/snli at .* run the same command once with HF_HUB_OFF"):
                read_hub(asked)
        else:
            assert read_hub(asked).splits["train"].to_dict() == whole


def test_images_and_data_outside_of_the_repository(hub: HubServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(7))
    features = Features({"image": Image(), "label": ClassLabel(names=["cat", "dog"])}).arrow_schema
    elsewhere = (str(secret), f"{hub.url}/elsewhere.png")
    for number, path in enumerate(elsewhere):
        images = [{"bytes": png(1), "path": None}, {"bytes": None, "path": path}]
        file = io.BytesIO()
        pq.write_table(pa.table({"image": images, "label": [0, 1]}, schema=features), file)
        put(hub, {"train.parquet": File(file.getvalue(), lfs=True)}, f"org/paths{number}")
    (tmp_path / "train.parquet").write_bytes(nli_rows(0, 1).content)
    outside = (f"{hub.url}/elsewhere.parquet", str(tmp_path / "train.parquet"), "../../org/x/train.parquet")
    for number, path in enumerate(outside):
        card = f"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: {path}\n---\n"
        name = "README.md" if number else ".huggingface.yaml"
        content = card if number else card.strip("-\n")
        put(hub, {name: File(content.encode(), lfs=False), "x.parquet": nli_rows(0)}, f"org/data{number}")
    of_images = {"inputs": {"image": "image"}}
    outcomes = read(
        hub,
        tmp_path,
        *({"spec": {"id": f"org/paths{number}", **of_images}} for number in range(len(elsewhere))),
        *({"spec": spec(id=f"org/data{number}")} for number in range(len(outside))),
    )
    for outcome in outcomes[: len(elsewhere)]:
        error(outcome, "column 'image' of split train has no bytes in row 1", kind="BuildError")
    for outcome, path in zip(outcomes[len(elsewhere) :], outside, strict=True):
        error(outcome, "declares data outside of its repository", repr(path))
    assert not [path for _, path in hub.log if "elsewhere" in path]
