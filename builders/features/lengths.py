"""Batches of inputs of one length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def equal_length_batches(
    lengths: NDArray[np.int64], size: int, *, tokens: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """Give batches of indices whose lengths are all the same, longest first.

    Nothing is ever padded, so no number can depend on what else is in its batch, whatever a model makes of padding:
    layers may mix it with the text or count it, and a decoder may take it for the last token.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
        Tokens of each input.
    size : int
        Largest batch.
    tokens : int, optional
        Most tokens of a batch; an input that is longer is alone.

    Examples
    --------
    >>> [batch.tolist() for batch in equal_length_batches(np.array([2, 3, 2, 2]), 2)]
    [[1], [0, 2], [3]]
    >>> [batch.tolist() for batch in equal_length_batches(np.array([2, 3, 2, 2]), 3, tokens=4)]
    [[1], [0, 2], [3]]
    """
    for length in np.unique(lengths)[::-1]:
        same = np.flatnonzero(lengths == length)
        most = size if tokens is None else min(size, max(1, tokens // int(length)))
        for start in range(0, len(same), most):
            yield same[start : start + most]
