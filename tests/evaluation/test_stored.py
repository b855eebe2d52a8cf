"""Stored results: whoever reads one gets what was stored, or one line that names file and field."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from builders.errors import BuildError
from builders.folder import verify_folder
from builders.schema import own_sum
from evaluation.compare import compare_text
from evaluation.errors import EvaluationError
from evaluation.hub_results import build_score_set, write_eval_results
from evaluation.models import ModelRef
from evaluation.report import report_text
from evaluation.results import ClassifierScores
from evaluation.store import place_of, read_json, read_result
from evaluation.stored import read_stored, seal
from evaluation.text import probe_line, result_html, result_text
from tests.builders.filtered_sets import build
from tests.builders.test_names import ODD
from tests.damaged import WRONG, damaged, places
from tests.evaluation.conftest import LISTS
from tests.evaluation.report.classified import store_classified
from tests.evaluation.report.stored import store_result
from unqover_data import read_toml

Content = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from builders.unqover import build_unqover

    path = tmp_path_factory.mktemp("few") / "few.toml"
    path.write_text(LISTS, encoding="utf-8")
    return build_unqover(read_toml(path), path.parent).folder


@pytest.fixture(scope="module")
def kept(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A result of each kind, which no test may change."""
    root = tmp_path_factory.mktemp("kept")
    filtered = build(root / "set").folder
    wrong: Callable[[pa.Table], Any] = lambda rows: np.arange(len(rows)) % 3 == 0  # noqa: E731
    return {
        "probe": store_result(root / "probe", folder, "org/one", bias=0.1),
        "classifier": store_classified(root / "classifier", filtered, "org/sorter", wrong, split="train"),
    }


@pytest.fixture
def results(kept: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    copies = {}
    for kind, path in kept.items():
        shutil.copytree(path.parents[3], tmp_path / kind)
        copies[kind] = tmp_path / kind / path.relative_to(path.parents[3])
    return copies


def content_of(path: Path) -> Content:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def rewrite(path: Path, content: Any, *, old: bool = False) -> None:
    """Write a result whose own sum fits, or, as earlier versions did, without sums."""
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if key != "sha256" and (key != "parquet" or not old)}
        content |= {} if old else {"sha256": own_sum(content)}
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("kind", ["probe", "classifier"])
def test_damage_of_any_one_field_ends_with_a_line(results: dict[str, Path], kind: str, tmp_path: Path) -> None:
    """What is taken all the same can be shown and entered on the Hub."""
    path = results[kind]
    whole = content_of(path)
    refused = []
    for at in places(whole):
        for value in WRONG:
            rewrite(path, damaged(whole, at, value))
            try:
                content = read_stored(path)
            except EvaluationError as error:
                refused.append(str(error))
                continue
            result_text(content), result_html(content)
            if kind == "probe":
                probe_line(content)
            else:
                ClassifierScores.joined([ClassifierScores(content, path, fresh=False)])
            content["dataset"]["source"] = "org/x"
            write_eval_results([content], tmp_path / "entries")
    assert len(refused) > 1_000
    assert not [message for message in refused if path.stem not in message or "\n" in message]
    assert {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.yaml")} == {"entries"}


def test_what_is_no_json_within_limits_ends_with_a_line(results: dict[str, Path]) -> None:
    path = results["probe"]
    for text in (b"[" * 100_000, b'{"rows": ' + b"1" * 5_000 + b"}", b'{"rows": "\xff"}', b'{"a": "\\ud800"}', b"{"):
        path.write_bytes(text)
        for reads in (read_stored, read_json, lambda path: report_text([path]), lambda path: compare_text([path])):
            with pytest.raises(EvaluationError, match=r"qa\.exact\.json (is|holds)"):
                reads(path)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("field", ["name", "version", "config", "protocol", "sha", "revision"])
def test_a_name_in_a_result_leads_no_reader_elsewhere(
    results: dict[str, Path], field: str, name: str, tmp_path: Path
) -> None:
    path = results["probe"]
    content = content_of(path)
    part = {"sha": "model", "protocol": "settings"}.get(field, "dataset")
    content[part][field] = name
    rewrite(path, content)
    before = sorted(tmp_path.rglob("*"))
    calls: list[Callable[[], object]] = [
        lambda: report_text([path]),
        lambda: compare_text([path]),
        lambda: build_score_set(path.parents[1], tmp_path / "deep" / "out"),
    ]
    for call in calls:
        with pytest.raises(EvaluationError, match=rf"is no result of this version: .*{field}"):
            call()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ODD)
def test_a_place_of_a_result_lies_in_its_folder(name: str, tmp_path: Path) -> None:
    ref = ModelRef("org/m.v1", "org/m.v1", "ab" * 20, "qa", local=False)
    assert place_of(tmp_path, ref, "x@1.0.0", "qa", "exact").result.is_relative_to(tmp_path)
    for dataset, part, sha in ((name, "qa", "ab"), ("x@1.0.0", f"{name}/", "ab"), ("x@1.0.0", "qa", name)):
        odd = ModelRef("org/m", "org/m", sha, "qa", local=False)
        with pytest.raises(BuildError, match="cannot be the name of a file"):
            place_of(tmp_path, odd, dataset, part, "exact")
    with pytest.raises(BuildError, match="cannot be the name of a file"):
        place_of(tmp_path, ModelRef("/", "/", "ab", "qa", local=True), "x@1.0.0", "qa", "exact")


