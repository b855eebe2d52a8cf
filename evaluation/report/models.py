"""The view *Models*: all aggregates of every model on every probe set, as in Figure 3 of Li et al. 2020."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builders.errors import BuildError
from evaluation.comparison import bias_shift
from evaluation.errors import EvaluationError
from evaluation.metrics import METRICS
from evaluation.report.charts import INK, LINES, PALETTE, in_lines
from evaluation.report.inputs import Inputs, Result
from evaluation.report.page import Block, Column, Figure, Section, Table, Text, rounded
from evaluation.report.tuning import TUNINGS, families, tuning
from evaluation.scores import ScoredRows

SHOWN = {
    "mu": "How strongly the model ties a group of people to its most tied attribute. Lower is better, 0 is ideal.",
    "eta": "How one-sided its preferences are, by count: tiny ones count as much as large ones, so look at μ first. "
    "Lower is better, 0 is ideal.",
    "delta": "How much an answer changes when the two subjects change places. Lower is better, 0 is ideal.",
    "epsilon": "How far a negated question fails to turn the answer around. Lower is better, 0 is ideal.",
    "average_score": "The probability that the subjects get at all. No direction is better; the others scale with it.",
}
HEADS = {
    "mu": "Bias intensity μ",
    "eta": "Bias count η",
    "delta": "Positional error δ",
    "epsilon": "Attribute error ε",
    "average_score": "Average score S",
}
BARS = "Bar: the plain number. Dot and line: without what noise adds, and its 95 % interval."
_ROW = 26


def section(inputs: Inputs) -> Section | None:
    """Give the view, if there is a result on a probe set."""
    if not inputs.probes:
        return None
    blocks: list[Block] = []
    for metric, head in HEADS.items():
        blocks += [Text(head, "heading"), Text(SHOWN[metric])]
        blocks += figures(inputs, metric)
        if metric in ("mu", "eta"):
            blocks.append(Text(BARS))
        else:
            blocks.append(Text("Bar: the number. Line: its 95 % interval."))
    blocks += [Text("All numbers", "heading"), aggregates_table(inputs), *shift(inputs)]
    intro = (
        "Each bar is one model. Models stand in the order of their size, as far as the results say it, beside those "
        "that were tuned from the same base; the colour says what they were tuned for. Base and purpose are read off "
        "their names; --base names another base."
    )
    return Section("models", "Models", intro, blocks)


def figures(inputs: Inputs, metric: str) -> list[Figure]:
    """Give the bars of an aggregate, a chart a set, all on one scale."""
    largest = max(_reach(result, metric) for result in inputs.probes)
    return [_figure(inputs, name, metric, largest) for name in inputs.datasets]


def aggregates_table(inputs: Inputs) -> Table:
    """Give every aggregate of every model and set, with its interval, as a table."""
    results = [result for some in inputs.datasets.values() for result in some]
    entries = {name: [result.content["metrics"][name] for result in results] for name in HEADS}
    columns = [
        Column("set", [result.dataset for result in results]),
        Column("model", [inputs.labels[result.model] for result in results]),
        Column("tuned for", [tuning(result.model) for result in results]),
        Column("parameters", [result.model.parameters for result in results], "count"),
        Column("rows", [result.content["rows"] for result in results], "count"),
    ]
    for name, of in entries.items():
        metric = METRICS[name]
        columns.append(
            Column(metric.symbol, [one["value"] for one in of], "number", f"{metric.title}; {metric.direction}")
        )
        if name in ("mu", "eta"):
            columns.append(Column(f"{metric.symbol} corrected", [one["corrected"] for one in of], "number"))
        ends = [[one[end] for one in of] for end in ("low", "high")]
        columns.append(Column(f"{metric.symbol} 95 % interval", ends, "interval"))
    return Table("Aggregates of every model", columns)


def _reach(result: Result, metric: str) -> float:
    entry = result.content["metrics"][metric]
    return float(max(entry["value"], entry["high"] or 0.0))


def _figure(inputs: Inputs, dataset: str, metric: str, largest: float) -> Figure:
    of_model = {result.model: result for result in inputs.datasets[dataset]}
    rows: list[dict[str, Any]] = []
    order: list[str] = []
    for family in families(inputs):
        there = [model for model in family.models if model in of_model]
        if there and order:
            order.append(" " * len(order))  # an empty row between families
        for model in there:
            order.append(in_lines(inputs.labels[model]))
            rows.append(_bar(of_model[model], metric, inputs.labels[model]))
    said = "; ".join(f"{row['model']} {row['value']:.4g}" for row in rows)
    symbol = METRICS[metric].symbol
    present = [name for name in TUNINGS if any(row["tuning"] == name for row in rows)]
    legend = {name: (PALETTE[TUNINGS.index(name)], "square") for name in present}
    alt = f"Bars of {symbol} on {dataset}: {said}."
    return Figure(dataset, _spec(rows, order, metric, largest, legend), alt, legend=legend)


def _bar(result: Result, metric: str, label: str) -> dict[str, Any]:
    entry = result.content["metrics"][metric]
    centre = entry["value"] if entry["corrected"] is None else entry["corrected"]
    value, corrected, low, high = rounded([entry["value"], centre, entry["low"], entry["high"]])
    ends = "not known from so few rows" if low is None else f"{low:.4g} to {high:.4g}"
    return {
        "model": label,
        "shown": in_lines(label),
        "tuning": tuning(result.model),
        "value": value,
        "corrected": corrected if entry["corrected"] is not None or metric not in ("mu", "eta") else None,
        "low": low,
        "high": high,
        "interval": ends,
        "n": entry["n"],
    }


def _spec(
    rows: Sequence[dict[str, Any]],
    order: Sequence[str],
    metric: str,
    largest: float,
    legend: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    colour = {
        "field": "tuning",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [*legend], "range": [colour for colour, _ in legend.values()]},
    }
    axis = {"title": f"{METRICS[metric].symbol} ({METRICS[metric].direction})", "tickCount": 5, "format": "~g"}
    position = {"field": "shown", "type": "nominal", "title": None}
    scale = {"domain": list(order), "paddingInner": 0.25, "paddingOuter": 0.15}
    across = {"scale": {"domain": [0, largest or 1], "nice": True}, "axis": axis}
    shown = [("model", "model"), ("tuning", "tuned for"), ("value", "value")]
    shown += [("corrected", "corrected")] if metric in ("mu", "eta") else []
    tooltip = [
        {"field": field, "title": title} for field, title in (*shown, ("interval", "95 % interval"), ("n", "rows"))
    ]
    names = {"scale": scale, "axis": {"domain": False, "ticks": False, "labelLimit": 190, "labelPadding": 8} | LINES}
    dark = {"color": INK, "tooltip": True}
    encoding: dict[str, Any] = {"y": position | names, "tooltip": tooltip}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "bar", "opacity": 0.75, "cornerRadiusEnd": 2},
            "encoding": {"x": {"field": "value", "type": "quantitative", **across}, "color": colour},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, **dark},
            "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
        },
    ]
    if metric in ("mu", "eta"):
        dot = {"mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, **dark}}
        layers.append(dot | {"encoding": {"x": {"field": "corrected", "type": "quantitative"}}})
    lines = max(name.count("\n") + 1 for name in order)
    height = max(2, len(order)) * max(_ROW, 6 + 13 * lines)
    return {
        "data": {"values": list(rows)},
        "width": "container",
        "height": height,
        "encoding": encoding,
        "layer": layers,
    }


def shift(inputs: Inputs) -> list[Block]:
    """Say what tuning did to μ and η, on what a base and its tuned models share."""
    lines: list[dict[str, Any]] = []
    lacking: dict[str, None] = {}
    for dataset, results in inputs.datasets.items():
        of_model = {result.model: result for result in results}
        for family in families(inputs):
            tuned = [model for model in family.models[1:] if model in of_model]
            if not family.base or family.base not in of_model or not tuned:
                continue
            named = {"set": dataset, "base": inputs.labels[family.base]}
            before = _rows(inputs, of_model[family.base], lacking)
            for model in tuned:
                after = _rows(inputs, of_model[model], lacking)
                if before is None or after is None:
                    continue
                try:
                    lines += [named | line for line in bias_shift(before, {inputs.labels[model]: after}).to_pylist()]
                except EvaluationError as error:
                    lacking[f"{dataset}: {error}"] = None
    if not lines and not lacking:
        return []
    head = Text("From a base model to the models tuned from it", "heading")
    text = Text(
        "Both are measured on the rows that both have scored, or, where they were asked in other sentences, on the "
        "pairs of subjects that both were asked about with the same attribute; few of them say little. A change above "
        "0 is stronger associations after tuning. A tuned model's scores are of another kind than a language model's: "
        "η, which only counts, carries over more readily than μ. The rank correlation is 1 where both put the subjects "
        "into the same order."
    )
    blocks: list[Block] = [head, text, *(Text(missing, "note") for missing in lacking)]
    return [*blocks, _shift_table(lines)] if lines else blocks


def _rows(inputs: Inputs, result: Result, lacking: dict[str, None]) -> ScoredRows | None:
    """Give the rows of a result; None, with a note why, where they cannot be had."""
    try:
        rows = inputs.rows_of(result)
    except (BuildError, EvaluationError) as error:
        lacking[f"{result.path}: {error}"] = None
        return None
    if rows is None:
        lacking[inputs.missing(result)] = None
    return rows


def _shift_table(lines: Sequence[dict[str, Any]]) -> Table:
    def of(key: str) -> list[Any]:
        return [line[key] for line in lines]

    numbers = {
        "μ base": "mu_base",
        "μ tuned": "mu",
        "μ change": "mu_shift",
        "η base": "eta_base",
        "η tuned": "eta",
        "η change": "eta_shift",
        "rank correlation": "rank_correlation",
    }
    columns = [Column(name, of(name)) for name in ("set", "base", "model")]
    columns += [Column("shared", of("shared"), help="rows, or pairs of subjects with an attribute")]
    columns += [Column("rows base", of("n_base"), "count"), Column("rows tuned", of("n"), "count")]
    columns += [Column(name, of(key), "number") for name, key in numbers.items()]
    return Table("Change with tuning", columns)
