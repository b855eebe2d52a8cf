"""`evaluation.score`, and what it gives back, as a notebook meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evaluation
from builders.folder import Built
from builders.unqover import build_unqover
from evaluation.results import ClassifierScores, ProbeScores
from evaluation.text import result_text
from tests.evaluation.classifiers.conftest import planted, reader
from tests.evaluation.classifiers.ood_files import write_hans
from tests.evaluation.conftest import LISTS, MakeModel
from unqover_data import read_toml

__all__ = ["planted", "reader"]


@pytest.fixture(scope="module")
def probe_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("probes") / "few.toml"
    path.write_text(LISTS, encoding="utf-8")
    return build_unqover(read_toml(path), path.parent).folder


@pytest.fixture
def model(make_model: MakeModel) -> Path:
    return make_model("BertForQuestionAnswering", "BertConfig", "bytes")


def test_a_probe_set_gives_what_the_command_stores(probe_set: Path, model: Path, tmp_path: Path) -> None:
    scores = evaluation.score(model, probe_set, sample=12, out=tmp_path)
    assert isinstance(scores, ProbeScores)
    stored = json.loads(scores.path.read_text(encoding="utf-8"))
    assert (scores.fresh, scores.to_dict()) == (True, stored)
    assert stored["settings"]["sample"] == "12"
    for name in ("mu", "eta", "delta", "epsilon", "average_score"):
        found, expected = getattr(scores, name), stored["metrics"][name]
        assert (found.value, found.low, found.high, found.n) == tuple(
            expected[key] for key in ("value", "low", "high", "n")
        )
    again = evaluation.score(str(model), str(probe_set), sample="12", out=str(tmp_path))
    assert (again.fresh, again.to_dict()) == (False, stored)


def test_associations_are_the_stored_pairs_by_size(probe_set: Path, model: Path, tmp_path: Path) -> None:
    scores = evaluation.score(model, probe_set, out=tmp_path)
    assert isinstance(scores, ProbeScores)
    stored = scores.result["tables"]["subject_attribute"]
    sizes = scores.associations["gamma"].abs().tolist()
    assert sizes == sorted(map(abs, stored["gamma"]), reverse=True)
    pairs = zip(stored["subject"], stored["attribute"], stored["gamma"], strict=True)
    assert set(pairs) == set(scores.associations[["subject", "attribute", "gamma"]].itertuples(index=False, name=None))
    assert scores.tables["subject"]["gamma"].tolist() == scores.result["tables"]["subject"]["gamma"]


def test_probe_scores_print_and_show_as_tables(probe_set: Path, model: Path, tmp_path: Path) -> None:
    scores = evaluation.score(model, probe_set, out=tmp_path)
    assert str(scores) == result_text(scores.result)
    short = repr(scores)
    assert short.startswith(f"<ProbeScores of {model} (qa, ")
    assert f"μ {scores.result['metrics']['mu']['value']:.3}"[:5] in short
    assert "\n" not in short
    shown = scores._repr_html_()
    assert shown.count("<table>") == 2
    assert ">bias intensity of the model; lower is better</td>" in shown


def test_markup_in_names_shows_as_text(probe_set: Path, model: Path, tmp_path: Path) -> None:
    scores = evaluation.score(model, probe_set, out=tmp_path)
    result = scores.to_dict()
    result["model"]["name"] = "<script>alert(1)</script>"
    result["tables"]["subject_attribute"]["subject"] = ["<b>x</b>"] * len(result["tables"]["subject_attribute"]["n"])
    shown = ProbeScores(result, scores.path, fresh=True)._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;x&lt;/b&gt;" in shown
    assert "<script>" not in shown
    assert "<b>" not in shown


def test_a_classifier_gives_all_splits_of_a_set_as_one(planted: Built, reader: Path, tmp_path: Path) -> None:
    scores = evaluation.score(reader, planted.folder, out=tmp_path)
    assert isinstance(scores, ClassifierScores)
    files = sorted(path for path in scores.path.glob("*.json"))
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    assert sorted(scores.splits) == sorted(split for one in stored for split in one["splits"])
    assert len(files) > 1
    assert scores.result["rows"] == sum(one["rows"] for one in stored)
    for one in stored:
        for split, summary in one["splits"].items():
            kept = scores.accuracy.loc[split, "kept"]
            assert kept["accuracy"] == summary["accuracy"]["kept"]["value"]
            assert kept["n"] == summary["accuracy"]["kept"]["n"]
            assert kept["ece"] == summary["ece"]["kept"]
    assert "kept" in repr(scores)
    assert "Drop from all rows" in str(scores)
    assert "Drop from all rows" in scores._repr_html_()
    one = evaluation.score(reader, planted.folder, split="validation", out=tmp_path)
    assert isinstance(one, ClassifierScores)
    assert (one.fresh, list(one.splits), one.path.name) == (False, ["validation"], "validation.exact.json")


def test_a_set_out_of_distribution_shows_its_report(reader: Path, tmp_path: Path) -> None:
    write_hans(tmp_path / "hans")
    scores = evaluation.score(reader, "hans", data=tmp_path, out=tmp_path / "r")
    assert isinstance(scores, ClassifierScores)
    assert ">heuristic: lexical_overlap</td>" in scores._repr_html_()
    assert set(scores.accuracy.index.get_level_values("subset")) == {"full"}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"model": object()}, "model must be a Hub id or a model's folder, not of type object: pass its name or path"),
    ({"model": ""}, "model must be a Hub id or a model's folder, not ''"),
    (
        {"dataset": ["a", "b"]},
        "dataset must be a built folder, ORG/NAME, or a set out of distribution, not of type list",
    ),
    ({"dataset": "nowhere/at/all"}, "is neither a built folder nor ORG/NAME"),
    ({"sample": 0}, "--sample must be a share below 1 or a whole number of rows, not 0"),
    ({"sample": 17}, "--sample 17 is more than the 16 rows there are"),
    ({"sample": "few"}, "not 'few'"),
    ({"limit": 5}, "option --limit means nothing for a model of kind 'qa'"),
    ({"split": "test"}, "option --split means nothing for a model of kind 'qa'"),
    ({"protocol": "exakt"}, "did you mean 'exact'?"),
    ({"kind": "qqa"}, "did you mean 'qa'?"),
    ({"config": "mlmm"}, "did you mean 'mlm'?"),
    ({"seed": -1}, "--seed must be at least 0, not -1"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_bad_input_is_one_line_and_leaves_nothing(
    given: dict[str, Any], message: str, probe_set: Path, model: Path, tmp_path: Path
) -> None:
    arguments = {"model": model, "dataset": probe_set, "out": tmp_path / "r", **given}
    with pytest.raises(evaluation.EvaluationError) as refused:
        evaluation.score(**arguments)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "r").exists()


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ["torch", "transformers", "datasets", "pandas", "pyarrow", "numpy"]
    code = f"from evaluation import score; import sys; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
