"""What every reader of a source returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class SourceRows:
    """The labelled rows of a source, and what was left out.

    Attributes
    ----------
    splits : mapping of str to datasets.Dataset
        The labelled splits, in source order, memory-mapped. Columns: the inputs under the spec's names, ``label``
        (a ClassLabel with the spec's names), ``source_index`` (int64, the place in the split before anything was
        left out), then the source's other columns.
    unlabelled : mapping of str to int
        Rows without a label, by split; a split that has no labels at all stands here only.
    revision : str
        Commit sha on the Hub, or ``sha256:`` and a hash of what was read.
    origin : str
        Where the rows came from, in a line, with the columns where they are not those of the spec.
    """

    splits: Mapping[str, Dataset]
    unlabelled: Mapping[str, int]
    revision: str
    origin: str
