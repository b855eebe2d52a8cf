"""TOML tables as frozen dataclasses: unknown keys, missing keys and wrong types are errors that name the place."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from builders.errors import BuildError

T = TypeVar("T")


def from_table(kind: type[T], table: Mapping[str, Any], where: str) -> T:
    """Make a dataclass of a table.

    Parameters
    ----------
    kind : type
        A dataclass whose fields are str, int, float, bool, tuples of str, mappings of str, tables of the same
        making, or one of these or None.
    table : mapping
        As ``tomllib`` reads it; where None may stand, an empty text means it.
    where : str
        What messages call the table: ``snli.toml`` or ``snli.toml: filter``.

    Raises
    ------
    BuildError
        For the first key that is unknown, missing or of another type.
    """
    fields = {field.name: field for field in dataclasses.fields(typing.cast(Any, kind))}
    for key in table:
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise BuildError(f"{where}: unknown key {key!r} (there are {', '.join(fields)}){hint}")
    hints = typing.get_type_hints(kind)
    values = {key: _value(hints[key], value, _inside(where, key)) for key, value in table.items()}
    for name, field in fields.items():
        absent = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if absent and name not in values:
            raise BuildError(f"{where}: needs the key {name!r}")
    return kind(**values)


def _inside(where: str, key: str) -> str:
    return f"{where}.{key}" if ": " in where else f"{where}: {key}"


def to_table(value: Any) -> Any:
    """Give the JSON values of a dataclass, the inverse of `from_table`; what is None is left out."""
    if dataclasses.is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: to_table(item) for name, item in named.items() if item is not None}
    if isinstance(value, tuple):
        return [to_table(item) for item in value]
    if isinstance(value, Mapping):
        return {name: to_table(item) for name, item in value.items()}
    return value


def _value(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(value):  # made already; TOML has none
        return value
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        if value == "":  # TOML has no null
            return None
        hint = next(arm for arm in typing.get_args(hint) if arm is not type(None))
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return from_table(typing.cast(type[Any], hint), value, where)
    origin = typing.get_origin(hint) or hint
    if origin is tuple and isinstance(value, list):
        return tuple(_value(typing.get_args(hint)[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        of = typing.get_args(hint)[1]
        return {key: _value(of, item, f"{where}.{key}") for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if origin is Any or (isinstance(value, origin) and isinstance(value, bool) == (origin is bool)):
        return value
    raise BuildError(f"{where}: must be {_name(origin)}, not {value!r}")


def _name(kind: Any) -> str:
    names = {
        str: "a text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        tuple: "a list",
    }
    return names.get(kind, "a table")
