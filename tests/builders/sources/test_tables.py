"""Text comes through as it stands in each format, and what is no such format is refused by file and line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.errors import BuildError
from builders.sources import read_source, tables
from tests.builders.sources.reading import nli, refused

TEXTS = [
    "None",
    "NA",
    "null",
    "NaN",
    "",
    " led by a space ",
    '"quoted" and "open',
    "it's",
    '"',
    "2013-01-01 00:00:00",
    "007",
    "1e5",
    "a lone \r return",
    "line\u2028separator\u2029and\x85and\x0band\x1c",
    "Temüjin 😀 \ufeff \x00",
    "back\\slash \\n",
    "comma, comma",
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        case ".jsonl":
            path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
        case ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_ALL)
                writer.writeheader()
                writer.writerows(rows)
        case ".tsv":
            lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
            path.write_bytes("".join("\t".join(line) + "\n" for line in lines).encode())
    return path


def rows_of(texts: list[str]) -> list[dict[str, Any]]:
    return [{"premise": text, "hypothesis": text[::-1], "label": i % 3} for i, text in enumerate(texts)]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv", ".tsv"])
def test_text_is_left_exactly_as_it_was(tmp_path: Path, suffix: str) -> None:
    rows = rows_of(TEXTS)
    found = read_source(nli(), work=tmp_path / "w", path=write(tmp_path / f"train{suffix}", rows)).splits["train"]
    assert found["premise"][:] == TEXTS
    assert found["hypothesis"][:] == [text[::-1] for text in TEXTS]
    assert found["label"][:] == [row["label"] for row in rows]
    assert found["source_index"][:] == list(range(len(TEXTS)))
    assert found.cache_files


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_line_breaks_inside_a_text(tmp_path: Path, suffix: str) -> None:
    texts = ["one\ntwo\r\nthree", "\n", "end"]
    path = write(tmp_path / f"train{suffix}", rows_of(texts))
    assert read_source(nli(), work=tmp_path / "w", path=path).splits["train"]["premise"][:] == texts


def test_windows_line_ends_and_byte_order_marks(tmp_path: Path) -> None:
    tsv = tmp_path / "train.tsv"
    tsv.write_bytes(b"\xef\xbb\xbfpremise\thypothesis\tlabel\r\na\tb\t0\r\nc\td\t1")
    found = read_source(nli(), work=tmp_path / "w", path=tsv).splits["train"]
    assert (found["premise"][:], found["label"][:]) == (["a", "c"], [0, 1])
    unix = tmp_path / "dev.tsv"
    unix.write_bytes(b"label\thypothesis\tpremise\n0\ta\tb\r\n\n1\tc\td\r\n")
    found = read_source(nli(filtered=("validation",)), work=tmp_path / "w", path=unix).splits["validation"]
    assert found["premise"][:] == ["b\r", "d\r"]
    table = tmp_path / "test.csv"
    table.write_bytes(b'\xef\xbb\xbfpremise,hypothesis,label\r\n"a ""b""",c,0\r\n')
    found = read_source(nli(filtered=("test",)), work=tmp_path / "w", path=table).splits["test"]
    assert found["premise"][:] == ['a "b"']
    lines = tmp_path / "val.jsonl"
    lines.write_bytes(b'\xef\xbb\xbf{"premise": "a", "hypothesis": "b", "label": 0}\r\n\r\n')
    assert len(read_source(nli(filtered=("validation",)), work=tmp_path / "w", path=lines).splits["validation"]) == 1


def test_other_columns_come_along_with_their_types(tmp_path: Path) -> None:
    rows = [
        {"premise": "a", "hypothesis": "b", "label": 0, "n": 1, "votes": [], "parse": {"x": None}, "day": "2013-01-01"},
        {"premise": "c", "hypothesis": "d", "label": 1, "n": 2.5, "votes": ["x"], "parse": {"x": 1, "y": "z"}},
    ]
    path = write(tmp_path / "train.jsonl", rows)
    found = read_source(nli(), work=tmp_path / "w", path=path).splits["train"]
    assert found.column_names == ["premise", "hypothesis", "label", "source_index", "n", "votes", "parse", "day"]
    assert found[:]["n"] == [1.0, 2.5]
    assert found[:]["votes"] == [[], ["x"]]
    assert found[:]["parse"] == [{"x": None, "y": None}, {"x": 1, "y": "z"}]
    assert found[:]["day"] == ["2013-01-01", None]
    categories = pa.table({"premise": ["a"], "hypothesis": ["b"], "label": [0], "genre": ["x"]})
    genre = categories["genre"].dictionary_encode()
    pq.write_table(categories.set_column(3, "genre", genre), tmp_path / "dev.parquet")
    found = read_source(nli(filtered=("validation",)), work=tmp_path / "w", path=tmp_path / "dev.parquet")
    assert found.splits["validation"]["genre"][:] == ["x"]


