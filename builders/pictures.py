"""The pictures of the cards, drawn without a browser or a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

BLUE, ORANGE = "#0072b2", "#e69f00"
"""From the Okabe-Ito palette, which the colour-blind can tell apart."""

_WIDTH = 520
_TILE, _GAP = 96, 12


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
    _save(alt.hconcat(*charts, spacing=40), path)


def draw_phases(sizes: Sequence[int], biases: Sequence[float], path: Path) -> None:
    """Draw the rows and their mean predictability by phase, one above the other, as a PNG.

    Parameters
    ----------
    sizes : sequence of int
        Rows at the start of each phase.
    biases : sequence of float
        Their mean predictability, in [0, 1].
    path : Path
        The PNG.
    """
    import altair as alt

    values = [
        {"phase": phase, "rows": size, "mean predictability": bias}
        for phase, (size, bias) in enumerate(zip(sizes, biases, strict=True))
    ]
    ticks = list(range(0, len(values), max(1, len(values) // 20)))
    x = alt.X("phase:O", axis=alt.Axis(values=ticks, labelAngle=0))
    base = alt.Chart(alt.InlineData(values=values)).encode(x=x)
    rows = base.mark_bar(color=BLUE).encode(y=alt.Y("rows:Q", axis=alt.Axis(format="~s")))
    bias = base.mark_line(color=ORANGE, point={"color": ORANGE}).encode(
        y=alt.Y("mean predictability:Q", scale=alt.Scale(domain=[0, 1]))
    )
    _save(alt.vconcat(rows.properties(width=_WIDTH, height=140), bias.properties(width=_WIDTH, height=140)), path)


def draw_scores(histograms: Mapping[str, Sequence[int]], path: Path) -> None:
    """Draw how scores distribute in parts of a set, stacked, as a PNG.

    Parameters
    ----------
    histograms : mapping of str to sequence of int
        Rows in equal bins of [0, 1], by part.
    path : Path
        The PNG.
    """
    import altair as alt

    values = [
        {"part": part, "from": place / len(counts), "to": (place + 1) / len(counts), "rows": number}
        for part, counts in histograms.items()
        for place, number in enumerate(counts)
    ]
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar()
        .encode(
            x=alt.X("from:Q", bin="binned", title="predictability", scale=alt.Scale(domain=[0, 1])),
            x2="to:Q",
            y=alt.Y("rows:Q", axis=alt.Axis(format="~s")),
            color=alt.Color(
                "part:N", title=None, scale=alt.Scale(domain=list(histograms), range=[ORANGE, BLUE][: len(histograms)])
            ),
        )
    )
    _save(chart.properties(width=_WIDTH, height=200), path)


def draw_gallery(rows: Mapping[str, Sequence[tuple[Image, str]]], path: Path) -> None:
    """Draw rows of images with their labels, as a PNG.

    Parameters
    ----------
    rows : mapping of str to sequence of (PIL image, label)
        Title of each row, and what stands in it.
    path : Path
        The PNG.
    """
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    font = ImageFont.load_default(size=14)
    columns = max(len(images) for images in rows.values())
    step, line = _TILE + _GAP, 22
    height = step + 2 * line
    sheet = Image.new("RGB", (max(1, columns) * step + _GAP, len(rows) * height + _GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for place, (title, images) in enumerate(rows.items()):
        top = _GAP + place * height
        draw.text((_GAP, top), title, fill="black", font=font)
        for column, (image, label) in enumerate(images):
            shown = image.convert("RGB")
            how = Image.Resampling.NEAREST if max(shown.size) < _TILE else Image.Resampling.LANCZOS
            tile = ImageOps.pad(shown, (_TILE, _TILE), method=how, color="white")
            left = _GAP + column * step
            sheet.paste(tile, (left, top + line))
            words = label if draw.textlength(label, font) <= _TILE else label[: _TILE // 9] + "…"
            draw.text((left, top + line + _TILE + 2), words, fill="black", font=font)
    sheet.save(path, format="PNG")


def _save(chart: Any, path: Path) -> None:
    chart = chart.configure_view(stroke=None).configure_axis(grid=False)
    chart.properties(background="white").save(path, format="png", scale_factor=2)
