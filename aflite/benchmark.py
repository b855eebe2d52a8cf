"""Times a phase against a loop over scikit-learn's LogisticRegression, in one process on the same cores."""

import logging
import os
import platform
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aflite.filter import filter_dataset
from aflite.results import FilterResult

logger = logging.getLogger(__name__)

Array = NDArray[np.float32]
Ints = NDArray[np.int64]
_CHUNK = 8192
# Above this number of weights scikit-learn's Newton solver, which forms the Hessian, is out of reach.
_TIGHT_NEWTON = 10 * 768


@dataclass(frozen=True)
class Case:
    """Sizes of one measurement.

    `decay` is the exponent of the features' spectrum, 0 for isotropic ones; `agreement` is the number of parts
    whose predictions are compared with the exact minimum's.
    """

    n_rows: int = 60_000
    width: int = 768
    n_classes: int = 3
    m: int = 64
    t: int = 6_000
    decay: float = 0.7
    agreement: int = 2

    def __str__(self) -> str:
        """Sizes in words."""
        shape = f"{self.n_rows:,} x {self.width:,}, K = {self.n_classes:,}, m = {self.m}, t = {self.t:,}"
        return shape if self.decay else f"{shape}, isotropic"


BASE = Case()
_UNCOMPARED = replace(BASE, agreement=0)
CASES = {
    "base": BASE,
    "half": replace(BASE, t=30_000),
    "d384": replace(BASE, width=384),
    "d2560": replace(BASE, width=2_560),
    "k2": replace(BASE, n_classes=2),
    "k10": replace(BASE, n_classes=10),
    "k300": Case(12_000, 256, 300, 4, 3_000, agreement=1),
    "k1000": replace(BASE, n_classes=1_000, m=4, agreement=1),
    "k1000-small": Case(12_000, 256, 1_000, 2, 3_000, agreement=1),
    "isotropic": replace(BASE, decay=0.0),
}
GROWTH = {
    "base": _UNCOMPARED,
    **{f"n{n}": replace(_UNCOMPARED, n_rows=n) for n in (15_000, 30_000, 120_000)},
    **{f"d{d}": replace(_UNCOMPARED, width=d) for d in (192, 384, 1_536)},
    **{f"k{k}": replace(_UNCOMPARED, n_classes=k) for k in (2, 10, 30)},
    **{f"m{m}": replace(_UNCOMPARED, m=m) for m in (16, 32, 128)},
    **{f"t{t}": replace(_UNCOMPARED, t=t) for t in (1_500, 3_000, 12_000)},
}
QUICK = {"small": Case(6_000, 64, 3, 16, 600), "small-half": Case(6_000, 64, 2, 16, 3_000)}
SNLI = Case(495_000, 1_024, 3, 64, 50_000, agreement=0)
SNLI_KEPT = 92_000
SNLI_PHASES = 40


@dataclass(frozen=True)
class Measurement:
    """Seconds of one case, and the shares of predictions equal to those of tightly converged scikit-learn.

    `first` and `next` are whole phases without and with the phase before's solutions to start from; `fit` and
    `predict` are means over the `timed` parts of the loop, scaled to m in `loop`. The shares, in [0, 1], are of
    held-out rows: `agreement` is the solver's, `default_agreement` the loop's, both None where not compared.
    """

    case: Case
    first: float
    next: float
    fit: float
    predict: float
    timed: int
    agreement: float | None
    default_agreement: float | None

    @property
    def loop(self) -> float:
        """Seconds that the loop needs for all m parts."""
        return self.case.m * (self.fit + self.predict)


def make(case: Case, *, seed: int = 0, path: Path | None = None) -> tuple[Array, Ints]:
    """Draw features with standard deviations 5 / i**decay along random axes, class means 0.12 of them out.

    Parameters
    ----------
    case : Case
        Sizes.
    seed : int
        Seed.
    path : Path, optional
        Write the features there and return a memory map.

    Returns
    -------
    features : ndarray of float32, shape (N, d)
    labels : ndarray of int64, shape (N,)
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(case.n_classes, size=case.n_rows)
    scale = (5 / np.arange(1, case.width + 1) ** case.decay).astype(np.float32)
    means = (0.12 * rng.standard_normal((case.n_classes, case.width))).astype(np.float32)
    axes, _ = np.linalg.qr(rng.standard_normal((case.width, case.width), dtype=np.float32))
    shape = (case.n_rows, case.width)
    out: Array = np.empty(shape, np.float32)
    if path is not None:
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, case.n_rows, _CHUNK):
        part = labels[start : start + _CHUNK]
        noise = rng.standard_normal((part.size, case.width), dtype=np.float32)
        out[start : start + _CHUNK] = ((noise + means[part]) * scale) @ axes.T
    if path is None:
        return out, labels
    del out
    return np.load(path, mmap_mode="r"), labels


def measure(case: Case, features: Array, labels: Ints, *, timed: int) -> Measurement:
    """Time two phases and `timed` turns of the loop; compare the predictions of the case's parts."""
    # The first call in a process imports torch and starts its threads.
    filter_dataset(features[:100], np.arange(100) % 2, n=60, m=2, t=50, k=0, tau=0.5, seed=0)
    result = filter_dataset(
        features, labels, n=case.n_rows // 2 + case.t // 2, m=case.m, t=case.t, k=case.n_rows // 50, tau=0,
        seed=0, phases=2,
    )  # fmt: skip
    parts = [np.random.default_rng(part).permutation(case.n_rows) for part in range(timed)]
    fits, predictions = zip(*(_turn(features, labels, part, case.t) for part in parts), strict=True)
    ours = default = None
    if case.agreement:
        ours, default = _agreement(case, features, labels)
    seconds = [record.seconds for record in result.history]
    return Measurement(
        case, seconds[0], seconds[1], float(np.mean(fits)), float(np.mean(predictions)), timed, ours, default
    )


