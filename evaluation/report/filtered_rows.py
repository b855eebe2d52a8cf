"""The rows of a filtered folder: scores of all of them at once, texts and images of those that are asked for."""

from __future__ import annotations

import base64
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from builders.filtered import CONFIGS, SCORE_COLUMNS, Outcome
from builders.images import open_image
from evaluation.built_sets import BuiltSet
from evaluation.classifiers.sets import IN_RANDOM, PART, check_columns, check_labels
from evaluation.errors import EvaluationError

_LONGEST = 600
_SIDES = (112, 80, 56)
_SMALL = 64


@dataclass(frozen=True)
class FilteredRows:
    """The rows of the splits that were filtered, one split after the other, each in source order.

    Attributes
    ----------
    built : BuiltSet
        The folder.
    split : ndarray of int64, shape (N,)
        Index into `splits`.
    source_index, labels : ndarray of int64, shape (N,)
        Place in the split of the source, and label.
    outcome : Outcome
        What became of them.
    file, row : ndarray of int64, shape (N,)
        Index into `files`, and place in the file.
    files : tuple of Path
        The Parquet files.
    """

    built: BuiltSet
    split: NDArray[np.int64]
    source_index: NDArray[np.int64]
    labels: NDArray[np.int64]
    outcome: Outcome
    file: NDArray[np.int64]
    row: NDArray[np.int64]
    files: tuple[Path, ...]

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that were filtered."""
        return tuple(self.built.manifest["inputs"]["source"]["filtered"])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the labels."""
        return tuple(self.built.manifest["labels"][CONFIGS[0]])

    def find(self, split: str, source_index: int) -> int | None:
        """Give the place of a row that is named as folders name it; None if there is no such row."""
        found = self._places(split, np.array([source_index]))
        return None if found is None else int(found[0])

    def _places(self, split: str, source_indexes: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Places of rows of a split; None if one of them is not there."""
        if split not in self.splits:
            return None
        start, stop = np.searchsorted(self.split, [self.splits.index(split), self.splits.index(split) + 1])
        places = start + np.searchsorted(self.source_index[start:stop], source_indexes)
        if (places >= stop).any() or (self.source_index[places] != source_indexes).any():
            return None
        return np.asarray(places)

    def agree(self, split: str, predictions: pa.Table) -> bool:
        """Whether stored predictions are of these rows: the same labels, kept and drawn alike."""
        rows = self._places(split, predictions["source_index"].to_numpy())
        if rows is None:
            return False
        parts = np.array(CONFIGS)[self.outcome.part[rows]]
        return (
            bool((self.labels[rows] == predictions["label"].to_numpy()).all())
            and parts.tolist() == predictions[PART].to_pylist()
            and bool((self.outcome.in_random_subset[rows] == predictions[IN_RANDOM].to_numpy()).all())
        )

    def inputs(self, places: Sequence[int]) -> list[list[Any]]:
        """Read the input columns of some rows: texts, or an image as bytes (None where it has none)."""
        columns = self.built.manifest["columns"]
        of_file: dict[int, list[int]] = defaultdict(list)
        for number, place in enumerate(places):
            of_file[int(self.file[place])].append(number)
        found: list[list[Any]] = [[] for _ in places]
        for file, numbers in sorted(of_file.items()):
            rows = [int(self.row[places[number]]) for number in numbers]
            for number, values in zip(numbers, _read_rows(self.files[file], rows, columns), strict=True):
                found[number] = values
        return found


def read_filtered_rows(built: BuiltSet) -> FilteredRows:
    """Read labels and scores of the rows of the filtered splits; texts and images stay on the disk.

    Raises
    ------
    EvaluationError
        If a file is missing or has other rows than the manifest says.
    """
    manifest = built.manifest
    splits = manifest["inputs"]["source"]["filtered"]
    names = ["source_index", "label", *SCORE_COLUMNS]
    tables: list[pa.Table] = []
    files: list[Path] = []
    for code, config in enumerate(CONFIGS):
        for number, split in enumerate(splits):
            entry = manifest["configs"].get(config, {}).get(split)
            for name in entry["files"] if entry else ():
                check_columns(built.folder / name, manifest["columns"])
                table = _columns(built.folder / name, names)
                size = len(table)
                facts = {"part": code, "split": number, "file": len(files)}
                table = table.append_column("row", pa.array(np.arange(size)))
                for key, value in facts.items():
                    table = table.append_column(key, pa.array(np.full(size, value)))
                tables.append(table)
                files.append(built.folder / name)
            if entry and sum(len(table) for table in tables[-len(entry["files"]) :]) != entry["rows"]:
                raise EvaluationError(
                    f"{built.folder}: {config}/{split} has not the rows of its manifest; build it again"
                )
    together = pa.concat_tables(tables, promote_options="permissive")
    check_labels(str(built.folder), together, len(manifest["labels"][CONFIGS[0]]))
    column = {name: together[name].to_numpy() for name in ("source_index", "label", "part", "split", "file", "row")}
    order = np.lexsort((column["source_index"], column["split"]))
    outcome = Outcome(
        part=column["part"][order].astype(np.int8),
        predictability=together["predictability"].to_numpy()[order].astype(np.float64),
        times_scored=together["times_scored"].to_numpy()[order],
        removed_in_phase=together["removed_in_phase"].fill_null(-1).to_numpy()[order],
        in_random_subset=together["in_random_subset"].to_numpy()[order].astype(bool),
    )
    kept = {name: values[order] for name, values in column.items() if name != "part"}
    return FilteredRows(
        built, kept["split"], kept["source_index"], kept["label"], outcome, kept["file"], kept["row"], tuple(files)
    )


def _columns(path: Path, names: Sequence[str]) -> pa.Table:
    try:
        return pq.read_table(path, columns=list(names), partitioning=None)
    except (OSError, pa.ArrowInvalid) as error:
        raise EvaluationError(f"{path} is missing or cannot be read; build or fetch the set again") from error


def _read_rows(path: Path, rows: Sequence[int], columns: Sequence[str]) -> list[list[Any]]:
    """Read some rows of a file, by the row groups that hold them."""
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        found: dict[int, list[Any]] = {}
        groups = np.searchsorted(ends, rows, side="right")
        for group in np.unique(groups).tolist():
            start = int(ends[group]) - sizes[group]
            inside = [row for row, of in zip(rows, groups, strict=True) if of == group]
            table = file.read_row_group(group, columns=list(columns)).take(pa.array([row - start for row in inside]))
            for row, values in zip(inside, table.to_pylist(), strict=True):
                found[row] = [_plain(values[column]) for column in columns]
    return [found[row] for row in rows]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, dict):
        return value and value.get("bytes")
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def thumbnails(images: Sequence[bytes | None], budget: int) -> list[str | None]:
    """Give images as data URIs that take at most `budget` characters together.

    They are made smaller until they fit; what does not fit at the smallest size is None, as is what cannot be read.
    """
    made: list[str | None] = []
    for side in _SIDES:
        made = [_thumbnail(image, side) for image in images]
        if sum(len(one or "") for one in made) <= budget:
            return made
    return list(_within(made, budget))


def _within(made: Sequence[str | None], budget: int) -> Iterator[str | None]:
    left = budget
    for one in made:
        left -= len(one or "")
        yield one if left >= 0 else None


def _thumbnail(content: bytes | None, side: int) -> str | None:
    if not content:
        return None
    try:
        opened = open_image(content)
        small = max(opened.size) <= _SMALL
        image = opened.convert("RGB")
    except Exception:  # a decoder may raise anything on a broken file
        return None
    image.thumbnail((side, side))
    kind, options = ("png", {"optimize": True}) if small else ("webp", {"quality": 72})
    file = io.BytesIO()
    image.save(file, kind.upper(), **options)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
