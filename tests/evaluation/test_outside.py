"""Names in sets and results lead no command out of its output folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.errors import BuildError
from builders.folder import verify_folder
from builders.hub import push_folder
from builders.refilter import refilter
from evaluation.classifiers.train import TrainingRequest, train_seeds
from evaluation.report import report_text
from evaluation.scoring import score
from tests.builders.filtered_sets import build
from tests.builders.test_names import FIELDS, forge
from tests.evaluation.conftest import MakeModel


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("filtered")).folder


@pytest.mark.parametrize("name", ["../x", "/elsewhere/x"])
def test_no_command_writes_or_reads_where_a_manifest_says(
    made: Path, tmp_path: Path, make_model: MakeModel, name: str
) -> None:
    """One way in for all of them; nothing but the set and the model is there afterwards."""
    root = tmp_path / "root"
    out = root / "deep" / "out"
    folder = shutil.copytree(made, root / "set")
    forge(folder, lambda manifest: FIELDS["name"](manifest, name if name[0] == "." else f"{tmp_path}{name}"))
    model = str(make_model("BertForSequenceClassification", "BertConfig", num_labels=3))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    calls: list[Callable[[], object]] = [
        lambda: score(model, folder, out=out),
        lambda: list(train_seeds(TrainingRequest(str(folder), model=model), out, seeds=[0])),
        lambda: refilter(folder, out, version="1.0.1"),
        lambda: push_folder(folder, "org/x", dry_run=True),
        lambda: verify_folder(folder),
        lambda: report_text([folder]),
    ]
    for call in calls:
        with pytest.raises(BuildError, match=r"is no manifest of this version: name must be"):
            call()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
