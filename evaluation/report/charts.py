"""What the charts of a report have in common: colours, type and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
"""Okabe and Ito's colours, which the colour-blind can tell apart."""

GRAY, INK = "#6b7280", "#1f2933"
DIVERGING = ("#d55e00", "#f7f7f7", "#0072b2")
"""Below 0, 0 and above 0 of a number with a sign."""

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif'

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": "#e4e7eb",
        "domainColor": "#9aa5b1",
        "tickColor": "#9aa5b1",
        "titlePadding": 8,
    },
    "legend": {
        "orient": "top",
        "labelFontSize": 13,
        "titleFontSize": 13,
        "labelColor": INK,
        "titleColor": INK,
        "symbolType": "square",
        "labelLimit": 240,
    },
    "header": {"labelFontSize": 13, "titleFontSize": 13, "labelColor": INK, "titleColor": INK},
    "title": {"fontSize": 15, "anchor": "start", "color": INK, "fontWeight": 600},
    "range": {"category": list(PALETTE), "diverging": list(DIVERGING), "ordinal": list(PALETTE)},
    "bar": {"color": PALETTE[0]},
}
"""Vega-Lite's ``config`` of every chart; `evaluation.report.page` puts it into the page once."""


def colours(names: Sequence[str]) -> dict[str, Any]:
    """Give the scale that has a colour of the palette for each name, in this order; beyond eight they come again.

    Examples
    --------
    >>> colours(["east", "west"])
    {'domain': ['east', 'west'], 'range': ['#0072b2', '#e69f00']}
    """
    return {"domain": list(names), "range": [PALETTE[place % len(PALETTE)] for place in range(len(names))]}
