"""Pictures of the synthetic study and of filter runs (needs matplotlib, extra `plots`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aflite import synthetic
from aflite.results import HISTOGRAM_BINS, FilterResult

COLOURS = ("#0072b2", "#e69f00")


def study_figure(path: Path, *, seed: int = 0) -> None:
    """Draw the sets of the synthetic study, before the filter above and after it below."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained", sharex=True, sharey=True)
    for number in range(4):
        data = synthetic.circles(number, seed=seed)
        kept = synthetic.run_filter(data, seed=seed).kept
        for axis, rows in zip(axes[:, number], (np.ones_like(kept), kept), strict=True):
            for label, colour in enumerate(COLOURS):
                mine = rows & (data.labels == label)
                axis.scatter(*data.features[mine, :2].T, s=2, color=colour, linewidths=0)
            axis.set(aspect="equal", xticks=[], yticks=[], title=f"{int(rows.sum())} rows")
    axes[0, 0].set_ylabel("before")
    axes[1, 0].set_ylabel("after")
    _save(plt, figure, path)


def phases_figure(path: Path, *, seed: int = 0) -> None:
    """Draw how predictability is distributed in the first, a middle and the last phase on the first set."""
    data = synthetic.circles(0, seed=seed)
    result = synthetic.run_filter(data, seed=seed)
    last = len(result.history) - 1
    histograms(result, path, phases=(0, last // 2, last))


def histograms(result: FilterResult, path: Path, *, phases: Sequence[int]) -> None:
    """Draw the predictability of the rows at the start of some phases and write a file."""
    plt = _pyplot()
    figure, axes = plt.subplots(
        1, len(phases), figsize=(3 * len(phases), 2.6), layout="constrained", sharey=True, squeeze=False
    )
    edges = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    for axis, phase in zip(axes[0], phases, strict=True):
        record = result.history[phase]
        axis.stairs(record.histogram, edges, fill=True, color=COLOURS[0])
        axis.set(title=f"phase {phase}: {record.size:,} rows, bias {record.bias:.2f}", xlabel="predictability")
    axes[0, 0].set_ylabel("rows")
    _save(plt, figure, path)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("pictures need matplotlib, the extra `plots`: pip install matplotlib") from error

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(plt: Any, figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a date in the file the same numbers give the same bytes.
    figure.savefig(path, dpi=110, metadata={"Software": None} if path.suffix == ".png" else {"Date": None})
    plt.close(figure)
