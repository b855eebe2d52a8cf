"""The view *Associations*: γ of every subject and attribute, the strongest links, and the top of either.

Attributes are shown by class first, as Li et al. 2020 show them; the single statements are a choice of the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evaluation.report.charts import DIVERGING, PALETTE
from evaluation.report.inputs import Inputs, Result, config_files, strongest
from evaluation.report.page import Block, Section, Text, View, rounded

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = ("n", "gamma", "gamma_low", "gamma_high", "q", "eta", "eta_low", "eta_high")
AXES = {
    "subject_class": ("subject", "attribute_class"),
    "subject_attribute": ("subject", "attribute"),
    "group_class": ("group", "attribute_class"),
    "group_attribute": ("group", "attribute"),
}
"""Tables of a result that the view shows, and the columns that name their cells."""

_DIGITS = 4
_FEW_GROUPS, _MANY_SUBJECTS = 4, 40


@dataclass(frozen=True)
class Names:
    """What the rows of a set say beyond a result.

    Attributes
    ----------
    subjects, attributes : tuple of str
        In the order of the lists.
    group_of, class_of, asked : mapping of str to str
        Group of a subject; class of an attribute, and one question or statement with it.
    """

    subjects: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    group_of: Mapping[str, str] = field(default_factory=dict)
    class_of: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)


def section(inputs: Inputs) -> Section | None:
    """Give the view, if there is a result on a probe set."""
    if not inputs.probes:
        return None
    notes: dict[str, None] = {}
    sets = []
    for name, results in inputs.datasets.items():
        names = next((found for result in results if (found := names_of(inputs, result))), None)
        if names is None:
            notes[f"{inputs.missing(results[0])}. Until then groups and classes are not known."] = None
        labels = {result.model: inputs.labels[result.model] for result in results}
        sets.append(set_data(name, results, names or Names(), labels) | {"first": strongest(results)})
    colours = {"below": DIVERGING[0], "zero": DIVERGING[1], "above": DIVERGING[2], "groups": list(PALETTE)}
    blocks: list[Block] = [
        *(Text(note, "note") for note in notes),
        View("associations", {"sets": sets, "colours": colours}),
    ]
    blocks += [
        Text("Every subject and attribute", "heading"),
        View("heatmap", {}),
        Text("The strongest links", "heading"),
        View("links", {}),
        Text("Top attributes and top subjects", "heading"),
        View("tops", {}),
    ]
    intro = (
        "γ says how much a model prefers a subject over the others when an attribute is asked for. Above 0 the model "
        "ties the subject to the attribute, below 0 to its negation; 0 is ideal, and the range is -1 to 1. These are "
        "associations of a model on this set's names and sentences. They say nothing about the people named. A small q "
        "says that these rows differ from chance, an interval without 0 that other partners and sentences would, too: "
        "trust an association where both do."
    )
    return Section("associations", "Associations", intro, blocks)


def set_data(name: str, results: Sequence[Result], names: Names, labels: Mapping[Any, str]) -> dict[str, Any]:
    """Give the numbers of all results on a set, as ``associations.js`` takes them.

    Parameters
    ----------
    name : str
        Of the set.
    results : sequence of Result
    names : Names
        As far as they are known; what only results name comes last, sorted.
    labels : mapping of Model to str

    Returns
    -------
    dict
        ``axes``: names by axis, ``subject``, ``group``, ``attribute`` and ``attribute_class``; ``group``, ``class``:
        for each subject and attribute its place in those, or None; ``shades``: the place of each group's colour, which
        is that of `evaluation.report.ranks`; ``asked``; ``start``: which table is shown first;
        ``results``: the label, the number of rows, and by table each of `NUMBERS` in row-major order, None for cells
        without rows.
    """
    listed = {
        "subject": names.subjects,
        "group": tuple(dict.fromkeys(names.group_of[s] for s in names.subjects if s in names.group_of)),
        "attribute": names.attributes,
        "attribute_class": tuple(dict.fromkeys(names.class_of[a] for a in names.attributes if a in names.class_of)),
    }
    tables = [(axes, r.content["tables"][t]) for r in results for t, axes in AXES.items() if t in r.content["tables"]]
    axes = {
        axis: _in_order(known, (word for used, table in tables if axis in used for word in table[axis]))
        for axis, known in listed.items()
    }
    place = {axis: {word: number for number, word in enumerate(words)} for axis, words in axes.items()}
    few = 1 < len(axes["group"]) <= _FEW_GROUPS and len(axes["subject"]) >= _MANY_SUBJECTS
    return {
        "name": name,
        "axes": axes,
        "group": [place["group"].get(names.group_of.get(subject, "")) for subject in axes["subject"]],
        "shades": [sorted(axes["group"]).index(group) for group in axes["group"]],
        "class": [place["attribute_class"].get(names.class_of.get(one, "")) for one in axes["attribute"]],
        "asked": [names.asked.get(one) for one in axes["attribute"]],
        "start": {
            "rows": "group" if few else "subject",
            "columns": "attribute_class" if len(axes["attribute_class"]) > 1 else "attribute",
        },
        "results": [
            {
                "model": labels[result.model],
                "rows": result.content["rows"],
                "tables": {
                    table: matrix(result.content["tables"][table], place, *AXES[table])
                    for table in AXES
                    if table in result.content["tables"]
                },
            }
            for result in results
        ],
    }


def _in_order(known: Iterable[str], used: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*known, *sorted(set(used))]))


def matrix(
    table: Mapping[str, Sequence[Any]], place: Mapping[str, Mapping[str, int]], rows: str, columns: str
) -> dict[str, list[Any]]:
    """Lay a table of a result out as one list a number, row by row; None where the table has no such cell."""
    width = len(place[columns])
    cells = [
        place[rows][row] * width + place[columns][column]
        for row, column in zip(table[rows], table[columns], strict=True)
    ]
    laid: dict[str, list[Any]] = {}
    for name in NUMBERS:
        laid[name] = [None] * (len(place[rows]) * width)
        values = table[name] if name == "n" else rounded(table[name], _DIGITS)
        for cell, value in zip(cells, values, strict=True):
            laid[name][cell] = value
    return laid


def names_of(inputs: Inputs, result: Result) -> Names | None:
    """Read the names of a result's set from its rows; None where the set is not on this disk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from builders.probes import asked_column

    built = inputs.folder_of(result)
    if built is None:
        return None
    config = result.content["dataset"]["config"]
    asked = asked_column(config)
    columns = ["subject1", "subject2", "group1", "group2", "attribute", "attribute_class", asked]
    files = config_files(built, config)
    return names_in(pa.concat_tables(pq.read_table(f, columns=columns, read_dictionary=columns) for f in files), asked)


