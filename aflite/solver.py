"""L2-penalised logistic regression for many training parts at once: Newton's method with conjugate gradients.

Every problem j minimises scikit-learn's objective

    C * sum_i w_ij * loss(y_i, W_j x_i + b_j) + |W_j|^2 / 2        (the intercept is not penalised)

over the rows of its part: softmax loss, or the logistic loss with one weight vector when two classes are
present. It is convex, so the minimum does not depend on the way there. All problems take their steps
together; a block of rows that several of them train on is multiplied once with all their columns.
"""

import logging
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aflite.lanes import Lanes
from aflite.rows import Rows
from aflite.training import Sums, TrainingSet

logger = logging.getLogger(__name__)

TOLERANCE = 1e-3
# Distance from which a Newton step is expected to reach the minimum, as a share of the logits' spread.
_NEAR = 0.03
_MAX_STEPS = 50
# Steps in a row without a decrease in single precision after which a problem is given up.
_PATIENCE = 4
# A start that has overfitted to other rows costs more steps than 0 does.
_WORTH = 0.5
_MAX_CG = 60
_CG_REDUCTION = 0.25
_ROUNDING = 1e-6
_CHUNKS = 16
_CHUNK_WORK = 2**22
# Rows farther from the median than this many median distances are drawn in for the spectrum.
_FAR = 3.0
_CHUNK = 1024
_PREDICT_ELEMENTS = 4 * 2**20


@dataclass(frozen=True)
class Solution:
    """Classifiers in the features' own coordinates.

    Attributes
    ----------
    weights : Tensor, float32, shape (m, K', d)
        K' is the number of classes, or 1 for two classes.
    intercepts : Tensor, float32, shape (m, K')
        Minus infinity for a class that is absent from the part.
    passes : int
        Passes over the training blocks (one product with the features and one with their transpose each).
    steps : int
        Newton steps of the slowest problem.
    """

    weights: Tensor
    intercepts: Tensor
    passes: int
    steps: int


@dataclass(frozen=True)
class Spectrum:
    """Mean and principal axes of a sample of the rows: what the preconditioner of all problems is made of."""

    mean: Tensor
    axes: Tensor
    variances: Tensor

    def to(self, device: torch.device) -> "Spectrum":
        """Copy to a device."""
        return Spectrum(self.mean.to(device), self.axes.to(device), self.variances.to(device))


