"""Runs: stored whole, continued after a stop, refused when a setting changed, the same on every engine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from builders.errors import BuildError
from builders.unqover import build_unqover
from evaluation import run, store
from evaluation.compare import read_scored
from evaluation.errors import EvaluationError
from evaluation.models import ModelRef, resolve_model
from evaluation.probe_sets import ProbeSet, open_probe_set
from evaluation.result_schema import check_content
from evaluation.run import Engine, Options, aggregates_of, evaluate
from evaluation.scores import SCORE_COLUMNS
from evaluation.text import result_text
from tests.evaluation.conftest import LISTS, MakeModel
from tests.evaluation.report.stored import edited
from unqover_data import read_toml

CPU = Engine(device="cpu", batch_size=8)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set of sixteen rows as a built folder."""
    path = tmp_path_factory.mktemp("few") / "few.toml"
    path.write_text(LISTS, encoding="utf-8")
    return build_unqover(read_toml(path), path.parent).folder


@pytest.fixture
def probes(folder: Path) -> ProbeSet:
    return open_probe_set(str(folder), config="qa")


@pytest.fixture
def model(make_model: MakeModel) -> ModelRef:
    return resolve_model(str(make_model("BertForQuestionAnswering", "BertConfig", "bytes")))  # knows every name


def test_a_result_holds_what_it_says_and_lies_where_it_should(
    probes: ProbeSet, model: ModelRef, tmp_path: Path
) -> None:
    done = evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    place = Path(model.path).name
    assert done.path == tmp_path / place / model.sha / "unqover-few@1.0.0" / "qa.exact.json"
    assert json.loads(done.path.read_text(encoding="utf-8")) == json.loads(json.dumps(done.result))
    scores = pq.read_table(done.path.with_suffix(".parquet"))
    assert scores.column_names == ["id", *SCORE_COLUMNS, "no_answer"]
    assert done.result["means"]["no_answer"] == pytest.approx(np.mean(scores["no_answer"].to_numpy()))
    assert scores["id"].to_pylist() == probes.rows["id"].to_pylist()
    assert {str(scores.schema.field(name).type) for name in SCORE_COLUMNS} == {"float"}
    assert done.result["dataset"] == {
        "name": "unqover-few",
        "version": "1.0.0",
        "source": probes.source,
        "revision": probes.revision,
        "config": "qa",
        "rows": 16,
    }
    assert (done.result["rows"], done.result["metrics"]["delta"]["n"]) == (16, 16)
    assert sorted(path.name for path in done.path.parent.iterdir()) == ["qa.exact.json", "qa.exact.parquet"]


def test_every_number_comes_back_from_the_stored_scores_alone(
    probes: ProbeSet, model: ModelRef, tmp_path: Path
) -> None:
    done = evaluate(model, probes, Options(seed=3), engine=CPU, out=tmp_path)
    again = aggregates_of(probes.rows, pq.read_table(done.path.with_suffix(".parquet")), seed=3)
    stored = json.loads(done.path.read_text(encoding="utf-8"))
    assert json.loads(json.dumps(again)) == {key: stored[key] for key in ("metrics", "tables")}


def test_a_result_that_is_there_is_not_made_again(
    probes: ProbeSet, model: ModelRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    monkeypatch.setattr(run, "_scorer", lambda *_: pytest.fail("the model was loaded"))
    again = evaluate(model, probes, Options(), engine=replace(CPU, batch_size=3), out=tmp_path)
    assert (first.fresh, again.fresh) == (True, False)
    assert again.result["metrics"] == json.loads(json.dumps(first.result["metrics"]))


def test_a_run_that_was_stopped_loses_one_shard_and_ends_as_if_it_had_not(
    probes: ProbeSet, model: ModelRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 5)
    whole = evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "whole")
    score_shard, scored = run._score_shard, []

    def counting(place: Any, number: int, *rest: Any) -> None:
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(number)
        score_shard(place, number, *rest)

    monkeypatch.setattr(run, "_score_shard", counting)
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "cut")
    assert not list((tmp_path / "cut").rglob("qa.exact.*"))
    with pytest.raises(EvaluationError, match=r"was made with seed 0, not 1: use the same, another --out, or --overwr"):
        evaluate(model, probes, Options(seed=1), engine=CPU, out=tmp_path / "cut")
    monkeypatch.setattr(
        run, "_score_shard", lambda place, number, *rest: (scored.append(number), score_shard(place, number, *rest))
    )
    cut = evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "cut")
    assert sorted(scored) == [0, 1, 2, 3]
    assert pq.read_table(cut.path.with_suffix(".parquet")).equals(pq.read_table(whole.path.with_suffix(".parquet")))
    assert cut.result["metrics"] == whole.result["metrics"]


