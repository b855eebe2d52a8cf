"""Feature rows as float32 tensors, read where they lie: array, memory map, half precision."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aflite.lanes import Lanes

# Training rows up to this size are copied once in training order; above, each pass gathers them block by block.
COPY_BYTES = 192 * 2**20
_CHUNK = 2048


class Rows:
    """Row access to an (N, d) feature array on a device."""

    def __init__(
        self, features: NDArray[np.floating], device: torch.device, order: NDArray[np.int64] | None = None
    ) -> None:
        """Wrap the array.

        Parameters
        ----------
        features : ndarray, shape (N, d)
            Any float type; a memory map is read page by page.
        device : torch.device
            Where tensors are made.
        order : ndarray of int64, optional
            Row i of this object is row ``order[i]`` of the features.
        """
        self.features, self.device, self.order = features, device, order
        self.width = int(features.shape[1])
        self._copy: Tensor | None = None

    def take(self, index: NDArray[np.int64]) -> Tensor:
        """Rows `index` as float32, shape (len(index), d)."""
        if self._copy is not None:
            return self._copy[index[0] : index[-1] + 1]
        picked = np.take(self.features, index if self.order is None else self.order[index], axis=0)
        return torch.from_numpy(picked).to(self.device, torch.float32)

    def gathered(self, order: NDArray[np.int64], lanes: Lanes) -> "Rows":
        """Make a view in another order whose runs of consecutive rows are quick to take."""
        view = Rows(self.features, self.device, order)
        if order.size * self.width * 4 > self._limit():
            return view
        copy = torch.empty(order.size, self.width, device=self.device)
        n_chunks = -(-order.size // _CHUNK)

        def fill(chunk: int) -> None:
            part = slice(chunk * _CHUNK, (chunk + 1) * _CHUNK)
            copy[part] = self.take(order[part])

        lanes.map(fill, n_chunks)
        view._copy = copy
        return view

    def _limit(self) -> int:
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            return int(free * 0.6)
        return COPY_BYTES
