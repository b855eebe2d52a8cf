"""The pictures of the cards, drawn without a browser or a network."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from builders.figures import Figure

if TYPE_CHECKING:
    from PIL.Image import Image

_WIDTH, _SPACE = 520, 24
_TILE, _GAP = 96, 12


def draw(
    figures: Sequence[Figure],
    path: Path,
    *,
    width: int = _WIDTH,
    columns: int = 1,
    legend: Literal["independent", "shared"] = "independent",
) -> None:
    """Draw figures as one PNG with a white ground.

    Parameters
    ----------
    figures : sequence of Figure
        From left to right and from top to bottom.
    path : Path
        The PNG.
    width : int
        Of each, in pixels; the picture has twice as many.
    columns : int
        How many stand side by side.
    legend : str
        ``shared`` where one legend is enough for all.
    """
    import altair as alt
    from PIL import Image

    charts = [one.chart.properties(title=one.title, width=width) for one in figures]
    sheet = alt.concat(*charts, columns=columns, spacing=_SPACE).resolve_scale(color=legend)
    sheet = sheet.configure_view(stroke=None).configure_axis(grid=False).configure_title(anchor="start")
    drawn = io.BytesIO()
    sheet.properties(background="white", padding=12).save(drawn, format="png", scale_factor=2)
    with Image.open(drawn) as opened:  # a fifth of the bytes
        opened.convert("RGB").save(path, format="PNG", optimize=True)


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
    canvas = ImageDraw.Draw(sheet)
    for place, (title, images) in enumerate(rows.items()):
        top = _GAP + place * height
        canvas.text((_GAP, top), title, fill="black", font=font)
        for column, (image, label) in enumerate(images):
            shown = image.convert("RGB")
            how = Image.Resampling.NEAREST if max(shown.size) < _TILE else Image.Resampling.LANCZOS
            tile = ImageOps.pad(shown, (_TILE, _TILE), method=how, color="white")
            left = _GAP + column * step
            sheet.paste(tile, (left, top + line))
            words = label if canvas.textlength(label, font) <= _TILE else label[: _TILE // 9] + "…"
            canvas.text((left, top + line + _TILE + 2), words, fill="black", font=font)
    sheet.save(path, format="PNG")
