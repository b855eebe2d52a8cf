"""Shards of a run, several at once: in processes of this machine, or on an engine that runs."""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from builders.stopping import kept_from_children
from evaluation.errors import EvaluationError
from evaluation.models import check_choice

HERE = "loky"
BACKENDS = (HERE, "ray", "dask")
MOST_AT_ONCE = 10_000

R = TypeVar("R")


def in_parallel(
    function: Callable[..., R], calls: Iterable[tuple[Any, ...]], *, at_once: int, backend: str
) -> Iterator[R]:
    """Call a function many times and give what it gives as it is finished, in any order.

    Parameters
    ----------
    function : callable
        Importable by name.
    calls : iterable of tuple
        Its arguments, which are made as they are needed.
    at_once : int
        Calls at once.
    backend : str
        One of `BACKENDS`.

    Raises
    ------
    EvaluationError
        If there is no such backend, or it is not installed.
    """
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.backend import resource_tracker

    left = iter(calls)
    with parallel_config(**backend_arguments(backend, at_once)):
        if backend == HERE:
            resource_tracker.ensure_running()  # which unblocks signals when it starts
            with kept_from_children():  # here joblib starts its other processes
                parallel = Parallel(n_jobs=at_once, return_as="generator_unordered")
                results = parallel(delayed(function)(*call) for call in left)
            yield from results
            return
        parallel = Parallel(n_jobs=at_once)
        # The other backends give nothing back before all is finished, so they get some at a time.
        while some := list(itertools.islice(left, 4 * at_once)):
            yield from parallel(delayed(function)(*call) for call in some)


def backend_arguments(backend: str, at_once: int) -> Mapping[str, Any]:
    """Give arguments of joblib's ``parallel_config``; registers the backend of an engine that is not joblib's own.

    Raises
    ------
    EvaluationError
        If there is no such backend, it is not installed, no scheduler of Dask is known, or `at_once` is above
        `MOST_AT_ONCE`.
    """
    check_choice("backend", backend, BACKENDS)
    if at_once > MOST_AT_ONCE:
        raise EvaluationError(f"--workers must be at most {MOST_AT_ONCE:,}, not {at_once}")
    if backend == HERE:
        threads = max(1, (os.cpu_count() or 1) // at_once)
        return {"backend": HERE, "inner_max_num_threads": threads} if at_once > 1 else {}
    try:
        if backend == "ray":
            importlib.import_module("ray.util.joblib").register_ray()
        else:
            _connect(importlib.import_module("distributed"))  # registers itself
    except ImportError as error:
        hint = f"pip install 'probesieve[{backend}]'"
        raise EvaluationError(f"backend {backend} is not installed; run: {hint}") from error
    return {"backend": backend}


def _connect(distributed: Any) -> None:
    """Connect to the scheduler of Dask's configuration, unless this process has a client."""
    try:
        distributed.get_client()
    except ValueError as error:
        if not importlib.import_module("dask").config.get("scheduler-address", None):
            message = (
                "backend dask needs a scheduler: set DASK_SCHEDULER_ADDRESS to its address, such as tcp://host:8786"
            )
            raise EvaluationError(message) from error
        distributed.Client()
