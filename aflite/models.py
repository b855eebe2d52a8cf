"""Model families M: how the classifiers of a phase are trained and what they predict."""

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aflite import validation
from aflite.estimators import ClassWeight, Cloned, Named, check_classifier
from aflite.partitions import Layout, blocked

if TYPE_CHECKING:
    from torch import Tensor

    from aflite.lanes import Lanes
    from aflite.rows import Rows
    from aflite.solver import Solution, Spectrum

logger = logging.getLogger(__name__)

Ints = NDArray[np.int64]
Floats = NDArray[np.floating]

MODELS = ("logistic", "svm", "ridge", "knn", "mlp")
WEIGHTED = ("logistic", "svm", "ridge")
_PREDICT_ROWS = 65_536
_SPECTRUM_ROWS = 4096
_CACHE_BYTES = 256 * 2**20
_STATE_BYTES = 512 * 2**20
_LEAST_C = 1e-10
_LARGEST_SUM = 1e36
# From here on L-BFGS takes fewer products than Newton's method.
_MANY_CLASSES = 100


@dataclass(frozen=True)
class Data:
    """What every phase works on; codes are 0 .. n_classes - 1."""

    features: Floats
    codes: Ints
    n_classes: int


@dataclass(frozen=True)
class Shared:
    """What a phase's batches of classifiers have in common: preconditioner and starting point."""

    spectrum: "Spectrum"
    weights: Floats | None
    intercepts: Floats | None


@dataclass(frozen=True)
class Task:
    """One batch of classifiers: parts of the pool to train on, rows to predict.

    `targets` None means the pool itself, out of sample; otherwise rows outside the pool. `device` and
    `threads` are where it runs.
    """

    pool: Ints
    targets: Ints | None
    layout: Layout
    seed: np.random.SeedSequence
    device: str
    threads: int | None


@dataclass(frozen=True)
class Counts:
    """For every target: by how many classifiers it was predicted, by how many rightly.

    `incomplete` counts parts that lack a class of the pool; `weights` (K', d) and `intercepts` (K',) are the
    mean solution, for a warm start, where the family has one.
    """

    correct: Ints
    held_out: Ints
    incomplete: int
    weights: Floats | None = None
    intercepts: Floats | None = None


class Family(Protocol):
    """A model family."""

    def max_parts(self, data: Data, t: int) -> int:
        """How many classifiers one batch may hold."""

    def prepare(
        self, data: Data, pool: Ints, t: int, seed: np.random.SeedSequence, last: Counts | None
    ) -> Shared | None:
        """Compute once a phase what all batches share; `last` has the phase before's mean solution."""

    def score(self, data: Data, task: Task, shared: Shared | None) -> Counts:
        """Train a batch of classifiers and predict."""


