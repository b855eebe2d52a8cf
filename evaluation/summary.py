"""All aggregates and tables of one model on one probe set, from its stored scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from evaluation.intervals import DRAWS, Estimate, count, intensity, mean_interval, table_intervals
from evaluation.metrics import (
    METRICS,
    Axis,
    By,
    Views,
    attribute_errors,
    average_scores,
    positional_errors,
    table_of,
    views,
)
from evaluation.scores import ScoredRows
from evaluation.significance import FLIPS, false_discovery_q, sign_flip_p_values

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Summary:
    """Aggregates by their name in `METRICS`; tables ``subject_attribute``, ``subject`` and, where there are classes or
    groups, ``subject_class``, ``group_attribute``, ``group`` and ``group_class``.
    """

    aggregates: dict[str, Estimate]
    tables: dict[str, pa.Table]

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Give the aggregates with range, direction and ideal value, as JSON takes them."""
        return {
            name: {**asdict(estimate), "range": [metric.low, metric.high], "direction": metric.direction}
            | {"ideal": metric.ideal}
            for name, estimate in self.aggregates.items()
            for metric in [METRICS[name]]
        }


def summarize(rows: ScoredRows, *, seed: int, draws: int = DRAWS, flips: int = FLIPS) -> Summary:
    """Compute everything.

    Parameters
    ----------
    rows : ScoredRows
    seed : int
        Of the noise that corrects μ and η, and of the sign flips.
    draws, flips : int
        See `evaluation.intervals.intensity` and `evaluation.significance.sign_flip_p_values`.
    """
    seen = views(rows)
    aggregates = {
        "mu": intensity(rows, seed=seed, draws=draws, seen=seen),
        "eta": count(rows, seed=seed, draws=draws, seen=seen),
        "delta": mean_interval(rows, positional_errors(rows)),
        "epsilon": mean_interval(rows, attribute_errors(rows)),
        "average_score": mean_interval(rows, average_scores(rows)),
    }
    tables = {"subject_attribute": summary_table(rows, seen, "subject", "attribute", seed=seed, flips=flips)}
    wanted: list[tuple[str, Axis, By | None]] = [("subject", "subject", None)]
    if len(rows.attribute_classes) > 1:
        wanted.append(("subject_class", "subject", "attribute_class"))
    if len(rows.groups) > 1:
        wanted += [("group_attribute", "group", "attribute"), ("group", "group", None)]
    if len(rows.groups) > 1 and len(rows.attribute_classes) > 1:
        wanted.append(("group_class", "group", "attribute_class"))
    for name, axis, by in wanted:
        tables[name] = summary_table(rows, views(rows, axis=axis, by=by), axis, by, seed=seed, flips=flips)
    return Summary(aggregates, tables)


def summary_table(
    rows: ScoredRows, seen: Views, axis: Axis, by: By | None, *, seed: int, flips: int = FLIPS
) -> pa.Table:
    """Give γ and η of every cell with n, 95 % intervals, sign-flip p and false-discovery q, largest γ first.

    Returns
    -------
    pyarrow.Table
        ``subject`` or ``group``; the column `by` names, if any; ``n``, ``gamma``, ``gamma_low``, ``gamma_high``, ``p``,
        ``q``, ``eta``, ``eta_low``, ``eta_high``. An end is null where partners and templates are too few to know.
    """
    import numpy as np
    import pyarrow as pa

    table = table_of(seen)
    p = sign_flip_p_values(seen, seed=seed, flips=flips)
    gamma, eta = (table_intervals(rows, seen, of=of) for of in ("gamma", "eta"))
    numbers = {"n": table.n, "gamma": table.gamma, "gamma_low": gamma.low, "gamma_high": gamma.high}
    numbers |= {"p": p, "q": false_discovery_q(p), "eta": table.eta, "eta_low": eta.low, "eta_high": eta.high}
    present = np.flatnonzero(table.n.reshape(-1))
    order = present[np.argsort(-table.gamma.reshape(-1)[present], kind="stable")]
    row, column = np.divmod(order, len(table.columns))
    columns: dict[str, Any] = {axis: pa.array(table.rows).take(pa.array(row))}
    if by:
        columns[by] = pa.array(table.columns).take(pa.array(column))
    columns |= {name: pa.array(values.reshape(-1)[order], from_pandas=True) for name, values in numbers.items()}
    return pa.table(columns)
