"""L-BFGS for many training parts and many classes at once.

With hundreds of classes and few rows a class, Newton's quadratic model holds only close by: at equal probabilities
a logit's curvature is about 1 / K, so that a Newton step from there moves logits by about K, and the curvature
left afterwards sits in a few rows of every class, which no common preconditioner foresees. Each of Newton's steps
then costs many products. Here every product yields a step: the inverse Hessian is the preconditioner corrected by
the last changes of the gradient (Nocedal and Wright, Numerical Optimization, 2nd ed., algorithm 7.4).
"""

import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from aflite.solver import Newton, Solution, dot

logger = logging.getLogger(__name__)

TOLERANCE = 2e-4
_MAX_STEPS = 500
_MEMORY = 8
# Bound on a step's change of a row's logits, from its root mean square if one class of a row takes all of it.
_MAX_CHANGE = 30.0


@dataclass
class _Pair:
    """A step (s), the change of the gradient over it (y), and their product, a problem."""

    s: Tensor
    sb: Tensor
    y: Tensor
    yb: Tensor
    sy: Tensor

    def select(self, keep: Tensor) -> "_Pair":
        return _Pair(**{name: value[keep] for name, value in vars(self).items()})


class QuasiNewton(Newton):
    """The problems of `Newton`, solved by L-BFGS from 0, all in lock step."""

    def solve(self, start: tuple[Tensor, Tensor] | None = None, tolerance: float = TOLERANCE) -> Solution:
        """Minimise all objectives.

        Parameters
        ----------
        start : (Tensor, Tensor), optional
            Ignored: with few rows a class a solution for other rows is a worse start than 0.
        tolerance : float
            Bound on the root mean square change of the logits that separates from the minimum, estimated with the
            corrected inverse Hessian, as a share of their spread; its square also bounds the estimated gap of the
            objective.
        """
        m, k, d = self.training.shape
        device = self.base.mean.device
        w, b = torch.zeros(m, k, d, device=device), torch.zeros(m, k, device=device)
        active = torch.nonzero(self.trainable).flatten()
        sums = self.training.gradient(w, b, active)
        objective = self._objective(sums, w, active)
        pairs: list[_Pair] = []
        steps = 0
        for steps in range(_MAX_STEPS):  # noqa: B007 (reported)
            grad_w, grad_b, scale = self._scaled(sums, w, active)
            if pairs:
                newest = pairs[-1]
                newest.y, newest.yb = grad_w - newest.y, grad_b - newest.yb
                newest.sy = dot(newest.s, newest.sb, newest.y, newest.yb)
            step_w, step_b = self._quasi_direction(grad_w, grad_b, scale, active, pairs)
            slope = dot(grad_w, grad_b, step_w, step_b)
            change = (-slope).clamp_min(0.0).div(scale.sum(1)).sqrt()
            keep = ~(-slope <= tolerance**2 * torch.minimum(scale.sum(1) * sums.spread**2, objective))
            if not bool(keep.any()):
                break
            if not bool(keep.all()):
                active, objective, sums = active[keep], objective[keep], sums.select(keep)
                grad_w, grad_b, step_w, step_b = grad_w[keep], grad_b[keep], step_w[keep], step_b[keep]
                slope, change, pairs = slope[keep], change[keep], [pair.select(keep) for pair in pairs]
            length = (_MAX_CHANGE / (change * k**0.5)).clamp_max(1.0)
            step_w, step_b = step_w * length[:, None, None], step_b * length[:, None]
            before_w, before_b = w[active], b[active]
            sums, objective = self._search(w, b, step_w, step_b, slope * length, objective, active)
            # y is completed when the next gradient is known.
            pairs = [*pairs[1 - _MEMORY :], _Pair(w[active] - before_w, b[active] - before_b, grad_w, grad_b, slope)]
        else:
            logger.warning("%d of %d classifiers reached the limit of %d steps", active.numel(), m, _MAX_STEPS)
        return self._finished(w, b, steps)

    def _quasi_direction(
        self, grad_w: Tensor, grad_b: Tensor, scale: Tensor, active: Tensor, pairs: list[_Pair]
    ) -> tuple[Tensor, Tensor]:
        """Two-loop recursion around the preconditioner at the present curvature; rounded-away pairs count 0."""
        q, qb = -grad_w, -grad_b
        factors = []
        for pair in reversed(pairs):
            factor = torch.where(pair.sy > 0, dot(pair.s, pair.sb, q, qb) / pair.sy, 0.0)
            q -= factor[:, None, None] * pair.y
            qb -= factor[:, None] * pair.yb
            factors.append(factor)
        z, zb = self._precondition(q, qb, scale, active)
        if pairs:
            gain = self._gain(pairs[-1], scale, active)
            z *= gain[:, None, None]
            zb *= gain[:, None]
        for pair, factor in zip(pairs, reversed(factors), strict=True):
            rest = torch.where(pair.sy > 0, factor - dot(pair.y, pair.yb, z, zb) / pair.sy, 0.0)
            z += rest[:, None, None] * pair.s
            zb += rest[:, None] * pair.sb
        return z, zb

    def _gain(self, pair: _Pair, scale: Tensor, active: Tensor) -> Tensor:
        """What the preconditioner must be multiplied by to fit the newest pair (their equation 7.20)."""
        turned = pair.y @ self.base.axes
        turned = turned.square_().div_(scale[:, :, None] * self.base.variances + self.penalty[active])
        norm = turned.sum((1, 2)) + (pair.yb.square() / scale).sum(1)
        return torch.where(pair.sy > 0, pair.sy / norm, 1.0)
