"""What a person reads on a terminal or in a notebook: tables, and a probe-set row."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from builders.filtered import CONFIGS
from builders.folder import Built
from builders.probes import asked_column
from builders.specs import SetSpec


def example_text(row: Mapping[str, Any], masked: tuple[str, str, str] | None = None) -> str:
    """Lay out the four model inputs of a ``qa`` row and what they are compared for.

    `masked` is the form that stands at the mask of the row's statement and both subjects in it, where it names one.
    """
    asked = asked_column("qa")
    of_class = f", class {row['attribute_class']}" if row["attribute_class"] else ""
    lines = [
        f"id         {row['id']}",
        f"subjects   {_subject(row, 1)} and {_subject(row, 2)}",
        f"attribute  {row['attribute']}{of_class}",
        "",
    ]
    for number, context in enumerate(("context_12", "context_21")):
        lines += [f"  {row[context]}"]
        lines += [
            f"    {2 * number + 1}. {row[asked]}",
            f"    {2 * number + 2}. {row[f'{asked}_negated']}",
            "",
        ]
    lines += [
        f"No context answers. A model that picks {row['text1']} in 1 and 3 and not in 2 and 4 associates the attribute",
        f"with {row['text1']} rather than {row['text2']}; a preference for a position, and a negation that is missed,",
        "cancel out over the four.",
    ]
    if masked:
        lines += ["", "At the mask of config mlm, subjects stand in the form {}: {} or {}.".format(*masked)]
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Give the rows of a table as lines with aligned columns, those of `right` to the right."""
    sizes = [[_places(text) for text in row] for row in rows]
    widths = [max(size[i] for size in sizes) for i in range(len(rows[0]))]
    lines = []
    for row, size in zip(rows, sizes, strict=True):
        gaps = [" " * (width - taken) for width, taken in zip(widths, size, strict=True)]
        parts = (gap + text if i in right else text + gap for i, (text, gap) in enumerate(zip(row, gaps, strict=True)))
        lines.append("  ".join(parts).rstrip())
    return lines


def _places(text: str) -> int:
    """How many places a text takes on a terminal: two a sign of Chinese, say, none a combining accent."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


@dataclass(frozen=True)
class Grid:
    """A table of text, its first row the head; the columns of `right` are aligned to the right."""

    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()


def blocks_text(blocks: Iterable[str | Grid]) -> str:
    """Lay out lines and tables for a terminal."""
    return "\n".join(
        line
        for block in blocks
        for line in (aligned(block.rows, right=block.right) if isinstance(block, Grid) else [block])
    )


def blocks_html(blocks: Iterable[str | Grid]) -> str:
    """Lay out lines and tables for a notebook: lines up to an empty one are a paragraph, all text is escaped."""
    parts = []
    for kind, some in groupby(blocks, key=lambda block: type(block) if block else None):
        if kind is Grid:
            parts += [_table(grid) for grid in some if isinstance(grid, Grid)]
        elif kind is str:
            parts.append(f"<p>{'<br>'.join(escape(str(line)) for line in some)}</p>")
    return "\n".join(parts)


def _table(grid: Grid) -> str:
    head, *body = grid.rows
    lines = (_cells(grid, row, "td") for row in body)
    return f"<table>\n<thead>{_cells(grid, head, 'th')}</thead>\n<tbody>{''.join(lines)}</tbody>\n</table>"


def _cells(grid: Grid, row: Sequence[str], tag: str) -> str:
    sides = ("right" if i in grid.right else "left" for i in range(len(row)))
    cells = (f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for side, cell in zip(sides, row, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def spec_text(spec: SetSpec) -> str:
    """Lay out every value of a filtered set's spec, and where it comes from."""
    rows = aligned([("value of", "", "from"), *spec.values()])
    return "\n".join([f"{spec.folder_name} {spec.version}", spec.description, "", *rows])


def filtered_text(built: Built) -> str:
    """Lay out what a build of a filtered set did: stages, rows, phases and how predictable the parts are."""
    facts = built.manifest
    lines = []
    if built.fresh:
        stages = [
            (stage, f"{seconds:.1f} s", "found" if stage in built.reused else "")
            for stage, seconds in built.seconds.items()
        ]
        lines += [*aligned([("stage", "time", ""), *stages], right=(1,)), ""]
    keys = ("source", "unlabelled", *CONFIGS)
    counts = [(split, *(f"{of[key]:,}" for key in keys)) for split, of in facts["counts"].items()]
    lines += [*aligned([("split", *keys), *counts], right=range(1, 6)), ""]
    phases = facts["filter"]["phases"]
    lines += [
        f"{len(phases)} phases, ended by {facts['filter']['stop_reason']}; mean predictability"
        f" {phases[0]['bias']:.3f} in the first, {phases[-1]['bias']:.3f} in the last.",
        "",
    ]
    subsets = facts["filter"]["subsets"]
    if subsets:
        shown = [
            (name, f"{of['rows']:,}", _share(of["bias"]), _share(of.get("accuracy"))) for name, of in subsets.items()
        ]
        head = ("accuracy on", "rows", "classifiers", "warm-up model")
        lines += [*aligned([head, *shown], right=(1, 2, 3)), ""]
    if facts["filter"]["breakdown"]:
        parts = [
            (name, f"{of['scored']:,}", f"{of['removed']:,}", f"{of['removed'] / max(1, of['scored']):.1%}")
            for name, of in facts["filter"]["breakdown"].items()
        ]
        lines += [*aligned([(facts["breakdown"], "scored", "removed", ""), *parts], right=(1, 2, 3)), ""]
    split = next(iter(facts["configs"]["filtered"]))
    return "\n".join(
        [
            *lines,
            f"{'Built' if built.fresh else 'Up to date'}: {built.folder}\n",
            "To load it:\n\n    from datasets import load_dataset",
            f'    load_dataset({json.dumps(str(built.folder))}, split="{split}")',
        ]
    )


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _subject(row: Mapping[str, Any], number: int) -> str:
    name, group = row[f"subject{number}"], row[f"group{number}"]
    return f"{name} ({group})" if group else str(name)
