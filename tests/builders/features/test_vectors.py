"""Word vectors: the formats as they are distributed, and files that are broken."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from builders.errors import BuildError
from builders.features.vectors import VectorFile

GLOVE = "the 0.5 -1 2e-1\n. . . 1 2 3\nnaïve 4 5 6\nthe 7 8 9\n2 1 1 1\n"


def _file(tmp_path: Path, text: str, name: str = "vectors.txt") -> VectorFile:
    path = tmp_path / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return VectorFile(path, dimension=3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("glove.txt", GLOVE),
        ("glove.txt.gz", GLOVE),
        ("word2vec.txt", "5 3\n" + GLOVE),
        ("fasttext.vec", "5 3\n" + GLOVE.replace("\n", " \n")),
        ("tabs.txt", GLOVE.replace("the ", "the\t")),
        ("windows.txt", GLOVE.replace("\n", "\r\n")),
        ("no-last-newline.txt", GLOVE.rstrip()),
    ],
)
def test_every_format_gives_the_first_vector_of_each_word_asked_for(tmp_path: Path, name: str, text: str) -> None:
    vectors = _file(tmp_path, text, name).read(["naïve", "absent", ". . .", "the", "2"])
    assert {word: vector.tolist() for word, vector in vectors.items()} == {
        "the": [0.5, -1.0, np.float32(0.2)],
        ". . .": [1.0, 2.0, 3.0],
        "naïve": [4.0, 5.0, 6.0],
        "2": [1.0, 1.0, 1.0],
    }
    assert list(vectors) == ["the", ". . .", "naïve", "2"]
    assert vectors["the"].dtype == np.float32


def test_a_file_can_be_asked_again_and_for_nothing(tmp_path: Path) -> None:
    vectors = _file(tmp_path, GLOVE)
    assert vectors.read([]) == {}
    assert list(vectors.read(["the"])) == ["the"]
    assert list(vectors.read(["naïve"])) == ["naïve"]
    assert vectors.sha256 == hashlib.sha256(GLOVE.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"vectors: .*vectors.txt holds no word"),
        ("2 3\n", r"vectors: .*vectors.txt holds no word"),
        ("the 1 2 3\n\nof 1 2 3\n", "line 2 of .* is empty"),
        ("the 1 2 3\nof 1 2\n", "line 2 of .* has 2 numbers where dimension = 3; set dimension"),
        ("the 1 2 3 4\nof 1 2 3 4\n", "line 1 of .* has 4 numbers where dimension = 3"),
        ("2 4\nthe 1 2 3 4\n", "line 1 of .* has 4 numbers where dimension = 3"),
        ("2 3\nof 1 2 3\nthe 1 x 3\n", "line 3 of .*could not convert string to float: b'x'"),
        ("of 1 2 3\nthe 1 nan 3\n", "line 2 of .* has a number that is not finite"),
    ],
)
def test_a_broken_file_is_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        _file(tmp_path, text).read(["the"])


def test_a_missing_or_cut_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"absent.txt is no file; name a GloVe"):
        VectorFile(tmp_path / "absent.txt", dimension=3)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GLOVE.encode() * 100)[:-20])
    with pytest.raises(BuildError, match=r"cut.gz cannot be unpacked"):
        VectorFile(tmp_path / "cut.gz", dimension=3).read(["the"])
    (tmp_path / "plain.gz").write_text(GLOVE)
    with pytest.raises(BuildError, match=r"plain.gz cannot be unpacked"):
        VectorFile(tmp_path / "plain.gz", dimension=3).read(["the"])


def test_memory_does_not_grow_with_the_dimension(tmp_path: Path) -> None:
    words, dimension = 5_000, 300
    path = tmp_path / "large.txt"
    path.write_text("".join(f"w{i}{' 0.25' * dimension}\n" for i in range(words)))
    tracemalloc.start()
    vectors = VectorFile(path, dimension=dimension).read(["w7", "w4999"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [vector.sum() for vector in vectors.values()] == [75.0, 75.0]
    # All vectors would take 6 MB.
    assert peak < 1_500_000


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.txt.gz", "wb") as file:
        for _ in range(64):
            file.write(bytes(2**20))
    tracemalloc.start()
    with pytest.raises(BuildError, match=r"line 1 .* is longer than 1,048,576 bytes"):
        VectorFile(tmp_path / "bomb.txt.gz", dimension=3).read(["the"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20
