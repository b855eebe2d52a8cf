"""Parts from a function, batches, and the devices that they go to."""

from functools import partial

import numpy as np
import pytest

import aflite

SMALL = {"n": 400, "m": 24, "t": 200, "k": 100, "tau": 0.8, "seed": 1}


def test_partitions_of_a_function_are_checked(planted):
    features, labels, _ = planted()
    with pytest.raises(ValueError, match="must return 24 index arrays, returned 1"):
        aflite.filter_dataset(features, labels, **SMALL, partitions=lambda *_: [np.arange(200)])
    with pytest.raises(ValueError, match="distinct rows that are left"):
        aflite.filter_dataset(features, labels, **SMALL, partitions=lambda *_: [np.zeros(200, int)] * 24)


def test_a_function_cannot_change_the_rows_left(planted):
    features, labels, _ = planted()

    def parts(pool, m, t, rng, spoil):
        made = [rng.permutation(pool)[:t] for _ in range(m)]
        pool[:] = spoil * pool
        return made

    a, b = (
        aflite.filter_dataset(features, labels, **SMALL, phases=2, partitions=partial(parts, spoil=spoil))
        for spoil in (0, 1)
    )
    assert np.array_equal(a.predictability, b.predictability, equal_nan=True)
    assert np.array_equal(a.removed_in_phase, b.removed_in_phase)


def test_a_function_is_called_once_a_batch_with_its_size(planted):
    features, labels, _ = planted()
    sizes = []

    def parts(pool, m, t, rng):
        sizes.append(m)
        return [rng.permutation(pool)[:t] for _ in range(m)]

    aflite.filter_dataset(features, labels, **{**SMALL, "k": 0}, n_batches=5, partitions=parts)
    assert sizes == [5, 5, 5, 5, 4]


def test_batches_are_split_where_memory_asks_for_it(planted, monkeypatch):
    """A classifier's curvatures take 4 bytes * 200 rows * 3 classes: of 24 classifiers 10 fit into 24,000 bytes."""
    features, labels, _ = planted()
    whole = aflite.filter_dataset(features, labels, **{**SMALL, "k": 0}, n_batches=3)
    monkeypatch.setattr("aflite.models._CACHE_BYTES", 24_000)
    assert aflite.models.Logistic().max_parts(aflite.models.Data(features, labels, 3), 200) == 10
    split = aflite.filter_dataset(features, labels, **{**SMALL, "k": 0})
    assert np.array_equal(whole.predictability, split.predictability, equal_nan=True)


@pytest.mark.parametrize(("limit", "kind"), [(24 * 200 * 63, "independent"), (24 * 200 * 63 - 1, "blocked")])
def test_auto_takes_independent_parts_for_small_products(planted, monkeypatch, limit, kind):
    features, labels, _ = planted()
    monkeypatch.setattr("aflite.scoring._SMALL_ELEMENTS", limit)
    auto, named = (
        aflite.filter_dataset(features, labels, **{**SMALL, "k": 0}, partitions=name) for name in ("auto", kind)
    )
    assert np.array_equal(auto.times_scored, named.times_scored)


def test_a_device_without_double_precision_is_refused(planted, monkeypatch):
    import torch

    zeros = torch.zeros

    def single_only(*size, dtype=None, device=None):
        if dtype == torch.float64:
            raise TypeError("the device has no float64")
        return zeros(*size, dtype=dtype)

    monkeypatch.setattr(torch, "zeros", single_only)
    features, labels, _ = planted()
    with pytest.raises(ValueError, match=r"'mps' cannot be used \(the device has no float64\)"):
        aflite.filter_dataset(features, labels, **SMALL, device="mps")


def test_cuda_without_a_gpu_is_refused(planted, monkeypatch):
    import torch

    def fails(*_, **__):
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(torch, "zeros", fails)
    features, labels, _ = planted()
    with pytest.raises(ValueError, match=r"'cuda' cannot be used .*CUDA.*; give 'cpu'"):
        aflite.filter_dataset(features, labels, **SMALL, device="cuda")


def test_batches_go_to_all_gpus_in_turn(monkeypatch):
    import torch

    from aflite.models import Data, Logistic
    from aflite.scoring import Scorer

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    data = Data(np.zeros((4, 1), np.float32), np.array([0, 1, 0, 1]), 2)
    scorer = Scorer(data, Logistic(), 8, 2, 0, "auto", None, None, False, 3, None, None, "cuda")
    assert [scorer._device(batch) for batch in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
