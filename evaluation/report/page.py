"""One HTML file that opens without a network: what a section is made of, and how sections become a page.

A section is a tab. It is data only; scripts in ``assets`` draw it when its tab is first opened:

- `Text` is a paragraph, a heading or a note.
- `Items` is a list of paragraphs.
- `Figure` is a Vega-Lite specification (a dict, or what ``alt.Chart.to_dict`` gives) with its alt text. Give it
  ``"width": "container"``; fonts, colours and sizes come from `evaluation.report.charts`.
- `Table` has columns; a reader can sort, search and save it as CSV.
- `View` is anything else: ``assets/<name>.js`` calls ``report.view("<name>", (root, data, tools) => ...)`` and fills
  ``root``, an empty element; ``tools`` has ``element``, ``figure``, ``table``, ``select``, ``refill``, ``number`` and
  ``interval`` of ``report.js``. Where there is ``assets/<name>.css``, it goes into the page too.

Names of models, subjects and rows come from others. In Python they are escaped here, and signs that act unseen are
written out as everywhere (`unqover_data.signs`); a script sets ``textContent`` and never ``innerHTML``.
"""

from __future__ import annotations

import functools
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from builders.pictures import by_child, has_limit
from evaluation.errors import EvaluationError
from evaluation.report.charts import CONFIG
from unqover_data.signs import visible

_ASSETS = Path(__file__).parent / "assets"
# Nothing can be fetched, whatever stands in the page; Vega compiles its expressions.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


@dataclass(frozen=True)
class Text:
    """Words; a heading starts a part of the section, a note is set apart, `lead` stands before it in bold."""

    text: str
    kind: Literal["paragraph", "heading", "note", "warning"] = "paragraph"
    lead: str = ""


@dataclass(frozen=True)
class Items:
    """A list, each of its texts a line with a bullet."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite chart; `alt` says in words what it shows, `note` how to read it, `legend` what its colours mean.

    A legend of Vega-Lite's own is cut off where the page is narrow, so switch it off (``"legend": None``) where there
    are names to give as `legend`, each with its colour and shape as `evaluation.report.charts.marks` gives them.
    """

    title: str
    spec: Mapping[str, Any]
    alt: str
    note: str = ""
    legend: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its head.
    values : sequence
        Of strings, or of numbers or None; of an interval the lower and the upper ends, as two sequences.
    kind : str
        ``text``, ``number``, ``count`` or ``interval``.
    help : str
        What it means, shown where the head is pointed at.
    decimals : int or None
        Of a number; None for four, or three digits of what is too small for them.
    """

    name: str
    values: Sequence[Any]
    kind: Literal["text", "number", "count", "interval"] = "text"
    help: str = ""
    decimals: int | None = None

    def __len__(self) -> int:
        return len(self.values[0] if self.kind == "interval" else self.values)

    def to_json(self) -> dict[str, Any]:
        """Give it as ``report.js`` takes it, numbers with five digits."""
        values: Any = self.values
        if self.kind == "number":
            values = rounded(values)
        elif self.kind == "interval":
            values = [rounded(ends) for ends in values]
        facts = {"name": self.name, "kind": self.kind, "help": self.help, "decimals": self.decimals, "values": values}
        return {key: value for key, value in facts.items() if value not in ("", None)}


@dataclass(frozen=True)
class Table:
    """A table; `sort` names the column that it is sorted by at first, largest on top with `descending`."""

    title: str
    columns: Sequence[Column]
    note: str = ""
    sort: str | None = None
    descending: bool = False

    def ends(self, number: int = 5) -> Table:
        """Give a long table's first and last rows, so many of each; of one without intervals."""
        size = len(self.columns[0])
        if size <= 2 * number + 1:
            return self
        some = [*range(number), *range(size - number, size)]
        columns = [replace(column, values=[column.values[row] for row in some]) for column in self.columns]
        title = f"{self.title}, the first and the last {number} of {size}"
        return replace(self, title=title, columns=columns)


@dataclass(frozen=True)
class View:
    """What ``assets/<name>.js`` draws from `data`, which JSON must be able to hold."""

    name: str
    data: Mapping[str, Any]


Block = Text | Items | Figure | Table | View


@dataclass(frozen=True)
class Section:
    """A tab: `id` in letters, its title, what it shows in a sentence or two, and what it consists of."""

    id: str
    title: str
    intro: str
    blocks: Sequence[Block]


def missing_part(error: Exception) -> Text:
    """Give what stands in place of a part that cannot be made."""
    return Text(f"{error}.", "warning", "This part is missing.")


def rounded(values: Iterable[float | None], digits: int = 5) -> list[float | None]:
    """Give numbers with so many digits, and None for what is no number, to keep the page small.

    Examples
    --------
    >>> rounded([0.123456789, -2.0, None, float("nan")])
    [0.12346, -2, None, None]
    """
    return [None if value is None or math.isnan(value) else _short(value, digits) for value in values]


def _short(value: float, digits: int) -> float:
    short = float(f"{value:.{digits}g}")
    return int(short) if short == int(short) else short


