"""The one progress bar: on a terminal, and nowhere else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")

_switch = {"off": False}


def switch_off() -> None:
    """Show no progress bars from here on, ours or those of the Hub's client and of datasets."""
    _switch["off"] = True
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"


@contextlib.contextmanager
def without_bars_of_datasets() -> Iterator[None]:
    """Keep datasets from showing a bar for each of many small reads."""
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    were_off = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not were_off:
            enable_progress_bars()


def progress(
    items: Iterable[T], *, total: int, label: str, done: int = 0, step: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Pass `items` on and show how far they are.

    Parameters
    ----------
    items : iterable
        What is worked through.
    total : int
        Sum of the steps of all items.
    label : str
        What stands before the bar.
    done : int
        How much of `total` an earlier run did.
    step : callable
        Gives how much of `total` an item is.
    """
    with counter(total=total, label=label, done=done) as count:
        for item in items:
            yield item
            count(step(item))


@contextlib.contextmanager
def counter(*, total: int, label: str, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Give a function that moves a progress bar on by a number of steps."""
    with tqdm(total=total, initial=done, desc=label, unit_scale=True, disable=_switch["off"] or None) as bar:

        def advance(steps: int) -> None:
            bar.update(steps)

        yield advance
