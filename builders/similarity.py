"""How alike the rows of a filtered set are, by the encoder's features: what its folder keeps of them.

``similarity.json`` stands in for features, which are too large to publish: the mean cosine of kept, random and removed
rows of every class, the cosine of some kept and removed rows of some classes (figure 1 of the AFLite paper), and the
removed rows nearest to those kept ones. Rows are named by split and ``source_index``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.figures import Figure, similarity
from builders.filtered import FILTERED, REMOVED, Outcome
from builders.findings import Pool, ranked
from builders.schema import Count, convert
from unqover_data.files import FileError, json_of, read_bytes

SIMILARITY = "similarity.json"
CLASSES, SHOWN, NEIGHBORS = 12, 8, 4
_ASKED = 24
_DIGITS = 3
_MOST_BYTES = 64 * 2**20

_Cosine = Annotated[float, Meta(ge=-1.01, le=1.01)]
_Row = tuple[str, Count]


class _Means(Struct):
    kept: _Cosine | None
    random: _Cosine | None
    removed: _Cosine | None


class _Block(Struct):
    label: str
    kept: list[_Row]
    removed: list[_Row]
    similarity: list[list[_Cosine]]


class _Neighbors(Struct):
    row: _Row
    removed: list[_Row]
    similarity: list[_Cosine]


class _Similarity(Struct):
    means: dict[str, _Means]
    blocks: list[_Block]
    neighbors: list[_Neighbors]


def measure_similarity(pool: Pool, outcome: Outcome, features: NDArray[Any], seed: int) -> dict[str, Any]:
    """Give what a folder keeps of how alike its rows are.

    Parameters
    ----------
    pool : Pool
        The rows.
    outcome : Outcome
        What became of them.
    features : ndarray, shape (len(pool.rest), d)
        In the order of ``pool.rest``.
    seed : int
        Decides between rows of equal scores.

    Returns
    -------
    dict
        ``means``: by class, the mean cosine of two different ``kept``, ``random`` or ``removed`` rows, in [-1, 1], None
        for fewer than two. ``blocks``: of at most twelve classes, from those that lost the smallest share of their rows
        to those that lost the largest, up to eight ``kept`` rows with the lowest scores and eight ``removed`` ones that
        left first, and the ``similarity`` of all of these with each other. ``neighbors``: the four removed rows
        nearest to the first of those kept rows, with their cosine.
    """
    from aflite.neighbors import nearest_removed, similarities

    names = pool.rows.features["label"].names
    part = outcome.part[pool.rest]
    place = np.full(pool.labels.size, -1)
    place[pool.rest] = np.arange(pool.rest.size)
    kept_first, removed_first = (ranked(outcome, seed, hardest=hardest) for hardest in (True, False))
    blocks, shown = [], []
    classes = chosen_classes(pool.labels[pool.rest], part, len(names))
    for label in classes:
        kept, removed = (rows[pool.labels[rows] == label][:SHOWN] for rows in (kept_first, removed_first))
        if not kept.size + removed.size:  # none of its rows was ever held out
            continue
        found = similarities(features[place[np.concatenate([kept, removed])]])
        sides = {"kept": _named(pool, kept), "removed": _named(pool, removed)}
        blocks.append({"label": names[label], **sides, "similarity": _rounded(found)})
        shown.append(kept[: max(SHOWN // 2, _ASKED // len(classes))])
    asked = np.concatenate(shown) if shown else np.array([], np.int64)
    neighbors = []
    if asked.size and (part == REMOVED).any():
        nearest = nearest_removed(features, part == FILTERED, count=NEIGHBORS, rows=place[asked])
        for row, near, cosine in zip(_named(pool, asked), nearest.neighbors, nearest.similarity, strict=True):
            neighbors.append({"row": row, "removed": _named(pool, pool.rest[near]), "similarity": _rounded(cosine)})
    return {"means": _means(pool, outcome, features, names), "blocks": blocks, "neighbors": neighbors}


def write_similarity(found: Mapping[str, Any], path: Path) -> None:
    """Write it as JSON."""
    path.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def read_similarity(folder: Path) -> dict[str, Any] | None:
    """Read what a folder keeps of how alike its rows are; None where it keeps nothing.

    Raises
    ------
    BuildError
        If the file cannot be read, or is not what a build writes.
    """
    path = folder / SIMILARITY
    if not path.is_file():
        return None
    try:
        found: dict[str, Any] = json_of(read_bytes(path, _MOST_BYTES))
    except FileError as error:
        raise BuildError(f"{path} {error}; build the folder again with --overwrite") from error
    try:
        for block in (stored := convert(found, _Similarity)).blocks:
            _check_block(block, stored.means)
    except ValueError as error:
        raise BuildError(
            f"{path} is not what a build writes: {error}; build the folder again with --overwrite"
        ) from error
    return found


def _check_block(block: _Block, means: Mapping[str, _Means]) -> None:
    size = len(block.kept) + len(block.removed)
    if len(block.similarity) != size or any(len(line) != size for line in block.similarity):
        raise ValueError(f"the similarity of block {block.label!r} must be of {size} by {size} rows")
    if block.label not in means:
        raise ValueError(f"{block.label!r} is not among means")


def heat_maps(found: Mapping[str, Any]) -> list[Figure]:
    """Give the heat maps of the ``blocks``, with one scale of colours for all classes."""
    lowest = min((value for block in found["blocks"] for line in block["similarity"] for value in line), default=0)
    return [similarity(block, least=math.floor(10 * lowest) / 10) for block in found["blocks"]]


def chosen_classes(labels: NDArray[np.int64], part: NDArray[np.int8], n_classes: int) -> list[int]:
    """Choose up to twelve classes of scored rows, evenly from those that lost the smallest share to the largest.

    Parameters
    ----------
    labels, part : ndarray, shape (N,)
        Of the scored rows.
    n_classes : int
        How many labels there are.

    Returns
    -------
    list of int
        Ascending.
    """
    scored = np.bincount(labels, minlength=n_classes)
    lost = np.bincount(labels[part == REMOVED], minlength=n_classes) / np.maximum(scored, 1)
    present = np.flatnonzero(scored)
    if present.size > CLASSES:
        order = present[np.argsort(lost[present], kind="stable")]
        present = np.sort(order[np.linspace(0, order.size - 1, CLASSES).round().astype(int)])
    return [int(label) for label in present]


def _means(pool: Pool, outcome: Outcome, features: NDArray[Any], names: list[str]) -> dict[str, Any]:
    from aflite.neighbors import mean_similarity

    labels, part = pool.labels[pool.rest], outcome.part[pool.rest]
    sides = {"kept": part == FILTERED, "random": outcome.in_random_subset[pool.rest], "removed": part == REMOVED}
    by_side = {}
    for side, mask in sides.items():
        found = mean_similarity(features, np.where(mask, labels, -1))
        known = [round(float(value), _DIGITS) if value == value else None for value in found]
        by_side[side] = known + [None] * (len(names) - len(known))
    return {name: {side: by_side[side][label] for side in sides} for label, name in enumerate(names)}


def _named(pool: Pool, rows: NDArray[np.int64]) -> list[list[Any]]:
    """Split and ``source_index`` of rows of the pool."""
    indexes = (
        pool.rows.select(rows).select_columns(["source_index"]).with_format("arrow")[:]["source_index"].to_pylist()
    )
    splits = [next(name for name, place in pool.bounds.items() if place.start <= row < place.stop) for row in rows]
    return [[split, index] for split, index in zip(splits, indexes, strict=True)]


def _rounded(values: NDArray[np.float32]) -> list[Any]:
    found: list[Any] = np.round(values.astype(np.float64), _DIGITS).tolist()
    return found
