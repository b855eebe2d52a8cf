"""TOML tables as dataclasses: what fits comes in, and anything else is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from builders.errors import BuildError
from builders.tables import from_table, to_table


@dataclass(frozen=True)
class Inner:
    rate: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    title: str
    size: int
    inner: Inner
    on: bool = False
    note: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


FITTING: dict[str, Any] = {"title": "a", "size": 3, "inner": {"rate": 1, "names": ["x", "y"]}, "columns": {"p": "q"}}


def test_a_fitting_table_becomes_the_dataclass_and_back() -> None:
    made = from_table(Outer, FITTING, "f.toml")
    assert made == Outer("a", 3, Inner(1.0, ("x", "y")), columns={"p": "q"})
    assert isinstance(made.inner.rate, float)
    assert to_table(made) == FITTING | {"on": False}
    assert from_table(Outer, FITTING | {"note": ""}, "f.toml").note is None
    assert from_table(Outer, FITTING | {"title": ""}, "f.toml").title == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sise": 3}, r"f\.toml: unknown key 'sise' .*did you mean 'size'\?"),
        ({"size": True}, r"f\.toml: size: must be a whole number, not True"),
        ({"size": 3.0}, r"f\.toml: size: must be a whole number, not 3\.0"),
        ({"on": 1}, r"f\.toml: on: must be true or false, not 1"),
        ({"note": 5}, r"f\.toml: note: must be a text, not 5"),
        ({"inner": {"names": []}}, r"f\.toml: inner: needs the key 'rate'"),
        ({"inner": {"rate": 1.0, "names": ["x", 2]}}, r"f\.toml: inner\.names\[1\]: must be a text, not 2"),
        ({"inner": {"rate": 1.0, "names": "x"}}, r"f\.toml: inner\.names: must be a list, not 'x'"),
        ({"columns": {"p": 1}}, r"f\.toml: columns\.p: must be a text, not 1"),
        ({"inner": 4}, r"f\.toml: inner: must be a table, not 4"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BuildError, match=message):
        from_table(Outer, FITTING | change, "f.toml")
