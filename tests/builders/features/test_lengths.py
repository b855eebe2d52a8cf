"""Batches of inputs of one length."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders.features.lengths import equal_length_batches


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.integers(1, 7), st.none() | st.integers(1, 12))
def test_batches_hold_every_input_once_at_one_length(lengths: list[int], size: int, tokens: int | None) -> None:
    array = np.array(lengths)
    batches = [batch.tolist() for batch in equal_length_batches(array, size, tokens=tokens)]
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(len(batch) <= size and len({lengths[i] for i in batch}) == 1 for batch in batches)
    assert tokens is None or all(len(batch) == 1 or len(batch) * lengths[batch[0]] <= tokens for batch in batches)
