"""Readers of what is filtered: any source becomes memory-mapped rows with a label and the place they had."""

from builders.sources.read import read_source
from builders.sources.rows import SourceRows
from builders.sources.spec import SourceSpec

__all__ = ["SourceRows", "SourceSpec", "read_source"]