@pytest.mark.parametrize(
    ("change", "name"),
    [({"sample": "8"}, "sample None, not '8'"), ({"context_prefix": "News:"}, "context_prefix None, not 'News:'")],
)
def test_a_result_of_other_settings_is_refused_by_name(
    probes: ProbeSet, model: ModelRef, tmp_path: Path, change: dict[str, Any], name: str
) -> None:
    evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    with pytest.raises(EvaluationError, match=f"was made with {name}"):
        evaluate(model, probes, Options(**change), engine=CPU, out=tmp_path)
    assert evaluate(model, probes, Options(**change), engine=CPU, out=tmp_path, overwrite=True).fresh


def built_of(lists: str, root: Path) -> ProbeSet:
    root.mkdir()
    (root / "few.toml").write_text(lists, encoding="utf-8")
    return open_probe_set(str(build_unqover(read_toml(root / "few.toml"), root).folder), config="qa")


def test_a_result_belongs_to_the_rows_and_not_to_the_words_beside_them(
    probes: ProbeSet, model: ModelRef, tmp_path: Path
) -> None:
    done = evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "out")
    titled = built_of(LISTS.replace("Few probes", "A few probes").replace("Four names", "4 names"), tmp_path / "a")
    assert titled.revision != probes.revision
    assert not evaluate(model, titled, Options(), engine=CPU, out=tmp_path / "out").fresh
    edited(done.path, dataset__source=titled.source)
    assert len(read_scored(done.path)[1]) == 16
    other = built_of(LISTS.replace("told no lie at all", "told no lie"), tmp_path / "b")
    with pytest.raises(EvaluationError, match=r"qa.exact.json was made on a set of this name .* whose rows are others"):
        evaluate(model, other, Options(), engine=CPU, out=tmp_path / "out")
    edited(done.path, dataset__source=other.source)
    with pytest.raises(EvaluationError, match=r"is not the set that .* was made on"):
        read_scored(done.path)


def test_a_result_of_an_earlier_version_belongs_to_its_whole_set(
    probes: ProbeSet, model: ModelRef, tmp_path: Path
) -> None:
    """It names the set by its revision."""
    done = evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "out")
    edited(done.path, settings__dataset=probes.revision)
    assert not evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "out").fresh
    assert len(read_scored(done.path)[1]) == 16
    titled = built_of(LISTS.replace("Few probes", "A few probes"), tmp_path / "a")
    with pytest.raises(EvaluationError, match="whose rows are others"):
        evaluate(model, titled, Options(), engine=CPU, out=tmp_path / "out")


def test_a_sample_that_cannot_be_is_named_even_beside_a_result(
    probes: ProbeSet, model: ModelRef, tmp_path: Path
) -> None:
    evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    with pytest.raises(EvaluationError, match="--sample must be a share below 1"):
        evaluate(model, probes, Options(sample="0"), engine=CPU, out=tmp_path)


def test_an_overwrite_that_fails_keeps_the_old_result(probes: ProbeSet, model: ModelRef, tmp_path: Path) -> None:
    done = evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    for change in ({"dtype": "float8"}, {"sample": "17"}, {"seed": -1}, {"context_prefix": "long " * 200}):
        with pytest.raises(EvaluationError):
            evaluate(model, probes, Options(**change), engine=CPU, out=tmp_path, overwrite=True)  # type: ignore[arg-type]
        assert sorted(path.name for path in done.path.parent.iterdir()) == ["qa.exact.json", "qa.exact.parquet"]


