"""Stored results of several models on one set, side by side, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.reading import aligned
from evaluation.built_sets import find_built
from evaluation.comparison import bias_shift, gamma_by_subject, rank_subjects, shared_extremes, top_pairs
from evaluation.errors import EvaluationError
from evaluation.metrics import bias_table
from evaluation.probe_sets import read_rows
from evaluation.scores import ScoredRows
from evaluation.stored import read_stored

_READ = {
    "ranks": "Rank of each subject by γ(x), from 1 on; 1 goes with the attributes most (Figure 4).",
    "pairs": "Pairs with the largest γ(x, a), from -1 to 1; 0 is ideal (Tables 2 and 4).",
    "shared": "Attributes that all models have among the top or bottom ten of a subject, with the mean γ (Table 3).",
    "shift": "From the base model to each other: differences of μ and η above 0 are more bias; 0 is no change.",
}

_CARE = (
    "Chance is in all of these numbers; `probesieve report` shows them with intervals and says which model is worse."
)


def read_scored(path: Path) -> tuple[str, ScoredRows]:
    """Read a stored result back: a name for its model, and its rows with their scores.

    Raises
    ------
    EvaluationError
        If it is no result, it or its Parquet is damaged, or the set that it was made on is no longer the same.
    """
    if "*" in str(path):
        raise EvaluationError(f"no file matches {path}: what there is shows `probesieve report RESULTS --text`")
    result = read_stored(path)
    if "metrics" not in result:
        raise EvaluationError(f"{path} is the result of a classifier; only results on probe sets are set side by side")
    dataset: dict[str, Any] = result["dataset"]
    local = Path(dataset["source"]).is_dir()
    built = find_built(dataset["source"], None if local else dataset["revision"])
    if not built.is_of(result):
        raise EvaluationError(f"{dataset['source']} is not the set that {path} was made on: it was built anew since")
    name = f"{Path(result['model']['name']).name}.{result['settings']['protocol']}"
    return name, ScoredRows.from_tables(
        read_rows(built, dataset["config"]), pq.read_table(path.with_suffix(".parquet")), subset=True
    )


def compare_text(paths: Sequence[Path], *, base: Path | None = None, top: int = 10) -> str:
    """Lay out ranks, strongest pairs and shared attributes of several results, and the shift from a base model.

    Parameters
    ----------
    paths : sequence of Path
        Result JSON files, of one set.
    base : Path, optional
        Result of the language model that the others were fine-tuned from.
    top : int
        Pairs to show for each model.

    Raises
    ------
    EvaluationError
        If a result cannot be read, two are of one model, or they have no subject or row in common.
    """
    scored: dict[str, ScoredRows] = {}
    for path in paths:
        name, rows = read_scored(path)
        if name in scored:
            raise EvaluationError(f"{path} is of {name}, as another is: pass one result a model and protocol")
        scored[name] = rows
    tables = {name: bias_table(rows) for name, rows in scored.items()}
    parts = [_section("ranks", rank_subjects({name: gamma_by_subject(table) for name, table in tables.items()}))]
    parts += [_section("pairs", top_pairs(table, top), name) for name, table in tables.items()]
    if len(tables) > 1:
        parts.append(_section("shared", shared_extremes(tables)))
    if base:
        base_name, base_rows = read_scored(base)
        parts.append(_section("shift", bias_shift(base_rows, scored), f"base {base_name}"))
    return "\n\n".join([*parts, _CARE])


def _section(key: str, table: pa.Table, name: str = "") -> str:
    title = f"{name}: {_READ[key]}" if name else _READ[key]
    if not len(table):
        return f"{title}\n\n(none)"
    rows = [tuple(map(_shown, row.values())) for row in table.to_pylist()]
    numbers = [i for i, field in enumerate(table.schema) if not pa.types.is_string(field.type)]
    return "\n".join([title, "", *aligned([tuple(table.column_names), *rows], right=numbers)])


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