def spectrum(rows: Rows, sample: NDArray[np.int64], lanes: Lanes) -> Spectrum:
    """Eigendecomposition of the covariance of the sampled rows, far ones drawn in towards the median.

    Parts without an outlier would otherwise get a preconditioner that is far too stiff along it.
    """
    chunks = [sample[start : start + _CHUNK] for start in range(0, sample.size, _CHUNK)]
    few = rows.take(sample[:: -(-sample.size // _CHUNK)])
    centre = few.median(0).values
    limit = _FAR * (few - centre).norm(dim=1).median()
    if limit == 0:
        limit.fill_(torch.inf)

    def near(chunk: NDArray[np.int64]) -> Tensor:
        moved = rows.take(chunk) - centre
        return moved.mul_((limit / moved.norm(dim=1, keepdim=True)).clamp_max_(1.0))

    mean = torch.stack(lanes.map(lambda i: near(chunks[i]).sum(0), len(chunks))).sum(0) / sample.size

    def gram(lane: int) -> Tensor:
        total = torch.zeros(rows.width, rows.width, device=rows.device)
        for chunk in chunks[lane::4]:
            centred = near(chunk) - mean
            total.addmm_(centred.T, centred)
        return total

    covariance = torch.stack(lanes.map(gram, 4)).sum(0) / sample.size
    variances, axes = torch.linalg.eigh(covariance)
    return Spectrum(centre + mean, axes, variances.clamp_min(0.0))


class Newton:
    """Newton's method for all parts of a training set, in lock step."""

    def __init__(self, training: TrainingSet, base: Spectrum, *, c: float, lanes: Lanes) -> None:
        """State the problems.

        Parameters
        ----------
        training : TrainingSet
            The parts, centred on the mean of `base`.
        base : Spectrum
            For the preconditioner.
        c : float
            Inverse strength of the penalty, scikit-learn's C.
        lanes : Lanes
            Workers.
        """
        self.training, self.base, self.c, self.lanes = training, base, c, lanes
        n_present = training.present.sum(1)
        self.trainable = n_present > 1
        # Where a part holds two classes scikit-learn fits one vector; as two opposite ones its penalty is half.
        two = (n_present == 2) & (not training.binary)
        self.penalty = torch.where(two, 2.0, 1.0)[:, None, None]

    def solve(self, start: tuple[Tensor, Tensor] | None = None, tolerance: float = TOLERANCE) -> Solution:
        """Minimise all objectives.

        Parameters
        ----------
        start : (Tensor, Tensor), optional
            Weights (K', d) and intercepts (K',) that all problems start from.
        tolerance : float
            A problem is done after a Newton step from close by, whose equation was solved to this share of the
            spread of its logits, in root mean square of logits weighted by their curvature.
        """
        m, k, d = self.training.shape
        device = self.base.mean.device
        w, b = torch.zeros(m, k, d, device=device), torch.zeros(m, k, device=device)
        if start is not None:
            w += start[0]
            b += start[1] + start[0] @ self.base.mean
        active = torch.nonzero(self.trainable).flatten()
        w[~self.trainable] = 0.0
        sums = self.training.gradient(w, b, active)
        objective = self._objective(sums, w, active)
        if start is not None and bool((objective > _WORTH * self._at_zero(active)).any()):
            w.zero_(), b.zero_()
            sums = self.training.gradient(w, b, active)
            objective = self._objective(sums, w, active)
        steps = n_stalled = 0
        idle = torch.zeros_like(active)
        while active.numel() and steps < _MAX_STEPS:
            steps += 1
            grad_w, grad_b, scale = self._scaled(sums, w, active)
            unit = torch.minimum(scale.sum(1) * sums.spread**2, 4 * objective).float()
            step_w, step_b, rest = self._direction(grad_w, grad_b, scale, active, unit, tolerance)
            slope = dot(grad_w, grad_b, step_w, step_b)
            before = objective
            sums, objective = self._search(w, b, step_w, step_b, slope, before, active)
            # The new gradient tells whether the quadratic model, and rounding, allowed what CG promised.
            left = self._error(sums, w, active)
            keep = ~((rest <= tolerance**2 * unit) & (left <= 4 * tolerance**2 * unit))
            idle = torch.where(before - objective > _ROUNDING * before.abs(), 0, idle + 1)
            stalled = keep & (idle == _PATIENCE)
            n_stalled += int(stalled.sum())
            keep &= ~stalled
            if not bool(keep.all()):
                active, objective, sums, idle = active[keep], objective[keep], sums.select(keep), idle[keep]
        if n_stalled or active.numel():
            logger.warning(
                "%d of %d classifiers were not solved to the tolerance: features far beyond the others' scale, or c "
                "too large for single precision",
                n_stalled + active.numel(), m,
            )  # fmt: skip
        return self._finished(w, b, steps)

    def _search(
        self,
        w: Tensor,
        b: Tensor,
        step_w: Tensor,
        step_b: Tensor,
        slope: Tensor,
        before: Tensor,
        active: Tensor,
    ) -> tuple[Sums, Tensor]:
        """Step, halved where the objective falls too little (Armijo); `w` and `b` change in place."""
        origin_w, origin_b = w[active], b[active]
        length = torch.ones(active.numel(), device=w.device)
        while True:
            w[active] = origin_w + length[:, None, None] * step_w
            b[active] = origin_b + length[:, None] * step_b
            sums = self.training.gradient(w, b, active)
            objective = self._objective(sums, w, active)
            # Rounding in float32 may hide the last, tiny decreases.
            bad = ~(objective <= before + 1e-4 * length * slope + _ROUNDING * before.abs())
            if not bool(bad.any()) or float(length.min()) < 1e-4:
                return sums, objective
            length = torch.where(bad, length / 2, length)

    def _at_zero(self, active: Tensor) -> Tensor:
        """Objective at weights and intercepts 0: every class that a part has is equally likely."""
        classes = self.training.present[active].sum(1)
        return self.c * self.training.total_weight[active] * classes.double().log()

    def _objective(self, sums: Sums, w: Tensor, active: Tensor) -> Tensor:
        norm = w[active].double().square().sum((1, 2)) * self.penalty[active, 0, 0]
        return self.c * sums.loss + norm / 2

    def _scaled(self, sums: Sums, w: Tensor, active: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradient, and C times the summed curvature of every logit."""
        grad_w = self.c * sums.weights + self.penalty[active] * w[active]
        # A class that the part lacks has curvature 0; any positive number keeps the preconditioner finite.
        scale = (self.c * sums.curvature).clamp_min(1e-6 * min(1.0, self.c))
        return grad_w, self.c * sums.intercepts, scale

    def _error(self, sums: Sums, w: Tensor, active: Tensor) -> Tensor:
        """Estimate of g' H^-1 g by the preconditioner."""
        grad_w, grad_b, scale = self._scaled(sums, w, active)
        return dot(grad_w, grad_b, *self._precondition(grad_w, grad_b, scale, active))

    def _precondition(self, v: Tensor, vb: Tensor, scale: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Solve with (scale * covariance + penalty) in the axes of the sampled spectrum."""
        axes, variances, penalty = self.base.axes, self.base.variances, self.penalty[active]
        out = torch.empty_like(v)
        n_chunks = max(1, min(_CHUNKS, v.shape[0], v.numel() * v.shape[2] // _CHUNK_WORK))

        def chunk(lane: int) -> None:
            part = slice(lane * v.shape[0] // n_chunks, (lane + 1) * v.shape[0] // n_chunks)
            turned = v[part] @ axes
            turned /= scale[part, :, None] * variances + penalty[part]
            torch.matmul(turned, axes.T, out=out[part])

        self.lanes.map(chunk, n_chunks)
        return out, vb / scale

    def _direction(
        self, grad_w: Tensor, grad_b: Tensor, scale: Tensor, active: Tensor, unit: Tensor, tolerance: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Newton steps by preconditioned conjugate gradients on H d = -g, all problems in lock step.

        Also returns an estimate of r' H^-1 r, r being what is left of the equation. A step that may be the last
        one is solved until this is within the tolerance.
        """
        x, xb = torch.zeros_like(grad_w), torch.zeros_like(grad_b)
        r, rb = -grad_w, -grad_b
        z, zb = self._precondition(r, rb, scale, active)
        p, pb = z.clone(), zb.clone()
        rz = dot(r, rb, z, zb)
        loose = rz * _CG_REDUCTION**2
        gained = torch.zeros_like(rz)
        rest = rz
        for _ in range(_MAX_CG):
            sums = self.training.hessian(p, pb, active)
            hp, hpb = self.c * sums.weights + self.penalty[active] * p, self.c * sums.intercepts
            curve = dot(p, pb, hp, hpb)
            alpha = torch.where(curve > 0, rz / curve, 0.0)
            x += alpha[:, None, None] * p
            xb += alpha[:, None] * pb
            r -= alpha[:, None, None] * hp
            rb -= alpha[:, None] * hpb
            z, zb = self._precondition(r, rb, scale, active)
            old, rz = rz, dot(r, rb, z, zb)
            gained += alpha * old
            # Where the preconditioner is too stiff, steps are longer than 1 and more is left than it says.
            rest = rz * alpha.clamp_min(1.0)
            goal = torch.where(gained <= _NEAR**2 * unit, tolerance**2 * unit, loose)
            if not bool((rest > goal).any()):
                break
            beta = torch.where(old > 0, rz / old, 0.0)
            p = z + beta[:, None, None] * p
            pb = zb + beta[:, None] * pb
        return x, xb, rest

    def _finished(self, w: Tensor, b: Tensor, steps: int) -> Solution:
        intercepts = b - w @ self.base.mean
        lonely = torch.nonzero(~self.trainable).flatten()
        if self.training.binary:
            only_second = self.training.counts[lonely, 1] > 0
            intercepts[lonely, 0] = torch.where(only_second, torch.inf, -torch.inf)
        elif self.training.absent is not None:
            intercepts = intercepts + self.training.absent
        return Solution(w, intercepts, self.training.passes, steps)


def dot(a: Tensor, ab: Tensor, b: Tensor, bb: Tensor) -> Tensor:
    """Product of weights and intercepts, a problem."""
    return (a * b).sum((1, 2)) + (ab * bb).sum(1)


def count_correct(
    solution: Solution,
    rows: Rows,
    targets: NDArray[np.int64],
    codes: NDArray[np.int64],
    trained: NDArray[np.bool_] | None,
    lanes: Lanes,
) -> NDArray[np.int64]:
    """How many of the classifiers that did not train on a row predict its class.

    Parameters
    ----------
    solution : Solution
        The m classifiers.
    rows : Rows
        Feature access.
    targets : ndarray of int64, shape (T,)
        Rows to predict.
    codes : ndarray of int64, shape (T,)
        Their classes.
    trained : ndarray of bool, shape (m, T), or None
        Which classifier trained on which target; None: none did.
    lanes : Lanes
        Workers.

    Returns
    -------
    ndarray of int64, shape (T,)
    """
    m, k, _ = solution.weights.shape
    columns, shift = solution.weights.flatten(0, 1), solution.intercepts[:, :, None]
    size = int(np.clip(_PREDICT_ELEMENTS // columns.shape[0], 32, 2048))

    def chunk(index: int) -> NDArray[np.int64]:
        part = slice(index * size, (index + 1) * size)
        logits = (columns @ rows.take(targets[part]).T).view(m, k, -1) + shift
        # Of equal logits the first class, as argmax; max is ten times faster over a short middle axis.
        predicted = (logits[:, 0] > 0).long() if k == 1 else logits.max(1).indices
        right = (predicted == torch.from_numpy(codes[part]).to(rows.device)).cpu().numpy()
        if trained is not None:
            right &= ~trained[:, part]
        counts: NDArray[np.int64] = right.sum(0, dtype=np.int64)
        return counts

    return np.concatenate(lanes.map(chunk, -(-targets.size // size)))