def test_a_result_without_its_scores_is_made_again(probes: ProbeSet, model: ModelRef, tmp_path: Path) -> None:
    done = evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    done.path.with_suffix(".parquet").unlink()
    assert evaluate(model, probes, Options(), engine=CPU, out=tmp_path).fresh
    assert done.path.with_suffix(".parquet").is_file()


def test_an_error_keeps_finished_shards_and_leaves_nothing_else(
    probes: ProbeSet, model: ModelRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 5)
    score_shard = run._score_shard

    def failing(last: int) -> Any:
        def score(place: Any, number: int, *rest: Any) -> None:
            if number > last:
                raise EvaluationError("scores that are not numbers (NaN)")
            score_shard(place, number, *rest)

        return score

    monkeypatch.setattr(run, "_score_shard", failing(-1))
    with pytest.raises(EvaluationError, match="NaN"):
        evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(run, "_score_shard", failing(1))
    with pytest.raises(EvaluationError, match="NaN"):
        evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    with pytest.raises(EvaluationError, match="there is no backend"):
        evaluate(model, probes, Options(), engine=replace(CPU, backend="dsk"), out=tmp_path)
    assert len(list(tmp_path.rglob("shard-*.parquet"))) == 2


def test_two_runs_into_one_place_are_kept_apart(probes: ProbeSet, model: ModelRef, tmp_path: Path) -> None:
    place = store.place_of(tmp_path, model, f"{probes.name}@{probes.version}", "qa", "exact")
    with store.locked(place), pytest.raises(EvaluationError, match="another run is scoring"):
        evaluate(model, probes, Options(), engine=CPU, out=tmp_path)
    assert evaluate(model, probes, Options(), engine=CPU, out=tmp_path).fresh


