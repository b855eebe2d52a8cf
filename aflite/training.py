"""Sums over training rows for many classifiers at once: losses, gradients, products with Hessians."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aflite.lanes import Lanes
from aflite.partitions import Layout
from aflite.rows import Rows

_LANES = 16
_LANE_BYTES = 256 * 2**20
_STACK_ROWS = 16_384


@dataclass
class _Block:
    """Training rows with their classifiers, and what the last gradient pass left for Hessian products.

    All q members share the rows, or each has its own, stacked: then q * rows rows are taken and `codes` is
    (q, 1, rows) instead of (1, 1, rows). `weights` (q, 1, rows) weighs every row for every member. `stored`
    (q, K', rows) has the class probabilities, or for two classes the weighted curvature of the loss.
    """

    rows: NDArray[np.int64]
    codes: Tensor
    members: Tensor
    weights: Tensor | None
    stacked: bool
    stored: Tensor

    def keep(self, values: Tensor, here: Tensor | slice) -> None:
        """Store `values` for the members `here`."""
        if self.stored.numel() == 0:
            self.stored = values.new_empty(self.members.numel(), *values.shape[1:])
        self.stored[here] = values


@dataclass
class Sums:
    """Sums over training rows a problem; `weights` and `intercepts` are a gradient or H @ v."""

    weights: Tensor
    intercepts: Tensor
    loss: Tensor
    curvature: Tensor
    spread: Tensor

    @classmethod
    def zeros(cls, shape: tuple[int, int, int], device: torch.device) -> "Sums":
        """Nothing added yet, for `shape` (m, K', d)."""
        m, k, _ = shape
        return cls(
            weights=torch.zeros(shape, device=device),
            intercepts=torch.zeros(m, k, device=device),
            loss=torch.zeros(m, dtype=torch.float64, device=device),
            curvature=torch.zeros(m, k, device=device),
            spread=torch.zeros(m, device=device),
        )

    def select(self, keep: Tensor) -> "Sums":
        """Sums of the problems that `keep` marks."""
        return Sums(**{name: value[keep] for name, value in vars(self).items()})


class TrainingSet:
    """The training parts of one layout."""

    def __init__(
        self,
        rows: Rows,
        pool: NDArray[np.int64],
        codes: NDArray[np.int64],
        n_classes: int,
        layout: Layout,
        *,
        class_weight: str | NDArray[np.float64] | None,
        centre: Tensor,
        lanes: Lanes,
    ) -> None:
        """Lay out the blocks.

        Parameters
        ----------
        rows : Rows
            Feature access.
        pool : ndarray of int64
            Row indices that the layout's positions refer to.
        codes : ndarray of int64
            Class of every row of the data set, 0 .. n_classes - 1.
        n_classes : int
            Number of classes K, at least 2.
        layout : Layout
            The training parts.
        class_weight : "balanced", ndarray of float of shape (n_classes,), or None
            As in scikit-learn; "balanced" counts in every part.
        centre : Tensor, shape (d,)
            Subtracted from the features; only intercepts notice.
        lanes : Lanes
            Workers.
        """
        self.rows, self.centre, self.lanes = rows.gathered(pool[layout.rows], lanes), centre, lanes
        device = rows.device
        self.binary = n_classes == 2
        self.shape = (layout.n_parts, 1 if self.binary else n_classes, rows.width)
        counts = layout.class_counts(codes[pool], n_classes)
        self.counts = torch.from_numpy(counts).to(device)
        present = self.counts > 0
        self.absent = None if self.binary or bool(present.all()) else torch.where(present, 0.0, -torch.inf)
        self.present = present
        weights = _row_weights(class_weight, counts)
        total = counts.sum(1) if weights is None else (counts * weights).sum(1)
        self.total_weight = torch.from_numpy(total.astype(np.float64)).to(device)
        self.blocks = _blocks(layout, pool, codes, weights, device)
        size = 4 * int(np.prod(self.shape))
        self.n_lanes = max(1, min(_LANES, _LANE_BYTES // size, len(self.blocks)))
        self.passes = 0

    def gradient(self, w: Tensor, b: Tensor, active: Tensor) -> Sums:
        """One pass: losses, their gradient, and the curvature that `hessian` uses."""
        return self._pass(w[active], b[active], active, self._gradient_block)

    def hessian(self, v: Tensor, vb: Tensor, active: Tensor) -> Sums:
        """One pass: products of the loss's Hessians with v."""
        return self._pass(v, vb, active, self._hessian_block)

    def _pass(
        self,
        v: Tensor,
        vb: Tensor,
        active: Tensor,
        visit: Callable[[_Block, Tensor, Tensor | slice, Tensor, Sums], Tensor],
    ) -> Sums:
        self.passes += 1
        shape = (active.numel(), *self.shape[1:])
        place = torch.full((self.shape[0],), -1, dtype=torch.int64, device=v.device)
        place[active] = torch.arange(active.numel(), device=v.device)
        everyone = active.numel() == self.shape[0]
        shift = vb - v @ self.centre

        def lane(index: int) -> Sums:
            sums = Sums.zeros(shape, v.device)
            for block in self.blocks[index :: self.n_lanes]:
                inside = block.members if everyone else place[block.members]
                here: Tensor | slice = slice(None) if everyone else torch.nonzero(inside >= 0).flatten()
                inside = inside[here]
                if inside.numel() == 0:
                    continue
                x = self.rows.take(block.rows)
                if block.stacked:
                    x = x.view(block.members.numel(), -1, shape[2])[here]
                    logits = v[inside] @ x.mT
                else:
                    logits = (v[inside].flatten(0, 1) @ x.T).view(inside.numel(), shape[1], -1)
                logits += shift[inside, :, None]
                pull = visit(block, logits, here, inside, sums)
                back = pull @ x if block.stacked else (pull.flatten(0, 1) @ x).view(-1, *shape[1:])
                sums.weights.index_add_(0, inside, back)
                sums.intercepts.index_add_(0, inside, pull.sum(2))
            return sums

        total = _added(self.lanes.map(lane, self.n_lanes))
        total.weights -= total.intercepts[:, :, None] * self.centre
        total.spread = (total.spread / self.counts[active].sum(1)) ** 2
        return total

    def _gradient_block(
        self, block: _Block, logits: Tensor, here: Tensor | slice, inside: Tensor, sums: Sums
    ) -> Tensor:
        weight = None if block.weights is None else block.weights[here]
        codes = block.codes[here] if block.stacked else block.codes
        sums.spread.index_add_(0, inside, _spread(logits))
        if self.binary:
            loss = torch.nn.functional.softplus(logits) - codes * logits
            p = torch.sigmoid(logits)
            pull, curvature = p - codes, p * (1 - p)
        else:
            if self.absent is not None:
                logits = logits + self.absent[block.members[here]][:, :, None]
            log_p = torch.log_softmax(logits, 1)
            index = codes.expand(log_p.shape[0], 1, -1)
            loss = -log_p.gather(1, index)
            p = log_p.exp_()
            pull, curvature = p.scatter_add(1, index, p.new_full((), -1.0).expand(index.shape)), p * (1 - p)
        if weight is not None:
            loss, pull, curvature = loss * weight, pull * weight, curvature * weight
        block.keep(curvature if self.binary else p, here)
        sums.loss.index_add_(0, inside, loss.double().sum((1, 2)))
        sums.curvature.index_add_(0, inside, curvature.sum(2))
        return pull

    def _hessian_block(self, block: _Block, logits: Tensor, here: Tensor | slice, inside: Tensor, sums: Sums) -> Tensor:
        stored = block.stored[here]
        pull = stored * logits
        if self.binary:
            return pull
        pull -= stored * pull.sum(1, keepdim=True)
        return pull if block.weights is None else pull * block.weights[here]


def _spread(logits: Tensor) -> Tensor:
    """Sum over rows of the root of the size of their logits, so that a few huge rows count little."""
    centred = logits if logits.shape[1] == 1 else logits - logits.mean(1, keepdim=True)
    return (centred.square().sum(1) / logits.shape[1]).pow_(0.25).sum(1)


def _added(parts: list[Sums]) -> Sums:
    total = parts[0]
    for part in parts[1:]:
        for name, value in vars(total).items():
            value += getattr(part, name)
    return total


def _row_weights(
    class_weight: str | NDArray[np.float64] | None, counts: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Weight of each class in each part (m, K), or None when all are 1."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        present = (counts > 0).sum(1, keepdims=True)
        balanced: NDArray[np.float64] = counts.sum(1, keepdims=True) / (present * np.maximum(counts, 1))
        return balanced
    return np.broadcast_to(class_weight, counts.shape).astype(np.float64)


def _blocks(
    layout: Layout,
    pool: NDArray[np.int64],
    codes: NDArray[np.int64],
    class_weights: NDArray[np.float64] | None,
    device: torch.device,
) -> list[_Block]:
    """Turn the runs of the layout into blocks; runs of one classifier each are stacked."""
    blocks = []
    for first, last in _stacks(layout):
        start, q = int(layout.bounds[first]), last - first
        used = np.concatenate(layout.used[first:last])
        members = np.concatenate(layout.members[first:last])
        length = int(used.max())
        rows = np.arange(start, start + q * length)
        block_codes = codes[pool[layout.rows[rows]]].reshape(q, length)
        weights = None
        if class_weights is not None or used.min() < length:
            weight = (np.arange(length) < used[:, None]).astype(np.float32)
            if class_weights is not None:
                weight *= class_weights[members[:, None], block_codes].astype(np.float32)
            weights = torch.from_numpy(weight)[:, None].to(device)
        blocks.append(
            _Block(
                rows=rows,
                codes=torch.from_numpy(block_codes)[:, None].to(device),
                members=torch.from_numpy(members).to(device),
                weights=weights,
                stacked=q > 1,
                stored=torch.empty(0, device=device),
            )
        )
    return blocks


def _stacks(layout: Layout) -> Iterator[tuple[int, int]]:
    """Ranges of runs that make a block: single ones, or equally long ones with one whole-run member each."""
    lengths = np.diff(layout.bounds)
    alone = [used.size == 1 and used[0] == length for used, length in zip(layout.used, lengths, strict=True)]
    first = 0
    while first < lengths.size:
        last = first + 1
        while (
            last < lengths.size
            and alone[first]
            and alone[last]
            and lengths[last] == lengths[first]
            and (last + 1 - first) * lengths[first] <= _STACK_ROWS
        ):
            last += 1
        if layout.members[first].size:
            yield first, last
        first = last
