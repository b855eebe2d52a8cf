"""Classifiers whose shards are scored several at once, on this machine and on engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from builders.folder import Built
from evaluation import store
from evaluation.classifiers.run import ClassifierOptions, evaluate_classifier
from evaluation.classifiers.scoring import How, loaded
from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.parallel import backend_arguments
from evaluation.run import Engine
from tests.builders.features.image_sets import colours, recipe
from tests.evaluation.classifiers.stopped import stopped_after
from tests.evaluation.classifiers.test_image_classifiers import build_colours

CPU = Engine(device="cpu", decoders=0)
PLAIN = ClassifierOptions()
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 50)
    yield
    loaded.cache_clear()


def predictions(model: Path, built: Built, out: Path, engine: Engine) -> Any:
    done = evaluate_classifier(str(model), str(built.folder), PLAIN, engine=engine, out=out, splits=["train"])
    return pq.read_table(done.path.with_suffix(".parquet"))


def test_two_processes_decide_as_one(planted: Built, reader: Path, tmp_path: Path) -> None:
    one = predictions(reader, planted, tmp_path / "one", CPU)
    assert predictions(reader, planted, tmp_path / "two", replace(CPU, workers=2)).equals(one)


@pytest.mark.filterwarnings("default")  # of Ray
def test_a_local_ray_cluster_decides_as_one_process_on_texts_and_images(
    planted: Built, reader: Path, tmp_path: Path
) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    images = build_colours(tmp_path)
    of_images = tmp_path / "timm" / "colours"
    recipe(rand_augment_layers=0, epochs=1).train(colours(60), of_images, seed=0)
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}}
    )
    try:
        for name, model, built in (("texts", reader, planted), ("images", of_images, images)):
            one = predictions(model, built, tmp_path / name / "one", CPU)
            two = predictions(model, built, tmp_path / name / "two", replace(CPU, backend="ray", workers=2))
            assert two["predicted"].equals(one["predicted"])
            np.testing.assert_allclose(two["confidence"].to_numpy(), one["confidence"].to_numpy(), atol=1e-6)
    finally:
        ray.shutdown()


@pytest.mark.filterwarnings("default")  # of Dask
def test_a_local_dask_cluster_decides_as_one_process(planted: Built, reader: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("dask.distributed", reason="Dask is not installed")
    one = predictions(reader, planted, tmp_path / "one", CPU)
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None):
        two = predictions(reader, planted, tmp_path / "two", replace(CPU, backend="dask", workers=2))
    assert two.equals(one)


@pytest.mark.filterwarnings("default")  # of Dask
def test_dask_connects_to_the_scheduler_of_its_configuration() -> None:
    distributed = pytest.importorskip("dask.distributed", reason="Dask is not installed")
    import dask

    with (
        dask.config.set({"scheduler-address": None}),
        pytest.raises(EvaluationError, match="DASK_SCHEDULER_ADDRESS"),
    ):
        backend_arguments("dask", 2)
    cluster = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None)
    with cluster, dask.config.set({"scheduler-address": cluster.scheduler_address}):
        assert backend_arguments("dask", 2) == {"backend": "dask"}
        client = distributed.get_client()
        assert client.scheduler.address == cluster.scheduler_address
        backend_arguments("dask", 2)
        assert distributed.get_client() is client
        client.close()


def test_a_run_of_two_processes_goes_on_where_it_was(
    planted: Built, reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = predictions(reader, planted, tmp_path / "one", CPU)
    with stopped_after(3):
        predictions(reader, planted, tmp_path / "cut", CPU)
    monkeypatch.setattr("evaluation.classifiers.scoring.in_parallel", counted(asked := []))
    assert predictions(reader, planted, tmp_path / "cut", replace(CPU, workers=2)).equals(one)
    assert asked == [3, 4, 5, 6]  # of seven shards three were there


def counted(asked: list[int]) -> Any:
    """`in_parallel`, which says which shards it was asked for, in this process."""

    def call(function: Any, calls: Any, **_: Any) -> Iterator[Any]:
        for call in calls:
            asked.append(call[1])
            yield function(*call)

    return call


def test_images_are_decoded_ahead_here_and_by_each_worker_on_an_engine(planted: Built, reader: Path) -> None:
    text = resolve_model(str(reader))
    image = replace(text, kind="image-classifier")
    here, ray = Engine(workers=3, decoders=5), Engine(workers=3, decoders=5, backend="ray")
    ways = [How(ref, "float32", engine) for ref in (text, image) for engine in (here, ray)]
    assert [way.shards_at_once for way in ways] == [3, 3, 1, 3]
    assert [way.decoders for way in ways] == [0, 0, 5, 0]


def test_too_few_workers_or_too_many(planted: Built, reader: Path, tmp_path: Path) -> None:
    for workers, message in ((0, "--workers must be at least 1, not 0"), (10**9, "--workers must be at most 10,000")):
        with pytest.raises(EvaluationError, match=message):
            predictions(reader, planted, tmp_path, replace(CPU, workers=workers))
