"""Ways to damage a file: each changes it in place and returns what was done, in words that lead to it again."""

from __future__ import annotations

import io
import json
import struct
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Rng = np.random.Generator
Damage = Callable[[Rng, Path], str]


class Raw(str):
    """Written into JSON or TOML as it stands."""


TEXTS = (
    *("", " ", "\0", "a\nb", "\x1b[2J", "\ud800", "\u202eabc\u2066", "../x", "../../x", "/nowhere/x", "a/b", "."),
    *("x" * 100_000, "-1", "nan", "1e999", "é", "_" * 300, "{subject1}", "{", "|", "=", ",", "0=", "<b>", "%s"),
)
NUMBERS = (-1, 0, 1, 3, 0.5, -0.5, 1e308, 2**31, 2**63, 10**18, True, Raw("1" * 5_000), Raw("1e400"), Raw("-1" * 1))
NOT_NUMBERS = {True: ("nan", "inf", "-inf", "0x" + "f" * 5_000), False: ("NaN", "Infinity", "-Infinity")}
DEEP = tuple(Raw("[" * depth + "]" * depth) for depth in (30, 1_000, 100_000))
MAGIC = (b"PK\3\4", b"\x89PNG\r\n\x1a\n", b"PAR1", b"\x1f\x8b\x08", b"\x80\x04.", b"\x93NUMPY", b"\xff\xfe", b"<html>")


def tree(pattern: str, *, then: Callable[[Path], object] = lambda path: None) -> Damage:
    """Change one value in one of the JSON, JSONL or TOML files of `pattern`, then call `then` with the folder."""

    def damage(rng: Rng, folder: Path) -> str:
        path = _one_of(rng, folder, pattern)
        toml, lines = path.suffix == ".toml", path.suffix == ".jsonl"
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if toml else [json.loads(line) for line in text.splitlines()] if lines else None
        content = json.loads(text) if content is None else content
        content, what = _changed(rng, content, toml)
        if toml and isinstance(content, dict):
            written = "".join(f"{json.dumps(key)} = {_written(value, toml)}\n" for key, value in content.items())
        elif lines and isinstance(content, list):
            written = "".join(f"{_written(row, toml)}\n" for row in content)
        else:
            written = _written(content, toml)
        path.write_bytes(written.encode("utf-8", "surrogatepass"))
        then(folder)
        return f"{path.name}{what}"

    return damage


