"""What one image, member or line of a file may be at most, so that a small file cannot take a machine down.

The limits of TOML, JSON and their numbers are those of `unqover_data.files`.
"""

from __future__ import annotations

MOST_PIXELS = 100_000_000  # of an image
MOST_MEMBER_BYTES = 256 * 2**20  # of a member of a tar file
MOST_HEADER_BYTES = 2**20  # of what a tar file says of a member
MOST_LINE_BYTES = 2**20  # of a line of word vectors
MOST_CLASSES = 100_000  # of labels that are numbers without names