def page(title: str, lead: str, sections: Sequence[Section], *, warning: str | None, footer: str) -> str:
    """Lay out a report.

    Parameters
    ----------
    title, lead, footer : str
        Plain text.
    warning : str, optional
        Stands above all views, where there is one.
    sections : sequence of Section
        Tabs, in their order; the first is open.
    """
    tabs = "".join(_tab(section, first=not place) for place, section in enumerate(sections))
    panels = "".join(_panel(section, first=not place) for place, section in enumerate(sections))
    views = dict.fromkeys(block.name for one in sections for block in one.blocks if isinstance(block, View))
    scripts = [_vega(), _asset("table.js"), _asset("report.js"), *(_asset(f"{name}.js") for name in views)]
    styles = [_asset("report.css"), *(_asset(f"{name}.css") for name in views if (_ASSETS / f"{name}.css").is_file())]
    alert = (
        f'<p class="warning" role="note"><strong>Content warning.</strong> {_text(warning)}</p>\n' if warning else ""
    )
    scripts.append(f"report.start({as_json({'config': CONFIG})});")
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n',
            f"<title>{_text(title)}</title>\n<style>\n{''.join(styles)}</style>\n</head>\n<body>\n",
            f'<header>\n<h1>{_text(title)}</h1>\n<p class="lead">{_text(lead)}</p>\n',
            f"{alert}</header>\n",
            f'<nav><div role="tablist" aria-label="Views">{tabs}</div></nav>\n<main>\n{panels}</main>\n',
            f"<footer>{_text(footer)}</footer>\n",
            *(f"<script>\n{script}\n</script>\n" for script in scripts),
            "</body>\n</html>\n",
        )
    )


def as_json(content: Any) -> str:
    """Give JSON that may stand inside of a script element.

    Examples
    --------
    >>> as_json({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    return visible(text).translate(_ESCAPED)


def _plain(value: Any) -> Any:
    """What NumPy's and PyArrow's objects are in JSON."""
    for name in ("tolist", "to_pylist"):
        if hasattr(value, name):
            return getattr(value, name)()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _tab(section: Section, *, first: bool) -> str:
    return (
        f'<button role="tab" id="tab-{section.id}" aria-controls="{section.id}" '
        f'aria-selected="{str(first).lower()}" tabindex="{0 if first else -1}">{_text(section.title)}</button>'
    )


def _panel(section: Section, *, first: bool) -> str:
    parts = [
        f'<div class="figures">\n{"".join(some)}</div>\n' if of_figures else "".join(some)
        for of_figures, group in groupby(enumerate(section.blocks), key=lambda one: isinstance(one[1], Figure))
        for some in [[_block(block, place) for place, block in group]]
    ]
    data = [_data(block) for block in section.blocks]
    intro = f'<p class="intro">{_text(section.intro)}</p>\n' if section.intro else ""
    return (
        f'<section role="tabpanel" id="{section.id}" aria-labelledby="tab-{section.id}" tabindex="0"'
        f"{'' if first else ' hidden'}>\n<h2>{_text(section.title)}</h2>\n{intro}{''.join(parts)}"
        f'<script type="application/json">{as_json(data)}</script>\n</section>\n'
    )


def _block(block: Block, place: int) -> str:
    """The markup that is there without scripts; ``report.js`` fills the elements with ``data-block``."""
    if isinstance(block, Text):
        if block.kind == "heading":
            return f"<h3>{_text(block.text)}</h3>\n"
        lead = f"<strong>{_text(block.lead)}</strong> " if block.lead else ""
        return f'<p class="{block.kind}">{lead}{_text(block.text)}</p>\n'
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{_text(text)}</li>' for text in block.texts)}</ul>\n"
    if isinstance(block, View):
        return f'<div class="view" data-block="{place}" data-view="{_text(block.name)}"></div>\n'
    note = f'<p class="caption">{_text(block.note)}</p>\n' if block.note else ""
    if isinstance(block, Figure):
        return (
            f"<figure>\n<figcaption>{_text(block.title)}</figcaption>\n{_legend(block.legend)}"
            f'<div class="chart" data-block="{place}" role="group" aria-label="{_text(block.alt)}"></div>\n'
            f"{note}</figure>\n"
        )
    return f'<div class="table" data-block="{place}" data-title="{_text(block.title)}"></div>\n{note}'


def _legend(legend: Mapping[str, tuple[str, str]]) -> str:
    entries = (
        f'<li><span class="{_text(shape)}" style="background:{_text(colour)}"></span>{_text(name)}</li>'
        for name, (colour, shape) in legend.items()
    )
    return f'<ul class="legend">{"".join(entries)}</ul>\n' if legend else ""


def _data(block: Block) -> Any:
    if isinstance(block, Figure):
        return {"kind": "figure", "alt": block.alt, "spec": block.spec}
    if isinstance(block, View):
        return {"kind": "view", "data": block.data}
    if isinstance(block, Table):
        names = [column.name for column in block.columns]
        sort = names.index(block.sort) if block.sort else None
        columns = [column.to_json() for column in block.columns]
        return {"kind": "table", "title": block.title, "columns": columns, "sort": sort, "descending": block.descending}
    return None


@functools.cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed in one script, as vl-convert brings them.

    Raises
    ------
    EvaluationError
        If vl-convert cannot run.
    """
    wanted = "window.vegaEmbed = vegaEmbed;"
    if has_limit():
        made = by_child("javascript_bundle", snippet=wanted)
        if made is None:
            raise EvaluationError(
                "the charts of a report need vl-convert, which needs more address space than this process may have "
                "(ulimit -v): run it without such a limit, or with --text"
            )
        bundle = made.decode()
    else:
        import vl_convert

        bundle = vl_convert.javascript_bundle(wanted)
    return "(() => {" + bundle.replace("</script", "<\\/script") + "})();"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    return html.escape(visible(text, keep="\n\t"))
