"""Parameters are refused without features as they are with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aflite

GOOD: dict[str, Any] = {"n": 20, "m": 2, "t": 10, "k": 5, "tau": 0.75, "seed": 0}


@pytest.mark.parametrize(
    "change",
    [
        {"n": 40},
        {"t": 20},
        {"k": -1},
        {"tau": 2.0},
        {"c": 0.0},
        {"model": "tree"},
        {"strategy": "greedy"},
        {"partitions": "none"},
        {"groups": np.repeat([0, 1], 20)},
        {"groups": np.arange(40), "stratify": True},
    ],
)
def test_the_message_is_that_of_the_filter(change: dict[str, Any]) -> None:
    features, labels = np.zeros((40, 2), np.float32), np.tile([0, 1], 20)
    with pytest.raises(ValueError, match=" ") as late:
        aflite.filter_dataset(features, labels, **GOOD | change)
    with pytest.raises(ValueError, match=" ") as early:
        aflite.check_parameters(40, **GOOD | change)
    assert str(early.value) == str(late.value)


def test_good_parameters_pass() -> None:
    aflite.check_parameters(40, **GOOD)
    aflite.check_parameters(40, **GOOD, groups=np.arange(40))