def _column(name: str, change: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.set_column(rows.column_names.index(name), name, change(rows[name]))


DAMAGE: dict[str, dict[str, tuple[Callable[[pa.Table], pa.Table], str]]] = {
    "probe": {
        "halved": (lambda rows: rows.slice(len(rows) // 2), "has 8 rows, and its result says 16"),
        "doubled": (lambda rows: pa.concat_tables([rows, rows]), "has 32 rows, and its result says 16"),
        "repeated": (lambda rows: pa.concat_tables([rows[:8], rows[:8]]), r"repeat the id .* \(2 times\)"),
        "negative": (_column("s1_12", pc.negate), "is no number from 0 to 1"),
        "above 1": (_column("s1_12", lambda values: pc.add(values, 1)), "is no number from 0 to 1"),
        "nan": (_column("s1_12", lambda values: pa.array([float("nan")] * len(values))), "is no number from 0 to 1"),
        "null": (_column("s1_12", lambda values: pa.nulls(len(values), pa.float32())), "is no number from 0 to 1"),
        "no ids": (_column("id", lambda values: pa.nulls(len(values), pa.string())), "'id' of the scores is empty"),
        "texts": (_column("s1_12", lambda values: values.cast(pa.string())), "must hold numbers, not string"),
        "without": (lambda rows: rows.drop_columns(["s2_21_negated"]), "has no column s2_21_negated"),
    },
    "classifier": {
        "halved": (lambda rows: rows.slice(len(rows) // 2), "rows, and its result says"),
        "repeated": (_column("source_index", lambda values: pc.multiply(values, 0)), "repeats a source_index"),
        "beyond": (_column("predicted", lambda values: pc.add(values, 3)), "predicted of row 0 cannot be"),
        "negative": (_column("label", lambda values: pc.subtract(values, 5)), "label of row 0 cannot be"),
        "null": (_column("predicted", lambda values: pa.nulls(len(values), pa.int64())), "predicted of row 0 cannot"),
        "share": (_column("confidence", pc.negate), "confidence of row 0 is no share from 0 to 1"),
        "texts": (_column("predicted", lambda values: values.cast(pa.string())), "must hold whole numbers, not string"),
        "without": (lambda rows: rows.drop_columns(["broken"]), "has no column broken"),
    },
}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("kind", "damage"), [(kind, damage) for kind, some in DAMAGE.items() for damage in some])
def test_rows_that_were_not_stored_are_refused(results: dict[str, Path], kind: str, damage: str, old: bool) -> None:
    """Whether by their sum or, of results of earlier versions, by what they hold."""
    path = results[kind]
    scores = path.with_suffix(".parquet")
    change, message = DAMAGE[kind][damage]
    if old:
        rewrite(path, content_of(path), old=True)
        assert read_stored(path)["rows"] == pq.read_metadata(scores).num_rows
    pq.write_table(change(pq.read_table(scores)), scores)
    for read in (read_stored, lambda path: report_text([path.parents[2]])):
        with pytest.raises(EvaluationError, match=message if old else "was edited: its rows are not those") as told:
            read(path)
        assert scores.name in str(told.value)


@pytest.mark.parametrize("kind", ["probe", "classifier"])
def test_an_edited_number_is_refused_by_all(results: dict[str, Path], kind: str, tmp_path: Path) -> None:
    path = results[kind]
    content = content_of(path)
    content["rows"] += 1
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"was edited: it is not what probesieve eval wrote"):
        report_text([path])
    for call in (compare_text, lambda paths: build_score_set(paths[0].parents[1], tmp_path / "out")):
        with pytest.raises(EvaluationError, match="was edited"):
            call([path])
    sha, (model, name) = content["model"]["sha"], ("org/one", "qa") if kind == "probe" else ("org/sorter", "train")
    dataset = content["dataset"]
    place = place_of(
        path.parents[3],
        ModelRef(model, model, sha, "qa", local=False),
        f"{dataset['name']}@{dataset['version']}",
        name,
        "exact",
    )
    assert place.result == path
    with pytest.raises(EvaluationError, match="was edited"):
        read_result(place, content["settings"])


def test_the_sums_of_a_result_are_those_of_its_files(results: dict[str, Path]) -> None:
    for path in results.values():
        content = read_stored(path)
        assert seal(content, path.with_suffix(".parquet")) == content
        assert content["parquet"]["rows"] == content["rows"]


def test_scores_on_two_versions_of_a_set_are_exported_side_by_side(folder: Path, tmp_path: Path) -> None:
    from builders.unqover import build_unqover

    (tmp_path / "few.toml").write_text(LISTS, encoding="utf-8")
    newer = build_unqover(read_toml(tmp_path / "few.toml"), tmp_path / "new", version="1.0.1").folder
    for one in (folder, newer):
        path = store_result(tmp_path / "results", one, "org/one")
    built, manifest = build_score_set(path.parents[1], tmp_path / "out")
    assert [*manifest["configs"]] == ["unqover-few-1_0_0-qa-exact", "unqover-few-1_0_1-qa-exact"]
    assert verify_folder(built) == manifest
    shutil.copytree(path.parent, path.parents[1] / "copy")
    with pytest.raises(EvaluationError, match="holds two results on one version of a set"):
        build_score_set(path.parents[1], tmp_path / "out", overwrite=True)


def test_the_name_of_a_model_becomes_one_of_a_set(folder: Path, tmp_path: Path) -> None:
    path = store_result(tmp_path / "results", folder, "my model ü")
    built, manifest = build_score_set(path.parents[1], tmp_path / "out")
    assert (built.name, manifest["name"]) == ("scores-my-model-", "scores-my-model-")
    assert verify_folder(built) == manifest
