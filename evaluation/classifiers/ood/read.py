"""Rows of a set out of distribution, from the files that its authors distribute or from the Hub."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.folder import sha256
from builders.hub import resolve_revision
from builders.hub_files import fetch, files_of
from builders.sources.places import visible_files
from evaluation.classifiers.ood.images import images_of_folder, images_of_parquet
from evaluation.classifiers.ood.spec import Group, OodSpec, Part
from evaluation.classifiers.ood.tables import Columns, read_columns
from evaluation.errors import EvaluationError

if TYPE_CHECKING:
    from datasets import Dataset

_SHA = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class OodRows:
    """The labelled rows of a set.

    Attributes
    ----------
    rows : datasets.Dataset
        Columns: ``id`` (the set's own, else the number of the row), ``premise`` and ``hypothesis`` exactly as they
        stand or ``image``, ``label`` (a ClassLabel of the spec's names), ``source_index`` (int64, from 0 in the order
        of reading), then the columns of the spec's groups: text or null, a list of texts where a row may have several.
    unlabelled : int
        Rows that were left out because their label is not known.
    revision : str
        Commit on the Hub, or ``sha256:`` and a hash of the files.
    origin : str
        Where the rows came from, in a line.
    """

    rows: Dataset
    unlabelled: int
    revision: str
    origin: str


def read_ood(
    spec: OodSpec, path: str | Path | None = None, *, split: str | None = None, revision: str | None = None
) -> OodRows:
    """Read a set.

    Parameters
    ----------
    spec : OodSpec
        The set.
    path : str or Path, optional
        A folder in which, at any depth, the files lie as distributed (one folder may hold several sets), or the only
        file of a set of one; by default the set comes from the Hub.
    split : str, optional
        One of ``spec.splits``, by default the first.
    revision : str, optional
        Branch, tag or sha on the Hub instead of the spec's.

    Raises
    ------
    EvaluationError
        If a file, a column or a group is missing, a label is none of the set's, or there are no rows.
    HubError
        If the Hub does not have it or cannot be reached.
    """
    chosen = spec.split(split)
    if path is None:
        return _read_hub(spec, chosen, revision)
    if revision is not None:
        raise EvaluationError(f"{path} is read from disk and has no revision {revision!r}: leave it out")
    path = Path(path).expanduser()
    if not path.exists():
        raise EvaluationError(f"there is no {path}: pass the folder with the files of {spec.title} from {spec.home}")
    if spec.modality == "image":
        rows, files, root = images_of_folder(path, spec)
        return OodRows(rows, 0, _sum(root, files), f"{len(files):,} images in {root.name}")
    found = _find(spec, path, chosen)
    files = [file for _, file in found]
    rows, unlabelled = _join(spec, [(part, read_columns(file, spec)) for part, file in found])
    root = path if path.is_dir() else path.parent
    return OodRows(rows, unlabelled, _sum(root, files), f"local files: {', '.join(_names(root, files))}")


def _find(spec: OodSpec, path: Path, split: str) -> list[tuple[Part, Path]]:
    """The file of each part, in the spec's order; of an optional one only if it is there."""
    if path.is_file():
        if len(spec.parts) > 1:
            raise EvaluationError(
                f"{spec.title} is more than one file: pass the folder that holds them, not {path.name}"
            )
        return [(spec.parts[0], path)]
    there = {file.relative_to(path).as_posix(): file for file in visible_files(path)}
    found = []
    missing = []
    for part in spec.parts:
        endings = [ending.format(split=split) for ending in part.files]
        matches = next(filter(None, ([n for n in there if f"/{n}".endswith(f"/{e}")] for e in endings)), [])
        if len(matches) > 1:
            raise EvaluationError(f"{path.name} has {matches[0]} and {matches[1]}: pass the folder of one of them")
        if matches:
            found.append((part, there[matches[0]]))
        elif not part.optional:
            missing.append(" or ".join(endings))
    if missing:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        raise EvaluationError(
            f"{path.name} is not laid out as {spec.title}: it has no {', no '.join(missing[:4])}{more}; "
            f"get the files from {spec.home}"
        )
    return found


def _read_hub(spec: OodSpec, split: str, revision: str | None) -> OodRows:
    if spec.hub is None:
        raise EvaluationError(f"{spec.title} is not on the Hub: get it from {spec.home} and pass its folder")
    wanted = revision or spec.hub.revision
    sha = wanted if _SHA.fullmatch(wanted) else resolve_revision(spec.hub.id, wanted)
    patterns = [(part, part.hub.format(split=split)) for part in spec.parts if part.hub]
    held = sorted(files_of(spec.hub.id, sha, "dataset"))
    names = [(part, fnmatch.filter(held, pattern)) for part, pattern in patterns]
    folder = fetch(spec.hub.id, sha, [name for _, some in names for name in some], "dataset")
    found = [(part, [folder / name for name in some]) for part, some in names]
    if missing := [pattern for (_, pattern), (_, files) in zip(patterns, found, strict=True) if not files]:
        raise EvaluationError(
            f"{spec.hub.id} at {sha[:12]} has no {', no '.join(missing)}: pass the folder of its files"
        )
    origin = f"{spec.hub.id} on the Hub"
    if spec.modality == "image":
        rows = images_of_parquet([file for _, files in found for file in files], spec)
        return OodRows(rows, 0, sha, origin)
    parts = [(part, read_columns(file, spec)) for part, files in found for file in files]
    rows, unlabelled = _join(spec, parts)
    return OodRows(rows, unlabelled, sha, origin)


def _join(spec: OodSpec, parts: Sequence[tuple[Part, Columns]]) -> tuple[Dataset, int]:
    """Lay the parts one below the other, with the columns of every group."""
    import pyarrow as pa
    from datasets import ClassLabel, Dataset, Features, Value

    total = sum(len(rows) for _, rows in parts)
    table: dict[str, list[Any]] = {}
    for name in ("id", "premise", "hypothesis", "label", *(group.column for group in spec.groups)):
        table[name] = [value for part, rows in parts for value in _column(name, part, rows)]
    table["id"] = [str(number) if text is None else text for number, text in enumerate(table["id"])]
    table["label"] = [spec.labels.index(name) for name in table["label"]]
    for group in spec.groups:
        if group.separator:
            table[group.column] = [_pieces(text, group.separator) for text in table[group.column]]
    for group in spec.groups:
        if group.of:
            filled = zip(*(table[name] for name in group.of), strict=True)
            table[group.column] = [[n for n, value in zip(group.of, row, strict=True) if value] for row in filled]
        _check_group(spec, group, table[group.column])
    text, texts = pa.string(), pa.list_(pa.string())
    kinds = pa.schema([(group.column, texts if group.several else text) for group in spec.groups])
    features = Features({name: Value("string") for name in ("id", "premise", "hypothesis")})
    features |= {"label": ClassLabel(names=list(spec.labels)), "source_index": Value("int64")}
    features |= Features.from_arrow_schema(kinds)
    table["source_index"] = list(range(total))
    arrow = pa.table({name: table[name] for name in features}, schema=features.arrow_schema)
    return Dataset(arrow), sum(rows.unlabelled for _, rows in parts)


def _column(name: str, part: Part, rows: Columns) -> Iterable[str | None]:
    return rows.values.get(name, [part.values.get(name)] * len(rows))


def _pieces(text: str | None, separator: str) -> list[str]:
    return [piece.strip() for piece in (text or "").split(separator) if piece.strip()]


def _check_group(spec: OodSpec, group: Group, cells: Sequence[Any]) -> None:
    there = {value for cell in cells for value in (cell if group.several else [cell]) if value is not None}
    if missing := [value for value in group.required if value not in there]:
        raise EvaluationError(
            f"{spec.title} has no row of {group.column} {', '.join(missing)}: "
            f"it is not whole, so get it again from {spec.home}"
        )
    if not there:
        raise EvaluationError(f"{spec.title} has no row with a {group.column}: get it again from {spec.home}")


def _names(root: Path, files: Sequence[Path]) -> list[str]:
    names = [file.relative_to(root).as_posix() for file in files]
    return [*names[:4], f"and {len(names) - 4} more"] if len(names) > 4 else names


def _sum(root: Path, files: Sequence[Path]) -> str:
    """``sha256:`` and a hash over the names below `root` and the contents of `files`."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()}\0{sha256(file)}\n".encode())
    return f"sha256:{digest.hexdigest()}"
