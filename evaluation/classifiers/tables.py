"""Tables over seeds, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from builders.text import markdown as escaped
from evaluation.classifiers.metrics import OverSeeds, over_seeds


@dataclass(frozen=True)
class Table:
    """A table that is ready to be shown.

    Attributes
    ----------
    title : str
        Its title.
    heads : tuple of str
        Of the columns, without that of the rows' names.
    rows : tuple of (str, tuple)
        A name, and a cell for each head: the values of the seeds in [-1, 1] (empty where there is none), or a count.
    notes : tuple of str
        Lines below it.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[float, ...] | int, ...]], ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it is stored: every value of every seed."""
        return asdict(self)


def less(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    """Give the differences seed by seed; a value without seeds counts for all of the other."""
    n = max(len(one), len(other))
    first, second = (list(values) * n if len(values) == 1 else list(values) for values in (one, other))
    return tuple(a - b for a, b in zip(first, second, strict=False))


def markdown(table: Table) -> str:
    """Lay out a table; shares are in percent, as mean ± standard deviation over seeds.

    Examples
    --------
    >>> print(markdown(Table("A", ("b",), (("c", ((0.5, 0.7),)), ("rows", (1200,))))))
    ### A
    <BLANKLINE>
    |  | b |
    |---|---|
    | c | 60.0 ± 14.1 |
    | rows | 1,200 |
    """
    lines = [f"### {escaped(table.title)}", "", f"|  | {' | '.join(map(escaped, table.heads))} |"]
    lines.append("|---" * (len(table.heads) + 1) + "|")
    for name, cells in table.rows:
        lines.append(f"| {escaped(name)} | {' | '.join(map(_cell, cells))} |")
    for note in table.notes:
        lines += ["", escaped(note)]
    return "\n".join(lines)


def percent(found: OverSeeds) -> str:
    """Give a share in percent with its deviation over seeds, where there are several.

    Examples
    --------
    >>> percent(OverSeeds(0.912, 0.004, 3)), percent(OverSeeds(-0.5, None, 1))
    ('91.2 ± 0.4', '-50.0')
    """
    mean = f"{100 * found.mean:.1f}"
    return mean if found.sd is None else f"{mean} ± {100 * found.sd:.1f}"


def _cell(cell: tuple[float, ...] | int) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    return percent(over_seeds(cell)) if cell else ""
