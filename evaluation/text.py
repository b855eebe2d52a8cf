"""A stored result as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builders.reading import aligned
from evaluation.classifiers.text import classifier_text
from evaluation.metrics import METRICS

TOP = 5


def result_text(result: Mapping[str, Any]) -> str:
    """Lay out a result: what was scored how, the aggregates with how to read them, the strongest associations.

    Parameters
    ----------
    result : mapping
        A result as it is stored, of a probe set or a classifier.
    """
    if "splits" in result:
        return classifier_text(result)
    model, dataset, settings = result["model"], result["dataset"], result["settings"]
    drawn = f"{result['rows']:,} of {dataset['rows']:,} rows" if result["rows"] < dataset["rows"] else "all rows"
    associations = result["tables"]["subject_attribute"]
    lines = [
        f"{model['name']} ({model['kind']}, {model['sha'][:12]}) on {dataset['name']} {dataset['version']}, "
        f"config {dataset['config']}, protocol {settings['protocol']}, {drawn}",
        *_remarks(result),
        "",
        *aligned(
            [
                ("", "value", "corrected", "95 % interval", "n", "range", "ideal", "what"),
                *(_metric(name, entry) for name, entry in result["metrics"].items()),
            ],
            right=(1, 2, 4),
        ),
        "",
        f"Strongest associations, of {len(associations['n']):,} subject-attribute pairs:",
        "",
        *_associations(associations),
        "",
        "Measures stereotyping associations on this set's names, templates and statements; certifies nothing.",
    ]
    return "\n".join(lines)


def _metric(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    metric = METRICS[name]
    ideal = "" if metric.ideal is None else f"{metric.ideal:g}"
    shown = (digits(entry["value"]), digits(entry["corrected"]), interval_text(entry["low"], entry["high"]))
    return (metric.symbol, *shown, f"{entry['n']:,}", metric.range, ideal, f"{metric.title}; {metric.direction}")


def _associations(table: Mapping[str, Sequence[Any]]) -> list[str]:
    """The subjects and attributes with the largest |γ|; above 0 they go together, below they are kept apart."""
    order = sorted(range(len(table["n"])), key=lambda i: -abs(table["gamma"][i]))[:TOP]
    rows = [("subject", "attribute", "γ", "95 % interval", "q", "n")]
    for i in order:
        interval = interval_text(table["gamma_low"][i], table["gamma_high"][i])
        facts = (str(table["subject"][i]), str(table["attribute"][i]), digits(table["gamma"][i]), interval)
        rows.append((*facts, digits(table["q"][i]), f"{table['n'][i]:,}"))
    sure = sum(q is not None and q <= 0.05 for q in table["q"])
    verdict = f"{sure:,} of the pairs stand" if sure else "No pair stands"
    return [*aligned(rows, right=(2, 4, 5)), "", f"{verdict} out from chance (q at most 0.05)."]


def _remarks(result: Mapping[str, Any]) -> list[str]:
    coverage, lines = result["coverage"], []
    if left_out := coverage.get("subjects_left_out"):
        names = ", ".join(left_out)
        lines.append(f"{coverage['coverage']:.0%} of the rows can be scored; this vocabulary lacks: {names}")
    if "no_answer" in result["means"]:
        lines.append(f"mean probability of no answer: {digits(result['means']['no_answer'])}")
    if result["metrics"]["mu"]["low"] is None:
        lines.append("too few rows per subject and attribute for intervals of μ and η: draw a larger --sample")
    return lines


def interval_text(low: float | None, high: float | None) -> str:
    """Give an interval, or nothing where it is not known."""
    return "" if low is None or high is None else f"{digits(low)} to {digits(high)}"


def digits(value: float | None) -> str:
    """Four decimals, or three digits of what is too small for them."""
    if value is None:
        return ""
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"
