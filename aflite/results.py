"""What a run of the filter returns."""

from dataclasses import dataclass
from enum import StrEnum
from html import escape

import numpy as np
from numpy.typing import NDArray

HISTOGRAM_BINS = 20


def histogram(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count scores in 20 equal bins of [0, 1], closed below (the last above too); NaN is in none.

    The edges are i / 20 rounded once, as scores are, so that 3 of 5 is in the bin that begins at 0.6; steps of
    0.05, as `np.histogram` makes them, end at 0.6000000000000001.
    """
    edges = np.arange(HISTOGRAM_BINS + 1) / HISTOGRAM_BINS
    return np.histogram(scores[~np.isnan(scores)], bins=edges)[0].astype(np.int64)


class StopReason(StrEnum):
    """Why a run ended."""

    REACHED_N = "reached_n"
    FEW_PREDICTABLE = "few_predictable"
    LOOK_AHEAD = "look_ahead_held_back_all"
    ONE_CLASS = "one_class_left"
    PHASE_LIMIT = "phase_limit"
    SCORED_ONLY = "scored_only"


@dataclass(frozen=True)
class PhaseRecord:
    """What one phase saw and did.

    Attributes
    ----------
    phase : int
        Number of the phase, from 0.
    size : int
        Rows at its start.
    classes : int
        Classes among them.
    bias : float
        Mean predictability of the rows that were held out at least once, in [0, 1]: the estimate of the
        representation bias R(Phi, S, M) (section 2 of the paper). Higher is easier. NaN when none was.
    histogram : tuple of int
        Rows by predictability in 20 equal bins of [0, 1], closed below, the last above too.
    eligible : int
        Rows with predictability >= tau.
    removed : int
        Rows that left.
    held_back : int
        Rows that look-ahead kept from leaving.
    never_held_out : int
        Rows that every classifier trained on; they have no score and stay.
    incomplete_parts : int
        Training parts that lacked a class of the phase.
    seconds : float
        Wall-clock time.
    """

    phase: int
    size: int
    classes: int
    bias: float
    histogram: tuple[int, ...]
    eligible: int
    removed: int
    held_back: int
    never_held_out: int
    incomplete_parts: int
    seconds: float


@dataclass(frozen=True, repr=False)
class FilterResult:
    """Outcome of `filter_dataset`; arrays have length N in input order. A notebook shows its phases as a table.

    Attributes
    ----------
    kept : ndarray of bool
        Rows that stay.
    predictability : ndarray of float64
        Share, in [0, 1], of the classifiers that did not train on the row that predicted its label right,

            p(i) = sum over j, i not in T_j, of [f_j(Phi(x_i)) = y_i] / number of j with i not in T_j,

        the score of Algorithm 1 (section 2 of the paper). Higher is easier. From the phase that removed the
        row, or the last one; NaN where the row was never held out.
    times_scored : ndarray of int64
        Number of those classifiers.
    removed_in_phase : ndarray of int64
        Number of that phase, from 0; -1 for kept rows.
    history : tuple of PhaseRecord
        One record a phase; `history[p].phase == p`.
    stop_reason : StopReason
        Why the run ended; compares equal to its string.
    """

    kept: NDArray[np.bool_]
    predictability: NDArray[np.float64]
    times_scored: NDArray[np.int64]
    removed_in_phase: NDArray[np.int64]
    history: tuple[PhaseRecord, ...]
    stop_reason: StopReason

    def __repr__(self) -> str:
        return f"<FilterResult: {self._summary()}>"

    def _repr_html_(self) -> str:
        head = ("phase", "rows", "mean predictability", "at least tau", "removed", "seconds")
        lines = []
        for record in self.history:
            counts = (f"{record.eligible:,}", f"{record.removed:,}", f"{record.seconds:.1f}")
            lines.append(_html_row((record.phase, f"{record.size:,}", f"{record.bias:.4f}", *counts), "td"))
        return f"<p>{escape(self._summary())}</p>\n<table>\n{_html_row(head, 'th')}\n{chr(10).join(lines)}\n</table>"

    def _summary(self) -> str:
        kept, phases = int(self.kept.sum()), len(self.history)
        biases = [record.bias for record in self.history]
        return (
            f"{kept:,} of {len(self.kept):,} rows kept, {phases} phase{'s' * (phases != 1)}, stopped: "
            f"{self.stop_reason}; mean predictability {biases[0]:.4f} in the first phase, {biases[-1]:.4f} in the last"
        )


def _html_row(cells: tuple[object, ...], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
