"""The rows of a filtered set that a report shows: galleries, figure 1 of the AFLite paper, nearest removed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from builders.filtered import FILTERED, REMOVED, WARMUP
from builders.findings import ranked
from builders.similarity import SHOWN, SIMILARITY, chosen_classes, heat_maps, read_similarity
from builders.sources.spec import IMAGE
from evaluation.errors import EvaluationError
from evaluation.report.filtered_rows import FilteredRows, thumbnails

OVERALL = 12
_SIDES = {"kept": FILTERED, "removed": REMOVED}


class _Shown:
    """The rows that are shown, each once."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self._numbers: dict[int, int] = {}

    def number(self, place: int) -> int:
        """Give the number under which the page has a row."""
        if place not in self._numbers:
            self._numbers[place] = len(self.places)
            self.places.append(place)
        return self._numbers[place]

    def numbers(self, places: Sequence[int] | NDArray[np.int64]) -> list[int]:
        """Give those of several."""
        return [self.number(int(place)) for place in places]


def gallery(rows: FilteredRows, budget: int) -> dict[str, Any]:
    """Give what ``assets/filtering.js`` shows.

    Parameters
    ----------
    rows : FilteredRows
        All rows.
    budget : int
        Most characters that images may take.

    Returns
    -------
    dict
        ``columns``; ``rows``: ``inputs`` (texts, or a data URI or None), ``label``, ``score``, ``times``, ``phase``
        (None if kept) and ``place``; ``groups``: of all rows and of classes, ``kept`` and ``removed`` (numbers of rows)
        and of classes with stored similarities ``figure``, ``alt`` and ``means``; ``neighbors``: ``row``, ``removed``
        and ``similarity``; ``image``: whether rows are images; ``similar``: whether the folder has similarities.
    """
    seed = int(rows.built.manifest["seed"])
    order = {side: ranked(rows.outcome, seed, hardest=side == "kept") for side in _SIDES}
    shown = _Shown()
    everything = {side: shown.numbers(places[:OVERALL]) for side, places in order.items()}
    groups = [{"name": "all labels", **everything}]
    stored = read_similarity(rows.built.folder)
    if stored:
        figures = heat_maps(stored)
        for block, figure in zip(stored["blocks"], figures, strict=True):
            sides = {side: shown.numbers(_found(rows, block[side])) for side in _SIDES}
            extra = {"figure": figure.spec(), "alt": figure.alt, "means": stored["means"][block["label"]]}
            groups.append({"name": block["label"], **sides, **extra})
    else:
        groups += _by_class(rows, order, shown)
    neighbors = [
        {
            "row": shown.number(_found(rows, [one["row"]])[0]),
            "removed": shown.numbers(_found(rows, one["removed"])),
            "similarity": one["similarity"],
        }
        for one in (stored or {}).get("neighbors", ())
    ]
    image = rows.built.manifest["columns"] == [IMAGE]
    return {
        "columns": rows.built.manifest["columns"],
        "rows": _contents(rows, shown.places, budget if image else None),
        "groups": groups,
        "neighbors": neighbors,
        "image": image,
        "similar": stored is not None,
    }


def _by_class(rows: FilteredRows, order: Mapping[str, NDArray[np.int64]], shown: _Shown) -> list[dict[str, Any]]:
    scored = rows.outcome.part != WARMUP
    chosen = chosen_classes(rows.labels[scored], rows.outcome.part[scored], len(rows.names))
    return [
        {
            "name": rows.names[label],
            **{side: shown.numbers(places[rows.labels[places] == label][:SHOWN]) for side, places in order.items()},
        }
        for label in chosen
    ]


def _found(rows: FilteredRows, named: Sequence[Sequence[Any]]) -> list[int]:
    places = [rows.find(split, index) for split, index in named]
    if missing := [name for name, place in zip(named, places, strict=True) if place is None]:
        raise EvaluationError(
            f"{rows.built.folder}: {SIMILARITY} names row {missing[0][1]} of {missing[0][0]}, which is not there;"
            " build the folder again with --overwrite"
        )
    return [place for place in places if place is not None]


def _contents(rows: FilteredRows, places: Sequence[int], budget: int | None) -> list[dict[str, Any]]:
    inputs = rows.inputs(places)
    if budget is not None:
        inputs = [[one] for one in thumbnails([values[0] for values in inputs], budget)]
    outcome = rows.outcome
    return [
        {
            "inputs": values,
            "label": rows.names[int(rows.labels[place])],
            "score": round(float(outcome.predictability[place]), 4),
            "times": int(outcome.times_scored[place]),
            "phase": None if outcome.removed_in_phase[place] < 0 else int(outcome.removed_in_phase[place]),
            "place": f"{rows.splits[int(rows.split[place])]} {int(rows.source_index[place]):,}",
        }
        for place, values in zip(places, inputs, strict=True)
    ]