@dataclass(frozen=True)
class Logistic:
    """L2-penalised logistic regression by the solver of this package."""

    c: float = 1.0
    class_weight: ClassWeight = None

    def max_parts(self, data: Data, t: int) -> int:
        """Bound the stored curvatures (t x K a classifier) and the solver's vectors (K x d a classifier)."""
        columns = 1 if data.n_classes == 2 else data.n_classes
        cache, state = 4 * t * columns, 4 * 24 * columns * data.features.shape[1]
        return int(max(1, min(_CACHE_BYTES // cache, _STATE_BYTES // state)))

    def prepare(self, data: Data, pool: Ints, t: int, seed: np.random.SeedSequence, last: Counts | None) -> Shared:
        """Take the spectrum of a sample of the pool; start from the last phase's mean or from a pilot fit."""
        import torch

        from aflite.lanes import lanes
        from aflite.rows import Rows
        from aflite.solver import spectrum

        size = min(pool.size, max(_SPECTRUM_ROWS, 8 * data.features.shape[1]))
        rng = np.random.default_rng(seed)
        sample = np.sort(rng.choice(pool, size, replace=False))
        cpu = torch.device("cpu")
        rows = Rows(data.features, cpu)
        with lanes(None, cpu) as workers:
            base = spectrum(rows, sample, workers)
            self._check_range(float(base.variances.max()), t)
            if data.n_classes >= _MANY_CLASSES:
                return Shared(base, None, None)
            if last is not None:
                return Shared(base, last.weights, last.intercepts)
            chosen = np.sort(rng.choice(pool, max(size, t), replace=False))
            parts = blocked(chosen.size, 1, chosen.size, seed=seed)
            # With C scaled by the size the pilot's penalty weighs as it does in a part of t rows.
            pilot, trainable = self.solve(
                data, chosen, parts, rows, base, workers, c=self.c * t / chosen.size, start=None
            )
            return Shared(base, *_mean(pilot, trainable))

    def _check_range(self, variance: float, t: int) -> None:
        """Raise where sums over a part, or squares of them, leave the range of single precision."""
        heaviest = self.c * (float(self.class_weight.max()) if isinstance(self.class_weight, np.ndarray) else 1.0)
        curvature = heaviest * t
        if heaviest < _LEAST_C or max(1.0, curvature) * curvature * max(1.0, variance) > _LARGEST_SUM:
            raise ValueError(
                f"c must fit the features in single precision: {heaviest:g}, c times the largest class weight, is "
                f"out of range for t = {t} rows with a standard deviation of {variance**0.5:.3g}; at least "
                f"{_LEAST_C:g} is needed, and at most {_LARGEST_SUM**0.5 / (t * max(1.0, variance) ** 0.5):.2g}"
            )

    def score(self, data: Data, task: Task, shared: Shared | None) -> Counts:
        """Solve all problems of the batch together and predict every target with one product."""
        import torch

        from aflite.lanes import lanes
        from aflite.rows import Rows
        from aflite.solver import count_correct

        if shared is None:
            raise TypeError("Logistic.score needs what prepare returned")
        device = torch.device(task.device)
        rows = Rows(data.features, device)
        start = None
        if shared.weights is not None and shared.intercepts is not None:
            # joblib hands its workers arrays that must not be written to, which torch warns about: copy.
            weights, intercepts = np.array(shared.weights), np.array(shared.intercepts)
            start = (torch.from_numpy(weights).to(device), torch.from_numpy(intercepts).to(device))
        base = shared.spectrum.to(device)
        with lanes(task.threads, device) as workers:
            solution, trainable = self.solve(data, task.pool, task.layout, rows, base, workers, c=self.c, start=start)
            targets, trained, held_out = _targets(task)
            correct = count_correct(solution, rows, targets, data.codes[targets], trained, workers)
        return Counts(correct, held_out, _incomplete(data, task), *_mean(solution, trainable))

    def solve(
        self,
        data: Data,
        pool: Ints,
        layout: Layout,
        rows: "Rows",
        base: "Spectrum",
        workers: "Lanes",
        *,
        c: float,
        start: "tuple[Tensor, Tensor] | None",
    ) -> "tuple[Solution, Tensor]":
        """Fit the parts of a layout; return the classifiers and which had two classes to tell apart."""
        from aflite.lbfgs import QuasiNewton
        from aflite.solver import Newton
        from aflite.training import TrainingSet

        training = TrainingSet(
            rows,
            pool,
            data.codes,
            data.n_classes,
            layout,
            class_weight=self.class_weight,
            centre=base.mean,
            lanes=workers,
        )
        method = QuasiNewton if data.n_classes >= _MANY_CLASSES else Newton
        solver = method(training, base, c=c, lanes=workers)
        solution = solver.solve(start)
        logger.debug("%d classifiers: %d steps, %d passes", layout.n_parts, solution.steps, solution.passes)
        return solution, solver.trainable


def _mean(solution: "Solution", trainable: "Tensor") -> tuple[Floats, Floats]:
    """Mean weights (K', d) and intercepts (K',) of the classifiers that were fitted."""
    count = max(1, int(trainable.sum()))
    weights = solution.weights[trainable].sum(0) / count
    intercepts = solution.intercepts[trainable].nan_to_num(neginf=0.0).sum(0) / count
    return weights.cpu().numpy(), intercepts.cpu().numpy()


@dataclass(frozen=True)
class Estimators:
    """Any classifier with fit and predict, trained part by part.

    `make` returns a new classifier for a random state. `quiet` silences convergence warnings of our own
    choices.
    """

    make: Callable[[int], Any]
    quiet: bool = False

    def max_parts(self, data: Data, t: int) -> int:
        """Batches of any size: one classifier lives at a time."""
        return int(np.iinfo(np.int64).max)

    def prepare(self, data: Data, pool: Ints, t: int, seed: np.random.SeedSequence, last: Counts | None) -> None:
        """Nothing is shared."""
        return

    def score(self, data: Data, task: Task, shared: Shared | None) -> Counts:
        """Fit one classifier a part and predict the targets that it did not train on."""
        targets, trained, held_out = _targets(task)
        correct = np.zeros(targets.size, dtype=np.int64)
        for part, state in enumerate(task.seed.generate_state(task.layout.n_parts)):
            rows = task.pool[task.layout.part(part)]
            unseen = np.arange(targets.size) if trained is None else np.flatnonzero(~trained[part])
            predict = self._fit(data, rows, int(state))
            for start in range(0, unseen.size, _PREDICT_ROWS):
                chunk = unseen[start : start + _PREDICT_ROWS]
                correct[chunk] += predict(targets[chunk]) == data.codes[targets[chunk]]
        return Counts(correct, held_out, _incomplete(data, task))

    def _fit(self, data: Data, rows: Ints, state: int) -> Callable[[Ints], Ints]:
        codes = data.codes[rows]
        if np.all(codes == codes[0]):
            return lambda targets: np.full(targets.size, codes[0])
        model = self.make(state)
        with warnings.catch_warnings():
            if self.quiet:
                from sklearn.exceptions import ConvergenceWarning

                warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(_single(data.features[rows]), codes)
        # Some classifiers return a column.
        return lambda targets: np.asarray(model.predict(_single(data.features[targets]))).reshape(targets.size)


def family(model: Any, *, c: float, class_weight: ClassWeight) -> Family:
    """Return the family called `model`: a name of `MODELS`, or a classifier with fit and predict to clone.

    Raises
    ------
    TypeError
        `model` is a class, or an object that scikit-learn cannot clone.
    ValueError
        `model` is an unknown name, takes no class weights but got some, or carries a random generator, whose
        state equal seeds would not fix.
    """
    if isinstance(model, str):
        validation.one_of("model", model, MODELS)
    else:
        check_classifier(model)
    if class_weight is not None and not (isinstance(model, str) and model in WEIGHTED):
        raise ValueError(
            f"class_weight must be None for model {model!r}; logistic, svm and ridge take class weights, "
            "a scikit-learn classifier carries its own"
        )
    if not isinstance(model, str):
        return Estimators(Cloned(model))
    if model == "logistic":
        return Logistic(c, class_weight)
    return Estimators(Named(model, c, class_weight), quiet=True)


def _single(features: Floats) -> NDArray[np.float32]:
    return np.asarray(features, dtype=np.float32)


def _targets(task: Task) -> tuple[Ints, NDArray[np.bool_] | None, Ints]:
    """Rows to predict, which classifier trained on which of them, and how many did not."""
    if task.targets is not None:
        return task.targets, None, np.full(task.targets.size, task.layout.n_parts)
    trained = task.layout.trained(task.pool.size)
    return task.pool, trained, task.layout.n_parts - trained.sum(0, dtype=np.int64)


def _incomplete(data: Data, task: Task) -> int:
    """Parts that lack a class which the pool has."""
    present = np.bincount(data.codes[task.pool], minlength=data.n_classes) > 0
    counts = task.layout.class_counts(data.codes[task.pool], data.n_classes)
    return int((counts[:, present] == 0).any(1).sum())