def test_types_of_a_column_may_widen_far_into_a_file_but_not_clash(tmp_path: Path) -> None:
    rows = [{"premise": "a", "hypothesis": "b", "label": 0, "n": None} for _ in range(5_001)]
    path = write(tmp_path / "train.jsonl", [*rows, {**rows[0], "n": 7, "late": "x"}])
    found = read_source(nli(), work=tmp_path / "w", path=path).splits["train"]
    assert (found[-1]["n"], found[-1]["late"], found[0]["late"]) == (7, "x", None)
    clash = write(tmp_path / "clash.jsonl", [{**rows[0], "n": 1}, *rows, {**rows[0], "n": "x"}])
    refused(nli(), clash, "column 'n' of clash.jsonl", "string", "int64")
    near = write(tmp_path / "near.jsonl", [{**rows[0], "n": 1}, {**rows[0], "n": "x"}])
    refused(nli(), near, "near.jsonl, lines 1 to 2", "'n'", "no single type")


def test_columns_that_only_some_splits_have_are_null_in_the_others(tmp_path: Path) -> None:
    row = {"premise": "a", "hypothesis": "b", "label": 0}
    write(tmp_path / "train.tsv", [{**row, "label1": "neutral"}])
    write(tmp_path / "dev.tsv", [{**row, "genre": "fiction"}])
    splits = read_source(nli(), work=tmp_path / "w", path=tmp_path).splits
    assert splits["train"].features == splits["validation"].features
    assert splits["train"][0]["genre"] is None
    assert splits["validation"][0]["label1"] is None


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("a.tsv", b"premise\thypothesis\tlabel\na\tb\t0\na\t0\n", ("a.tsv, line 3", "2 fields", "header has 3")),
        ("a.tsv", b"premise\tpremise\tlabel\na\tb\t0\n", ("a.tsv", "'premise'", "each once")),
        ("a.tsv", b"premise\thypothesis\tlabel\na\t\xff\t0\n", ("a.tsv, line 2", "UTF-8")),
        ("a.tsv", b"", ("a.tsv", "begin with column names")),
        ("a.csv", b"premise,hypothesis,label\na,b,0,1\n", ("a.csv, line 2", "4 fields")),
        ("a.csv", b'premise,hypothesis,label\na,"b,0\n', ("a.csv, line 2", "not CSV")),
        ("a.csv", b"premise,hypothesis,label\na\rb,c,0\n", ("a.csv, line",)),
        ("a.csv", b"premise,hypothesis,label\n\xff,b,0\n", ("a.csv", "UTF-8")),
        ("a.jsonl", b'{"premise": "a"}\n{"premise": \n', ("a.jsonl, line 2", "not valid JSON")),
        ("a.jsonl", b"[1]\n", ("a.jsonl, line 1", "object")),
        (
            "a.jsonl",
            b'{"premise": "\\ud800", "hypothesis": "b", "label": 0}\n',
            ("a.jsonl, line 1", "half a character"),
        ),
        (
            "a.jsonl",
            b'{"premise": "a", "hypothesis": "b", "label": 99999999999999999999}\n',
            ("a.jsonl, line 1", "outside -2^63 to 2^64-1"),
        ),
        ("a.jsonl", b"\xff\n", ("a.jsonl, line 1", "UTF-8")),
        ("a.parquet", b"PAR1", ("a.parquet", "cannot be read as Parquet")),
    ],
)
def test_what_is_not_the_format_is_refused(tmp_path: Path, name: str, content: bytes, parts: tuple[str, ...]) -> None:
    (tmp_path / name).write_bytes(content)
    refused(nli(), tmp_path / name, *parts)


def test_a_source_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"\n")
    refused(nli(), tmp_path / "empty.jsonl", "no rows", "train", "empty.jsonl")
    write(tmp_path / "train.tsv", rows_of(["a"]))
    (tmp_path / "dev.tsv").write_bytes(b"premise\thypothesis\tlabel\n")
    refused(nli(), tmp_path, "no split", "empty.jsonl")
    (tmp_path / "empty.jsonl").unlink()
    refused(nli(), tmp_path, "no rows", "validation")


@pytest.mark.parametrize("first", [2**64 - 1, 0])
def test_a_column_of_whole_numbers_may_go_to_two_to_the_64(tmp_path: Path, first: int) -> None:
    part = [(1, {"hash": first}), (2, {"hash": 2**64 - 1}), (3, {"hash": None})]
    large, small = tables._json_features("a", part, ()), tables._json_features("a", [(4, {"hash": 1})], ())
    for both in ((large, small), (small, large)):
        features = tables.merge_features([("a", one) for one in both])
        assert tables._json_table("a", part, features, ())["hash"].to_pylist() == [first, 2**64 - 1, None]
    with pytest.raises(BuildError, match="column 'hash' has no single type"):
        tables._json_features("a", [*part, (4, {"hash": -1})], ())
