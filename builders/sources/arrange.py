"""From a source's own columns to those that every set has: inputs, label, source_index, the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.sources.labels import label_codes, label_names
from builders.sources.raw import RawSource, listed, open_arrow, stored, write_arrow
from builders.sources.rows import SourceRows
from builders.sources.spec import IMAGE, LABEL, OURS, SourceSpec
from builders.sources.values import check_values, with_types

if TYPE_CHECKING:
    from datasets import Dataset

# Inputs and label column of files as they are distributed: SNLI 1.0 and MultiNLI 1.0 (JSONL), MultiNLI in GLUE (TSV).
_LAYOUTS = (({"premise": "sentence1", "hypothesis": "sentence2"}, "gold_label"),)
LABEL_COLUMNS = (LABEL, *(label for _, label in _LAYOUTS))
_ROWS = 10_000


def arrange(raw: RawSource, spec: SourceSpec, work: Path) -> SourceRows:
    """Name the columns, number the labels, leave out the rows without one.

    Raises
    ------
    BuildError
        If a column, a split or a label is not there, is not what it should be, or is one too many.
    """
    _check_splits(raw, spec)
    for split, rows in raw.splits.items():
        check_values(rows, split, of_files=raw.of_files)
    raw = with_types(raw, work)
    columns = next(iter(raw.splits.values())).column_names
    inputs, label = _choose_columns(columns, spec)
    _check_names(columns, inputs, label)
    labelled = {split: rows for split, rows in raw.splits.items() if split not in spec.unlabelled}
    if not labelled:
        raise BuildError(f"every split of the source is unlabelled by the spec: {listed(raw.splits)}")
    names = spec.names or label_names(labelled, label)
    splits, unlabelled = {}, {}
    for split, rows in raw.splits.items():
        codes = label_codes(rows, label, names, split=split) if split in labelled else np.full(len(rows), -1)
        if missing := int((codes < 0).sum()):
            unlabelled[split] = missing
        if missing == len(rows):
            if split in spec.filtered:
                raise BuildError(_no_labels(split))
            continue
        _check_inputs(rows, inputs, codes, split)
        key = (raw.revision, raw.origin, split, sorted(inputs.items()), label, names)
        splits[split] = _finish(rows, inputs, label, codes, names, work, key)
    if not splits:
        raise BuildError(f"no row of the source has a label in column {label!r}")
    read = [*inputs.values(), label]
    others = "" if read == [*spec.inputs.values(), spec.label] else f", columns {', '.join(read)}"
    return SourceRows(splits=splits, unlabelled=unlabelled, revision=raw.revision, origin=f"{raw.origin}{others}")


def check_filtered(splits: Collection[str], spec: SourceSpec) -> None:
    """Raise `BuildError` if a split that is to be filtered has no labels by the spec, or is not among `splits`."""
    for split in spec.filtered:
        if split not in splits:
            raise BuildError(
                f"the source has no split {split!r} to filter: choose of {listed(splits)} with --filter-splits"
            )
        if split in spec.unlabelled:
            raise BuildError(_no_labels(split))


def _no_labels(split: str) -> str:
    return f"split {split!r} has no labels, so it cannot be scored or filtered: leave it out of --filter-splits"


def _check_splits(raw: RawSource, spec: SourceSpec) -> None:
    if empty := [split for split, rows in raw.splits.items() if not len(rows)]:
        raise BuildError(f"the source has no rows in split {listed(empty)}: {raw.origin}")
    check_filtered(raw.splits, spec)


def _choose_columns(columns: Collection[str], spec: SourceSpec) -> tuple[dict[str, str], str]:
    """Columns of the inputs and of the label: by the spec, and where none of its inputs is there, by what is known.

    Known are the names that the built set has, and those of sets as they are distributed.
    """
    own = (dict(spec.inputs), spec.label)
    known = [layout for layout in _LAYOUTS if set(layout[0]) == set(spec.inputs)]
    others = [] if set(spec.inputs.values()) & set(columns) else [({name: name for name in spec.inputs}, LABEL), *known]
    for inputs, label in (own, *others):
        if {*inputs.values(), label} <= set(columns):
            return {name: inputs[name] for name in spec.inputs}, label
    missing = [column for column in (*spec.inputs.values(), spec.label) if column not in columns]
    raise BuildError(
        f"the source has no column {' and no column '.join(map(repr, missing))}; "
        f"its columns are {listed(columns, 20)}: name those to use in the spec's inputs and label"
    )


def _check_names(columns: Collection[str], inputs: Mapping[str, str], label: str) -> None:
    for name in columns:
        if name in OURS:
            raise BuildError(f"the source has a column {name!r}, a name that the built set needs: rename it there")
        new = {source: ours for ours, source in {**inputs, LABEL: label}.items()}
        if name not in new and name in new.values():
            taken = next(source for source, ours in new.items() if ours == name)
            raise BuildError(
                f"the source has a column {name!r} besides {taken!r}, which would get that name: rename it there"
            )


def _check_inputs(rows: Dataset, inputs: Mapping[str, str], codes: NDArray[np.int64], split: str) -> None:
    """Raise `BuildError` if an input is no text or no image, or null in a row that has a label."""
    for name, column in inputs.items():
        kind = rows.features.arrow_schema.field(column).type
        if not (_holds_image(kind) if name == IMAGE else _holds_text(kind)):
            wanted = "images: their bytes, or a struct of bytes and path" if name == IMAGE else "text"
            raise BuildError(f"column {column!r} of split {split} holds {kind}, but {name} must be {wanted}")
        start = 0
        for table in rows.select_columns([column]).with_format("arrow").iter(_ROWS if name != IMAGE else _ROWS // 50):
            if table[column].null_count:
                null = table[column].is_null().to_numpy()
                if bad := np.flatnonzero(null & (codes[start : start + len(table)] >= 0)).tolist():
                    raise BuildError(
                        f"column {column!r} of split {split} is null in row {start + bad[0]}, which has a label"
                    )
            start += len(table)


def _holds_text(kind: pa.DataType) -> bool:
    # A column that is null throughout is text as far as it goes; the rows say which are missing.
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)
    )


def _holds_image(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return {field.name for field in kind} == {"bytes", "path"}
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind))


def _finish(
    rows: Dataset,
    inputs: Mapping[str, str],
    label: str,
    codes: NDArray[np.int64],
    names: tuple[str, ...],
    work: Path,
    key: tuple[object, ...],
) -> Dataset:
    """Lay new columns beside the old; text moves to a file of its own where rows are left out or its type differs."""
    from datasets import ClassLabel, Features, Image, Value

    others = {name: kind for name, kind in rows.features.items() if name not in (*inputs.values(), label)}
    given = {name: Image() if name == IMAGE else Value("string") for name in inputs}
    features = Features({**given, LABEL: ClassLabel(names=list(names)), "source_index": Value("int64"), **others})
    kept = np.flatnonzero(codes >= 0)
    as_it_is = all(rows.features[column] == given[name] for name, column in inputs.items())
    if IMAGE not in inputs and (len(kept) < len(rows) or not as_it_is):
        digest = hashlib.sha256(codes.tobytes()).hexdigest()
        tables = _moved(rows, inputs, codes, features)
        folder = stored(work, (*key, digest), lambda path: write_arrow(path / "rows.arrow", features, tables))
        return open_arrow(folder, ["rows"])["rows"]
    view = rows.remove_columns([label]).rename_columns({old: new for new, old in inputs.items() if old != new})
    if IMAGE in inputs and not as_it_is:
        view = view.cast_column(IMAGE, Image())
    view = view.add_column(LABEL, codes, feature=features[LABEL])
    view = view.add_column("source_index", np.arange(len(rows)), feature=features["source_index"])
    view = view.select_columns(list(features))
    return view if len(kept) == len(rows) else view.select(kept)


def _moved(
    rows: Dataset, inputs: Mapping[str, str], codes: NDArray[np.int64], features: Mapping[str, object]
) -> Iterator[pa.Table]:
    start = 0
    for table in rows.with_format("arrow").iter(_ROWS):
        part = codes[start : start + len(table)]
        new = {**{name: table[column] for name, column in inputs.items()}, LABEL: pa.array(part)}
        new["source_index"] = pa.array(np.arange(start, start + len(table)))
        whole = pa.table({name: new[name] if name in new else table[name] for name in features})
        yield whole.filter(pa.array(part >= 0))
        start += len(table)
