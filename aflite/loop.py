"""The outer loop of Algorithm 1: score, remove, remember, until there is a reason to stop."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aflite import checkpoint as checkpoints
from aflite import strategies
from aflite.models import Counts, Ints
from aflite.results import FilterResult, PhaseRecord, StopReason, histogram
from aflite.scoring import DRAW, Scorer, phase_seed
from aflite.strategies import Strategy

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Removal:
    """How rows leave, with the checked parameters of `filter_dataset`."""

    scorer: Scorer
    n: int
    k: int
    tau: float
    strategy: Strategy
    temperature: float
    look_ahead: bool
    phases: int | None

    def leaving(self, phase: int, pool: Ints, scores: NDArray[np.float64], last: Counts) -> tuple[Ints, int, int]:
        """Positions in the pool that leave, how many were candidates, and how many rows reach tau."""
        # NaN, a row never held out, compares false.
        eligible = scores >= self.tau
        limit = min(self.k, pool.size - self.n)
        if self.strategy == "sampling":
            rng = np.random.default_rng(phase_seed(self.scorer.seed, phase, DRAW))
            chosen = strategies.sampled(scores, eligible, limit, temperature=self.temperature, rng=rng)
        else:
            chosen = strategies.highest(scores, eligible, limit)
        candidates = chosen.size
        if self.look_ahead and candidates:
            again = self.scorer.score(phase, np.delete(pool, chosen), last, targets=pool[chosen])
            chosen = chosen[again.correct / again.held_out >= self.tau]
        return chosen, candidates, int(eligible.sum())

    def reason(self, phase: int, left: int, eligible: int, removed: int) -> StopReason | None:
        """Why the run ends after this phase, or None."""
        if self.scores_only(phase):
            return StopReason.SCORED_ONLY if self.k == 0 or self.phases == 1 else StopReason.PHASE_LIMIT
        if left <= self.n:
            return StopReason.REACHED_N
        if eligible < self.k:
            return StopReason.FEW_PREDICTABLE
        return StopReason.LOOK_AHEAD if removed == 0 else None

    def scores_only(self, phase: int) -> bool:
        """No row leaves in this phase."""
        return self.k == 0 or (self.phases is not None and phase >= self.phases - 1)


@dataclass(frozen=True)
class Store:
    """Where the state goes after every phase, and what it must have been made with."""

    path: Path
    config: dict[str, Any]


@dataclass
class State:
    """Everything a run needs to go on after a phase."""

    predictability: NDArray[np.float64]
    times_scored: Ints
    removed_in_phase: Ints
    history: list[PhaseRecord]
    last: Counts | None
    stop_reason: StopReason | None

    @classmethod
    def new(cls, n_rows: int) -> "State":
        """Before the first phase."""
        nothing = np.zeros(n_rows, dtype=np.int64)
        return cls(np.full(n_rows, np.nan), nothing, nothing - 1, [], None, None)

    @classmethod
    def loaded(cls, store: Store) -> "State | None":
        """What the store holds, or None."""
        found = checkpoints.load(store.path, store.config)
        if found is None:
            return None
        record, arrays = found
        history = [PhaseRecord(**{**entry, "histogram": tuple(entry["histogram"])}) for entry in record["history"]]
        last, nothing = None, np.empty(0, dtype=np.int64)
        if "weights" in arrays:
            last = Counts(nothing, nothing, 0, arrays["weights"], arrays["intercepts"])
        reason = record["stop_reason"] and StopReason(record["stop_reason"])
        logger.info("continuing after phase %d from %s", len(history) - 1, store.path.name)
        return cls(
            arrays["predictability"],
            arrays["times_scored"],
            arrays["removed_in_phase"],
            history,
            last,
            reason,
        )

    def save(self, store: Store) -> None:
        """Replace what the store holds."""
        arrays = {
            "predictability": self.predictability,
            "times_scored": self.times_scored,
            "removed_in_phase": self.removed_in_phase,
        }
        if self.last is not None and self.last.weights is not None and self.last.intercepts is not None:
            arrays |= {"weights": self.last.weights, "intercepts": self.last.intercepts}
        record = {"history": [asdict(entry) for entry in self.history], "stop_reason": self.stop_reason}
        checkpoints.save(store.path, store.config, record, arrays)


def run(removal: Removal, store: Store | None, on_phase: Callable[[PhaseRecord], None] | None = None) -> FilterResult:
    """Run phases, from the stored state where there is one, until there is a reason to stop."""
    state = (store and State.loaded(store)) or State.new(removal.scorer.data.codes.size)
    tell = on_phase or (lambda record: None)
    for record in state.history:
        tell(record)
    while state.stop_reason is None:
        done = len(state.history)
        _phase(removal, state)
        if store is not None:
            state.save(store)
        for record in state.history[done:]:
            tell(record)
    return FilterResult(
        kept=state.removed_in_phase < 0,
        predictability=state.predictability,
        times_scored=state.times_scored,
        removed_in_phase=state.removed_in_phase,
        history=tuple(state.history),
        stop_reason=state.stop_reason,
    )


def _phase(removal: Removal, state: State) -> None:
    start, phase = time.perf_counter(), len(state.history)
    codes = removal.scorer.data.codes
    pool = np.flatnonzero(state.removed_in_phase < 0)
    classes = np.unique(codes[pool]).size
    if classes < 2:
        state.stop_reason = StopReason.ONE_CLASS
        return
    counts = removal.scorer.score(phase, pool, state.last)
    scored = counts.held_out > 0
    scores = np.full(pool.size, np.nan)
    scores[scored] = counts.correct[scored] / counts.held_out[scored]
    state.predictability[pool], state.times_scored[pool], state.last = scores, counts.held_out, counts
    leaving, candidates, eligible = np.empty(0, dtype=np.int64), 0, int((scores >= removal.tau).sum())
    if not removal.scores_only(phase):
        leaving, candidates, eligible = removal.leaving(phase, pool, scores, counts)
    state.removed_in_phase[pool[leaving]] = phase
    state.stop_reason = removal.reason(phase, pool.size - leaving.size, eligible, leaving.size)
    record = PhaseRecord(
        phase=phase,
        size=pool.size,
        classes=classes,
        bias=float(scores[scored].mean()) if scored.any() else float("nan"),
        histogram=tuple(histogram(scores).tolist()),
        eligible=eligible,
        removed=leaving.size,
        held_back=candidates - leaving.size,
        never_held_out=int((~scored).sum()),
        incomplete_parts=counts.incomplete,
        seconds=time.perf_counter() - start,
    )
    state.history.append(record)
    logger.info(
        "phase %d: %d rows, bias %.4f, %d removed, %.1f s",
        phase,
        record.size,
        record.bias,
        record.removed,
        record.seconds,
    )
