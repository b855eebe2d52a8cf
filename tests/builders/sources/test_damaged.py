"""Sources that no honest program wrote: each ends with one line that names what is wrong."""

from __future__ import annotations

import io
import struct
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Features, Value

from builders.errors import BuildError
from builders.limits import MOST_MEMBER_BYTES
from builders.sources import read_source
from tests.builders.sources.reading import NAMES, nli, pictures, png, put, refused, shard
from unqover_data.files import MOST_LEVELS

LAST = '{"premise": "a", "hypothesis": "b", "label": 1}\n'
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(struct.pack("<iii", 0, 1, 2)), pa.py_buffer(b"\xff\xfe")]
)
TEXTS = {"premise": ["a", "b"], "hypothesis": ["c", "d"], "label": [0, 1]}


@pytest.mark.parametrize(
    ("field", "parts"),
    [
        ('"x": ' + "[" * 5000 + "]" * 5000, ("line 1", f"more than {MOST_LEVELS} deep")),
        ('"x": ' + '{"y":' * 40 + "1" + "}" * 40, ("line 1", f"more than {MOST_LEVELS} deep")),
        ('"x": ' + "9" * 5000, ("line 1", "outside -2^63 to 2^64-1")),
        ('"x": ' + "9" * 25, ("line 1", "outside -2^63 to 2^64-1")),
        ('"x": {}', ("'x'", "cannot be stored as Parquet")),
        ('"x": [{"y": {}}]', ("'x'", "cannot be stored as Parquet")),
        ('"\\ud800": 1', ("line 1", "half a character", r"\ud800")),
        ('"x": "\\ud800"', ("line 1", "half a character")),
        ('"x\\u0000": 1', ("line 1", "name of a column")),
        ('"label": 123456789012', ("'123456789012'", "row 0")),
        (f'"label": "{"9" * 5000}"', ("row 0", "label names")),
    ],
)
def test_json_lines(tmp_path: Path, field: str, parts: tuple[str, ...]) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(f'{{"premise": "a", "hypothesis": "b", "label": 0, {field}}}\n{LAST}', encoding="utf-8")
    refused(nli(), path, *parts)


def test_numbers_of_labels_without_names_have_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(LAST + LAST.replace("1}", "100000}"), encoding="utf-8")
    refused(nli(names=()), path, "label 100000", "below 100,000", "spec")


def parquet(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("column", ["premise", "label", "more"])
def test_text_in_parquet_that_is_not_utf8(tmp_path: Path, column: str) -> None:
    refused(nli(), parquet(tmp_path / "train.parquet", pa.table({**TEXTS, column: NOT_UTF8})), repr(column), "UTF-8")


@pytest.mark.parametrize("number", [7, -5])
def test_numbers_of_labels_outside_of_the_names(tmp_path: Path, number: int) -> None:
    schema = Features(
        {name: Value("string") for name in ("premise", "hypothesis")} | {"label": ClassLabel(names=NAMES)}
    )
    table = pa.table({**TEXTS, "label": [0, number]}).cast(schema.arrow_schema)
    refused(nli(), parquet(tmp_path / "train.parquet", table), "label", str(number), "train")


@pytest.mark.parametrize(
    "metadata", [b"{", b'{"info": 3}', b'{"info": {"features": {"x": {"_type": "Nope"}}}}', b"\xff"]
)
def test_types_that_nobody_knows(tmp_path: Path, metadata: bytes) -> None:
    table = pa.table(TEXTS).replace_schema_metadata({b"huggingface": metadata})
    refused(nli(), parquet(tmp_path / "train.parquet", table), "train.parquet", "cannot be read as Parquet")


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    arrays = [pa.array(values) for values in TEXTS.values()]
    table = pa.Table.from_arrays([*arrays, arrays[2]], names=[*TEXTS, "label"])
    refused(nli(), parquet(tmp_path / "train.parquet", table), "'label'", "each once")


def test_parquet_of_which_any_byte_was_changed_is_read_or_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "train.parquet", pa.table({name: values * 200 for name, values in TEXTS.items()}))
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for trial in range(40):
        changed = np.frombuffer(content, np.uint8).copy()
        changed[rng.integers(changed.size, size=rng.choice([1, 3, 20]))] = rng.integers(256)
        path.write_bytes(changed.tobytes()[: None if trial % 4 else -int(rng.integers(1, 400))])
        told = ""
        try:
            read_source(nli(), work=tmp_path / f"work{trial}", path=path)
        except BuildError as error:
            told = str(error)
        assert "\n" not in told


@pytest.mark.parametrize("place", ["file", "folder", "class"])
def test_names_that_are_not_utf8(tmp_path: Path, place: str) -> None:
    try:
        (tmp_path / "\udcff").mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    if place == "class":
        refused(pictures(), put(tmp_path / "set", "\udcff/1.png", "b/1.png"), r"\udcff/1.png", "not UTF-8")
        return
    root = tmp_path / ("set" if place == "file" else "set\udcff")
    root.mkdir()
    (root / ("train\udcff.jsonl" if place == "file" else "train.jsonl")).write_text(LAST, encoding="utf-8")
    refused(nli(), root, r"\udcff", "not UTF-8")


