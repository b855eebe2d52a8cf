"""Specs of the filtered sets: one TOML file each, every value of which can be overridden."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.errors import BuildError
from builders.features.esim import EsimSettings
from builders.features.images import ImageSettings
from builders.features.transformer import TransformerSettings
from builders.names import check_set_name, check_version
from builders.sources.spec import SourceSpec
from builders.tables import from_table, to_table
from unqover_data.files import FileError, InvalidError, read_bytes, toml_of

SETS_DIR = Path(__file__).parent / "sets"
CHOSEN_HERE = "chosen here"
_OVERRIDDEN = "command line"
# What was chosen for one value goes when that is another: its key, and how theirs begin.
_TIED = {
    "encoder.kind": ("encoder.",),
    "encoder.model": ("encoder.revision", "encoder.weights"),
    "source.id": ("source.revision", "source.config"),
}

Settings = TransformerSettings | EsimSettings | ImageSettings
ENCODERS: dict[str, type[Settings]] = {
    "transformer": TransformerSettings,
    "esim": EsimSettings,
    "timm": ImageSettings,
}


@dataclass(frozen=True)
class FilterSettings:
    """Parameters of `aflite.filter_dataset`, under the paper's names.

    ``groups`` names a column whose equal values stay on one side of every partition; empty for none.
    """

    n: int
    m: int
    t: int
    k: int
    tau: float
    c: float = 1.0
    model: str = "logistic"
    strategy: str = "slicing"
    partitions: str = "auto"
    stratify: bool = False
    groups: str | None = None


@dataclass(frozen=True)
class SetSpec:
    """A filtered set.

    Attributes
    ----------
    name : str
        The folder is called NAME-aflite.
    modality : str
        ``text`` or ``image``.
    share : float
        Share of the rows that train the encoder and are not used again, in [0, 1); 0 takes the encoder as it is.
    breakdown : str, optional
        Column whose values the card counts among kept and removed rows; empty for none.
    values_from : mapping of str to str
        Where a value comes from, by dotted key; "chosen here" for all that are not listed.
    """

    name: str
    title: str
    version: str
    description: str
    modality: str
    language: str
    tasks: tuple[str, ...]
    source: SourceSpec
    share: float
    encoder_kind: str
    encoder: Settings
    filter: FilterSettings
    seed: int = 0
    license: str | None = None
    citation: str | None = None
    limits: tuple[str, ...] = ()
    breakdown: str | None = None
    values_from: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder_name(self) -> str:
        """Name of the folder and of the repository on the Hub."""
        return f"{self.name}-aflite"

    def values(self) -> list[tuple[str, str, str]]:
        """Give every value as (dotted key, value, where it comes from)."""
        tables = {"source": self.source, "encoder": self.encoder, "filter": self.filter}
        named = {"share": self.share, "seed": self.seed, "encoder.kind": self.encoder_kind}
        for table, settings in tables.items():
            named |= {f"{table}.{key}": value for key, value in to_table(settings).items()}
        return [
            (key, _shown(value), self.values_from.get(key, "" if key.startswith("source.") else CHOSEN_HERE))
            for key, value in named.items()
            if value != []
        ]


def list_specs() -> list[str]:
    """Names of the sets that can be built."""
    return sorted(path.stem for path in SETS_DIR.glob("*.toml"))


def load_spec(name: str, overrides: Sequence[str] = ()) -> SetSpec:
    """Read a spec.

    Parameters
    ----------
    name : str
        One of `list_specs`, also with the folder's ``-aflite``, or a path that ends in ``.toml``.
    overrides : sequence of str
        ``KEY=VALUE`` with a dotted key, and the value as in TOML; a text needs no quotes. Another ``encoder.kind``
        starts from that kind's defaults, another ``encoder.model`` or ``source.id`` without a revision.

    Raises
    ------
    BuildError
        If there is no such set, or a key or value cannot be.
    """
    path = Path(name) if name.endswith(".toml") else SETS_DIR / f"{name.removesuffix('-aflite')}.toml"
    if not path.is_file():
        close = difflib.get_close_matches(name, list_specs(), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise BuildError(f"no set {name!r} (there are {', '.join(list_specs())}, or a path that ends in .toml){hint}")
    try:
        table = toml_of(read_bytes(path))
    except FileError as error:
        raise BuildError(f"{path.name} {error}") from error
    for override in sorted(overrides, key=_turn):
        _override(table, override)
    return _spec(table, path.name)


def read_override(override: str) -> tuple[str, Any]:
    """Read ``KEY=VALUE``, the value as in TOML; a text needs no quotes.

    Raises
    ------
    BuildError
        If it is not of that form.

    Examples
    --------
    >>> read_override("epochs=3"), read_override("model=test_resnet")
    (('epochs', 3), ('model', 'test_resnet'))
    """
    key, equals, text = override.partition("=")
    if not equals or not all(key.split(".")):
        raise BuildError(f"--set must be KEY=VALUE such as filter.tau=0.75, not {override!r}")
    try:
        return key, toml_of(f"value = {text}")["value"]
    except InvalidError:
        return key, text
    except FileError as error:
        raise BuildError(f"--set {key} {error}") from error


def _turn(override: str) -> int:
    key, tying = override.partition("=")[0], list(_TIED)
    return tying.index(key) if key in tying else len(tying)


def _override(table: dict[str, Any], override: str) -> None:
    """Set one value, and say that it is from the command line."""
    key, value = read_override(override)
    if key.startswith("values_from"):
        raise BuildError(f"--set {override}: where a value comes from cannot be set")
    *parents, last = key.split(".")
    sources = _inner(table, "values_from", override)
    for parent in parents:
        table = _inner(table, parent, override)
    if key in _TIED and value != table.get(last):
        for tied in [tied for tied in table if f"{parents[0]}.{tied}".startswith(_TIED[key])]:
            del table[tied]
        for tied in [tied for tied in sources if tied.startswith(_TIED[key])]:
            del sources[tied]
    sources[key] = _OVERRIDDEN
    table[last] = value


def _inner(table: dict[str, Any], key: str, override: str) -> dict[str, Any]:
    inner = table.setdefault(key, {})
    if not isinstance(inner, dict):
        raise BuildError(f"--set {override}: {key} is a value, not a table")
    return inner


def _spec(table: dict[str, Any], where: str) -> SetSpec:
    encoder = table.pop("encoder", {})
    if not isinstance(encoder, Mapping):
        raise BuildError(f"{where}: encoder: must be a table, not {encoder!r}")
    encoder = dict(encoder)
    kind = encoder.pop("kind", None)
    if "encoder_kind" in table:
        raise BuildError(f"{where}: unknown key 'encoder_kind'; did you mean 'encoder.kind'?")
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise BuildError(f"{where}: encoder.kind must be one of {', '.join(ENCODERS)}, not {kind!r}")
    settings = from_table(ENCODERS[kind], encoder, f"{where}: encoder")
    spec = from_table(SetSpec, table | {"encoder_kind": kind, "encoder": settings}, where)
    check_version(spec.version)
    check_set_name(spec.folder_name)
    if not 0 <= spec.seed < 2**32:
        raise BuildError(f"{where}: seed must be from 0 to 2**32 - 1, not {spec.seed}")
    if not spec.source.filtered or len(set(spec.source.filtered)) != len(spec.source.filtered):
        raise BuildError(
            f"{where}: source.filtered must be one split or more, each once, not"
            f" {', '.join(spec.source.filtered) or 'none'}"
        )
    if spec.modality not in ("text", "image"):
        raise BuildError(f"{where}: modality must be text or image, not {spec.modality!r}")
    if (kind == "timm") != (spec.modality == "image"):
        raise BuildError(f"{where}: encoder.kind = {kind!r} is not for modality {spec.modality!r}")
    if not 0 <= spec.share < 1:
        raise BuildError(f"{where}: share must be at least 0 and below 1, not {spec.share}")
    known = {key for key, _, _ in spec.values()}
    for key in spec.values_from:
        if key not in known and spec.values_from[key] != _OVERRIDDEN:
            raise BuildError(f"{where}: values_from names {key!r}, which is no value of the spec")
    return spec


def _shown(value: Any) -> str:
    if isinstance(value, str):
        # A path of the machine that built a set says nothing to who reads its card.
        return Path(value).name if "/" in value and Path(value).expanduser().exists() else value
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return f"{value:,}" if abs(value) >= 1000 else f"{value:g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_shown(item)}" for key, item in value.items())
    return str(value)
