"""Stored results side by side."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders.unqover import build_unqover
from evaluation.compare import compare_text, read_scored
from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.probe_sets import open_probe_set
from evaluation.report import report_text
from evaluation.run import Options, evaluate
from tests.evaluation.conftest import MakeModel
from tests.evaluation.report.stored import store_result
from tests.evaluation.test_run import CPU, folder  # noqa: F401  (a fixture)
from unqover_data import load_lists


@pytest.fixture
def results(request: pytest.FixtureRequest, make_model: MakeModel, tmp_path: Path) -> list[Path]:
    """Two question-answering models and a masked LM on the set of sixteen rows."""
    built = str(request.getfixturevalue("folder"))
    paths = []
    for model_class, family, config in (
        ("BertForQuestionAnswering", "bytes", "qa"),
        ("BertForQuestionAnswering", "bytes-untrimmed", "qa"),
        ("BertForMaskedLM", "wordpiece", "mlm"),
    ):
        ref = resolve_model(str(make_model(model_class, "BertConfig", family)))
        probes = open_probe_set(built, config=config)
        paths.append(evaluate(ref, probes, Options(), engine=CPU, out=tmp_path / "results").path)
    return paths


def test_ranks_pairs_shared_attributes_and_shift_are_shown(results: list[Path]) -> None:
    text = compare_text(results[:2], base=results[2], top=2)
    names = [read_scored(path)[0] for path in results]
    lines = text.splitlines()
    head = next(
        line.split() for line in lines if line.startswith("subject  ") or line.split()[:2] == ["subject", "mean"]
    )
    assert head == ["subject", "mean", "sd", *names[:2]]
    assert sum(line.split()[:1] in (["Ann"], ["Bob"]) for line in lines) >= 2
    assert text.count("Pairs with the largest γ(x, a)") == 2
    assert f"base {names[2]}: From the base model" in text
    shift = next(line for line in lines if line.split()[:2] == ["model", "shared"])
    assert "rank_correlation" in shift


def test_models_on_released_lists_are_compared_with_their_base(released_folder: Path, tmp_path: Path) -> None:
    """Their language models are asked in templates of their own, so that no row is shared."""
    built = build_unqover(load_lists("nationality", str(released_folder)), tmp_path / "build").folder
    base = store_result(tmp_path / "results", built, "org/a-lm", kind="mlm", config="mlm-bert", bias=0.02, seed=1)
    tuned = store_result(tmp_path / "results", built, "org/a-squad", bias=0.1, seed=2)
    pairs = {str(row["id"]).split("|")[1] for row in pq.read_table(base.with_suffix(".parquet")).to_pylist()}
    assert pairs == {"Ireland"}  # its vocabulary lacks Somalia
    text = compare_text([tuned], base=base)
    assert "From the base model to each other" in text
    (line,) = [line.split() for line in text.splitlines() if line.startswith("a-squad.exact  pairs")]
    assert line[2:4] == ["2", "2"]  # Mali and Ireland, two statements about people
    assert re.search(r"a-lm +a-squad +pairs +2 +2 ", report_text([tmp_path / "results", built]))


def test_what_is_no_result_or_twice_the_same_is_refused(results: list[Path], tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"no file matches results/\*/qa.exact.json"):
        compare_text([Path("results/*/qa.exact.json")])
    with pytest.raises(EvaluationError, match="is no stored result"):
        compare_text([tmp_path / "none.json"])
    with pytest.raises(EvaluationError, match="pass one result a model"):
        compare_text([results[0], results[0]])
