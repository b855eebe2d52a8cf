"""Word vectors from a text file: GloVe's, word2vec's text format, or fastText's ``.vec``; plain or ``.gz``.

A line is a word and its numbers; a first line of two whole numbers is the header of word2vec and fastText. Words of
GloVe 840B may hold spaces, so a line is cut from the right. Of a word that occurs twice the first line counts.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.folder import sha256
from builders.limits import MOST_LINE_BYTES


class VectorFile:
    """A file of word vectors that is read where it lies.

    The first look-up goes through the file once and keeps 24 bytes a word: a hash and where its line is. Only the
    lines of the words asked for are then parsed. In a ``.gz`` file every later look-up unpacks it again up to the last
    of these lines, so a large one is better unpacked first.

    Parameters
    ----------
    path : Path
        The file.
    dimension : int
        Numbers a word.

    Raises
    ------
    BuildError
        If there is no such file.
    """

    def __init__(self, path: Path, *, dimension: int) -> None:
        if not path.is_file():
            raise BuildError(f"vectors: {path} is no file; name a GloVe, word2vec or fastText text file")
        self._path = path
        self._dimension = dimension

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the file as it lies on the disk."""
        return sha256(self._path)

    def read(self, words: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """Give the vectors of those of `words` that the file has.

        Parameters
        ----------
        words : iterable of str
            Words as the file writes them.

        Returns
        -------
        dict of str to ndarray of float32, shape (dimension,)
            In the order in which they stand in the file; the words that it lacks are left out.

        Raises
        ------
        BuildError
            Naming the line that is empty, has another number of numbers, or something that is no finite number.
        """
        hashes, offsets, lines = self._index
        wanted = {word.encode(): word for word in words}
        asked = np.array([_hash(word) for word in wanted], np.uint64)
        places = np.searchsorted(hashes, asked)
        found = places[(places < len(hashes)) & (hashes[np.minimum(places, len(hashes) - 1)] == asked)]
        vectors = {}
        with self._open() as file:
            for place in found[np.argsort(offsets[found])]:
                file.seek(offsets[place])
                line = int(lines[place])
                word, numbers = self._cut(file.readline(), line)
                if word in wanted:
                    vectors[wanted[word]] = self._parse(numbers, line)
        return vectors

    @functools.cached_property
    def _index(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Hashes of all words, ascending, with the offset and the number of the first line of each."""
        entries = np.fromiter(
            self._entries(), np.dtype([("hash", np.uint64), ("offset", np.int64), ("line", np.int64)])
        )
        if not len(entries):
            raise BuildError(f"vectors: {self._path} holds no word; name a file with a word and its vector a line")
        hashes, first = np.unique(entries["hash"], return_index=True)
        return hashes, entries["offset"][first], entries["line"][first]

    def _entries(self) -> Iterator[tuple[int, int, int]]:
        offset = 0
        try:
            with self._open() as file:
                for line, raw in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES + 1), b""), start=1):
                    if len(raw) > MOST_LINE_BYTES:
                        raise BuildError(
                            f"vectors: line {line} of {self._path} is longer than {MOST_LINE_BYTES:,} bytes; name a "
                            "file with a word and its vector a line"
                        )
                    if line > 1 or not self._is_header(raw):
                        yield _hash(self._cut(raw, line)[0]), offset, line
                    offset += len(raw)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BuildError(f"vectors: {self._path} cannot be unpacked ({error}); fetch it again") from error

    def _is_header(self, raw: bytes) -> bool:
        """Whether a first line holds the numbers of words and of dimensions; checks the latter."""
        fields = raw.split()
        if len(fields) == 2 and all(field.isdigit() for field in fields) and self._dimension != 1:
            self._check_dimension(int(fields[1]), 1)
            return True
        numbers = len(fields) - 1
        if numbers > self._dimension and all(_is_number(field) for field in fields[1:]):
            self._check_dimension(numbers, 1)
        return False

    def _cut(self, raw: bytes, line: int) -> tuple[bytes, list[bytes]]:
        # fastText ends its lines with a space.
        text = raw.rstrip(b" \t\r\n")
        if not text:
            raise BuildError(f"vectors: line {line} of {self._path} is empty; every line needs a word and its vector")
        word, *numbers = text.rsplit(None, self._dimension) if b"\t" in text else text.rsplit(b" ", self._dimension)
        self._check_dimension(len(numbers), line)
        return word, numbers

    def _check_dimension(self, numbers: int, line: int) -> None:
        if numbers != self._dimension:
            raise BuildError(
                f"vectors: line {line} of {self._path} has {numbers} numbers where dimension = {self._dimension}; set"
                " dimension to the file's, or mend the line"
            )

    def _parse(self, numbers: list[bytes], line: int) -> NDArray[np.float32]:
        try:
            vector = np.array([float(number) for number in numbers], np.float32)
        except ValueError as error:
            raise BuildError(f"vectors: line {line} of {self._path}: {error}; mend the line") from error
        if not np.isfinite(vector).all():
            raise BuildError(f"vectors: line {line} of {self._path} has a number that is not finite; mend the line")
        return vector

    def _open(self) -> IO[bytes]:
        return cast(IO[bytes], gzip.open(self._path)) if self._path.suffix == ".gz" else self._path.open("rb")


def _hash(word: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "little")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
