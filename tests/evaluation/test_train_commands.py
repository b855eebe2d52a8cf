"""``probesieve train`` and ``probesieve tables`` as a person meets them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from builders.folder import Built
from evaluation.classifiers.blank import write_blank_bert
from probesieve.cli import main
from tests.evaluation.classifiers.test_plans import PLAN
from tests.evaluation.classifiers.training_sets import CUES, TINY, WORDS, build
from tests.probesieve.test_cli import call

HERE = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
FLAGS = [flag for name, value in TINY.items() if name != "epochs" for flag in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("set"))


def test_two_seeds_are_trained_and_scored(built: Built, tmp_path: Path) -> None:
    model = write_blank_bert(tmp_path / "tiny", [*WORDS, *CUES], seed=0, layers=1, width=64, max_length=32)
    command = (sys.executable, "scripts/train_classifier.py")
    asked = ("--data", built.folder, "--subset", "filtered", "--model", model, "--set", "epochs=1", *FLAGS)
    asked = (*asked, "--seed", 0, "--seed", 1, "--out", tmp_path / "models", "--results", tmp_path / "results")
    done = call(*asked, "--score", "validation", "--device", "cpu", command=command, **HERE)
    assert (done.returncode, done.stderr) == (0, "")
    for seed in (0, 1):
        folder = tmp_path / "models" / f"snli-aflite_filtered_tiny_seed{seed}"
        assert f"Trained: {folder}" in done.stdout
        assert (folder / "training.json").is_file()
    assert "### Accuracy in percent, 2 seeds\n\n|  | full | kept | removed | random |\n" in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("| validation | "))
    assert line.count(" ± ") == 4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("train", "--data", "nowhere"), "nowhere is neither a built folder nor ORG/NAME"),
        (("train", "--data", "SET", "--subset", "filterd"), "did you mean 'filtered'?"),
        (("train", "--data", "SET", "--inputs", "hypotesis"), "did you mean 'hypothesis'?"),
        (("train", "--data", "SET", "--set", "epoch=1"), "training settings: unknown key 'epoch'"),
        (("train", "--data", "SET", "--set", "batch_size=0"), "batch_size must be at least 1, not 0"),
        (("train", "--data", "SET", "--split", "test"), "no split 'test'"),
        (("train", "--data", "SET", "--limit", "0"), "--limit must be at least 1, not 0"),
        (("train", "--data", "SET", "--model", "./nowhere"), "model must be ORG/NAME on the Hub or a folder"),
        (("train", "--data", "SET", "--score", "test"), "no split 'test'"),
        (("train", "--data", "hans"), "HANS has no rows to train on"),
        (("train", "--data", "anli", "--score", "dev"), "score with probesieve eval --dataset anli"),
        (("train", "--data", "anli", "--where", "R1"), "--where must be COLUMN=VALUE such as round=R1, not 'R1'"),
        (("tables", "--plan", "smal"), "did you mean 'small'?"),
        (("tables", "--plan", "small", "--table", "9"), "no table '9'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    built: Built,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: tuple[str, ...],
    message: str,
) -> None:
    named = [str(built.folder) if arg == "SET" else arg for arg in args]
    monkeypatch.setattr(sys, "argv", ["probesieve", *named, "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n"), error[:7]) == (2, 1, "error: ")
    assert message in error
    assert not (tmp_path / "out").exists()


def test_a_table_that_cannot_be_made_is_told_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace("build/one", "./nowhere"), encoding="utf-8")
    done = call("tables", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "out", **HERE)
    assert (done.returncode, done.stderr) == (1, "")
    assert "Not made: ./nowhere is neither a built folder nor ORG/NAME" in done.stdout
    assert f"Stored: {tmp_path / 'out' / 'tables.md'}" in done.stdout
