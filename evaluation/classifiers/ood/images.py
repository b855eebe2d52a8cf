"""Images of a set out of distribution: a folder a class as distributed, or Parquet from the Hub."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.embedded import check_embedded
from builders.prepared import rows_of_parquet
from builders.sources.places import visible_files
from evaluation.classifiers.ood.spec import OodSpec
from evaluation.errors import EvaluationError

if TYPE_CHECKING:
    from datasets import Dataset, Features

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
_SHOWN = 3


def images_of_folder(path: Path, spec: OodSpec) -> tuple[Dataset, list[Path], Path]:
    """List the images of a folder that holds one folder a class, itself or one level below.

    Returns
    -------
    datasets.Dataset
        Columns ``id``, ``image``, ``label`` and ``source_index``; the images stay where they are.
    list of Path
        The images, in order of their paths.
    Path
        The folder of the classes.

    Raises
    ------
    EvaluationError
        If classes are missing or strange, or there is no image in one.
    BuildError
        If a link leads out of the folder.
    """
    import pyarrow as pa
    from datasets import Dataset

    names = spec.names()
    root = _root(path, spec, names)
    images: dict[str, list[Path]] = {}
    for file in visible_files(path, SUFFIXES):
        if file.parent.parent == root:
            images.setdefault(file.parent.name, []).append(file)
    folders = sorted(folder for folder in root.iterdir() if folder.is_dir() and not folder.name.startswith("."))
    if strange := [folder.name for folder in folders if folder.name not in names]:
        close = difflib.get_close_matches(strange[0], names, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise EvaluationError(f"{root.name}: folder {strange[0]!r} is no class of {spec.title}{hint}")
    if missing := [name for name in names if not images.get(name)]:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise EvaluationError(
            f"{root.name} is not laid out as {spec.title}: no image of class {', '.join(missing[:_SHOWN])}{more}; "
            f"get it again from {spec.home}"
        )
    files = [file for name in images for file in images[name]]
    table: dict[str, list[Any]] = {
        "id": [file.relative_to(root).as_posix() for file in files],
        "image": [{"bytes": None, "path": str(file.resolve())} for file in files],
        "label": [names.index(file.parent.name) for file in files],
        "source_index": list(range(len(files))),
    }
    return Dataset(pa.table(table, schema=_features(names).arrow_schema)), files, root


def images_of_parquet(files: Sequence[Path], spec: OodSpec) -> Dataset:
    """Read images and labels, memory-mapped, with the labels numbered as the spec has them.

    Raises
    ------
    EvaluationError
        If a column is missing, or the labels are not the spec's classes.
    BuildError
        If an image has no bytes.
    """
    from datasets import ClassLabel

    layout = spec.layouts[0]
    try:
        rows = rows_of_parquet(files)
    except Exception as error:  # of `datasets`, whose errors have no base in common
        raise EvaluationError(f"{files[0].name} cannot be read as Parquet: {' '.join(str(error).split())}") from error
    if missing := [column for column in layout.values() if column not in rows.column_names]:
        raise EvaluationError(f"{files[0].name} is not laid out as {spec.title}: it has no column {', '.join(missing)}")
    check_embedded(rows, files[0].name)
    names, declared = spec.names(), rows.features[layout["label"]]
    found = declared.names if isinstance(declared, ClassLabel) else []
    if set(found) != set(names):
        raise EvaluationError(
            f"{files[0].name}: column {layout['label']!r} must name the {len(names)} classes of {spec.title} "
            f"by WordNet id, but it names {len(set(found) & set(names))} of them"
        )
    if not len(rows):
        raise EvaluationError(f"{files[0].name} has no rows")
    labels = [names.index(found[label]) for label in rows.with_format(None)[layout["label"]]]
    features = _features(names)
    rows = rows.select_columns([layout["image"]]).rename_columns(
        {layout["image"]: "image"} if layout["image"] != "image" else {}
    )
    rows = rows.add_column("id", [str(number) for number in range(len(rows))], feature=features["id"])
    rows = rows.add_column("label", labels, feature=features["label"])
    rows = rows.add_column("source_index", list(range(len(rows))), feature=features["source_index"])
    return rows.select_columns(list(features))


def _features(names: Sequence[str]) -> Features:
    from datasets import ClassLabel, Features, Image, Value

    label = ClassLabel(names=list(names))
    return Features({"id": Value("string"), "image": Image(), "label": label, "source_index": Value("int64")})


def _root(path: Path, spec: OodSpec, names: Sequence[str]) -> Path:
    """The folder of the classes: `path`, or a folder in it."""
    if not path.is_dir():
        raise EvaluationError(f"{spec.title} is a folder of images, one folder a class, not {path.name}")
    for folder in (path, *sorted(child for child in path.iterdir() if child.is_dir())):
        if any((folder / name).is_dir() for name in names):
            return folder
    raise EvaluationError(
        f"{path.name} is not laid out as {spec.title}: it has no folder {names[0]} or of another class, "
        f"neither in itself nor one level below; unpack what {spec.home} has"
    )
