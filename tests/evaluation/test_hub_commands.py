"""Commands that work on models and sets of a Hub: nothing looks finished after a fault, and a cache is enough."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import datasets
import pytest

from evaluation.classifiers.blank import write_blank_bert
from probesieve.cli import main
from tests.builders.features.image_sets import colours, recipe
from tests.evaluation.classifiers import training_sets
from tests.evaluation.classifiers.test_image_classifiers import build_colours
from tests.hub_faults import Fault
from tests.hub_server import HubServer

SETTINGS = {name: value for name, value in training_sets.TINY.items() if name != "epochs"} | {"epochs": 1}
TRAIN = ["train", "--data", "org/texts", "--model", "org/blank", "--workers", "0"]
TRAIN += [flag for name, value in SETTINGS.items() for flag in ("--set", f"{name}={value}")]
COMMANDS = {
    "train": TRAIN,
    "eval": ["eval", "--model", "hf-hub:org/timm", "--dataset", "org/images", "--workers", "0"],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What lies on the Hub."""
    root = tmp_path_factory.mktemp("folders")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", root / "cache")
        recipe(rand_augment_layers=0, epochs=1).train(colours(30), root / "timm", seed=0)
        texts, images = training_sets.build(root / "texts").folder, build_colours(root / "images").folder
    blank = write_blank_bert(
        root / "blank", [*training_sets.WORDS, *training_sets.CUES], seed=0, layers=1, width=64, max_length=32
    )
    return {"timm": root / "timm", "blank": blank, "texts": texts, "images": images}


@pytest.fixture
def stocked(hub_here: HubServer, folders: dict[str, Path]) -> HubServer:
    for name, folder in folders.items():
        hub_here.publish(f"org/{name}", folder, kind="models" if name in ("timm", "blank") else "datasets")
    return hub_here


def run(
    out: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Run a command here; return its exit code and what it wrote to stderr."""
    asked = ["probesieve", *COMMANDS[command], "--out", str(out), "--device", "cpu", "--no-progress"]
    monkeypatch.setattr(sys, "argv", asked)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "path", "fault", "said"),
    [
        ("eval", "/images/revision/main$", {"status": 500}, "cannot read org/images: HUB answered 500"),
        (
            "eval",
            "/removed/train-.*parquet$",
            {"cut": 0.5},
            "cannot fetch removed/train-00000-of-00001.parquet of org/",
        ),
        ("eval", "/timm/revision/[0-9a-f]{40}$", {"html": True}, "cannot list the files of org/timm: HUB answers with"),
        ("eval", "/model.safetensors$", {"status": 403}, "cannot fetch model.safetensors of org/timm: HUB refuses it"),
        ("train", "/manifest.json$", {"status": 404}, "cannot fetch manifest.json of org/texts: HUB answered 404"),
        ("train", "/model.safetensors$", {"status": 429}, "cannot fetch model.safetensors of org/blank: HUB asks to"),
        ("train", "/tokenizer.json$", {"slow": 60}, "cannot fetch tokenizer.json of org/blank: HUB does not answer"),
    ],
)
def test_a_fault_of_the_hub_is_one_line_and_leaves_nothing_that_looks_finished(
    stocked: HubServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    path: str,
    fault: dict[str, Any],
    said: str,
) -> None:
    monkeypatch.setattr("builders.hub_watch.SILENCE", 0.2)
    stocked.ranges = False  # or a download that is cut in half each time would come to its end
    stocked.faults.append(Fault("GET|HEAD", path, **fault))
    code, error = run(tmp_path / "out", command, monkeypatch, capsys)
    assert (code, error.count("\n")) == (1, 1), error
    assert error.startswith(f"error: {said.replace('HUB', stocked.url)}")
    written = [path for path in (tmp_path / "out").rglob("*.*") if path.is_file() and ".work" not in path.parts]
    assert written == []


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_server_the_cache_is_enough(
    stocked: HubServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    assert run(tmp_path / "online", command, monkeypatch, capsys) == (0, "")
    stocked.stop()
    code, error = run(tmp_path / "refused", command, monkeypatch, capsys)
    assert (code, error.count("\n")) == (1, 1)
    assert "no answer from" in error
    assert "HF_HUB_OFFLINE=1 takes what an earlier run has fetched" in error
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert run(tmp_path / "offline", command, monkeypatch, capsys) == (0, "")
    online, offline = (
        {path.relative_to(tmp_path / name): path for path in sorted((tmp_path / name).rglob("*.*")) if path.is_file()}
        for name in ("online", "offline")
    )
    assert online.keys() == offline.keys()
    same = [path for path in online if path.suffix in (".parquet", ".safetensors")]
    assert same
    assert all(online[path].read_bytes() == offline[path].read_bytes() for path in same)
