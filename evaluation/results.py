"""What scoring a model gives back: the stored result, with its values as attributes and as tables."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.classifiers.text import classifier_line
from evaluation.intervals import Estimate
from evaluation.text import probe_line, result_html, result_text

if TYPE_CHECKING:
    import pandas as pd

_OF_METRIC = ("value", "n", "low", "high", "corrected")


@dataclass(frozen=True, repr=False)
class Evaluated:
    """A result, where it lies, and whether this call made it; ``print`` shows its tables, and so does a notebook.

    Attributes
    ----------
    result : dict
        As it is stored.
    path : Path
        The JSON file; the scores of every row are in ``.parquet`` beside it. Of several splits it is their folder.
    fresh : bool
        False where the result was there already.
    """

    result: dict[str, Any]
    path: Path
    fresh: bool

    def to_dict(self) -> dict[str, Any]:
        """Give a copy of the result as it is stored."""
        return copy.deepcopy(self.result)

    def __str__(self) -> str:
        return result_text(self.result)

    def _repr_html_(self) -> str:
        return result_html(self.result)


@dataclass(frozen=True, repr=False)
class ProbeScores(Evaluated):
    """Scores of a model on a probe set.

    μ and η are in [0, 1], lower is less of what they measure; δ and ε are in [0, 1], lower is better; all are 0 at
    best. The average score is in [0, 1], and no direction of it is better.
    """

    @property
    def mu(self) -> Estimate:
        """Bias intensity μ; its interval lies around ``corrected``."""
        return self._metric("mu")

    @property
    def eta(self) -> Estimate:
        """Count-based bias η; its interval lies around ``corrected``."""
        return self._metric("eta")

    @property
    def delta(self) -> Estimate:
        """Positional error δ."""
        return self._metric("delta")

    @property
    def epsilon(self) -> Estimate:
        """Attribute error ε."""
        return self._metric("epsilon")

    @property
    def average_score(self) -> Estimate:
        """Mean S, the probability that a subject gets."""
        return self._metric("average_score")

    @property
    def associations(self) -> pd.DataFrame:
        """γ and η of every subject and attribute with n, intervals, p and q, the largest |γ| first."""
        found = self.tables["subject_attribute"]
        return found.sort_values("gamma", key=abs, ascending=False, kind="stable", ignore_index=True)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of the result by name, such as ``subject`` and ``group_attribute``, the largest γ first."""
        import pandas as pd

        return {name: pd.DataFrame(columns) for name, columns in self.result["tables"].items()}

    def _metric(self, name: str) -> Estimate:
        return Estimate(**{key: self.result["metrics"][name][key] for key in _OF_METRIC})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {probe_line(self.result)}>"


@dataclass(frozen=True, repr=False)
class ClassifierScores(Evaluated):
    """Scores of a classifier on splits of a filtered set, or on a set out of distribution."""

    @property
    def accuracy(self) -> pd.DataFrame:
        """Accuracy in [0, 1], higher is better, with its interval, n and calibration error, by split and subset."""
        import pandas as pd

        rows = [
            {"split": split, "subset": subset, "accuracy": found["value"]}
            | {name: found[name] for name in ("low", "high", "n")}
            | {"ece": summary["ece"][subset]}
            for split, summary in self.splits.items()
            for subset, found in summary["accuracy"].items()
            if found
        ]
        return pd.DataFrame(rows).set_index(["split", "subset"])

    @property
    def splits(self) -> dict[str, Any]:
        """Summary of each split; see `evaluation.classifiers.summary.summarize`."""
        return copy.deepcopy(self.result["splits"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {classifier_line(self.result)}>"

    @classmethod
    def joined(cls, found: Sequence[Evaluated]) -> ClassifierScores:
        """Give the results of the splits of one set as one.

        It is the last, but for ``splits``, which has the summary of each, and ``rows`` and ``seconds``, which are sums.
        """
        last = found[-1]
        splits = {split: summary for one in found for split, summary in one.result["splits"].items()}
        sums = {name: sum(one.result[name] for one in found) for name in ("rows", "seconds")}
        path = last.path if len(found) == 1 else last.path.parent
        return cls({**last.result, **sums, "splits": splits}, path, any(one.fresh for one in found))