def raw(pattern: str) -> Damage:
    """Change the bytes of one of the files of `pattern`."""

    def damage(rng: Rng, folder: Path) -> str:
        path = _one_of(rng, folder, pattern)
        data = path.read_bytes()
        at = int(rng.integers(0, len(data) + 1))
        junk = rng.bytes(int(rng.integers(1, 30)))
        magic = MAGIC[rng.integers(len(MAGIC))]
        ways = {
            "cut": data[:at],
            "without its beginning": data[at:],
            "a byte changed": data[:at] + bytes([data[at - 1] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :],
            f"{junk!r} put in": data[:at] + junk + data[at:],
            "emptied": b"",
            "not UTF-8": data[:at] + b"\xff\xfe\x80" + data[at:],
            f"begins with {magic!r}": magic + data,
            f"replaced by {magic!r}": magic,
            "twice": data + data,
            "zeros": b"\0" * 1_000,
            "line ends of Windows": data.replace(b"\n", b"\r\n"),
            "a long line": data[:at] + b"a" * 300_000 + data[at:],
            "lines repeated": b"".join(line * int(rng.integers(0, 3)) for line in data.splitlines(keepends=True)),
        }
        way = _choice(rng, list(ways))
        path.write_bytes(ways[way])
        return f"{path.name} {way} (at {at})"

    return damage


def parquet(pattern: str, *, then: Callable[[Path], object] = lambda path: None) -> Damage:
    """Change the table of one of the Parquet files of `pattern`, then call `then` with the folder."""

    def damage(rng: Rng, folder: Path) -> str:
        path = _one_of(rng, folder, pattern)
        table = pq.read_table(path)
        name = _choice(rng, table.column_names)
        at, column = table.column_names.index(name), table[name]
        rows = len(table)
        other = [_choice(rng, [*TEXTS, None]) for _ in range(rows)]
        odd = [text if text is None else text.encode("utf-8", "ignore").decode() for text in other]
        kinds: dict[str, Any] = {
            "texts": pa.array(odd, pa.string()),
            "numbers": pa.array(rng.normal(size=rows) * 10.0 ** rng.integers(-300, 300, rows)),
            "whole numbers": pa.array(rng.integers(-(2**62), 2**62, rows)),
            "nothing": pa.nulls(rows),
            "nulls of its type": pa.nulls(rows, column.type),
            "not a number": pa.array(np.full(rows, np.nan)),
            "lists": pa.array([[1, 2]] * rows),
            "structs": pa.array([{"bytes": b"x", "path": "/etc/hostname"}] * rows),
            "bytes": pa.array([b"\xff\xfe"] * rows),
            "times": pa.array([0] * rows, pa.timestamp("us")),
        }
        kind = _choice(rng, list(kinds))
        ways: dict[str, Callable[[], pa.Table]] = {
            "dropped": lambda: table.remove_column(at),
            "twice": lambda: table.append_column(name, column),
            "renamed": lambda: table.rename_columns([n + "!" if n == name else n for n in table.column_names]),
            f"made {kind}": lambda: table.set_column(at, name, kinds[kind]),
            "and all others: no rows": lambda: table.slice(0, 0),
            "and all others: half the rows": lambda: table.slice(0, rows // 2),
            "and all others: doubled rows": lambda: pa.concat_tables([table, table]),
            "and all others: rows turned round": lambda: table.take(pa.array(np.arange(rows)[::-1])),
        }
        way = _choice(rng, [*ways, f"made {kind}"])
        pq.write_table(ways[way](), path)
        then(folder)
        return f"{path.name}: column {name} {way}"

    return damage


def npy(pattern: str) -> Damage:
    """Change what a .npy file says of itself, or what it holds."""

    def damage(rng: Rng, folder: Path) -> str:
        path = _one_of(rng, folder, pattern)
        array = np.load(path)
        buffer = io.BytesIO()
        rows = len(array)
        shapes = [(-rows, 8), (rows, -8), (2**62, 8), (rows, 0), (0, 8), (rows,), (), (rows, 2, 4), (rows * 8, 1)]
        types = ["|O", "<U5", "<c16", "|b1", "<i8", "<f2", "<f8", "|V4", "<M8[s]", "[('a', '<f4')]", "x", "()"]
        wild = array.copy()
        wild[rng.integers(rows)] = _choice(rng, [np.nan, np.inf, -np.inf, 3e38])
        whole = _choice(
            rng, [np.zeros_like(array), array[:-1], np.repeat(array, 2, 0), array.T, array.astype("i4"), wild]
        )
        ways = {
            "shape": ("<f4", _choice(rng, shapes)),
            "type": (_choice(rng, types), array.shape),
        }
        way = _choice(rng, [*ways, "array", ".npz", "version"])
        if way in ways:
            kind, shape = ways[way]
            np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": shape})
            path.write_bytes(buffer.getvalue() + array.tobytes())
            return f"{path.name}: {way} {ways[way]}"
        if way == ".npz":
            np.savez(buffer, features=array)
            path.write_bytes(buffer.getvalue())
        elif way == "version":
            path.write_bytes(b"\x93NUMPY" + bytes([int(rng.integers(256)), 0]) + path.read_bytes()[8:])
        else:
            np.save(path, whole)
        return f"{path.name}: {way}"

    return damage


def safetensors(pattern: str) -> Damage:
    """Change the header of a safetensors file."""

    def damage(rng: Rng, folder: Path) -> str:
        path = _one_of(rng, folder, pattern)
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        content, what = _changed(rng, json.loads(data[8 : 8 + length]), toml=False)
        header = _written(content, toml=False).encode("utf-8", "surrogatepass")
        told = _choice(rng, [len(header)] * 8 + [0, 2**40, 2**63])
        path.write_bytes(struct.pack("<Q", told) + header + data[8 + length :])
        return f"{path.name}{what}, header of {told} bytes"

    return damage


def odd_file(pattern: str) -> Damage:
    """Put a folder, or a link that leads nowhere, in the place of a file."""

    def damage(rng: Rng, folder: Path) -> str:
        path = _one_of(rng, folder, pattern)
        path.unlink()
        way = _choice(rng, ["removed", "a folder", "a link to nothing", "a link to itself"])
        if way == "a folder":
            path.mkdir()
        elif way != "removed":
            path.symlink_to(path.name if way == "a link to itself" else "nothing")
        return f"{path.name} {way}"

    return damage


def any_of(*ways: Damage) -> Damage:
    """One of several ways."""
    return lambda rng, folder: _choice(rng, list(ways))(rng, folder)


def _changed(rng: Rng, content: Any, toml: bool) -> tuple[Any, str]:
    """Change one value; the deeper a value lies, the more rarely, so that long lists do not hide the rest."""
    where, parent, key, value = "", None, None, content
    while isinstance(value, dict | list) and value and (parent is None or rng.random() < 0.7):
        parent = value
        key = _choice(rng, list(value)) if isinstance(value, dict) else int(rng.integers(len(value)))
        where += f"[{key!r}]"
        value = value[key]
    ways: dict[str, Callable[[], Any]] = {
        "text": lambda: Raw(json.dumps(t)) if (t := _choice(rng, TEXTS)) and rng.random() < 0 else t,
        "number": lambda: _choice(rng, NUMBERS),
        "not a number": lambda: Raw(_choice(rng, NOT_NUMBERS[toml])),
        "null": lambda: None,
        "false": lambda: False,
        "empty list": list,
        "empty table": dict,
        "deep": lambda: _choice(rng, DEEP),
        "in a list": lambda: [value],
        "in a table": lambda: {"x": value},
    }
    edits = ["dropped", "key renamed", "twice"] if parent is not None else []
    way = _choice(rng, [*ways, *edits])
    if way in ways:
        new = ways[way]()
        if parent is None:
            return new, f" is {_short(new)}"
        parent[key] = new
        return content, f"{where} is {_short(new)}"
    assert parent is not None
    if way == "dropped":
        del parent[key]
    elif isinstance(parent, list):
        parent.append(value)
    else:
        parent[_choice(rng, TEXTS)] = parent.pop(key) if way == "key renamed" else value
    return content, f"{where} {way}"


def _written(value: Any, toml: bool) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        pairs = (
            f"{json.dumps(str(key))}{' = ' if toml else ': '}{_written(item, toml)}" for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(item, toml) for item in value) + "]"
    if toml and isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, default=str)


def _one_of(rng: Rng, folder: Path, pattern: str) -> Path:
    return _choice(rng, sorted(path for path in folder.glob(pattern) if path.is_file()))


def _choice(rng: Rng, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]}... ({len(text)} signs)"
