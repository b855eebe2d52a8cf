"""Accuracy of classifiers on the full, random, kept and removed rows of filtered sets, as their results have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.classifiers.metrics import difference_of_subsets
from evaluation.classifiers.sets import BROKEN, FULL, IN_RANDOM, KEPT, PART, PREDICTED, RANDOM, REMOVED, subsets_of
from evaluation.report.charts import GRAY, LINES, PALETTE, in_lines
from evaluation.report.inputs import Inputs
from evaluation.report.page import Column, Figure, Table

SHOWN = (FULL, RANDOM, KEPT, REMOVED)
_MARKS = {
    FULL: (GRAY, "square"),
    RANDOM: (PALETTE[4], "diamond"),
    KEPT: (PALETTE[0], "circle"),
    REMOVED: (PALETTE[1], "triangle-up"),
}
_READ = ["source_index", "label", PREDICTED, BROKEN, PART, IN_RANDOM]
_STEP, _TOLD = 72, 6


@dataclass(frozen=True)
class Scored:
    """A model on one split of a filtered set.

    Attributes
    ----------
    model, split : str
        Their names.
    predictions : pyarrow.Table
        What is stored of its rows.
    accuracy : mapping of str to mapping or None
        ``value``, ``low``, ``high`` and ``n`` by subset; higher is better.
    drops : mapping of str to mapping or None
        Accuracy on ``full`` and on ``random`` rows less that on the kept ones: ``value``, ``low`` and ``high``.
    """

    model: str
    split: str
    predictions: pa.Table
    accuracy: Mapping[str, Mapping[str, Any] | None]
    drops: Mapping[str, Mapping[str, Any] | None]

    @property
    def name(self) -> str:
        """Model and split."""
        return f"{self.model}, {self.split}"


def scored_models(inputs: Inputs) -> dict[str, list[Scored]]:
    """Give the models that were scored on filtered sets, by name and version of the set."""
    found: dict[str, list[Scored]] = {}
    for result in inputs.classifiers:
        for split, summary in result.content["splits"].items():
            if not (summary["accuracy"].get(KEPT) and summary["accuracy"].get(REMOVED)):
                continue
            predictions = pq.read_table(result.scores, columns=_READ)
            one = Scored(
                inputs.labels[result.model],
                split,
                predictions,
                summary["accuracy"],
                {FULL: summary["drop"], RANDOM: _from_random(predictions)},
            )
            found.setdefault(result.dataset, []).append(one)
    return {name: sorted(some, key=lambda one: (one.split, one.model)) for name, some in sorted(found.items())}


def accuracy_table(scored: Sequence[Scored], title: str) -> Table:
    """Give accuracies and drops, and the intervals of all of them."""
    columns = _summary(scored)
    for name in SHOWN:
        rates = [one.accuracy.get(name) for one in scored]
        ends = [_values(rates, "low"), _values(rates, "high")]
        columns += [
            Column(f"{name} 95 % interval", ends, "interval"),
            Column(f"{name} n", _values(rates, "n"), "count", f"How many {name} rows were scored"),
        ]
    return Table(title, columns)


def accuracy_summary(scored: Sequence[Scored], title: str) -> Table:
    """Give accuracies, and drops with their intervals."""
    note = (
        "Accuracy: higher is better. Drop: accuracy on full or random rows less that on kept ones; above 0 the kept"
        " rows are harder."
    )
    return Table(title, _summary(scored), note)


def _summary(scored: Sequence[Scored]) -> list[Column]:
    columns = [Column("model", [one.model for one in scored]), Column("split", [one.split for one in scored])]
    for name in SHOWN:
        rates = [one.accuracy.get(name) for one in scored]
        told = f"Accuracy on the {name} rows; higher is better"
        columns.append(Column(name, _values(rates, "value"), "number", told, decimals=3))
    for name in (FULL, RANDOM):
        drops = [one.drops[name] for one in scored]
        told = f"Accuracy on the {name} rows less that on the kept ones; above 0 the kept rows are harder"
        columns += [
            Column(f"drop from {name}", _values(drops, "value"), "number", told, decimals=3),
            Column(f"drop from {name} 95 % interval", [_values(drops, "low"), _values(drops, "high")], "interval"),
        ]
    return columns


def accuracy_figure(scored: Sequence[Scored]) -> Figure:
    """Show accuracies as points with intervals, four lines a model."""
    import altair as alt

    several = len({one.split for one in scored}) > 1
    names = [in_lines(one.name if several else one.model) for one in scored]
    values = [
        {"model": name, "subset": subset, **rate}
        for name, one in zip(names, scored, strict=True)
        for subset in SHOWN
        if (rate := one.accuracy.get(subset))
    ]
    colours, shapes = zip(*_MARKS.values(), strict=True)
    colour = alt.Color("subset:N", legend=None, scale=alt.Scale(domain=list(_MARKS), range=list(colours)))
    shape = alt.Shape("subset:N", legend=None, scale=alt.Scale(domain=list(_MARKS), range=list(shapes)))
    base = alt.Chart(alt.InlineData(values=values)).encode(
        y=alt.Y(
            "model:N",
            sort=names,
            title=None,
            axis={"labelLimit": 170, **LINES},
            scale=alt.Scale(paddingInner=0.25),
        ),
        yOffset=alt.YOffset("subset:N", sort=list(SHOWN)),
        color=colour,
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("subset:N", title="rows"),
            alt.Tooltip("value:Q", format=".3f", title="accuracy"),
            alt.Tooltip("low:Q", format=".3f", title="95 % from"),
            alt.Tooltip("high:Q", format=".3f", title="to"),
            alt.Tooltip("n:Q", format=",", title="n"),
        ],
    )
    x = alt.X("low:Q", title="accuracy (higher is better)", scale=alt.Scale(domain=[0, 1]))
    lines = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x="value:Q", shape=shape)
    chart = (lines + points).properties(height=_STEP * len(scored), width="container")
    told = [f"{one.name} {_told(one)}" for one in scored[:_TOLD]]
    more = f"; and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    spec = chart.to_dict()
    spec.pop("config", None)
    return Figure(
        "Accuracy before and after filtering",
        spec,
        f"Accuracy of each model by rows: {'; '.join(told)}{more}.",
        "Point: accuracy. Line: its 95 % interval. random: as many scored rows as were kept, drawn at random.",
        _MARKS,
    )


def _from_random(predictions: pa.Table) -> dict[str, Any] | None:
    """The drop from the random baseline to the kept rows."""
    scored = predictions.filter(predictions[BROKEN].is_null())
    masks = subsets_of(scored)
    if not masks[RANDOM].any() or not masks[KEPT].any():
        return None
    hits = scored["label"].to_numpy() == scored[PREDICTED].to_numpy()
    return difference_of_subsets(np.asarray(hits), masks[RANDOM], masks[KEPT]).to_json()


def _told(one: Scored) -> str:
    rates = {name: one.accuracy.get(name) for name in SHOWN}
    return ", ".join(f"{name} {rate['value']:.2f}" for name, rate in rates.items() if rate)


def _values(entries: Sequence[Mapping[str, Any] | None], key: str) -> list[Any]:
    return [None if entry is None else entry[key] for entry in entries]
