"""Where results lie, and how a run that was stopped goes on.

``OUT/<org__model>/<model sha>/<dataset>@<version>/<config or split>.<protocol>.json`` and beside it ``.parquet`` with
the scores of every row. Until both are there, a hidden folder beside them holds the rows to score, the settings and a
file a finished shard; a run with the same settings continues it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.atomic import whole_file, write_text
from builders.folder import sha256
from builders.locks import held
from builders.names import inside
from builders.stopping import goes_on_from, undisturbed
from builders.unfinished import told_when_damaged
from evaluation.errors import EvaluationError
from evaluation.models import ModelRef
from evaluation.stored import read_stored, seal
from unqover_data.files import FileError, json_of, read_bytes

ROWS_PER_SHARD = 2_000
SETTINGS, ROWS, _SUM = "settings.json", "rows.parquet", "sha256 of the rows"
_LIBRARIES = ("probesieve", "torch", "transformers", "tokenizers", "timm", "pillow", "numpy")


@dataclass(frozen=True)
class Place:
    """The files of one result."""

    result: Path

    @property
    def scores(self) -> Path:
        """Scores of every row."""
        return self.result.with_suffix(".parquet")

    @property
    def partial(self) -> Path:
        """What there is of a run that has not ended."""
        return self.result.with_name(f".{self.result.stem}.partial")

    @property
    def lock(self) -> Path:
        """What a run holds."""
        return self.result.with_name(f".{self.result.stem}.lock")

    def shard(self, number: int) -> Path:
        """Scores of one shard."""
        return self.partial / f"shard-{number:05d}.parquet"


def place_of(out: Path, ref: ModelRef, dataset: str, part: str, protocol: str) -> Place:
    """Give the place of a result.

    Parameters
    ----------
    out : Path
        The results folder.
    ref : ModelRef
        The model.
    dataset, part, protocol : str
        ``NAME@VERSION`` of the set, what of it was scored (a config or a split), and how.

    Raises
    ------
    BuildError
        If one of them cannot be the name of a file or folder.
    """
    model = Path(ref.name).resolve().name if ref.local else ref.path.replace("/", "__")
    return Place(inside(out, model, ref.sha, dataset, f"{part}.{protocol}.json"))


def read_result(place: Place, settings: Mapping[str, Any], *, revision: str | None = None) -> dict[str, Any] | None:
    """Give the result that is there already for these settings, None if there is none.

    Parameters
    ----------
    place : Place
    settings : mapping
        With ``dataset``, the name of the rows.
    revision : str, optional
        Of the set, which stands in its place in results of earlier versions.

    Raises
    ------
    EvaluationError
        If there is one of other settings, naming the first that differs, or one that is damaged.
    """
    if not (place.result.is_file() and place.scores.is_file()):
        return None
    result = read_stored(place.result)
    _check_same(result["settings"], settings, place.result, revision)
    _clear(place, settings, revision)
    return result


def _clear(place: Place, settings: Mapping[str, Any], revision: str | None) -> None:
    """Remove what is left of the run that made a result, where it was killed right behind."""
    if not (place.partial.exists() or place.lock.exists()):
        return
    with contextlib.suppress(EvaluationError), locked(place):  # another run may be at work, on other settings
        if (place.partial / SETTINGS).is_file():
            begun = read_json(place.partial / SETTINGS)
            _check_same({name: begun.get(name) for name in settings}, settings, place.partial, revision)
        shutil.rmtree(place.partial, ignore_errors=True)


@contextlib.contextmanager
def locked(place: Place) -> Iterator[None]:
    """Keep other runs out of a place; empty folders are gone afterwards.

    Raises
    ------
    EvaluationError
        If another run is in it.
    """
    place.result.parent.mkdir(parents=True, exist_ok=True)
    busy = EvaluationError(f"another run is scoring {place.result}; wait for it, or use another --out")
    try:
        with held(place.lock, busy), goes_on_from(place.partial):
            yield
    finally:
        for folder in (place.result.parent, *place.result.parents[1:3]):
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()


def open_partial(
    place: Place,
    settings: Mapping[str, Any],
    rows: pa.Table,
    *,
    overwrite: bool = False,
    revision: str | None = None,
) -> int:
    """Start a run, or go on with one of the same settings; give the number of its shards.

    Parameters
    ----------
    overwrite : bool
        Whether to start anew where an unfinished run has other settings.
    revision : str, optional
        As for `read_result`.

    Raises
    ------
    EvaluationError
        If an unfinished run there has other settings; names the first that differs.
    """
    settings = {**settings, "versions": versions(), "rows a shard": ROWS_PER_SHARD}
    if (place.partial / SETTINGS).is_file():
        try:
            _check_begun(place, settings, revision)
        except EvaluationError:
            if not overwrite:
                raise
            shutil.rmtree(place.partial)
    if not (place.partial / SETTINGS).is_file():
        shutil.rmtree(place.partial, ignore_errors=True)
        write_table(rows, place.partial / ROWS)
        write_json(place.partial / SETTINGS, {**settings, _SUM: sha256(place.partial / ROWS)})
    return -(-len(rows) // ROWS_PER_SHARD)


def _check_begun(place: Place, settings: Mapping[str, Any], revision: str | None) -> None:
    begun = read_json(place.partial / SETTINGS)
    known = begun.pop(_SUM, None)
    _check_same(begun, settings, place.partial, revision)
    if known != sha256(place.partial / ROWS):
        raise EvaluationError(
            f"{place.partial / ROWS} is damaged: remove {place.partial} and run the same command again"
        )


def versions() -> dict[str, str]:
    """Versions of all that scores may depend on."""
    return {name: metadata.version(name) for name in _LIBRARIES}


def shard_rows(place: Place, number: int) -> pa.Table:
    """Give the rows of a shard."""
    return pq.read_table(place.partial / ROWS).slice(number * ROWS_PER_SHARD, ROWS_PER_SHARD)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a Parquet file that is there whole or not at all."""
    with whole_file(path) as unfinished:
        pq.write_table(table, unfinished, compression="zstd")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that is there whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file of ours, which holds an object."""
    try:
        content = json_of(read_bytes(path))
    except FileError as error:
        raise EvaluationError(f"{path} {error}; remove it and run again") from error
    if not isinstance(content, dict):
        raise EvaluationError(f"{path} holds no JSON object; remove it and run again")
    return content


def merge_shards(place: Place, shards: int) -> tuple[pa.Table, float]:
    """Give the scores of all shards in row order, and the seconds that they took."""
    with told_when_damaged(place.partial):
        tables = [pq.read_table(place.shard(number)) for number in range(shards)]
        seconds = sum(float((table.schema.metadata or {})[b"seconds"]) for table in tables)
        scores = pa.concat_tables(table.replace_schema_metadata(None) for table in tables)
        if len(scores) != pq.read_metadata(place.partial / ROWS).num_rows:
            raise ValueError("a shard has other rows")
    return scores, seconds


def finish(place: Place, result: Mapping[str, Any], scores: pa.Table) -> dict[str, Any]:
    """Store a result with its sums, and give it: scores first, its JSON last, in place of an older one.

    What the run needed goes.
    """
    place.result.unlink(missing_ok=True)
    write_table(scores, place.scores)
    sealed = seal(json.loads(json.dumps(result, allow_nan=False)), place.scores)
    write_json(place.result, sealed)
    shutil.rmtree(place.partial)
    return sealed


def abandon(place: Place) -> None:
    """Remove an unfinished run, unless it has a finished shard to go on from."""
    with undisturbed():
        if not any(place.partial.glob("shard-*.parquet")):
            shutil.rmtree(place.partial, ignore_errors=True)


def _check_same(stored: Mapping[str, Any], wanted: Mapping[str, Any], where: Path, revision: str | None) -> None:
    if stored.get("dataset") == revision:
        stored = {**stored, "dataset": wanted.get("dataset")}
    for name in dict.fromkeys((*wanted, *stored)):
        if stored.get(name) != wanted.get(name):
            if name == "dataset":
                raise EvaluationError(
                    f"{where} was made on a set of this name and version whose rows are others: use another --out, or "
                    "--overwrite"
                )
            raise EvaluationError(
                f"{where} was made with {name} {stored.get(name)!r}, not {wanted.get(name)!r}: "
                "use the same, another --out, or --overwrite"
            )
