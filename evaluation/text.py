"""A stored result as text for a terminal, and as tables for a notebook."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from builders.reading import Grid, blocks_html, blocks_text
from evaluation.classifiers.text import classifier_blocks
from evaluation.metrics import METRICS
from evaluation.scorers.coverage import reasons
from unqover_data.errors import one_line

TOP = 5
_PROMPT_SIGNS = 400


def result_text(result: Mapping[str, Any]) -> str:
    """Lay out a result: what was scored how, the aggregates with how to read them, the strongest associations.

    Parameters
    ----------
    result : mapping
        A result as it is stored, of a probe set or a classifier.
    """
    return blocks_text(_blocks(result))


def result_html(result: Mapping[str, Any]) -> str:
    """Lay out what `result_text` does as HTML, with text from data and model names escaped."""
    return blocks_html(_blocks(result))


def probe_line(result: Mapping[str, Any]) -> str:
    """Give the aggregates of a result on a probe set in one line."""
    metrics = result["metrics"]
    parts = [f"{METRICS[name].symbol} {digits(entry['value'])}" for name, entry in metrics.items()]
    if metrics["mu"]["low"] is not None:
        parts[0] += f" (corrected {digits(metrics['mu']['corrected'])}, {_ends(metrics['mu'])})"
    return f"{_what(result)}: {', '.join(parts)}"


def _what(result: Mapping[str, Any]) -> str:
    model, dataset, settings = result["model"], result["dataset"], result["settings"]
    drawn = f"{result['rows']:,} of {dataset['rows']:,} rows" if result["rows"] < dataset["rows"] else "all rows"
    return (
        f"{model['name']} ({model['kind']}, {model['sha'][:12]}) on {dataset['name']} {dataset['version']}, "
        f"config {dataset['config']}, protocol {settings['protocol']}, {drawn}"
    )


def _blocks(result: Mapping[str, Any]) -> list[str | Grid]:
    if "splits" in result:
        return classifier_blocks(result)
    associations = result["tables"]["subject_attribute"]
    return [
        _what(result),
        *_remarks(result),
        "",
        Grid(
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


def _metric(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    metric = METRICS[name]
    ideal = "" if metric.ideal is None else f"{metric.ideal:g}"
    shown = (digits(entry["value"]), digits(entry["corrected"]), _ends(entry))
    return (metric.symbol, *shown, f"{entry['n']:,}", metric.range, ideal, f"{metric.title}; {metric.direction}")


def _associations(table: Mapping[str, Sequence[Any]]) -> list[str | Grid]:
    """The subjects and attributes with the largest |γ|; above 0 they go together, below they are kept apart."""
    order = sorted(range(len(table["n"])), key=lambda i: -abs(table["gamma"][i]))[:TOP]
    rows = [("subject", "attribute", "γ", "95 % interval", "q", "n")]
    for i in order:
        interval = interval_text(table["gamma_low"][i], table["gamma_high"][i])
        facts = (str(table["subject"][i]), str(table["attribute"][i]), digits(table["gamma"][i]), interval)
        rows.append((*facts, digits(table["q"][i]), f"{table['n'][i]:,}"))
    sure = sum(q is not None and q <= 0.05 for q in table["q"])
    verdict = f"{sure:,} of the pairs stand" if sure else "No pair stands"
    return [Grid(rows, right=(2, 4, 5)), "", f"{verdict} out from chance (q at most 0.05)."]


def _remarks(result: Mapping[str, Any]) -> list[str]:
    coverage, scorer, lines = result["coverage"], result["scorer"], list[str]()
    if why := reasons(coverage):
        kept, rows = (f"{coverage[name]:,}" if name in coverage else "some" for name in ("rows_kept", "rows"))
        lines.append(f"{kept} of {rows} rows can be scored with this model: {why}")
    if text := scorer.get("prompt_example"):
        dated = f"dated {scorer['chat_date']}, " if "chat_date" in scorer else ""
        shown = one_line(json.dumps(text, ensure_ascii=False), most=_PROMPT_SIGNS)
        lines.append(f"prompt ({dated}SHA-256 {scorer['prompt_sha256'][:12]}): {shown}")
    if "no_answer" in result["means"]:
        lines.append(f"mean probability of no answer: {digits(result['means']['no_answer'])}")
    if result["metrics"]["mu"]["low"] is None:
        lines.append("too few rows per subject and attribute for intervals of μ and η: draw a larger --sample")
    return lines


def _ends(entry: Mapping[str, Any]) -> str:
    return interval_text(entry["low"], entry["high"])


def interval_text(low: float | None, high: float | None) -> str:
    """Give an interval, or nothing where it is not known."""
    return "" if low is None or high is None else f"{digits(low)} to {digits(high)}"


def digits(value: float | None) -> str:
    """Four decimals, or three digits of what is too small for them."""
    if value is None:
        return ""
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"
