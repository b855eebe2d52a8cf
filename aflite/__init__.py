"""AFLite: adversarial filtering of dataset rows, arrays in and arrays out (Le Bras et al., ICML 2020).

The package knows no dataset, no file format of ours and no language model: it takes features (N x d) and
labels (N) and says, for every row in input order, how predictable it is and whether it stays.
"""

from aflite import baselines, diagnostics, neighbors, optimum
from aflite.checkpoint import CheckpointMismatchError
from aflite.filter import check_parameters, filter_dataset
from aflite.results import FilterResult, PhaseRecord, StopReason

__all__ = [
    "CheckpointMismatchError",
    "FilterResult",
    "PhaseRecord",
    "StopReason",
    "baselines",
    "check_parameters",
    "diagnostics",
    "filter_dataset",
    "neighbors",
    "optimum",
]
