"""Labelled rows that a classifier is scored on: a split of a filtered set, or a set out of distribution."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from builders.embedded import check_embedded
from builders.filtered import CONFIGS
from builders.prepared import rows_of_parquet
from builders.sources.spec import IMAGE
from evaluation.built_sets import BuiltSet
from evaluation.classifiers.matching import Rows
from evaluation.classifiers.ood import OodSpec, read_ood
from evaluation.errors import EvaluationError
from unqover_data.errors import one_line

if TYPE_CHECKING:
    from datasets import Dataset

FULL, KEPT, REMOVED, RANDOM = SUBSETS = ("full", "kept", "removed", "random")
PART, IN_RANDOM = "part", "in_random_subset"
PREDICTED, CONFIDENCE, LABEL_PROBABILITY, BROKEN = "predicted", "confidence", "label_probability", "broken"

_STORED = ("source_index", "label", PART, IN_RANDOM, PREDICTED, CONFIDENCE, LABEL_PROBABILITY, BROKEN)
_AGAIN = "build or fetch the set again"
_TYPES: dict[str, Callable[[pa.DataType], bool]] = {
    "source_index": pa.types.is_integer,
    "label": pa.types.is_integer,
    "predictability": pa.types.is_floating,
    "times_scored": pa.types.is_integer,
    "removed_in_phase": pa.types.is_integer,
    IN_RANDOM: pa.types.is_boolean,
}
_OF_SCORES = ("predictability", "times_scored", "removed_in_phase", IN_RANDOM)


@dataclass(frozen=True)
class LabelledRows:
    """The labelled rows of one split, in the source's order.

    Attributes
    ----------
    name : str
        Of the set.
    split : str
    names : tuple of str
        The classes, in the order of the labels' numbers.
    inputs : tuple of str
        The input columns: two texts, or an image.
    data : datasets.Dataset
        The rows, memory-mapped where they are images.
    facts : pyarrow.Table
        What is stored beside the prediction of each row: ``source_index`` and ``label``; of a filtered set ``part``
        (its config) and ``in_random_subset``; of a set out of distribution ``id``; the columns of `groups`.
    groups : tuple of str
        Columns of `facts` by which accuracy is broken down; ``source_NAME`` where results have a column NAME already.
    """

    name: str
    split: str
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    data: Dataset
    facts: pa.Table
    groups: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def modality(self) -> str:
        """``text`` or ``image``."""
        return "image" if self.inputs == (IMAGE,) else "text"

    def take(self, places: NDArray[np.int64]) -> LabelledRows:
        """Give some of the rows."""
        return replace(self, data=self.data.select(places), facts=self.facts.take(pa.array(places)))

    def drawn(self, limit: int | None, *, seed: int) -> LabelledRows:
        """Give `limit` rows at random, in order; all of them for None or where there are no more.

        Raises
        ------
        EvaluationError
            If a subset that the split has gets no row.
        """
        if limit is None or limit >= len(self):
            return self
        chosen = np.random.default_rng(seed).choice(len(self), limit, replace=False)
        rows = self.take(np.sort(chosen))
        before, now = subsets_of(self.facts), subsets_of(rows.facts)
        if lost := [name for name, mask in before.items() if mask.any() and not now[name].any()]:
            raise EvaluationError(
                f"{limit:,} of {len(self):,} rows of {self.name}, {self.split}, leave the {lost[0]} subset empty: "
                "raise --limit"
            )
        return rows


def subsets_of(facts: pa.Table) -> dict[str, NDArray[np.bool_]]:
    """Give which rows are in which of `SUBSETS`, of shape (rows,) each; only ``full`` of a set that was not filtered.

    ``full`` are all labelled rows, those of the warm-up sample too; ``random`` is the baseline of the size of ``kept``
    that was drawn from the scored rows.
    """
    masks = {FULL: np.ones(len(facts), dtype=bool)}
    if PART in facts.column_names:
        parts = np.array(facts[PART].to_pylist())
        masks |= {KEPT: parts == CONFIGS[0], REMOVED: parts == CONFIGS[1]}
        masks[RANDOM] = facts[IN_RANDOM].to_numpy().astype(bool)
    return masks


def labelled_splits(built: BuiltSet, wanted: Sequence[str] | None = None) -> tuple[str, ...]:
    """Give the splits of a filtered set that have labels, or those of them that are wanted.

    Raises
    ------
    EvaluationError
        If the set is no filtered set, or a wanted split is not there or has no labels.
    """
    if built.builder != "aflite":
        raise EvaluationError(f"{built.source} is no filtered set but a set of builder {built.builder!r}")
    configs, counts = built.manifest["configs"], built.manifest["counts"]
    labelled = tuple(split for split in counts if any(split in configs.get(config, ()) for config in CONFIGS))
    for split in wanted or ():
        if split in counts and split not in labelled:
            raise EvaluationError(f"split {split!r} of {built.name} has no labels: choose {' or '.join(labelled)}")
        if split not in labelled:
            close = difflib.get_close_matches(split, labelled, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise EvaluationError(f"{built.name} has no split {split!r} (it has {', '.join(labelled)}){hint}")
    return tuple(dict.fromkeys(wanted)) if wanted else labelled


def read_split(built: BuiltSet, split: str) -> LabelledRows:
    """Read a split of a filtered set from all its configs, its files checked against the manifest.

    Raises
    ------
    EvaluationError
        If a file is missing or was edited, or has other rows or columns than the manifest says.
    BuildError
        If an image has no bytes.
    HubError
        If it cannot be fetched.
    """
    manifest = built.manifest
    files = {
        config: built.files(manifest["configs"][config][split]["files"])
        for config in CONFIGS
        if split in manifest["configs"].get(config, ())
    }
    inputs, names = tuple(manifest["columns"]), tuple(manifest["labels"][CONFIGS[0]])
    for file in itertools.chain(*files.values()):
        check_columns(file, inputs)
    data = _images(files) if inputs == (IMAGE,) else _texts(files)
    check_embedded(data, f"{split} of {built.name}")
    sizes = [manifest["configs"][config][split]["rows"] for config in files]
    group = manifest.get("breakdown")
    broken_down = [group] if group and group not in (*inputs, "label") else []
    groups = tuple(f"source_{name}" if name in _STORED else name for name in broken_down)
    ours = ["source_index", "label", IN_RANDOM]
    if not {*broken_down} <= {*data.column_names} or sum(sizes) != len(data):
        raise EvaluationError(
            f"{built.source}: {split} has not the rows and columns that its manifest says; build or fetch the set again"
        )
    table = data.select_columns([*dict.fromkeys([*ours, *broken_down])]).with_format("arrow")[:]
    check_labels(built.source, table, len(names))
    facts = table.select(ours)
    for column, name in zip(groups, broken_down, strict=True):
        facts = facts.append_column(column, table[name])
    facts = facts.append_column(PART, pa.array(np.repeat(np.array(list(files)), sizes)))
    rows = LabelledRows(
        built.name,
        split,
        names,
        inputs,
        data.remove_columns(list(_OF_SCORES)),
        facts.replace_schema_metadata(None),
        groups,
    )
    return rows.take(np.argsort(facts["source_index"].to_numpy(), kind="stable"))


def check_columns(path: Path, inputs: Sequence[str]) -> None:
    """Refuse a file of a filtered set whose columns are not what a build writes, whatever its manifest says of it.

    Raises
    ------
    EvaluationError
        If it cannot be read, or naming the first column that is missing or of another type.
    """
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise EvaluationError(f"{path} is missing or cannot be read; {_AGAIN}") from error
    for name in (*_TYPES, *inputs):
        found = schema.field(name).type if schema.names.count(name) == 1 else None
        if found is None or not _TYPES.get(name, lambda _: True)(found):
            raise EvaluationError(f"{path}: column {name} is {found or 'missing'}, which no build writes; {_AGAIN}")


def check_labels(source: str, rows: pa.Table, classes: int) -> None:
    """Refuse rows of a filtered set without a place in the source, or whose label is none of the classes.

    Raises
    ------
    EvaluationError
        If there is one.
    """
    labels = pc.min_max(rows["label"]).as_py()
    empty = rows["label"].null_count or rows["source_index"].null_count
    if len(rows) and (empty or labels["min"] < 0 or labels["max"] >= classes):
        raise EvaluationError(f"{source} has rows with no source_index or none of the {classes} labels; {_AGAIN}")


def _texts(files: dict[str, list[Path]]) -> Dataset:
    from datasets import Dataset

    every = list(itertools.chain(*files.values()))
    try:
        # Our files declare no types beside Arrow's; those that others declare would be decoded.
        tables = [pq.read_table(file).replace_schema_metadata(None) for file in every]
        return Dataset(pa.concat_tables(tables, promote_options="permissive"))
    except (pa.ArrowException, ValueError) as error:
        raise EvaluationError(
            f"{every[0]} and the other files of its split cannot be read as one table ({one_line(error)}); {_AGAIN}"
        ) from error


def _images(files: dict[str, list[Path]]) -> Dataset:
    from datasets import Image

    from builders.progress import without_bars_of_datasets

    with without_bars_of_datasets():
        rows = rows_of_parquet([file for paths in files.values() for file in paths])
    return rows.cast_column(IMAGE, Image())


def read_ood_rows(
    spec: OodSpec, data: Path | None, *, split: str | None = None, revision: str | None = None
) -> tuple[LabelledRows, dict[str, Any]]:
    """Read a set out of distribution, and what a result says of it.

    Raises
    ------
    EvaluationError, HubError
        As `evaluation.classifiers.ood.read_ood`.
    """
    read = read_ood(spec, data, split=split, revision=revision)
    chosen = spec.split(split) or "test"
    groups = tuple(group.column for group in spec.groups)
    columns = read.rows.select_columns(["id", "source_index", "label", *groups]).with_format("arrow")[:]
    inputs = (IMAGE,) if spec.modality == "image" else ("premise", "hypothesis")
    rows = LabelledRows(
        spec.name, chosen, spec.names(), inputs, read.rows, columns.replace_schema_metadata(None), groups
    )
    sha = read.revision.removeprefix("sha256:")[:12]
    source = spec.hub.id if spec.hub and data is None else str(data)
    facts = {"name": spec.name, "version": sha, "source": source, "revision": read.revision}
    return rows, facts | {"origin": read.origin, "unlabelled": read.unlabelled}


def matching_rows(built: BuiltSet, split: str | None) -> tuple[Rows, dict[str, NDArray[np.bool_]]]:
    """Give the rows of a split as others may name them, and the subsets that they are in.

    Parameters
    ----------
    built : BuiltSet
        A filtered set.
    split : str or None
        None where only one split was filtered.

    Raises
    ------
    EvaluationError
        If there is no such split, or if none was named and there are several.
    """
    splits = labelled_splits(built, None if split is None else [split])
    if len(splits) > 1:
        raise EvaluationError(f"{built.name} has the splits {', '.join(splits)}: say with --split which one it is")
    read = read_split(built, splits[0])
    table = read.data.with_format("arrow")[:] if read.modality == "text" else read.facts
    rows = Rows.from_table(table, read.names, read.inputs)
    return replace(rows, source_rows=built.manifest["counts"][splits[0]]["source"]), subsets_of(read.facts)
