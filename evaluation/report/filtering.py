"""The view *Filtering*: what AFLite did to each filtered set, and what that did to the models scored on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builders.figures import PARTS, label_shares, phase_means, phase_sizes, score_history, scores, shares
from builders.figures import Figure as Drawn
from builders.filtered import CONFIGS
from builders.filtered_cards import REASONS, SUBSETS
from builders.filtered_folder import histograms
from builders.folder import Manifest
from evaluation.built_sets import BuiltSet
from evaluation.report.accuracies import Scored, accuracy_figure, accuracy_summary, accuracy_table, scored_models
from evaluation.report.filtered_rows import FilteredRows, read_filtered_rows
from evaluation.report.gallery import gallery
from evaluation.report.inputs import Inputs
from evaluation.report.page import Block, Column, Figure, Section, Table, Text, View

IMAGE_BUDGET = 3_000_000
"""Most characters that the images of all sets take in the page."""

_INTRO = (
    "AFLite removes the rows whose label simple classifiers predict from features of an encoder. Predictability is the"
    " share, from 0 to 1, of the classifiers that did not train on a row and got it right: the higher, the easier."
)
_CARE = (
    "Kept rows are those that classifiers on one encoder's features fail on, and what was left when the filter reached"
    " its n, easy or not: models of the encoder's kind are at a disadvantage here, wrong labels are more frequent than"
    " before, and easy rows left also where they were easy for good reasons. A large drop says that a model does"
    " better on the rows that were removed, not why."
)


def section(inputs: Inputs) -> Section | None:
    """Give the view, if there is a filtered folder or a classifier that was scored on one."""
    sets, without = _sets(inputs)
    if not sets and not without:
        return None
    blocks: list[Block] = [Text(_CARE, "note")]
    for one in sets:
        blocks += _of_set(one, IMAGE_BUDGET // len(sets))
    for name, some in without.items():
        blocks += [
            Text(name, "heading"),
            Text(
                "Its folder is neither among the inputs nor where it was scored. Pass it too, to see phases, labels and"
                " rows: probesieve report RESULTS FOLDER --out report.html",
                "note",
            ),
            *_accuracies(name, some),
        ]
    return Section("filtering", "Filtering", _INTRO, blocks)


def summary(inputs: Inputs) -> list[Block]:
    """Give what a terminal shows: sizes, phases, and the accuracies with their drops."""
    sets, without = _sets(inputs)
    blocks: list[Block] = []
    for one in sets:
        blocks += [Text(one.name, "heading"), *(Text(sentence) for sentence in _sentences(one.manifest))]
        blocks.append(phases_table(one.name, one.manifest["filter"]["phases"]).ends())
        blocks += [accuracy_summary(one.scored, f"Accuracy on {one.name}")] if one.scored else []
        blocks += [Text(_other_build(one.elsewhere))] if one.elsewhere else []
    return blocks + [accuracy_summary(some, f"Accuracy on {name}") for name, some in without.items()]


@dataclass(frozen=True)
class _FilteredSet:
    """A filtered folder, what was scored on its rows, and what was scored on others of its name and version."""

    built: BuiltSet
    rows: FilteredRows
    scored: list[Scored]
    elsewhere: list[Scored]

    @property
    def name(self) -> str:
        return _name(self.built)

    @property
    def manifest(self) -> Manifest:
        return self.built.manifest


def _sets(inputs: Inputs) -> tuple[list[_FilteredSet], dict[str, list[Scored]]]:
    """Give the filtered folders, and what was scored on sets whose folder there is none of."""
    scored = scored_models(inputs)
    folders = [(built, read_filtered_rows(built)) for built in _folders(inputs)]
    own = [
        [one for one in scored.get(_name(built), ()) if rows.agree(one.split, one.predictions)]
        for built, rows in folders
    ]
    taken = {id(one) for some in own for one in some}
    sets = []
    for (built, rows), some in zip(folders, own, strict=True):
        elsewhere = [one for one in scored.pop(_name(built), ()) if id(one) not in taken]
        sets.append(_FilteredSet(built, rows, some, elsewhere))
    return sets, scored


def _folders(inputs: Inputs) -> list[BuiltSet]:
    """The filtered folders that were given, or that results are of and are where they were scored; each build once."""
    scored = (inputs.folder_of(result) for result in inputs.classifiers)
    every = [*inputs.folders, *(built for built in scored if built)]
    found = {built.manifest["sha256"]: built for built in reversed(every) if built.builder == "aflite"}
    return sorted(found.values(), key=lambda built: (built.name, built.version, built.manifest["sha256"]))


def _name(built: BuiltSet) -> str:
    return f"{built.name} {built.version}"


def _of_set(shown: _FilteredSet, budget: int) -> list[Block]:
    manifest, rows, name = shown.manifest, shown.rows, shown.name
    phases = manifest["filter"]["phases"]
    sides = dict(zip(PARTS, (manifest["labels"][config] for config in CONFIGS), strict=False))
    bars = histograms(rows.outcome.part, rows.outcome.predictability)
    return [
        Text(name, "heading"),
        *(Text(sentence) for sentence in _sentences(manifest)),
        *_what_left(name, manifest),
        _drawn(phase_sizes(phases)),
        _drawn(phase_means(phases), "The estimate of the representation bias: 1 where every label can be predicted."),
        _drawn(scores(bars, manifest["inputs"]["filter"]["tau"]), _score_note(rows.outcome.part.size, bars)),
        _drawn(score_history(phases), "Of the rows at the start of each phase; colours on a square-root scale."),
        _drawn(label_shares(sides)),
        *_accuracies(name, shown.scored),
        *([Text(_other_build(shown.elsewhere), "note")] if shown.elsewhere else []),
        *([] if shown.scored or shown.elsewhere else [Text(_how_to_score(shown.built), "note")]),
        View("filtering", {"title": name, **gallery(rows, budget)}),
        *_tables(name, manifest, sides),
    ]


def _other_build(scored: Sequence[Scored]) -> str:
    models = ", ".join(dict.fromkeys(one.model for one in scored))
    return f"Left out, since scored on a set of this name and version that kept other rows: {models}. Score them again."


def _how_to_score(built: BuiltSet) -> str:
    return (
        f"No classifier of the inputs was scored on {built.name}. To see accuracy before and after filtering:"
        " probesieve eval --model ORG/MODEL --dataset FOLDER"
    )


def _accuracies(name: str, scored: Sequence[Scored]) -> list[Block]:
    if not scored:
        return []
    return [accuracy_figure(scored), accuracy_table(scored, f"Accuracy on {name}")]


def _drawn(figure: Drawn, note: str = "") -> Figure:
    legend = {name: (colour, "square") for name, colour in figure.legend.items()}
    return Figure(figure.title, figure.spec(), figure.alt, note, legend)


def _score_note(n_rows: int, bars: Mapping[str, Sequence[int]]) -> str:
    scored = sum(sum(counts) for counts in bars.values())
    return (
        f"Scores of {scored:,} rows, each of the phase that removed it or of the last one. Rows of the filtered splits"
        f" without a score: {n_rows - scored:,}."
    )


def _sentences(manifest: Mapping[str, Any]) -> list[str]:
    counts = [manifest["counts"][split] for split in manifest["inputs"]["source"]["filtered"]]
    total = {key: sum(of[key] for of in counts) for key in counts[0]}
    scored = total["filtered"] + total["removed"]
    settings, phases = manifest["inputs"]["filter"], manifest["filter"]["phases"]
    known = [phase["bias"] for phase in phases if phase["bias"] is not None and phase["bias"] == phase["bias"]]
    fell = f" Mean predictability went from {known[0]:.3f} to {known[-1]:.3f}." if known else ""
    cut = manifest["inputs"].get("refiltered_from")
    again = f" Cut again from the scores of version {cut['version']}." if cut else ""
    warm = f"{total['warmup']:,} other rows trained the encoder. " if total["warmup"] else ""
    encoder = next((value for key, value, _ in manifest["spec"] if key == "encoder.model"), None)
    encoder = f"{manifest['encoder']['kind']}{f' {encoder}' if encoder else ''}"
    share = 100 * total["filtered"] / max(1, scored)
    easy = phases[-1]["eligible"] - phases[-1]["removed"] if phases and not cut else 0
    left = f" {easy:,} of the kept rows score τ or more all the same: the filter stopped before them." if easy else ""
    return [
        f"{total['filtered']:,} of {scored:,} scored rows were kept ({share:.1f} %). {warm}"
        f"{len(phases):,} phase{'' if len(phases) == 1 else 's'}; the filter ended since"
        f" {REASONS[manifest['filter']['stop_reason']]}.{fell}{again}{left}",
        f"n = {settings['n']:,}, m = {settings['m']:,}, t = {settings['t']:,}, k = {settings['k']:,}, τ ="
        f" {settings['tau']:g}, seed {manifest['seed']}; encoder: {encoder}.",
    ]


def phases_table(name: str, phases: Sequence[Mapping[str, Any]]) -> Table:
    """Give the records of the filter."""
    return Table(
        f"Phases of {name}",
        [
            Column("phase", [str(one["phase"]) for one in phases]),
            Column("rows", [one["size"] for one in phases], "count", "Rows at the start of the phase"),
            Column("mean predictability", [_number(one["bias"]) for one in phases], "number", decimals=3),
            Column("rows at least τ", [one["eligible"] for one in phases], "count"),
            Column("removed", [one["removed"] for one in phases], "count"),
        ],
    )


def _number(value: float | None) -> float | None:
    return None if value is None or value != value else value


def _tables(name: str, manifest: Mapping[str, Any], sides: Mapping[str, Mapping[str, int]]) -> list[Table]:
    found = manifest["filter"]
    parts = shares(sides)
    labels = list(parts["before"])
    return [
        phases_table(name, found["phases"]),
        Table(
            f"Labels of {name}",
            [
                Column("label", labels),
                *(Column(f"{side} rows", [sides[side][label] for label in labels], "count") for side in PARTS),
                *(Column(f"share {part}", list(of.values()), "number") for part, of in parts.items()),
            ],
        ),
    ]


def _what_left(name: str, manifest: Mapping[str, Any]) -> list[Table]:
    """Give what of the breakdown column left, and how predictable the parts are, as far as the folder says it."""
    found, tables = manifest["filter"], []
    if breakdown := found.get("breakdown"):
        columns = [Column(str(manifest["breakdown"]), list(breakdown))]
        for key in ("scored", "kept", "removed"):
            columns.append(Column(key, [of[key] for of in breakdown.values()], "count"))
        removed = [of["removed"] / max(1, of["scored"]) for of in breakdown.values()]
        columns.append(Column("share removed", removed, "number"))
        tables.append(Table(f"{name} by {manifest['breakdown']}", columns))
    if subsets := found.get("subsets"):
        trained = any("accuracy" in of for of in subsets.values())
        columns = [
            Column("rows", [SUBSETS[part].replace("`", "") for part in subsets]),
            Column("number", [of["rows"] for of in subsets.values()], "count"),
            Column("classifiers", [of["bias"] for of in subsets.values()], "number", _OF_CLASSIFIERS),
        ]
        if trained:
            own = [of.get("accuracy") for of in subsets.values()]
            columns.append(Column("warm-up model", own, "number", "Accuracy of the encoder's own output layer"))
        tables.append(Table(f"How predictable the parts of {name} are", columns, _OF_CLASSIFIERS))
    return tables


_OF_CLASSIFIERS = (
    "classifiers: accuracy of the filter's own classifiers on the features, trained and tested within the rows named;"
    " empty where there are too few"
)
