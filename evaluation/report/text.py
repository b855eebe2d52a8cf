"""The report for those who stay on a terminal: summary tables, aligned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from builders.errors import BuildError
from builders.reading import aligned
from evaluation.errors import EvaluationError
from evaluation.metrics import METRICS
from evaluation.report import filtering, models, overview, ranks
from evaluation.report.inputs import Inputs
from evaluation.report.page import Block, Column, Items, Table, Text, missing_part
from evaluation.text import digits, interval_text
from unqover_data.signs import visible

_BOLD, _YELLOW, _OFF = "\x1b[1m", "\x1b[33m", "\x1b[0m"
_PAIRS = 5


def inputs_text(inputs: Inputs, warning: str | None, *, color: bool = False) -> str:
    """Lay out the summary of a report.

    Parameters
    ----------
    inputs : Inputs
        What was found.
    warning : str, optional
        Comes first.
    color : bool
        Whether the terminal shows colours.

    Returns
    -------
    str
        Empty where there is nothing to show. A part that cannot be made says why.

    Raises
    ------
    EvaluationError, BuildError
        If no part can be made.
    """
    blocks: list[Block] = []
    failed: list[Exception] = []
    for part in PARTS:
        try:
            blocks += part(inputs)
        except (BuildError, EvaluationError) as error:
            failed.append(error)
            blocks.append(missing_part(error))
    if len(blocks) == len(failed) > 0:
        raise failed[0]
    if warning and blocks:
        blocks.insert(0, Text(warning, "warning", "Content warning."))
    return "\n\n".join(_block(block, color) for block in blocks)


def _probes(inputs: Inputs) -> list[Block]:
    if not inputs.probes:
        return []
    said = [Text(sentences, lead=whose) for whose, sentences in overview.verdicts(inputs)]
    return [Text("Which model is worse?", "heading"), *said, _aggregates(inputs), *models.shift(inputs)]


def _aggregates(inputs: Inputs) -> Table:
    results = [result for some in inputs.datasets.values() for result in some]
    columns = [
        Column("set", [result.dataset for result in results]),
        Column("model", [inputs.labels[result.model] for result in results]),
        Column("rows", [result.content["rows"] for result in results], "count"),
    ]
    for name in models.HEADS:
        entries = [result.content["metrics"][name] for result in results]
        symbol = METRICS[name].symbol
        columns.append(Column(symbol, [entry["value"] for entry in entries], "number"))
        if name == "mu":
            columns.append(Column("corrected", [entry["corrected"] for entry in entries], "number"))
            columns.append(Column("95 % interval", [[e[end] for e in entries] for end in ("low", "high")], "interval"))
    note = "μ bias intensity, η bias count, δ and ε errors of position and negation: lower is better, 0 is ideal."
    return Table("All models", columns, note)


def _ranks(inputs: Inputs) -> list[Block]:
    blocks: list[Block] = []
    for dataset, results in inputs.datasets.items():
        for block in ranks.of_set(inputs, dataset, results):
            if isinstance(block, Table):
                kept = [one for one in block.columns if one.name in ("subject", "group", "mean rank", "deviation")]
                blocks.append(Table(block.title, kept, block.note).ends())
    return blocks


def _associations(inputs: Inputs) -> list[Block]:
    """The pairs with the largest |γ| of each result."""
    rows: list[dict[str, Any]] = []
    for dataset, results in inputs.datasets.items():
        for result in results:
            table = result.content["tables"]["subject_attribute"]
            order = sorted(range(len(table["n"])), key=lambda i: -abs(table["gamma"][i]))[:_PAIRS]
            named = {"set": dataset, "model": inputs.labels[result.model]}
            rows += [named | {key: values[i] for key, values in table.items()} for i in order]
    if not rows:
        return []

    def of(key: str) -> list[Any]:
        return [row[key] for row in rows]

    columns = [Column(name, of(name)) for name in ("set", "model", "subject", "attribute")]
    columns.append(Column("γ", of("gamma"), "number"))
    columns.append(Column("95 % interval", [of("gamma_low"), of("gamma_high")], "interval"))
    columns += [Column("q", of("q"), "number"), Column("n", of("n"), "count")]
    note = "γ from -1 to 1, 0 is ideal; above 0 the subject goes with it. Trust a small q and an interval off 0."
    return [Table(f"Strongest associations, {_PAIRS} of each model", columns, note)]


PARTS: tuple[Callable[[Inputs], Sequence[Block]], ...] = (_probes, _associations, _ranks, filtering.summary)
"""What gives the blocks of a view for the terminal, in their order; figures and views are left out."""


def _block(block: Block, color: bool) -> str:
    if isinstance(block, Table):
        head, *lines = _lines(block)
        parts = [_styled(visible(block.title), _BOLD, color), "", _styled(head, _BOLD, color), *lines]
        return "\n".join([*parts, *(["", visible(block.note)] if block.note else [])])
    if isinstance(block, Items):
        return "\n".join(f"- {visible(text)}" for text in block.texts)
    if isinstance(block, Text):
        text = visible(f"{block.lead} {block.text}".strip())
        return _styled(text, {"heading": _BOLD, "warning": _YELLOW}.get(block.kind, ""), color)
    raise TypeError(f"{type(block).__name__} has no form on a terminal")


def _lines(table: Table) -> list[str]:
    size = len(table.columns[0])
    rows = [tuple(visible(_cell(column, row)) for column in table.columns) for row in range(size)]
    numbers = [place for place, column in enumerate(table.columns) if column.kind in ("number", "count")]
    return aligned([tuple(visible(column.name) for column in table.columns), *rows], right=numbers)


def _cell(column: Column, row: int) -> str:
    if column.kind == "interval":
        return interval_text(column.values[0][row], column.values[1][row])
    value = column.values[row]
    if value is None or column.kind == "text":
        return value or ""
    if column.kind == "count":
        return f"{value:,}"
    return digits(value) if column.decimals is None else f"{value:.{column.decimals}f}"


def _styled(text: str, style: str, color: bool) -> str:
    return f"{style}{text}{_OFF}" if color and style else text
