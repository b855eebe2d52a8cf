"""The view *Ranks*: mean and deviation of the subjects' ranks across models, as in Figure 4 of Li et al. 2020."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builders.vega_names import drawable
from evaluation.comparison import rank_subjects
from evaluation.errors import EvaluationError
from evaluation.report.charts import GRAY, PALETTE, marks
from evaluation.report.inputs import Inputs, Result
from evaluation.report.page import Block, Column, Figure, Section, Table, Text, rounded

_MOST, _ENDS, _ROW = 80, 30, 18
NO_GROUP, _LEFT_OUT = "no group", "⋮"


def section(inputs: Inputs) -> Section | None:
    """Give the view, if there is a result on a probe set."""
    if not inputs.probes:
        return None
    blocks: list[Block] = []
    for dataset, results in inputs.datasets.items():
        blocks += [Text(dataset, "heading"), *of_set(inputs, dataset, results)]
    intro = (
        "Within each model, subjects are ranked by γ(x), how far the model prefers them for the set's statements "
        "over all others. Rank 1 is the subject that goes with them most. The dot is the mean rank over models, the "
        "line one standard deviation to each side, the small marks are the models. Short lines: the models agree."
    )
    return Section("ranks", "Ranks", intro, blocks)


def gammas(result: Result) -> dict[str, float]:
    """Give γ(x) of each subject, as it is stored."""
    table = result.content["tables"]["subject"]
    return dict(zip(table["subject"], table["gamma"], strict=True))


def of_set(inputs: Inputs, dataset: str, results: Sequence[Result]) -> list[Block]:
    """Give remarks, chart and table of one set."""
    of_model = {inputs.labels[result.model]: gammas(result) for result in results}
    try:
        ranks = rank_subjects(of_model).to_pylist()
    except EvaluationError as error:
        return [Text(str(error), "note")]
    groups = {name: group for result in results for name, group in inputs.groups_of(result).items()}
    remarks = _remarks(inputs, results, of_model, ranks)
    shown, order = ranks, [drawable(row["subject"]) for row in ranks]
    if len(ranks) > _MOST:
        shown, order = [*ranks[:_ENDS], *ranks[-_ENDS:]], [*order[:_ENDS], _LEFT_OUT, *order[-_ENDS:]]
    if len(shown) < len(ranks):
        remarks.append(f"The chart shows the first and the last {_ENDS} of {len(ranks)} subjects, the table all.")
    legend = _legend(groups, shown)
    who = f"{len(results)} models" if len(results) > 1 else "one model"
    alt = (
        f"Mean ranks of {len(shown)} subjects over {who} on {dataset}. First {ranks[0]['subject']}, "
        f"mean rank {ranks[0]['mean']:.3g}; last {ranks[-1]['subject']}, mean rank {ranks[-1]['mean']:.3g}."
    )
    spec = _spec(shown, order, [*of_model], groups, legend)
    title = f"Mean rank of each subject over {who}"
    figure = Figure(title, spec, alt, legend=legend)
    return [*(Text(remark) for remark in remarks), figure, _table(dataset, ranks, [*of_model], groups)]


def _remarks(
    inputs: Inputs, results: Sequence[Result], of_model: Mapping[str, Mapping[str, float]], ranks: Sequence[Any]
) -> list[str]:
    remarks = []
    if left_out := len(set().union(*of_model.values())) - len(ranks):
        remarks.append(f"{left_out} subjects are left out, since not every model could score them.")
    if len(results) == 1:
        remarks.append("There is one model, so there is no deviation.")
    if not any(inputs.folder_of(result) for result in results):
        remarks.append(f"For the subjects' groups: {inputs.missing(results[0])}")
    return remarks


def _legend(groups: Mapping[str, str], shown: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Colours and shapes of the groups that are shown, the same whichever are; none where there are no groups."""
    present = {groups.get(row["subject"], NO_GROUP) for row in shown}
    if present == {NO_GROUP}:
        return {}
    found = marks(sorted(set(groups.values()))) | {NO_GROUP: (GRAY, "circle")}
    return {name: mark for name, mark in found.items() if name in {*map(drawable, present)}}


def _spec(
    ranks: Sequence[Mapping[str, Any]],
    order: Sequence[str],
    models: Sequence[str],
    groups: Mapping[str, str],
    legend: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    rows = [
        {
            "subject": drawable(row["subject"]),
            "group": drawable(groups.get(row["subject"], NO_GROUP)),
            "mean": rounded([row["mean"]], 4)[0],
            "sd": rounded([row["sd"]], 3)[0],
            "low": None if row["sd"] is None else rounded([row["mean"] - row["sd"]], 4)[0],
            "high": None if row["sd"] is None else rounded([row["mean"] + row["sd"]], 4)[0],
        }
        for row in ranks
    ]
    each = [{"subject": drawable(row["subject"]), "model": name, "rank": row[name]} for row in ranks for name in models]
    known = legend or {NO_GROUP: (PALETTE[0], "circle")}
    colour, shape = (
        {"field": "group", "type": "nominal", "legend": None, "scale": {"domain": [*known], "range": [*values]}}
        for values in zip(*known.values(), strict=True)
    )
    axis = {"domain": False, "ticks": False, "labelLimit": 150, "labelFontSize": 12}
    x = {"type": "quantitative", "axis": {"title": "rank (1: strongest)", "tickMinStep": 1}}
    last = max(max(row[name] for name in models) for row in ranks)
    across = {"field": "mean", "scale": {"domain": [0.5, last + 0.5], "nice": False}} | x
    fields = [("subject", "subject"), ("mean", "mean rank"), ("sd", "standard deviation")]
    fields += [("group", "group")] if legend else []
    tooltip = [{"field": field, "title": title} for field, title in fields]
    of_model = [{"field": "subject"}, {"field": "model"}, {"field": "rank", "type": "quantitative"}]
    return {
        "width": "container",
        "height": max(3, len(order)) * _ROW,
        "encoding": {
            "y": {"field": "subject", "type": "nominal", "scale": {"domain": order}, "title": None, "axis": axis},
        },
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.6, "clip": True},
                "encoding": {"x": {"field": "low"} | x, "x2": {"field": "high"}, "color": colour, "tooltip": tooltip},
            },
            {
                "data": {"values": each},
                "mark": {"type": "tick", "color": GRAY, "opacity": 0.6, "thickness": 1, "size": 8},
                "encoding": {"x": {"field": "rank", "type": "quantitative"}, "tooltip": of_model},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"x": across, "color": colour, "shape": shape, "tooltip": tooltip},
            },
        ],
    }


def _table(dataset: str, ranks: Sequence[Mapping[str, Any]], models: Sequence[str], groups: Mapping[str, str]) -> Table:
    columns = [Column("subject", [row["subject"] for row in ranks])]
    if groups:
        columns.append(Column("group", [groups.get(row["subject"], "") for row in ranks]))
    columns.append(Column("mean rank", [row["mean"] for row in ranks], "number", "1: goes with the statements most", 2))
    columns.append(Column("deviation", [row["sd"] for row in ranks], "number", "standard deviation over the models", 2))
    columns += [Column(name, [row[name] for row in ranks], "count", "rank in this model") for name in models]
    return Table(f"Ranks on {dataset}", columns, sort="mean rank")
