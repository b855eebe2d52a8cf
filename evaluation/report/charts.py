"""What the charts of a report have in common: colours, type and sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from builders.vega_names import drawable

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
"""Okabe and Ito's colours, which the colour-blind can tell apart, but for the yellow, which is faint on white."""

SHAPES = ("circle", "square", "triangle-up", "diamond")

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


def in_lines(name: str, width: int = 24) -> str:
    """Break a long name for an axis, behind a hyphen or a space as far as it has one; give the axis `LINES` too.

    Examples
    --------
    >>> in_lines("distilbert-base-uncased-squad")
    'distilbert-base-uncased-\\nsquad'
    """
    name = drawable(name)
    lines = [""]
    for piece in re.findall(rf"[^-_/ ]{{1,{width}}}[-_/ ]*|[-_/ ]+", name):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip(" ") for line in lines) if name.strip() else name


LINES = {"labelExpr": "split(datum.label, '\\n')", "labelLineHeight": 14}
"""Of an axis whose names were broken by `in_lines`."""


def marks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Give each name a colour and a shape; beyond seven, the colours come again with the next shape.

    Examples
    --------
    >>> marks(["east", "west"])
    {'east': ('#0072b2', 'circle'), 'west': ('#e69f00', 'circle')}
    """
    size = len(PALETTE)
    return {drawable(name): (PALETTE[i % size], SHAPES[i // size % len(SHAPES)]) for i, name in enumerate(names)}