def test_a_partial_of_another_version_is_not_mixed_in(
    probes: ProbeSet, model: ModelRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = store.place_of(tmp_path, model, f"{probes.name}@{probes.version}", "qa", "exact")
    place.partial.mkdir(parents=True)
    store.open_partial(place, {"seed": 0}, probes.rows)
    monkeypatch.setattr(store, "versions", lambda: {"torch": "0"})
    with pytest.raises(EvaluationError, match="was made with versions"):
        store.open_partial(place, {"seed": 0}, probes.rows)
    assert store.open_partial(place, {"seed": 0}, probes.rows, overwrite=True) == 1


def test_a_prompt_is_stored_and_shown_and_a_run_with_another_does_not_go_on(
    probes: ProbeSet, make_model: MakeModel, tmp_path: Path
) -> None:
    causal = resolve_model(str(make_model("LlamaForCausalLM", "LlamaConfig", "bytes")))
    place = store.place_of(tmp_path, causal, "unqover-few@1.0.0", "qa", "exact")
    settings = {"model": causal.sha, "kind": "causal", "dataset": probes.rows_id, **asdict(Options())}
    store.open_partial(place, settings | {"prompt_sha256": "0" * 64}, probes.rows)
    with pytest.raises(EvaluationError, match="was made with prompt_sha256 '0000"):
        evaluate(causal, probes, Options(), engine=CPU, out=tmp_path)
    done = evaluate(causal, probes, Options(), engine=CPU, out=tmp_path, overwrite=True)
    text = "The man met the woman at the station.\nQuestion: Who was late?\nAnswer:"
    assert done.result["scorer"]["prompt_example"] == text
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert done.result["scorer"]["prompt_sha256"] == digest
    assert f"prompt (SHA-256 {digest[:12]}): {json.dumps(text)}\n" in str(done)
    stored = json.loads(done.path.read_text(encoding="utf-8"))
    del stored["scorer"]["prompt_sha256"]
    with pytest.raises(ValueError, match="prompt_example and prompt_sha256 or neither"):
        check_content(stored)


def test_a_small_sample_says_that_it_is_too_small(probes: ProbeSet, model: ModelRef, tmp_path: Path) -> None:
    """Two rows: every subject and attribute has one, and nothing can be told of noise."""
    done = evaluate(model, probes, Options(sample="2"), engine=CPU, out=tmp_path)
    assert done.result["metrics"]["mu"]["low"] is None
    assert done.result["metrics"]["eta"]["corrected"] is None
    assert "too few rows per subject and attribute" in result_text(done.result)


def test_two_processes_give_the_same_scores_as_one(
    probes: ProbeSet, model: ModelRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "one")
    two = evaluate(model, probes, Options(), engine=replace(CPU, workers=2), out=tmp_path / "two")
    assert two.fresh
    tables = [pq.read_table(done.path.with_suffix(".parquet")) for done in (one, two)]
    for name in SCORE_COLUMNS:
        np.testing.assert_allclose(tables[0][name].to_numpy(), tables[1][name].to_numpy(), atol=1e-6)


@pytest.mark.filterwarnings("default")  # of Ray
def test_a_local_ray_cluster_of_two_workers_gives_the_same_scores(
    probes: ProbeSet, model: ModelRef, tmp_path: Path
) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    one = evaluate(model, probes, Options(), engine=CPU, out=tmp_path / "one")
    paths = {"env_vars": {"PYTHONPATH": str(Path(__file__).parents[2])}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=paths)
    try:
        two = evaluate(model, probes, Options(), engine=replace(CPU, backend="ray", workers=2), out=tmp_path / "two")
    finally:
        ray.shutdown()
    tables = [pq.read_table(done.path.with_suffix(".parquet")) for done in (one, two)]
    assert tables[0].equals(tables[1])


def test_an_engine_that_is_not_there_is_named(probes: ProbeSet, model: ModelRef, tmp_path: Path) -> None:
    with pytest.raises(
        EvaluationError, match=r"there is no backend 'lokky' \(known: loky, ray, dask\); did you mean 'loky'"
    ):
        evaluate(model, probes, Options(), engine=replace(CPU, backend="lokky"), out=tmp_path)


def test_a_sample_is_drawn_from_what_can_be_scored(make_model: MakeModel, folder: Path, tmp_path: Path) -> None:
    """Zebedee is in no vocabulary and Mary Lou is two words: one pair of four is left, 2 templates x 2 attributes."""
    masked = resolve_model(str(make_model("BertForMaskedLM", "BertConfig")))
    probes = open_probe_set(str(folder), config="mlm")
    done = evaluate(masked, probes, Options(sample="2"), engine=CPU, out=tmp_path)
    assert done.result["rows"] == 2
    assert done.result["coverage"]["coverage"] == 0.25
    assert all(
        row_id.startswith("Ann|Bob|") for row_id in pq.read_table(done.path.with_suffix(".parquet"))["id"].to_pylist()
    )


def test_sets_that_cannot_be_scored_are_one_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"unqover-few has no config 'qqa' \(it has qa, mlm\); did you mean 'qa'"):
        open_probe_set(str(folder), config="qqa")
    with pytest.raises(EvaluationError, match="is neither a built folder nor ORG/NAME"):
        open_probe_set(str(tmp_path / "nowhere"), config="qa")
    with pytest.raises(BuildError, match=r"has no manifest.json: it was never finished"):
        open_probe_set(str(tmp_path), config="qa")
    with pytest.raises(EvaluationError, match="is a folder and has no revision 'v1'"):
        open_probe_set(str(folder), config="qa", revision="v1")


def test_a_set_that_was_edited_is_refused(tmp_path: Path) -> None:
    (tmp_path / "few.toml").write_text(LISTS, encoding="utf-8")
    folder = build_unqover(read_toml(tmp_path / "few.toml"), tmp_path).folder
    file = folder / "qa" / "test-00000-of-00001.parquet"
    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["span1_12"]), file)
    with pytest.raises(EvaluationError, match=r"qa/test-00000-of-00001.parquet is missing or was edited"):
        open_probe_set(str(folder), config="qa")
