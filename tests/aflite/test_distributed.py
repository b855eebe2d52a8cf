"""Batches of partitions on other processes and machines: the serial result, bit for bit."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config

import aflite

RUN = {"n": 700, "m": 12, "t": 200, "k": 100, "tau": 0.6, "seed": 5, "phases": 3, "n_batches": 3}


def assert_same(a, b):
    assert np.array_equal(a.predictability, b.predictability, equal_nan=True)
    assert np.array_equal(a.removed_in_phase, b.removed_in_phase)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_backends(planted, backend):
    features, labels, _ = planted()
    serial = aflite.filter_dataset(features, labels, **RUN)
    # Threads would share torch's thread number; one each keeps them apart.
    with parallel_config(backend, n_jobs=2):
        assert_same(serial, aflite.filter_dataset(features, labels, **RUN, threads=1))


def test_number_of_batches_is_part_of_the_result(planted):
    features, labels, _ = planted()
    three = aflite.filter_dataset(features, labels, **RUN)
    two = aflite.filter_dataset(features, labels, **{**RUN, "n_batches": 2})
    assert not np.array_equal(three.predictability, two.predictability, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
def test_ray_cluster_with_two_workers(planted):
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.util.joblib import register_ray

    features, labels, _ = planted()
    serial = aflite.filter_dataset(features, labels, **RUN)
    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        with parallel_config("ray", n_jobs=2):
            assert_same(serial, aflite.filter_dataset(features, labels, **RUN))
    finally:
        ray.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_dask_cluster_with_two_workers(planted):
    distributed = pytest.importorskip("dask.distributed", reason="needs the extra `dask`")
    features, labels, _ = planted()
    serial = aflite.filter_dataset(features, labels, **RUN)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config("dask", n_jobs=2),
    ):
        assert_same(serial, aflite.filter_dataset(features, labels, **RUN))
