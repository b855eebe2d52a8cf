"""The pictures of the cards, drawn without a browser or a network."""

from __future__ import annotations

import functools
import io
import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from builders.figures import Figure
from builders.folder import Built, verify_folder

if TYPE_CHECKING:
    from PIL.Image import Image

_WIDTH, _SPACE = 520, 24
_TILE, _GAP = 96, 12
_SCALE = 2
_CHILD = """\
import json, sys, vl_convert
name, options = json.load(sys.stdin)
made = getattr(vl_convert, name)(**options)
sys.stdout.buffer.write(made.encode() if isinstance(made, str) else made)
"""
_logger = logging.getLogger(__name__)


def draw(
    figures: Sequence[Figure],
    path: Path,
    *,
    width: int = _WIDTH,
    columns: int = 1,
    legend: Literal["independent", "shared"] = "independent",
) -> bool:
    """Draw figures as one PNG with a white ground, and say whether it could be drawn.

    If it cannot there is no picture and a warning, once for all pictures; see `has_limit`.

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
    from altair.vegalite import SCHEMA_VERSION
    from PIL import Image

    charts = [one.chart.properties(title=one.title, width=width) for one in figures]
    sheet = alt.concat(*charts, columns=columns, spacing=_SPACE).resolve_scale(color=legend)
    sheet = sheet.configure_view(stroke=None).configure_axis(grid=False).configure_title(anchor="start")
    sheet = sheet.properties(background="white", padding=12)
    drawn = io.BytesIO()
    if not has_limit():
        sheet.save(drawn, format="png", scale_factor=_SCALE)
    else:
        version = "_".join(SCHEMA_VERSION.split(".")[:2])
        png = by_child("vegalite_to_png", vl_spec=sheet.to_dict(), vl_version=version, scale=_SCALE)
        if png is None:
            _tell_undrawn()
            return False
        drawn.write(png)
    with Image.open(drawn) as opened:  # a fifth of the bytes
        opened.convert("RGB").save(path, format="PNG", optimize=True)
    return True


def found(target: Path) -> Built:
    """Verify a folder that is there already, and say so if it lacks charts."""
    manifest = verify_folder(target)
    if manifest.get("undrawn"):
        _tell_undrawn()
    return Built(target, manifest, fresh=False)


@functools.cache
def _tell_undrawn() -> None:
    """Warn that charts are missing; once in a process, however many there are."""
    _logger.warning(
        "no charts were drawn: vl-convert needs more address space than this process may have (ulimit -v); all else is "
        "complete; to have them, build again with --overwrite where there is no such limit"
    )


def has_limit() -> bool:
    """Whether this process has a limit on address space (``ulimit -v``).

    vl-convert reserves much of it, and ends the process where there is too little, so under any limit a child uses it.
    """
    try:
        import resource
    except ImportError:  # as on Windows, which has no such limit
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def by_child(function: str, **options: Any) -> bytes | None:
    """Return what a function of vl-convert makes in a process of its own, None if that ends it."""
    asked = json.dumps([function, options]).encode()
    done = subprocess.run([sys.executable, "-c", _CHILD], input=asked, capture_output=True)
    return done.stdout if done.returncode == 0 else None


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
