"""What a person reads on a terminal: tables, and a probe-set row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builders.probes import asked_column


def example_text(row: Mapping[str, Any]) -> str:
    """Lay out the four model inputs of a ``qa`` row and what they are compared for."""
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
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Give the rows of a table as lines with aligned columns, those of `right` to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append("  ".join(c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in cells).rstrip())
    return lines


def _subject(row: Mapping[str, Any], number: int) -> str:
    name, group = row[f"subject{number}"], row[f"group{number}"]
    return f"{name} ({group})" if group else str(name)
