"""Files beyond the limits end with one line; what honest files hold is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from unqover_data import ListError, read_toml
from unqover_data.errors import MOST_SIGNS, one_line
from unqover_data.files import MOST_BYTES, MOST_LEVELS, FileError, InvalidError, json_of, read_bytes, toml_of

ODD_TOML = {
    "deep": ("a = " + "[" * 100_000, "nested more than 32 deep"),
    "deep and whole": ("a = " + "[" * 400 + "]" * 400, "nested more than 32 deep"),
    "deep by dots": (".".join("a" * 99) + " = 1", "nested more than 32 deep"),
    "digits": ("a = " + "9" * 5_000, "more than 64 bits"),
    "hexadecimal digits": ("a = 0x" + "f" * 5_000, "more than 64 bits"),
    "one too many": (f"a = {2**63}", "more than 64 bits"),
    "no number": ("a = [1.0, nan]", "holds nan; numbers must be finite"),
    "infinite": ("a = { b = -inf }", "holds -inf; numbers must be finite"),
    "not UTF-8": (b"a = '\xff'", "is not valid TOML in UTF-8"),
    "no TOML": ("a", "is not valid TOML in UTF-8"),
}


@pytest.mark.parametrize("name", ODD_TOML)
def test_odd_toml_ends_with_one_line(name: str) -> None:
    text, message = ODD_TOML[name]
    with pytest.raises(FileError, match=message):
        toml_of(text)


ODD_JSON = {
    "deep": ("[" * 100_000, "nested more than 32 deep"),
    "deep and whole": ('{"a": ' * 40 + "1" + "}" * 40, "nested more than 32 deep"),
    "digits": ("9" * 5_000, "outside -2.63 to 2.64-1"),
    "one too few": (f'{{"a": [{-(2**63) - 1}]}}', "outside -2.63 to 2.64-1"),
    "one too many": (f"[{2**64}]", "outside -2.63 to 2.64-1"),
    "deep and open": ('"' + '\\"' * 10**6 + "[" * 99, "is not valid JSON"),
    "half a character": ('{"\\ud800": 1}', "holds half a character"),
    "not UTF-8": (b'"\xff"', "is not valid JSON in UTF-8"),
    "no JSON": ("{", "is not valid JSON in UTF-8"),
}


@pytest.mark.parametrize("name", ODD_JSON)
def test_odd_json_ends_with_one_line(name: str) -> None:
    text, message = ODD_JSON[name]
    with pytest.raises(FileError, match=message):
        json_of(text)


def test_what_is_within_the_limits_is_read() -> None:
    assert toml_of("\ufeffa = 1".encode()) == {"a": 1}
    assert toml_of(f"a = {2**63 - 1}\nb = {-(2**63)}") == {"a": 2**63 - 1, "b": -(2**63)}
    deepest = "[" * (MOST_LEVELS - 1) + "1" + "]" * (MOST_LEVELS - 1)
    assert toml_of(f"a = {deepest}")
    with pytest.raises(FileError, match="nested"):
        toml_of(f"a = [{deepest}]")
    text = '"' + "[{" * 100 + r"\"[\\" + '"'
    assert json_of(f"[{text}, {2**64 - 1}, {-(2**63)}]")[1:] == [2**64 - 1, -(2**63)]
    assert json_of("[" * MOST_LEVELS + "]" * MOST_LEVELS)
    assert json_of('{"a": "\\ud83d\\ude00", "b": [Infinity, null]}') == {"a": "\U0001f600", "b": [float("inf"), None]}


def test_only_what_is_no_toml_is_invalid() -> None:
    with pytest.raises(InvalidError):
        toml_of("a = b")
    with pytest.raises(FileError) as caught:
        toml_of("a = nan")
    assert type(caught.value) is FileError


def test_a_file_without_an_end_is_left() -> None:
    with pytest.raises(FileError, match=r"has more than 4,194,304 bytes"):
        read_bytes(Path("/dev/zero"))


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"#" * MOST_BYTES)
    assert len(read_bytes(path)) == MOST_BYTES
    path.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(FileError, match="more than"):
        read_bytes(path)


def test_the_message_is_one_plain_line(tmp_path: Path) -> None:
    path = tmp_path / "odd \x1b[2J\u202e\nname.toml"
    path.write_text("name = 0xfffffffffffffffffffff")
    with pytest.raises(ListError) as caught:
        read_toml(path)
    assert str(caught.value) == "odd [U+001B][2J[U+202E] name.toml: holds a whole number of more than 64 bits"
    long = one_line("a" * 10**6 + "z")
    assert len(long) < MOST_SIGNS + 10
    assert (long[0], long[-1]) == ("a", "z")
