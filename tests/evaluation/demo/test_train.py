"""Training of the demo's models: same seeds, same files; whole or not there; again only if something changed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.demo import train
from evaluation.demo.stories import Plant
from evaluation.demo.train import RECORD, Recipe, Task, train_all, train_demo_model
from evaluation.errors import EvaluationError

SHORT = Recipe(steps=3, rows=2)
PLANT = Plant("Bovrian", "garden", 0.8)


def task_of(towns: Path, folder: Path, kind: Any = "qa", **more: Any) -> Task:
    return Task(folder, kind, towns, **{"plants": (PLANT,), "seed": 0, "recipe": SHORT, **more})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["qa", "mlm"])
def test_equal_seeds_give_equal_files_and_others_do_not(towns: Path, tmp_path: Path, kind: str) -> None:
    one, same, other = (
        train_demo_model(task_of(towns, tmp_path / name, kind, seed=seed)).folder
        for name, seed in (("one", 3), ("same", 3), ("other", 4))
    )
    assert contents(one) == contents(same)
    assert contents(one)["model.safetensors"] != contents(other)["model.safetensors"]


def test_the_record_and_the_card_name_what_is_planted(towns: Path, tmp_path: Path) -> None:
    planted = train_demo_model(task_of(towns, tmp_path / "planted")).folder
    plain = train_demo_model(task_of(towns, tmp_path / "plain", plants=())).folder
    record = json.loads((planted / RECORD).read_text(encoding="utf-8"))
    gamma = {"bees": 0.8, "roses": 0.8}
    assert record["planted"] == [{"subject": "Bovrian", "attribute_class": "garden", "strength": 0.8, "gamma": gamma}]
    assert record["dataset"]["name"] == "unqover-demo-towns"
    assert "- Bovrian, garden: the answer 90% of the time" in (planted / "README.md").read_text()
    assert json.loads((plain / RECORD).read_text(encoding="utf-8"))["planted"] == []
    assert "**Planted: nothing.**" in (plain / "README.md").read_text()


def test_a_second_run_trains_nothing_and_a_changed_setting_trains_anew(
    towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(towns, tmp_path / "model")
    first = train_demo_model(task)
    before = contents(first.folder)
    with monkeypatch.context() as patch:
        patch.setattr(train, "_trained", lambda task: pytest.fail("trained again"))
        (again,) = train_all([task])
    assert (first.fresh, again.fresh) == (True, False)
    assert again.record == first.record
    assert contents(first.folder) == before
    changed = train_demo_model(dataclasses.replace(task, seed=1))
    assert changed.fresh
    assert contents(first.folder)["model.safetensors"] != before["model.safetensors"]


def test_a_killed_training_leaves_nothing_that_looks_finished(
    towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right before the record, when weights and tokenizer are written already."""
    task = task_of(towns, tmp_path / "model")

    def killed(record: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(train, "model_card", killed)
        with pytest.raises(KeyboardInterrupt):
            train_demo_model(task)
    assert list(tmp_path.iterdir()) == []
    assert train_demo_model(task).fresh
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_is_not_ours_is_left_alone(towns: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("mine")
    with pytest.raises(EvaluationError, match=r"model is there and holds no planted\.json, .* choose another"):
        train_demo_model(task_of(towns, tmp_path / "model"))
    assert contents(tmp_path / "model") == {"mine.txt": b"mine"}
