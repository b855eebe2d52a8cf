"""The figures of cards and reports: one function a figure gives its chart, and in words what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builders.vega_names import drawable

BLUE, ORANGE, GRAY = "#0072b2", "#e69f00", "#6b7280"
"""Kept, removed and all rows; the first two of the Okabe-Ito palette, which the colour-blind can tell apart."""

PARTS = ("kept", "removed")
_DIVIDED = dict(zip(PARTS, (BLUE, ORANGE), strict=True))
_LEAVING = {"stay": BLUE, "leave": ORANGE}
_MOST_BARS, _MOST_TOLD, _TICKS = 24, 4, 20


@dataclass(frozen=True)
class Figure:
    """A chart without a width, so that a page can fit it, and its text alternative.

    Attributes
    ----------
    title : str
        What it shows, in a few words.
    chart : altair.Chart or altair.LayerChart
        The chart.
    alt : str
        What it shows, for who cannot see it.
    legend : mapping of str to str
        Names and their colours, where the chart has several.
    """

    title: str
    chart: Any
    alt: str
    legend: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        """Give the Vega-Lite specification for a page: as wide as what it stands in, without the `legend`."""
        spec: dict[str, Any] = self.chart.properties(width="container", description=self.alt).to_dict()
        spec.pop("config", None)
        if self.legend:
            coloured = spec["layer"][0] if "layer" in spec else spec
            coloured["encoding"]["color"]["legend"] = None
        return spec


def counts(title: str, number: Mapping[str, int]) -> Figure:
    """Show counts by name as bars, in the order given."""
    import altair as alt

    names = [drawable(name) for name in number]
    values = [{"name": name, "count": count} for name, count in zip(names, number.values(), strict=True)]
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X("count:Q", axis=None),
        y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=200, domain=False, ticks=False)),
    )
    labels = base.mark_text(align="left", dx=4).encode(text="count:Q")
    chart = (base.mark_bar(color=BLUE) + labels).properties(height=alt.Step(18))
    return Figure(title, chart, f"{title}: {_listed([f'{name} {count:,}' for name, count in number.items()])}.")


def phase_sizes(phases: Sequence[Mapping[str, Any]]) -> Figure:
    """Show the rows of each phase by whether they left in it.

    Parameters
    ----------
    phases : sequence of mapping
        Records of the filter: ``phase``, ``size``, ``removed``.
    """
    import altair as alt

    values = [
        {"phase": one["phase"], "what": what, "rows": rows, "order": order}
        for one in phases
        for order, (what, rows) in enumerate((("stay", one["size"] - one["removed"]), ("leave", one["removed"])))
    ]
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar()
        .encode(
            x=_phases(phases),
            y=alt.Y("rows:Q", title="rows", axis=alt.Axis(format="~s")),
            color=_colour("what", _LEAVING),
            order="order:Q",
            tooltip=[
                alt.Tooltip("phase:O"),
                alt.Tooltip("what:N", title="rows that"),
                alt.Tooltip("rows:Q", format=","),
            ],
        )
        .properties(height=150)
    )
    first, last = phases[0], phases[-1]
    return Figure(
        "Rows by phase",
        chart,
        f"Bars by phase: {first['size']:,} rows at the start, {last['size'] - last['removed']:,} left after"
        f" {_many(len(phases), 'phase')}.",
        _LEAVING,
    )


def phase_means(phases: Sequence[Mapping[str, Any]]) -> Figure:
    """Show the mean predictability of the rows at the start of each phase.

    Parameters
    ----------
    phases : sequence of mapping
        Records of the filter: ``phase``, ``bias`` (in [0, 1], or None or NaN where no row was scored).
    """
    import altair as alt

    known = [one for one in phases if one["bias"] is not None and one["bias"] == one["bias"]]
    values = [{"phase": one["phase"], "mean": one["bias"]} for one in known]
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_line(color=BLUE, point=alt.OverlayMarkDef(color=BLUE, size=36))
        .encode(
            x=_phases(phases),
            y=alt.Y("mean:Q", title="mean predictability", scale=alt.Scale(domain=[0, 1])),
            tooltip=[alt.Tooltip("phase:O"), alt.Tooltip("mean:Q", format=".3f", title="mean predictability")],
        )
        .properties(height=150)
    )
    told = "no row was scored"
    if known:
        told = f"{known[0]['bias']:.2f} in phase {known[0]['phase']}, {known[-1]['bias']:.2f} in phase"
        told += f" {known[-1]['phase']}"
    return Figure("Mean predictability by phase", chart, f"Mean predictability of the rows by phase, 0 to 1: {told}.")


def scores(histograms: Mapping[str, Sequence[int]], tau: float | None = None) -> Figure:
    """Show how scores distribute among the kept and the removed rows, stacked.

    Parameters
    ----------
    histograms : mapping of str to sequence of int
        Rows in equal bins of [0, 1], by part (`PARTS`).
    tau : float, optional
        The filter's threshold, drawn as a line.
    """
    import altair as alt

    values = [
        {"part": part, "from": place / len(bins), "to": (place + 1) / len(bins), "rows": number}
        for part, bins in histograms.items()
        for place, number in enumerate(bins)
    ]
    chart: Any = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar()
        .encode(
            x=alt.X("from:Q", bin="binned", title="predictability", scale=alt.Scale(domain=[0, 1])),
            x2="to:Q",
            y=alt.Y("rows:Q", title="rows", axis=alt.Axis(format="~s")),
            color=_colour("part", _DIVIDED),
            tooltip=[
                alt.Tooltip("part:N"),
                alt.Tooltip("from:Q"),
                alt.Tooltip("to:Q"),
                alt.Tooltip("rows:Q", format=","),
            ],
        )
    )
    if tau is not None:
        line = alt.Chart(alt.InlineData(values=[{"tau": tau, "text": f"τ {tau:g}"}])).encode(x="tau:Q")
        text = line.mark_text(align="right", dx=-4, baseline="top", fontSize=12, y=0).encode(text="text:N")
        chart = chart + line.mark_rule(strokeDash=[4, 3]) + text
    told = [
        f"{sum(bins):,} {part} rows, most often with scores from {_place(bins) / len(bins):g} to"
        f" {(_place(bins) + 1) / len(bins):g}"
        for part, bins in histograms.items()
        if sum(bins)
    ]
    return Figure(
        "Predictability of kept and removed rows",
        chart.properties(height=200),
        f"Bars by predictability, 0 to 1: {'; '.join(told) or 'no row was scored'}.",
        _DIVIDED,
    )


def score_history(phases: Sequence[Mapping[str, Any]]) -> Figure:
    """Show how predictability is distributed among the rows at the start of each phase.

    Parameters
    ----------
    phases : sequence of mapping
        Records of the filter: ``phase``, ``histogram`` (rows in equal bins of [0, 1]).
    """
    import altair as alt

    values = [
        {"phase": one["phase"], "from": place / len(bins), "to": (place + 1) / len(bins), "rows": rows}
        | {"share": rows / max(1, sum(bins))}
        for one in phases
        for bins in [one["histogram"]]
        for place, rows in enumerate(bins)
    ]
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_rect()
        .encode(
            x=_phases(phases),
            y=alt.Y("from:Q", title="predictability", scale=alt.Scale(domain=[0, 1])),
            y2="to:Q",
            color=alt.Color(
                "share:Q",
                title="share of the rows",
                scale=alt.Scale(type="sqrt", range=["#ffffff", "#00456b"], interpolate="rgb", domain=[0, 1]),
                legend=alt.Legend(orient="top", format="%", values=[0, 0.1, 0.5, 1], gradientLength=200),
            ),
            tooltip=[
                alt.Tooltip("phase:O"),
                alt.Tooltip("from:Q", format=".2f"),
                alt.Tooltip("to:Q", format=".2f"),
                alt.Tooltip("rows:Q", format=","),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(height=200)
    )
    told = [
        f"{one['histogram'][-1] / max(1, sum(one['histogram'])):.0%} in the highest in phase {one['phase']}"
        for one in (phases[0], *phases[1:][-1:])
    ]
    bins = len(phases[0]["histogram"])
    return Figure(
        "Predictability by phase",
        chart,
        f"Share of the rows in each of {bins} equal ranges of predictability, by phase: {_listed(told)}.",
    )


def label_shares(numbers: Mapping[str, Mapping[str, int]]) -> Figure:
    """Show what share of the scored, the kept and the removed rows each label has.

    With more than 24 labels, the 24 are shown of which the share changes most.

    Parameters
    ----------
    numbers : mapping of str to mapping of str to int
        Rows by label, of ``kept`` and ``removed``.
    """
    import altair as alt

    sides = shares(numbers)
    change = {name: abs(sides["kept"][name] - sides["before"][name]) for name in sides["before"]}
    most = set(sorted(change, key=lambda name: -change[name])[:_MOST_BARS])
    names = [name for name in change if name in most]
    values = [
        {"label": drawable(name), "part": part, "share": side[name], "rows": _row_counts(numbers)[part][name]}
        for part, side in sides.items()
        for name in names
    ]
    order = [drawable(name) for name in names]
    few = len(names) <= 6
    offset = alt.YOffset("part:N", sort=list(sides), scale=alt.Scale(paddingInner=0))
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="share of the rows", axis=alt.Axis(format="%", tickCount=5)),
            y=alt.Y(
                "label:N", sort=order, title=None, axis=alt.Axis(labelLimit=160), scale=alt.Scale(paddingInner=0.3)
            ),
            yOffset=offset,
            color=_colour("part", {"before": GRAY, **_DIVIDED}),
            tooltip=[
                alt.Tooltip("label:N"),
                alt.Tooltip("part:N", title="rows"),
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("rows:Q", format=",", title="number"),
            ],
        )
        .properties(height=max(80, (44 if few else 26) * len(names)))
    )
    told = _listed([f"{name} {sides['before'][name]:.0%} before, {sides['kept'][name]:.0%} kept" for name in names])
    left_out = f" (the {len(names)} of {len(change):,} that change most)" if len(names) < len(change) else ""
    return Figure(
        f"Label shares{left_out}",
        chart,
        f"Share of each label before and after filtering: {told}.",
        {"before": GRAY, **_DIVIDED},
    )


def similarity(block: Mapping[str, Any], *, least: float = 0.0) -> Figure:
    """Show the cosine of every two rows of a class: the least predictable kept rows first, then the removed.

    Parameters
    ----------
    block : mapping
        As in `builders.similarity`: ``label``, ``kept`` and ``removed`` (their rows) and ``similarity``.
    least : float
        Where the colours begin.
    """
    import altair as alt

    n_kept, n = len(block["kept"]), len(block["similarity"])
    names = [f"kept {place + 1}" for place in range(n_kept)]
    names += [f"removed {place + 1}" for place in range(n - n_kept)]
    values = [
        {"x": column, "x2": column + 1, "y": row, "y2": row + 1, "first": names[row], "second": names[column]}
        | {"cosine": cosine}
        for row, line in enumerate(block["similarity"])
        for column, cosine in enumerate(line)
    ]
    middles = {n_kept / 2: "kept", (n_kept + n) / 2: "removed"} if 0 < n_kept < n else {n / 2: names[0].split()[0]}
    words = " : ".join(f"datum.value == {place} ? '{word}'" for place, word in middles.items())
    axis = alt.Axis(
        title=None, values=list(middles), labelExpr=f"{words} : ''", ticks=False, domain=False, grid=False, format=".1f"
    )
    scale: dict[str, Any] = {"domain": [0, n], "nice": False}
    chart: Any = (
        alt.Chart(alt.InlineData(values=values))
        .mark_rect()
        .encode(
            x=alt.X("x:Q", axis=axis, scale=alt.Scale(**scale)),
            x2="x2:Q",
            y=alt.Y("y:Q", axis=axis, scale=alt.Scale(**scale, reverse=True)),
            y2="y2:Q",
            color=alt.Color(
                "cosine:Q",
                title="cosine similarity",
                scale=alt.Scale(scheme="cividis", domain=[least, 1]),
                legend=alt.Legend(orient="bottom", gradientLength=160, gradientThickness=10, tickCount=3),
            ),
            tooltip=["first:N", "second:N", alt.Tooltip("cosine:Q", format=".3f")],
        )
    )
    if 0 < n_kept < n:
        edge = alt.Chart(alt.InlineData(values=[{"at": n_kept}]))
        for axis_of in ({"x": "at:Q"}, {"y": "at:Q"}):
            chart = chart + edge.mark_rule(color="white", strokeWidth=3).encode(**axis_of)
    return Figure(
        f"{block['label']}",
        chart.properties(height=200),
        f"Heat map of {block['label']}: the mean cosine is {_mean(block['similarity'], 0, n_kept)} between the"
        f" {n_kept} kept rows shown and {_mean(block['similarity'], n_kept, n)} between the {n - n_kept} removed.",
    )


def shares(numbers: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, float]]:
    """Give the share of each label ``before`` filtering, among the ``kept`` and the ``removed`` rows; 0 without rows.

    Examples
    --------
    >>> shares({"kept": {"a": 1, "b": 3}, "removed": {"a": 6, "b": 0}})["before"]
    {'a': 0.7, 'b': 0.3}
    """
    return {
        part: {name: number / max(1, sum(side.values())) for name, number in side.items()}
        for part, side in _row_counts(numbers).items()
    }


def _row_counts(numbers: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    kept, removed = ({name: side[name] for name in numbers["kept"]} for side in (numbers[part] for part in PARTS))
    return {"before": {name: kept[name] + removed[name] for name in kept}, "kept": kept, "removed": removed}


def _phases(phases: Sequence[Mapping[str, Any]]) -> Any:
    import altair as alt

    ticks = [one["phase"] for one in phases[:: -(-len(phases) // _TICKS)]]
    axis = alt.Axis(values=ticks, labelAngle=0, labelOverlap=True, labelSeparation=4)
    return alt.X("phase:O", title="phase", axis=axis)


def _colour(field: str, colours: Mapping[str, str]) -> Any:
    import altair as alt

    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=alt.Legend(orient="top"))


def _mean(similar: Sequence[Sequence[float]], start: int, stop: int) -> str:
    found = [similar[row][column] for row in range(start, stop) for column in range(row + 1, stop)]
    return f"{sum(found) / len(found):.2f}" if found else "unknown"


def _place(bins: Sequence[int]) -> int:
    return max(range(len(bins)), key=lambda place: bins[place])


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST_TOLD} more" if len(words) > _MOST_TOLD else ""
    return ", ".join(words[:_MOST_TOLD]) + more


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
