"""Scoring of models on the probe sets and filtered sets that ``builders`` wrote to disk.

`score` is the way in. Scorers give S values per row, metrics turn stored rows into the papers' aggregates; no metric
needs a model.
"""

from evaluation.errors import EvaluationError
from evaluation.scoring import score

__all__ = ["EvaluationError", "score"]