def names_in(rows: pa.Table, asked: str) -> Names:
    """Give the names in probe rows, in the order of the lists that they were made from.

    Pairs are formed in list order, so those who come first in a pair do so in list order; whoever never does, follows.
    """
    group_of: dict[str, str | None] = {}
    for side in ("1", "2"):
        for subject, group in _distinct(rows, f"subject{side}", f"group{side}"):
            group_of.setdefault(subject, group)
    attributes: dict[str, tuple[str | None, str]] = {}
    for name, kind, text in _distinct(rows, "attribute", "attribute_class", asked):
        attributes.setdefault(name, (kind, text))
    return Names(
        tuple(group_of),
        tuple(attributes),
        {subject: group for subject, group in group_of.items() if group is not None},
        {name: kind for name, (kind, _) in attributes.items() if kind is not None},
        {name: text for name, (_, text) in attributes.items()},
    )


def _distinct(rows: pa.Table, *columns: str) -> Iterable[tuple[Any, ...]]:
    """Give the distinct rows of some columns, in the order in which the first of each stands."""
    import numpy as np

    numbered = rows.select(columns).unify_dictionaries().append_column("row", [np.arange(len(rows))])
    found = numbered.group_by(list(columns)).aggregate([("row", "min")]).sort_by("row_min")
    return zip(*(found[name].to_pylist() for name in columns), strict=True)