def _turn(features: Array, labels: Ints, order: Ints, t: int) -> tuple[float, float]:
    """Seconds of one fit and one prediction, as the usual loop has them."""
    from sklearn.linear_model import LogisticRegression

    start = time.perf_counter()
    with _convergence_ignored():
        model = LogisticRegression().fit(features[order[:t]], labels[order[:t]])
    fitted = time.perf_counter()
    model.predict(features[order[t:]])
    return fitted - start, time.perf_counter() - fitted


def _agreement(case: Case, features: Array, labels: Ints) -> tuple[float, float]:
    """Share of held-out predictions equal to the exact minimum's: ours, and scikit-learn's by default."""
    import torch
    from sklearn.linear_model import LogisticRegression

    from aflite.lanes import lanes
    from aflite.models import Data, Logistic
    from aflite.partitions import blocked
    from aflite.rows import Rows

    family, data = Logistic(), Data(features, labels, case.n_classes)
    pool, cpu = np.arange(case.n_rows), torch.device("cpu")
    layout = blocked(case.n_rows, case.m, case.t, seed=np.random.SeedSequence(0))
    shared = family.prepare(data, pool, case.t, np.random.SeedSequence(1), None)
    with lanes(None, cpu) as workers:
        solution, _ = family.solve(data, pool, layout, Rows(features, cpu), shared.spectrum, workers, c=1.0, start=None)
    shares = []
    for part in range(case.agreement):
        rows = layout.part(part)
        unseen = np.setdiff1d(pool, rows)[: 4 * _CHUNK]
        weights, intercepts = solution.weights[part].numpy(), solution.intercepts[part].numpy()
        exact = LogisticRegression(solver="newton-cholesky", tol=1e-8, max_iter=1_000)
        if case.n_classes * case.width > _TIGHT_NEWTON:
            exact = LogisticRegression(tol=1e-7, max_iter=20_000, warm_start=True)
            # One minimum, and scikit-learn's own test of it: starting from ours only saves hours.
            seen = np.unique(labels[rows])
            exact.classes_, exact.coef_, exact.intercept_ = seen, weights[seen].astype(float), intercepts[seen]
        exact.fit(features[rows].astype(np.float64), labels[rows])
        with _convergence_ignored():
            default = LogisticRegression().fit(features[rows], labels[rows])
        expected = exact.predict(features[unseen].astype(np.float64))
        logits = features[unseen] @ weights.T + intercepts
        ours = logits[:, 0] > 0 if case.n_classes == 2 else logits.argmax(1)
        shares.append(((ours == expected).mean(), (default.predict(features[unseen]) == expected).mean()))
    means = np.mean(shares, axis=0)
    return float(means[0]), float(means[1])


@contextmanager
def _convergence_ignored() -> Iterator[None]:
    """The usual loop stops at 100 iterations; its warnings are known."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(frozen=True)
class Memory:
    """Peak resident memory in bytes over a call: all, and without mapped files (None where unknown)."""

    total: int | None
    anonymous: int | None

    def __str__(self) -> str:
        """In gigabytes."""
        if self.total is None or self.anonymous is None:
            return "memory unknown"
        return f"{self.total / 1e9:.1f} GB resident at most, {self.anonymous / 1e9:.1f} GB not mapped from files"


def with_memory(call: Callable[[], FilterResult]) -> tuple[FilterResult, Memory]:
    """Call and watch the process's memory twenty times a second (Linux)."""
    peaks: dict[str, int] = {}
    done = threading.Event()
    status = Path(f"/proc/{os.getpid()}/status")

    def watch() -> None:
        while not done.wait(0.05):
            for line in status.read_text().splitlines():
                name, _, value = line.partition(":")
                if name in ("VmRSS", "RssAnon"):
                    peaks[name] = max(peaks.get(name, 0), int(value.split()[0]) * 1024)

    watcher = threading.Thread(target=watch, daemon=True)
    if status.exists():
        watcher.start()
    try:
        result = call()
    finally:
        done.set()
    return result, Memory(peaks.get("VmRSS"), peaks.get("RssAnon"))


def snli_run(features: Array, labels: Ints, *, phases: int | None = None) -> tuple[FilterResult, Memory]:
    """Run the whole filter at SNLI's size, from 495,000 rows to 92,000 in 40 phases."""
    k = -(-(SNLI.n_rows - SNLI_KEPT) // SNLI_PHASES)
    return with_memory(
        lambda: filter_dataset(features, labels, n=SNLI_KEPT, m=SNLI.m, t=SNLI.t, k=k, tau=0.5, seed=0, phases=phases)
    )


def machine() -> str:
    """Cores, processor and load of this machine, in one line."""
    info = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*: (.*)", info.read_text(encoding="utf-8")) if info.exists() else []
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"{os.cpu_count()} cores, {models[0] if models else platform.machine()}, load average {load:.2f} at the start"
    )
