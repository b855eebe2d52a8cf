"""Where the rows of a set come from, as its spec says it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from builders.errors import BuildError

IMAGE = "image"
LABEL = "label"
OURS = ("source_index", "predictability", "times_scored", "removed_in_phase", "in_random_subset")
GENERATED = ("planted", "digits")
KINDS = ("hub", "files", "images", "webdataset", *GENERATED)


@dataclass(frozen=True)
class SourceSpec:
    """What is read, and what its columns and labels are called.

    Attributes
    ----------
    inputs : mapping of str to str
        Name in the built set -> column of the source: one or two texts, or ``image`` alone.
    kind : str
        ``hub``, ``files`` (Parquet, JSONL, CSV, TSV), ``images`` (a folder per class), ``webdataset`` (tar shards),
        or one that is generated: ``planted``, ``digits``.
    id : str, optional
        ORG/NAME on the Hub, or a path for the kinds that read from disk.
    config, revision : str, optional
        Of the Hub repository; no revision means ``main``.
    label : str
        The source's column of labels.
    names : tuple of str
        Label names in the order of their numbers; empty takes those of the source.
    filtered : tuple of str
        Splits that are filtered, so must be there and have labels.
    unlabelled : tuple of str
        Splits whose labels are withheld; whatever stands in their label column is no label.
    page : str, optional
        Where a gated source's terms are accepted.
    rows, seed : int
        Of a generated source.
    validation : int, optional
        Rows of a generated source, drawn with `seed`, that become a split ``validation``; all are in ``train`` without.

    Raises
    ------
    BuildError
        If the fields do not go together.
    """

    inputs: Mapping[str, str]
    kind: str = "hub"
    id: str | None = None
    config: str | None = None
    revision: str | None = None
    label: str = LABEL
    names: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ("train",)
    unlabelled: tuple[str, ...] = ()
    page: str | None = None
    rows: int | None = None
    validation: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no source could satisfy."""
        if self.kind not in KINDS:
            close = difflib.get_close_matches(self.kind, KINDS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it is one of {', '.join(KINDS)}"
            raise BuildError(f"source kind {self.kind!r} is unknown; {hint}")
        if set(self.inputs) != {IMAGE} and (len(self.inputs) not in (1, 2) or IMAGE in self.inputs):
            raise BuildError(
                f"inputs must be one or two text columns or {IMAGE!r} alone, not {', '.join(self.inputs) or 'none'}"
            )
        if taken := [name for name in self.inputs if name in (*OURS, LABEL)]:
            raise BuildError(f"inputs cannot be called {taken[0]!r}: the built set has a column of that name")
        if len(set(self.inputs.values()) | {self.label}) != len(self.inputs) + 1:
            raise BuildError("inputs and label must each name a column of their own")
        if len(set(self.names)) != len(self.names) or len(self.names) == 1:
            raise BuildError(f"label names must be two or more, each once, not {', '.join(self.names)}")
        if self.kind == "planted" and (self.rows is None or self.rows < 1):
            raise BuildError(f"rows of a generated source must be 1 or more, not {self.rows}")
        if self.validation is not None and (self.kind not in GENERATED or self.validation < 1):
            raise BuildError(
                f"validation must be 1 or more rows of a generated source, not {self.validation} of kind {self.kind!r}"
            )

    @property
    def of_images(self) -> bool:
        """Whether the input is an image rather than text."""
        return IMAGE in self.inputs
