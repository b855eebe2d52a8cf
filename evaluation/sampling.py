"""Draws whole rows of a probe set so that every subject keeps equally many for every attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import EvaluationError

if TYPE_CHECKING:
    import pyarrow as pa


def sample_size(sample: float | int | str, rows: int) -> int:
    """Give how many of `rows` rows a sample has.

    Parameters
    ----------
    sample : float, int or str
        A share below 1 (``0.02``), or a count (``20000``).

    Raises
    ------
    EvaluationError
        If it is neither, is more than there are, or comes to zero rows.

    Examples
    --------
    >>> sample_size("0.02", 1_372_000), sample_size(20_000, 38_500)
    (27440, 20000)
    """
    try:
        number = float(sample)
    except ValueError as error:
        raise EvaluationError(
            f"--sample must be a share such as 0.02 or a count such as 20000, not {sample!r}"
        ) from error
    if not 0 < number < float("inf") or (number > 1 and number != int(number)):
        raise EvaluationError(f"--sample must be a share below 1 or a whole number of rows, not {sample}")
    whole = number > 1 or isinstance(sample, int) or sample in ("1",)
    size = int(number) if whole else round(number * rows)
    if size > rows:
        raise EvaluationError(f"--sample {sample} is more than the {rows:,} rows there are; leave --sample out")
    if size == 0:
        raise EvaluationError(f"--sample {sample} of {rows:,} rows leaves zero rows; ask for more")
    return size


def sample_rows(probe_rows: pa.Table, sample: float | int | str, *, seed: int) -> NDArray[np.int64]:
    """Draw rows of a probe set, balanced.

    Attributes get equally many rows (counts differ by at most one, unless an attribute has no more to give). Within an
    attribute every subject takes part in equally many (they differ by at most one, on each side where pairs are formed
    between two groups), and templates are used as evenly as can be. A row has two subjects, so counts of two
    attributes may differ by one more. Where few rows of an attribute are left over, it is they that are drawn evenly.

    Parameters
    ----------
    probe_rows : pyarrow.Table
        With the columns ``subject1``, ``subject2``, ``template`` and ``attribute``.
    sample : float, int or str
        As for `sample_size`.
    seed : int
        The same rows in the same order, the same size and seed: the same sample.

    Returns
    -------
    int64 array
        Row numbers, ascending.

    Raises
    ------
    EvaluationError
        If a column is missing or the sample cannot be drawn.
    """
    from evaluation.scores import encode, require

    require(probe_rows, ("subject1", "subject2", "template", "attribute"), "the probe rows")
    size = sample_size(sample, len(probe_rows))
    names, (one, two) = encode(probe_rows, ("subject1", "subject2"))
    _, (template,) = encode(probe_rows, ("template",))
    attributes, (attribute,) = encode(probe_rows, ("attribute",))
    rng = np.random.default_rng(seed)
    quotas = _quotas(np.bincount(attribute, minlength=len(attributes)), size, rng)
    by_attribute = np.split(np.argsort(attribute, kind="stable"), np.cumsum(np.bincount(attribute))[:-1])
    chosen = []
    for rows, quota in zip(by_attribute, quotas, strict=True):
        keep = 2 * quota <= len(rows)  # else what is left over is drawn, which is as even and sooner done
        drawn = _draw(one[rows], two[rows], template[rows], len(names), quota if keep else len(rows) - quota, rng)
        chosen.append(rows[drawn if keep else ~drawn])
    return np.sort(np.concatenate(chosen))


def _quotas(available: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Share `size` out evenly, to none more than it has; who gets one more is chance."""
    quotas = np.zeros(len(available), dtype=np.int64)
    while size:
        room = np.flatnonzero(quotas < available)
        each = size // len(room)
        if each:
            more = np.minimum(available[room] - quotas[room], each)
        else:
            room = rng.permutation(room)[:size]
            more = np.ones(size, dtype=np.int64)
        quotas[room] += more
        size -= int(more.sum())
    return quotas


def _draw(
    one: NDArray[np.integer[Any]],
    two: NDArray[np.integer[Any]],
    template: NDArray[np.integer[Any]],
    subjects: int,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Draw rows of one attribute: the subject with the fewest so far, its partner with the fewest, the rarest template.

    Ties are broken by chance.
    """
    drawn = np.zeros(len(one), dtype=bool)
    if not size:
        return drawn
    templates = int(template.max()) + 1
    left = np.zeros((subjects, subjects), dtype=np.int32)
    np.add.at(left, (one, two), 1)
    np.add.at(left, (two, one), 1)
    rows_of: dict[tuple[int, int], list[int]] = {}
    for row, pair in enumerate(zip(one.tolist(), two.tolist(), strict=True)):
        rows_of.setdefault((min(pair), max(pair)), []).append(row)
    used = np.zeros(subjects)
    used[left.sum(axis=1) == 0] = np.inf
    used_template = np.zeros((subjects, templates))
    for _ in range(size):
        noise = rng.random((2, subjects))
        x = int(np.argmin(used + 0.5 * noise[0]))
        partner = int(np.argmin(np.where(left[x] > 0, used + 0.5 * noise[1], np.inf)))
        rows = rows_of[min(x, partner), max(x, partner)]
        often = used_template[x] + used_template[partner] + used_template.sum(axis=0) / (2 * size + 1)
        places = often[template[rows]] + 1e-9 * rng.random(len(rows))
        row = rows.pop(int(np.argmin(places)))
        drawn[row] = True
        for subject, other in ((x, partner), (partner, x)):
            used[subject] += 1
            used_template[subject, template[row]] += 1
            left[subject, other] -= 1
            if not left[subject].any():
                used[subject] = np.inf
    return drawn
