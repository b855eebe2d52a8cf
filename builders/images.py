"""Images as rows have them: opened from their bytes, which are in the row or in a file of an image folder.

Nothing here opens a path or an address that a file of others names: readers of rows refuse images without bytes (see
`builders.embedded`), and only an image folder's own reader writes paths.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.errors import BuildError
from builders.limits import MOST_PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image

_ADDRESS = re.compile(r" ?<[\w.]+ object at 0x[0-9a-f]+>")  # differs from run to run
_NOT_OPENED = {"EPS"}  # a program that Ghostscript would run


def image_bytes(value: Mapping[str, Any]) -> bytes:
    """Return the bytes of an image: those of the row, else those of the file of an image folder.

    Raises
    ------
    BuildError
        If it has neither.
    """
    if value["bytes"] is not None:
        return bytes(value["bytes"])
    try:
        return Path(value["path"] or "").read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BuildError(f"the image {value['path']} cannot be read ({reason}): put it back, or leave it out") from None


def open_image(content: bytes) -> Image:
    """Decode an image and turn it as its EXIF data says.

    Raises
    ------
    ValueError
        If it has more than `MOST_PIXELS` pixels.
    Exception
        Whatever a decoder makes of a broken file.
    """
    from PIL import ExifTags, ImageOps
    from PIL import Image as pillow

    pillow.init()
    formats = [name for name in pillow.ID if name not in _NOT_OPENED]
    too_large = ValueError(f"it has more than {MOST_PIXELS:,} pixels")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # ours is the limit
        try:
            image: Image = pillow.open(io.BytesIO(content), formats=formats)
        except pillow.DecompressionBombError:
            raise too_large from None
        if image.width * image.height > MOST_PIXELS:
            raise too_large
        image.load()
    if image.getexif().get(ExifTags.Base.Orientation) is not None:
        image = ImageOps.exif_transpose(image)
    return image


def broken_image(value: Mapping[str, Any], row: int, error: Exception) -> str:
    """Say in a line that the image of a row (its ``source_index``) cannot be decoded."""
    reason = _ADDRESS.sub("", " ".join(f"{type(error).__name__}: {error}".split()))
    where = f", {value['path']}" if value["path"] else ""
    return f"the image of row {row} (source_index{where}) cannot be read ({reason}); mend it or leave it out"
