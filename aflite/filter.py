"""AFLite: iterative removal of the rows that simple classifiers predict too reliably (Algorithm 1)."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from aflite import validation
from aflite.config import run_config
from aflite.loop import Removal, Store, run
from aflite.models import Data, family
from aflite.results import FilterResult, PhaseRecord
from aflite.scoring import Partitioner, Scorer
from aflite.strategies import STRATEGIES, Strategy

PARTITIONS = ("auto", "blocked", "independent")


def filter_dataset(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    n: int,
    m: int,
    t: int,
    k: int,
    tau: float,
    seed: int,
    model: Any = "logistic",
    c: float = 1.0,
    class_weight: Any = None,
    strategy: Strategy = "slicing",
    temperature: float = 0.05,
    look_ahead: bool = False,
    partitions: Literal["auto", "blocked", "independent"] | Partitioner = "auto",
    block_size: int | None = None,
    groups: ArrayLike | None = None,
    stratify: bool = False,
    phases: int | None = None,
    n_batches: int = 1,
    n_jobs: int | None = None,
    threads: int | None = None,
    device: str = "cpu",
    checkpoint: str | PathLike[str] | None = None,
    on_phase: Callable[[PhaseRecord], None] | None = None,
) -> FilterResult:
    """Remove the rows whose labels classifiers on pre-computed features predict too reliably.

    Algorithm 1 of Le Bras et al. (ICML 2020). In each phase m classifiers train on t random rows of what is
    left and predict the others; of the rows with predictability >= tau the k highest leave, of equal ones the
    earlier rows, never below n rows. The run stops when fewer than k leave or n is reached.

    Parameters
    ----------
    features : array_like of float, shape (N, d)
        Phi(X), finite and at most 1e10 in size. float16, float32 or float64; a memory map is not loaded as a whole.
        Read as float32.
    labels : array_like of int, shape (N,)
        Any integers. Each is a class, -1 too, which is logged as a warning unless the classes are -1 and 1.
    n : int
        Rows to keep at least, 1 <= n < N.
    m : int
        Random partitions a phase.
    t : int
        Rows each classifier trains on, t < n (t < N when nothing is removed).
    k : int
        Rows to remove a phase; 0 only scores.
    tau : float
        Least predictability of a removed row, in [0, 1].
    seed : int
        Equal seeds give equal results: for "logistic" with any number of threads or jobs, for other models as far
        as their libraries see to it.
    model : str or classifier
        "logistic" (all m at once), "svm" (linear), "ridge", "knn" (5 nearest, FAISS), "mlp" (64 hidden
        units), or a scikit-learn classifier, which is cloned for every part.
    c : float
        Inverse strength of the L2 penalty of logistic, svm and ridge, > 0: scikit-learn's C, for ridge 1 / alpha.
        For logistic at least 1e-10, and at most about 1e18 / (t * standard deviation of the features).
    class_weight : "balanced", dict of label to float, or None
        For logistic, svm and ridge, as in scikit-learn.
    strategy : {"slicing", "greedy", "sampling"}
        The k highest; one row a phase (k must be 1); k drawn without replacement with probability rising as
        exp(predictability / temperature).
    temperature : float
        For sampling, > 0.
    look_ahead : bool
        Score the rows about to leave once more, by m classifiers that train on parts of the rows that would
        stay; only those that still reach tau leave. The run then goes on while any leave, and ends like any other
        where fewer than k rows reached tau before.
    partitions : {"auto", "blocked", "independent"} or callable
        Parts as unions of blocks of one shuffle, which large sets need for speed; each part by a shuffle of
        its own; "auto": independent while m * t * d is at most 2**24; or a function (rows left, m, t,
        generator) -> m arrays of row numbers. It is called once for each of the `n_batches` batches of a
        phase, with that batch's m, and gets a copy of the rows left.
    block_size : int, optional
        Rows a block, at most t, for parts that are blocked; by default near min(512, t / 12).
    groups : array_like, shape (N,), optional
        Rows of a group are on one side of every partition; parts then have at most t rows.
    stratify : bool
        Keep label shares in every part (exactly when independent, within a row a block and class when
        blocked).
    phases : int, optional
        Scoring phases at most, rows leave between them; 1 only scores.
    n_batches : int
        Batches of classifiers that can run apart; part of what fixes the result. Batches that would need too
        much memory are split further.
    n_jobs : int, optional
        joblib workers for the batches; -1 for all cores. Inside ``joblib.parallel_config(...)`` its backend is
        used (loky, ray, dask).
    threads : int, optional
        Threads of a batch of "logistic"; by default as many as torch uses.
    device : str
        Torch device of "logistic". "cuda" gives the batches to all GPUs in turn.
    checkpoint : path, optional
        File that holds the state after every phase. A run that finds it continues to the same result. Not
        with a function as `partitions` or in `model`, which may change unseen.
    on_phase : callable, optional
        Called with the record of every phase, also of those that a checkpoint holds.

    Returns
    -------
    FilterResult

    Raises
    ------
    ValueError, TypeError
        A parameter is out of its range, features are not finite or lengths differ; the message names the
        number.
    CheckpointMismatchError
        The checkpoint belongs to other parameters or inputs, or another version of this package.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 200)
    >>> features = rng.normal(size=(400, 5)) + 3 * np.outer(labels * (np.arange(400) % 2), np.ones(5))
    >>> result = filter_dataset(features, labels, n=250, m=16, t=100, k=50, tau=0.9, seed=0)
    >>> int(result.kept.sum()), str(result.stop_reason)
    (250, 'reached_n')
    """
    matrix = validation.features(features)
    n_rows = matrix.shape[0]
    classes, codes = validation.labels(labels, n_rows)
    c = validation.number("c", c, above=0)
    weight = validation.class_weight(class_weight, classes)
    scorer = Scorer(
        data=Data(matrix, codes, classes.size),
        family=family(model, c=c, class_weight=weight),
        m=m,
        t=t,
        seed=seed,
        partitions=partitions,
        block_size=block_size,
        groups=None,
        stratify=bool(stratify),
        n_batches=n_batches,
        n_jobs=validation.jobs(n_jobs),
        threads=threads,
        device=validation.device(device),
    )
    removal = _checked(n_rows, Removal(scorer, n, k, tau, strategy, temperature, bool(look_ahead), phases))
    _check_choices(removal, groups is not None)
    if groups is not None:
        grouped = replace(removal.scorer, groups=validation.groups(groups, n_rows, removal.scorer.t))
        removal = replace(removal, scorer=grouped)
    if on_phase is not None and not callable(on_phase):
        raise TypeError(f"on_phase must be a function of a PhaseRecord, got {on_phase!r}")
    if checkpoint is None:
        return run(removal, None, on_phase)
    if not isinstance(checkpoint, str | PathLike):
        raise TypeError(f"checkpoint must be a path, got {checkpoint!r}")
    return run(removal, Store(Path(checkpoint), run_config(removal, model, c, weight)), on_phase)


def check_parameters(
    n_rows: int,
    *,
    n: int,
    m: int,
    t: int,
    k: int,
    tau: float,
    seed: int,
    model: Any = "logistic",
    c: float = 1.0,
    strategy: Strategy = "slicing",
    partitions: Literal["auto", "blocked", "independent"] = "auto",
    groups: ArrayLike | None = None,
    stratify: bool = False,
) -> None:
    """Refuse what `filter_dataset` would refuse of its parameters, before there are features.

    Parameters
    ----------
    n_rows : int
        Rows that the features will have; all other parameters are those of `filter_dataset`.

    Raises
    ------
    ValueError, TypeError
        A parameter is out of its range; the message names the number.
    """
    chosen = family(model, c=validation.number("c", c, above=0), class_weight=None)
    nothing = Data(np.empty((n_rows, 0), np.float32), np.empty(0, np.int64), 0)
    scorer = Scorer(
        data=nothing,
        family=chosen,
        m=m,
        t=t,
        seed=seed,
        partitions=partitions,
        block_size=None,
        groups=None,
        stratify=bool(stratify),
        n_batches=1,
        n_jobs=None,
        threads=None,
        device="cpu",
    )
    removal = _checked(n_rows, Removal(scorer, n, k, tau, strategy, 1.0, False, None))
    _check_choices(removal, groups is not None)
    validation.groups(groups, n_rows, removal.scorer.t)


def _checked(n_rows: int, removal: Removal) -> Removal:
    """Check the numbers and make them Python's; N is at least 2 because there are two classes."""
    scorer = removal.scorer
    why = f" (less than the {n_rows} rows of features)"
    k = validation.integer("k", removal.k, least=0)
    phases = _optional("phases", removal.phases)
    n = validation.integer("n", removal.n, least=1, most=n_rows - 1, why=why)
    scores_only = k == 0 or phases == 1
    most = n_rows - 1 if scores_only else n - 1
    why = why if scores_only else f" (less than n = {n}, or the last phases have none to predict)"
    scorer = replace(
        scorer,
        m=validation.integer("m", scorer.m, least=1),
        t=validation.integer("t", scorer.t, least=1, most=most, why=why),
        seed=validation.integer("seed", scorer.seed, least=0),
        n_batches=validation.integer("n_batches", scorer.n_batches, least=1),
        threads=_optional("threads", scorer.threads),
        block_size=_optional("block_size", scorer.block_size),
    )
    if scorer.block_size is not None and scorer.block_size > scorer.t:
        raise ValueError(
            f"block_size must be at most t = {scorer.t}, or parts that begin with the same block are equal, "
            f"got {scorer.block_size}; a twelfth of t or less makes parts differ well"
        )
    return replace(
        removal,
        scorer=scorer,
        n=n,
        k=k,
        tau=validation.number("tau", removal.tau, least=0, most=1),
        temperature=validation.number("temperature", removal.temperature, above=0),
        phases=phases,
    )


def _optional(name: str, value: int | None) -> int | None:
    return None if value is None else validation.integer(name, value, least=1)


def _check_choices(removal: Removal, grouped: bool) -> None:
    validation.one_of("strategy", removal.strategy, STRATEGIES)
    if removal.strategy == "greedy" and removal.k not in (0, 1):
        raise ValueError(f"k must be 1 with strategy='greedy', one row a phase, got {removal.k}; or use 'slicing'")
    scorer = removal.scorer
    own = callable(scorer.partitions)
    if not own:
        validation.one_of("partitions", scorer.partitions, PARTITIONS)
    if own and (grouped or scorer.stratify):
        name = "groups" if grouped else "stratify"
        raise ValueError(f"{name} has no effect on parts from a function; let partitions see to it, and drop {name}")
    if scorer.block_size is not None and (own or scorer.partitions == "independent"):
        raise ValueError(
            f"block_size is for blocked parts, got {scorer.block_size} with "
            f"{'a function' if own else repr(scorer.partitions)} as partitions; drop it, or use 'blocked'"
        )
    if grouped and scorer.stratify:
        raise ValueError("groups and stratify exclude each other: whole groups cannot keep label shares; drop one")
