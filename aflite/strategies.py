"""Which rows leave after a phase: greedy, greedy slicing, slice sampling (section 2 of the paper)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Strategy = Literal["slicing", "greedy", "sampling"]
STRATEGIES: tuple[Strategy, ...] = ("slicing", "greedy", "sampling")


def highest(scores: NDArray[np.float64], eligible: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
    """Positions of the `limit` highest eligible scores; of equal ones the earlier row goes first."""
    rows = np.flatnonzero(eligible)
    return rows[np.argsort(-scores[rows], kind="stable")[:limit]]


def sampled(
    scores: NDArray[np.float64],
    eligible: NDArray[np.bool_],
    limit: int,
    *,
    temperature: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw `limit` eligible positions without replacement, each next with odds exp(score / temperature).

    The largest perturbed scores, score / temperature + Gumbel noise, are such a draw (Gumbel top-k). A
    temperature near 0 gives the highest scores with ties by chance, a large one a uniform draw.
    """
    rows = np.flatnonzero(eligible)
    noise = rng.gumbel(size=scores.size)[rows]
    # Times the temperature, for which the order is the same: then a small one rounds to the scores, not to a tie
    # of all, and the noise decides between equal ones.
    # A huge one takes the sums to infinity, where the noise decides as well.
    with np.errstate(over="ignore"):
        perturbed = scores[rows] + temperature * noise
    return rows[np.lexsort((-noise, -perturbed))[:limit]]
