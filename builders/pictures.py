"""The pictures of the cards, drawn without a browser or a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

BLUE = "#0072b2"
"""From the Okabe-Ito palette, which the colour-blind can tell apart."""


def draw_counts(panels: Mapping[str, Mapping[str, int]], path: Path) -> None:
    """Draw one bar chart a panel, side by side, as a PNG with a white ground.

    Parameters
    ----------
    panels : mapping of str to mapping of str to int
        Title of each panel, and the counts in the order they are drawn.
    path : Path
        The PNG.
    """
    import altair as alt

    charts = []
    for title, counts in panels.items():
        rows = [{"name": name, "count": count} for name, count in counts.items()]
        base = alt.Chart(alt.InlineData(values=rows), title=title).encode(
            x=alt.X("count:Q", axis=None),
            y=alt.Y(
                "name:N",
                sort=list(counts),
                title=None,
                axis=alt.Axis(labelLimit=200, domain=False, ticks=False),
            ),
        )
        labels = base.mark_text(align="left", dx=4).encode(text="count:Q")
        charts.append((base.mark_bar(color=BLUE) + labels).properties(width=220, height=alt.Step(18)))
    chart = alt.hconcat(*charts, spacing=40).configure_view(stroke=None).configure_axis(grid=False)
    chart.properties(background="white").save(path, format="png", scale_factor=2)
