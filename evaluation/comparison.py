"""Tables that set subjects, attributes and models side by side, as in the paper's Figure 4 and Tables 2 to 4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evaluation.errors import EvaluationError
from evaluation.metrics import BiasTable, bias_table, model_count, model_intensity
from evaluation.scores import FloatArray, ScoredRows

if TYPE_CHECKING:
    import pyarrow as pa


def gamma_by_subject(table: BiasTable) -> dict[str, float]:
    """Give γ(x) of each subject that has rows; see `BiasTable.collapse`."""
    gamma = table.collapse().gamma[:, 0]
    return {name: float(value) for name, value in zip(table.rows, gamma, strict=True) if not np.isnan(value)}


def rank_subjects(gammas: Mapping[str, Mapping[str, float]]) -> pa.Table:
    """Rank the subjects by γ(x) within each model, and average over models (Figure 4).

    Parameters
    ----------
    gammas : mapping of model to mapping of subject to γ(x)
        Subjects that not all models have are left out before ranking.

    Returns
    -------
    pyarrow.Table
        ``subject``, ``mean`` and ``sd`` of its ranks (``sd`` with n - 1; null for one model), and a column of ranks for
        each model; from the most negatively stereotyped (rank 1, the largest γ) down. Ties share their mean rank.

    Raises
    ------
    EvaluationError
        If there is no model, or no subject that all have.
    """
    import pyarrow as pa
    from scipy.stats import rankdata

    if not gammas:
        raise EvaluationError("there are zero models to rank the subjects of")
    subjects = sorted(set.intersection(*(set(gamma) for gamma in gammas.values())))
    if not subjects:
        raise EvaluationError(f"the models {', '.join(gammas)} have no subject in common; were they scored on one set?")
    ranks = np.stack([rankdata([-gamma[name] for name in subjects]) for gamma in gammas.values()], axis=1)
    mean = ranks.mean(axis=1)
    sd = ranks.std(axis=1, ddof=1) if len(gammas) > 1 else np.full(len(subjects), np.nan)
    order = np.argsort(mean, kind="stable")
    columns = {"subject": np.array(subjects, dtype=object)[order], "mean": mean[order], "sd": sd[order]}
    columns |= {model: ranks[order, place] for place, model in enumerate(gammas)}
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def top_pairs(table: BiasTable, k: int = 10, *, each: bool = False) -> pa.Table:
    """Give the pairs of subject and attribute with the largest γ(x, a) (Tables 2 and 4).

    Parameters
    ----------
    table : BiasTable
        Of subjects or groups.
    k : int
        How many.
    each : bool
        Whether to give k for each subject or group instead of k in all.

    Returns
    -------
    pyarrow.Table
        ``subject``, ``attribute``, ``gamma``, ``eta``, ``n``, largest γ first (within each subject with `each`).
    """
    import pyarrow as pa

    some = (
        [_ranked(table.gamma[[row]])[:k] + row * len(table.columns) for row in range(len(table.rows))] if each else []
    )
    places = np.concatenate(some) if each else _ranked(table.gamma)[:k]
    row, column = np.divmod(places, len(table.columns))
    return pa.table(
        {
            "subject": [table.rows[i] for i in row],
            "attribute": [table.columns[i] for i in column],
            "gamma": table.gamma[row, column],
            "eta": table.eta[row, column],
            "n": table.n[row, column],
        }
    )


def shared_extremes(tables: Mapping[str, BiasTable], k: int = 10, *, models: int | None = None) -> pa.Table:
    """Give the attributes that several models have among the k largest, or smallest, γ(x, a) of a subject (Table 3).

    Parameters
    ----------
    tables : mapping of model to BiasTable
    k : int
        How far the top and the bottom reach.
    models : int, optional
        In how many models an attribute must be there; by default in all.

    Returns
    -------
    pyarrow.Table
        ``subject``, ``end`` (``top`` or ``bottom``), ``attribute``, ``models``, ``gamma`` (the mean over those models);
        by subject, then end, then number of models, then γ.
    """
    import pyarrow as pa

    if not tables:
        raise EvaluationError("there are zero models to compare")
    least = len(tables) if models is None else models
    found: dict[tuple[str, str, str], list[float]] = {}
    for table in tables.values():
        for subject, gamma in zip(table.rows, table.gamma, strict=True):
            ranked = _ranked(gamma)
            for end, places in (("top", ranked[:k]), ("bottom", _ranked(-gamma)[:k])):
                for place in places:
                    found.setdefault((subject, end, table.columns[place]), []).append(float(gamma[place]))
    shared = [
        {"subject": subject, "end": end, "attribute": name, "models": len(values), "gamma": float(np.mean(values))}
        for (subject, end, name), values in found.items()
        if len(values) >= least
    ]
    shared.sort(key=lambda row: (row["subject"], row["end"] == "bottom", -int(str(row["models"])), _outward(row)))
    types = {"subject": pa.string(), "end": pa.string(), "attribute": pa.string()}
    return pa.Table.from_pylist(shared, pa.schema([*types.items(), ("models", pa.int64()), ("gamma", pa.float64())]))


def _outward(row: Mapping[str, object]) -> float:
    gamma = float(str(row["gamma"]))
    return -gamma if row["end"] == "top" else gamma


def _ranked(gamma: FloatArray) -> FloatArray:
    """Places of a table's cells from the largest γ down; ties in the table's order; cells without rows left out."""
    flat = gamma.reshape(-1)
    order = np.argsort(-flat, kind="stable")
    return np.asarray(order[~np.isnan(flat[order])])


def bias_shift(base: ScoredRows, tuned: Mapping[str, ScoredRows]) -> pa.Table:
    """Compare a language model with the models fine-tuned from it, each on what both have scored.

    A masked LM scores only the subjects that its vocabulary has as one token, so μ and η of both are taken over the
    shared rows. The released lists have templates of their own for language models, so that no row is shared: there
    both are taken over the pairs of subjects and attributes that both have, each with its own templates. A fine-tuned
    model's scores are of another kind than a language model's: η, which only counts, carries over more readily than μ.

    Returns
    -------
    pyarrow.Table
        ``model``, ``shared`` (``rows``, or ``pairs`` of subjects with an attribute), ``n_base`` and ``n`` (rows of
        either that count), ``mu_base``, ``mu``, ``mu_shift``, ``eta_base``, ``eta``, ``eta_shift`` (above 0: more bias
        after fine-tuning) and ``rank_correlation`` (Spearman's, of γ(x), from -1 to 1; 1: the same order of subjects;
        null where it is not defined).

    Raises
    ------
    EvaluationError
        If a model shares neither a row with the base nor an attribute that it was asked of the same two subjects.
    """
    import pyarrow as pa

    lines = []
    for model, rows in tuned.items():
        shared, one, other = _shared(base, rows)
        if not len(other):
            raise EvaluationError(
                f"{model} has no row in common with the base model, nor a pair of subjects with the same attribute; "
                "were they scored on one set?"
            )
        before, after = bias_table(one), bias_table(other)
        line: dict[str, object] = {"model": model, "shared": shared, "n_base": len(one), "n": len(other)}
        for name, number in (("mu", model_intensity), ("eta", model_count)):
            line |= {
                f"{name}_base": number(before),
                name: number(after),
                f"{name}_shift": number(after) - number(before),
            }
        line["rank_correlation"] = _rank_correlation(gamma_by_subject(before), gamma_by_subject(after))
        lines.append(line)
    return pa.Table.from_pylist(lines)


def _shared(base: ScoredRows, tuned: ScoredRows) -> tuple[str, ScoredRows, ScoredRows]:
    """Give what two models share, and the rows of each in it."""
    import pyarrow.compute as pc

    places = pc.index_in(tuned.ids, value_set=base.ids)
    kept = places.is_valid().to_numpy(zero_copy_only=False)
    if kept.any():
        return "rows", base.take(places.drop_null().to_numpy(zero_copy_only=False)), tuned.take(kept)
    subjects, attributes = (
        {name: place for place, name in enumerate(sorted({*getattr(base, of), *getattr(tuned, of)}))}
        for of in ("subjects", "attributes")
    )
    cells = []
    for rows in (base, tuned):
        subject = np.array([subjects[name] for name in rows.subjects], dtype=np.int64)
        attribute = np.array([attributes[name] for name in rows.attributes], dtype=np.int64)
        low, high = np.sort([subject[rows.subject1], subject[rows.subject2]], axis=0)
        cells.append((low * len(subjects) + high) * len(attributes) + attribute[rows.attribute])
    one, other = cells
    return "pairs", base.take(np.isin(one, other)), tuned.take(np.isin(other, one))


def _rank_correlation(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    from scipy.stats import rankdata

    one, other = (rankdata([gamma[name] for name in sorted(before)]) for gamma in (before, after))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])
