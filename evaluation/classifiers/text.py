"""Stored results of classifiers, cross-model difficulty and human accuracy as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builders.reading import Grid, aligned, blocks_text
from evaluation.classifiers.difficulty import Difficulty, OodPredictions
from evaluation.classifiers.humans import Humans
from evaluation.classifiers.metrics import Rate
from evaluation.classifiers.sets import SUBSETS

_MOST_CLASSES = 12
_WHAT = {
    "full": "all labelled rows",
    "kept": "rows that the filter kept",
    "removed": "rows that it removed",
    "random": "as many rows as were kept, at random",
}


def classifier_blocks(result: Mapping[str, Any]) -> list[str | Grid]:
    """Lay out a result: what was scored how, then each split's accuracy by subset, by class and by group.

    Parameters
    ----------
    result : mapping
        A result as it is stored, or of several splits.
    """
    settings = result["settings"]
    lines: list[str | Grid] = [
        _what(result),
        f"classes: {result['labels']['rule']}",
    ]
    limit, rows = settings["limit"], result["dataset"]["rows"]
    if limit is not None and len(result["splits"]) > 1:
        lines.append(f"at most {limit:,} rows of a split, drawn at random with seed {settings['seed']}")
    elif limit is not None and limit < rows:
        lines.append(f"{limit:,} of {rows:,} rows, drawn at random with seed {settings['seed']}")
    for split, summary in result["splits"].items():
        lines += ["", f"{split}: {summary['rows']:,} rows", "", *_split(summary)]
    return lines


def classifier_line(result: Mapping[str, Any]) -> str:
    """Give the accuracies of a result in one line."""
    splits = []
    for split, summary in result["splits"].items():
        shares = (f"{name} {found['value']:.3f}" for name, found in summary["accuracy"].items() if found)
        splits.append(f"{split} ({summary['rows']:,} rows): accuracy {', '.join(shares)}")
    return f"{_what(result)}; {'; '.join(splits)}"


def _what(result: Mapping[str, Any]) -> str:
    model, dataset = result["model"], result["dataset"]
    return f"{model['name']} ({model['kind']}, {model['sha'][:12]}) on {dataset['name']} {dataset['version']}"


def _split(summary: Mapping[str, Any]) -> list[str | Grid]:
    if summary["report"] is not None:
        lines = _report(summary["report"])
    else:
        there = [name for name in SUBSETS if summary["accuracy"][name]]
        rows = [(name, *_rate(summary["accuracy"][name]), f"{summary['ece'][name]:.3f}", _WHAT[name]) for name in there]
        lines = [Grid([("", "accuracy", "95 % interval", "n", "ECE", "what"), *rows], right=(1, 3, 4))]
        lines += _by_class(summary["classes"], there)
        for column in summary["groups"][there[0]]:
            parts = {name: summary["groups"][name][column] for name in there}
            lines += ["", _breakdown(column, parts)]
    if fall := summary["drop"]:
        lines += ["", f"Drop from all rows to the kept: {fall['value']:.3f} ({fall['low']:.3f} to {fall['high']:.3f})."]
    if summary["label_order"]:
        lines += ["", f"Notice: {summary['label_order']}"]
    if broken := summary["broken"]["rows"]:
        first = ", ".join(str(one["source_index"]) for one in summary["broken"]["first"])
        lines += ["", f"{broken:,} images could not be read and are left out: {first}"]
    return lines


def _by_class(classes: Mapping[str, Any], there: Sequence[str]) -> list[str | Grid]:
    """Accuracy of each class, or the lowest of many."""
    parts = {name: classes[name] for name in there}
    full = parts[there[0]]
    if len(full) <= _MOST_CLASSES:
        return ["", _breakdown("class", parts)]
    lowest = sorted(full, key=lambda name: (full[name]["value"], name))[:_MOST_CLASSES]
    few = {name: {label: rates[label] for label in lowest if label in rates} for name, rates in parts.items()}
    return [
        "",
        f"The {_MOST_CLASSES} of {len(full):,} classes with the lowest accuracy:",
        "",
        _breakdown("class", few),
    ]


def _breakdown(title: str, parts: Mapping[str, Mapping[str, Any]]) -> Grid:
    """A table with a row a value and a column a subset."""
    values = list(dict.fromkeys(value for rates in parts.values() for value in rates))
    first = next(iter(parts.values()))
    rows = []
    for value in values:
        shares = (f"{rates[value]['value']:.3f}" if value in rates else "" for rates in parts.values())
        rows.append((value, *shares, f"{first[value]['n']:,}" if value in first else ""))
    return Grid([(title, *parts, "n"), *rows], right=range(1, len(parts) + 2))


def _report(report: Mapping[str, Any]) -> list[str | Grid]:
    """The scores of a set out of distribution, as its authors break them down, beside what is known of others."""
    groups = [
        (f"{column}: {value}", scores)
        for column, values in report["groups"].items()
        for value, scores in values.items()
    ]
    every = (("all", report["all"]), *groups)
    labels = list(dict.fromkeys(label for _, scores in every for label in scores.get("by_label", ())))
    others = [metric for metric in report["metrics"] if metric != "accuracy"]
    others += sorted({key for _, scores in every for key in scores if key.startswith("mean_over_")})
    names = (name.replace("_", " ") for name in others)
    head = ("", "accuracy", "95 % interval", *names, *(f"of {label}" for label in labels), "n")
    rows = [_scores(name, scores, others, labels) for name, scores in every]
    lines: list[str | Grid] = [Grid([head, *rows], right=(1, *range(3, len(head))))]
    for reference in report["references"]:
        of = f" of {reference['label']}" if reference["label"] else ""
        known = ", ".join(f"{name} {value:.3f}" for name, value in reference["accuracy"].items())
        lines += ["", f"Known of {reference['title']}, accuracy{of}: {known}"]
    return lines


def _scores(name: str, scores: Mapping[str, Any], others: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    values = [f"{scores[metric]:.3f}" if metric in scores else "" for metric in others]
    by_label = scores.get("by_label", {})
    parts = [f"{by_label[label]['value']:.3f}" if label in by_label else "" for label in labels]
    share, interval, n = _rate(scores["accuracy"])
    return (name, share, interval, *values, *parts, n)


def _rate(found: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"{found['value']:.3f}", f"{found['low']:.3f} to {found['high']:.3f}", f"{found['n']:,}"


def difficulty_text(found: Sequence[Difficulty] | Sequence[OodPredictions], title: str) -> str:
    """Lay out how models that the filter never saw do on kept and on removed rows, or on a set out of distribution.

    Parameters
    ----------
    found : sequence of Difficulty or of OodPredictions
        Of one split.
    title : str
        Names the split.
    """
    filtered = [one for one in found if isinstance(one, Difficulty)]
    rows = [
        (
            one.file,
            *("" if share is None else f"{share.value:.3f}" for share in (one.full, one.kept, one.removed, one.random)),
            f"{one.drop.value:.3f}",
            f"{one.drop.low:.3f} to {one.drop.high:.3f}",
            f"{one.matched:,} of {one.rows:,}",
            one.matched_by,
        )
        for one in filtered
    ]
    head = ("predictions", "full", "kept", "removed", "random", "drop", "95 % interval", "rows", "matched by")
    lines: list[str | Grid] = [title]
    if filtered:
        lines += ["", Grid([head, *rows], right=(1, 2, 3, 4, 5)), ""]
        lines += ["Accuracy; drop is that on removed rows less that on kept ones, above 0 where the kept are harder."]
        lines += ["Random are as many rows as were kept, drawn from all that the filter scored."]
    for one in found:
        if isinstance(one, OodPredictions):
            lines += ["", f"{one.file}: {one.matched:,} of {one.rows:,} rows, matched by {one.matched_by}"]
            lines += ["", *_report(one.report)]
    for one in found:
        notices = (one.label_order, *one.notices)
        lines += [f"Notice, {one.file}: {notice}" for notice in notices if notice]
    return blocks_text(lines)


def humans_text(found: Mapping[str, Humans], title: str) -> str:
    """Lay out how well people agree with the gold labels.

    Parameters
    ----------
    found : mapping of str to Humans
        By subset.
    title : str
        Names the rows.
    """
    rows = [(name, *_of(one.accuracy), *_of(one.against_others)[:2], f"{one.rows:,}") for name, one in found.items()]
    head = ("", "accuracy", "95 % interval", "labels", "by others", "95 % interval", "rows")
    return "\n".join(
        [
            title,
            "",
            *aligned([head, *rows], right=(1, 3, 4, 6)),
            "",
            "Accuracy of one annotator at a time against the gold label; by others: against what most of the other",
            "annotators of the row say. Rows without a gold label are left out, as they are for models.",
        ]
    )


def _of(share: Rate) -> tuple[str, str, str]:
    return _rate(share.to_json())