@pytest.mark.parametrize(
    ("part", "content", "parts"),
    [
        ("cls", b"9" * 5000, ("whole number", "digits")),
        ("cls", b"9" * 25, ("whole number of 64 bits",)),
        ("txt", b"\xff", ("text in UTF-8",)),
        ("json", b"[" * 5000 + b"]" * 5000, ("JSON", f"more than {MOST_LEVELS} deep")),
        ("json", b'{"a": {}}', ("'json'", "cannot be stored as Parquet")),
    ],
)
def test_parts_of_samples(tmp_path: Path, part: str, content: bytes, parts: tuple[str, ...]) -> None:
    sample: dict[str, Any] = {"png": png(0), "cls": 0}
    refused(pictures(), shard(tmp_path / "a.tar", {**sample, part: content}, {**sample, "cls": 1}), *parts)


def header(kind: bytes, size: int) -> bytes:
    """The header of a member of a tar file, in GNU's format; of a sparse one, `size` is what it claims to hold."""
    sparse = kind == b"S"
    field = (b"\x80" + size.to_bytes(11, "big"), b"%011o\0" % 0)
    content = bytearray(512)
    content[:8], content[124:136], content[156:157], content[257:265] = b"0000.png", field[sparse], kind, b"ustar  \0"
    if sparse:
        content[483:495] = field[0]
    content[148:156] = b"%06o\0 " % (sum(content) + 8 * ord(" "))
    return bytes(content)


@pytest.mark.parametrize(("kind", "word"), [(b"S", "sparse"), (b"0", "of 42,949,672,960 bytes")])
def test_members_that_claim_more_than_they_hold(tmp_path: Path, kind: bytes, word: str) -> None:
    path = tmp_path / "train.tar"
    path.write_bytes(header(kind, 40 * 2**30) + bytes(1024))
    refused(pictures(), path, "'0000.png' in train.tar", word, f"at most {MOST_MEMBER_BYTES:,}")


def _ends(content: bytes) -> int:
    """Where the last two members of a shard begin: a picture and its class."""
    with tarfile.open(fileobj=io.BytesIO(content)) as file:
        return file.getmembers()[-2].offset


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda content: content[: _ends(content)], ("empty header",)),
        (lambda content: content[: _ends(content) + 99], ("truncated header",)),
        (lambda content: content[: _ends(content)] + b"!" + content[_ends(content) + 1 :], ("bad checksum",)),
        (lambda content: content * 2, ("goes on behind its end",)),
        (lambda content: header(b"L", 2**40) + content, ("a header of 1,099,511,627,776 bytes", f"{2**20:,}")),
        (lambda content: header(b"x", 2**62) + content, ("a header of", f"{2**20:,}")),
    ],
)
def test_a_shard_of_which_members_would_be_lost(
    tmp_path: Path, change: Callable[[bytes], bytes], parts: tuple[str, ...]
) -> None:
    path = shard(tmp_path / "train.tar", *({"png": png(label), "cls": label} for label in (0, 1)))
    path.write_bytes(change(path.read_bytes()))
    refused(pictures(), path, "train.tar", *parts)


@pytest.mark.parametrize("told", [{"GNU.sparse.map": "1,"}, {"GNU.sparse.size": "x"}, {"size": "9" * 5000}])
def test_a_member_of_which_a_shard_says_what_cannot_be(tmp_path: Path, told: dict[str, str]) -> None:
    path = shard(tmp_path / "train.tar", {"png": png(0), "cls": 0})
    member = tarfile.TarInfo("0001.png")
    member.size, member.pax_headers = 1, told
    with tarfile.open(path, "a", format=tarfile.PAX_FORMAT) as file:
        file.addfile(member, io.BytesIO(b"x"))
    refused(pictures(), path, "train.tar cannot be read as a tar file")


def test_a_member_with_a_long_name_takes_no_time(tmp_path: Path) -> None:
    path = shard(tmp_path / "train.tar", {"png": png(0), "cls": 0}, {"png": png(1), "cls": 1})
    with tarfile.open(path, "a") as file:
        file.addfile(tarfile.TarInfo("a/" * 50_000 + "b"))
    before = time.process_time()
    assert len(read_source(pictures(), work=tmp_path / "work", path=path).splits["train"]) == 2
    assert time.process_time() - before < 5  # of some minutes


def test_a_part_that_is_twice_in_a_sample(tmp_path: Path) -> None:
    path = shard(tmp_path / "train.tar", {"png": png(0), "cls": 0}, {"png": png(1), "cls": 1})
    with tarfile.open(path, "a") as file:
        member = tarfile.TarInfo("train/0001.cls")
        member.size = 1
        file.addfile(member, io.BytesIO(b"0"))
    refused(pictures(), path, "train/0001.cls is twice")


def test_a_shard_of_which_any_byte_was_changed_is_read_or_refused(tmp_path: Path) -> None:
    samples = ({"png": png(label), "cls": label, "json": {"a": label}} for label in (0, 1))
    path = shard(tmp_path / "train.tar", *samples)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for trial in range(40):
        changed = np.frombuffer(content, np.uint8).copy()
        changed[rng.integers(4096, size=rng.choice([1, 3, 20]))] = rng.integers(256)
        path.write_bytes(changed.tobytes())
        told = ""
        try:
            read_source(pictures(), work=tmp_path / f"work{trial}", path=path)
        except BuildError as error:
            told = str(error)
        assert "\n" not in told
