"""What a build found out about the rows that it kept and removed: the numbers and examples of its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.features.store import StoredFeatures
from builders.filtered import FILTERED, REMOVED, WARMUP, Outcome
from builders.images import broken_image, image_bytes, open_image
from builders.sources.spec import IMAGE
from builders.specs import FilterSettings

if TYPE_CHECKING:
    from datasets import Dataset
    from PIL.Image import Image

N_EXAMPLES = 6
_EXAMPLES, _SUBSETS = 2, 3
_MOST_COMPARED = 100_000
_LEAST_COMPARED = 50


@dataclass(frozen=True)
class Pool:
    """The rows of all splits that are filtered together, one split after the other.

    Attributes
    ----------
    rows : datasets.Dataset
        The rows.
    labels : ndarray of int64, shape (N,)
        Their labels.
    bounds : mapping of str to slice
        Place of each split.
    warm, rest : ndarray of int64
        Rows of the warm-up sample, and all others in the order in which they are scored.
    """

    rows: Dataset
    labels: NDArray[np.int64]
    bounds: Mapping[str, slice]
    warm: NDArray[np.int64]
    rest: NDArray[np.int64]


@dataclass(frozen=True)
class Example:
    """A row to show.

    Attributes
    ----------
    inputs : mapping of str to object
        Text or image, by column.
    label : str
        Name of the label.
    predictability : float
        Its score.
    times_scored : int
        Classifiers behind it.
    """

    inputs: Mapping[str, Any]
    label: str
    predictability: float
    times_scored: int


@dataclass(frozen=True)
class Findings:
    """Numbers and examples of a filtered set.

    Attributes
    ----------
    phases : tuple of mapping
        The filter's record of each phase.
    stop_reason : str
        Why it ended.
    subsets : mapping of str to mapping
        For ``all`` scored rows, the ``random`` baseline, the ``kept`` and the ``removed``: ``rows``, ``bias``
        (accuracy in [0, 1] that the filter's classifiers reach on the subset by itself, None where it is too small)
        and ``accuracy`` of the warm-up model (absent without one). Empty when there are no features.
    breakdown : mapping of str to mapping
        By value of a column: how many rows were ``scored``, ``kept`` and ``removed``.
    most, least : tuple of Example
        Rows that left first, and kept rows with the lowest scores.
    similarity : mapping
        As `builders.similarity.measure_similarity` gives it; empty when there are no features.
    """

    phases: tuple[Mapping[str, Any], ...]
    stop_reason: str
    subsets: Mapping[str, Mapping[str, Any]]
    breakdown: Mapping[str, Mapping[str, int]]
    most: tuple[Example, ...]
    least: tuple[Example, ...]
    similarity: Mapping[str, Any] = field(default_factory=dict)


def compare_subsets(
    settings: FilterSettings, seed: int, pool: Pool, outcome: Outcome, stored: StoredFeatures, *, device: str
) -> dict[str, dict[str, Any]]:
    """Measure how predictable all, random, kept and removed rows are by themselves, with training parts of one size.

    ``bias`` is the representation bias R(Phi, S, M) of the subset S (section 2 of the AFLite paper), of at
    most 100,000 rows drawn from it.
    """
    part = outcome.part[pool.rest]
    masks = {
        "all": part != WARMUP,
        "random": outcome.in_random_subset[pool.rest],
        "kept": part == FILTERED,
        "removed": part == REMOVED,
    }
    t = min(settings.t, int(np.count_nonzero(masks["kept"])) // 2)
    labels = pool.labels[pool.rest]
    found: dict[str, dict[str, Any]] = {}
    for number, (name, mask) in enumerate(masks.items()):
        rows = np.flatnonzero(mask)
        rng = np.random.default_rng(np.random.SeedSequence((seed, _SUBSETS, number)))
        drawn = np.sort(rng.permutation(rows)[:_MOST_COMPARED])
        bias = _bias(settings, seed, stored.features[drawn], labels[drawn], t, device)
        found[name] = {"rows": rows.size, "bias": bias}
        if stored.predictions is not None:
            right = stored.predictions[rows] == labels[rows]
            found[name]["accuracy"] = float(right.mean()) if rows.size else None
    return found


def _bias(
    settings: FilterSettings, seed: int, features: NDArray[Any], labels: NDArray[np.int64], t: int, device: str
) -> float | None:
    from aflite import filter_dataset

    if labels.size < max(_LEAST_COMPARED, t + 2) or np.unique(labels).size < 2:
        return None
    result = filter_dataset(
        features,
        labels,
        n=labels.size - 1,
        m=settings.m,
        t=t,
        k=0,
        tau=0,
        seed=seed,
        model=settings.model,
        c=settings.c,
        device=device,
    )
    return result.history[0].bias


def count_by(rows: Dataset, outcome: Outcome, column: str | None) -> dict[str, dict[str, int]]:
    """Count the scored, kept and removed rows by the values of a column."""
    if not column:
        return {}
    values = rows.select_columns([column]).with_format("arrow")[:][column].to_pylist()
    names = np.array(["none" if value is None else str(value) for value in values])
    counts = {}
    for name in np.unique(names).tolist():
        part = outcome.part[names == name]
        kept, removed = int(np.count_nonzero(part == FILTERED)), int(np.count_nonzero(part == REMOVED))
        counts[name] = {"scored": kept + removed, "kept": kept, "removed": removed}
    return counts


def ranked(outcome: Outcome, seed: int, *, hardest: bool) -> NDArray[np.int64]:
    """Order the kept rows from the lowest score, or the removed rows from those that left first with the highest.

    Only rows with a score are among them; between equal ones chance decides.
    """
    candidates = np.flatnonzero((outcome.part == (FILTERED if hardest else REMOVED)) & (outcome.times_scored > 0))
    rng = np.random.default_rng(np.random.SeedSequence((seed, _EXAMPLES, int(hardest))))
    chance = rng.random(candidates.size)
    scores = outcome.predictability[candidates]
    return candidates[np.lexsort((chance, scores if hardest else -scores, outcome.removed_in_phase[candidates]))]


def pick(rows: Dataset, outcome: Outcome, columns: Sequence[str], seed: int, *, hardest: bool) -> tuple[Example, ...]:
    """Draw examples among the kept rows with the lowest scores, or among the first removed with the highest.

    Raises
    ------
    BuildError
        If the image of an example cannot be read.
    """
    names = rows.features["label"].names
    chosen = ranked(outcome, seed, hardest=hardest)[:N_EXAMPLES].tolist()
    drawn = rows.select_columns([*columns, "label", "source_index"]).select(chosen).with_format("arrow")[:].to_pylist()
    examples = []
    for row, values in zip(chosen, drawn, strict=True):
        if IMAGE in columns:
            values[IMAGE] = _decoded(values)
        examples.append(
            Example(
                {column: values[column] for column in columns},
                names[values["label"]],
                float(outcome.predictability[row]),
                int(outcome.times_scored[row]),
            )
        )
    return tuple(examples)


def _decoded(values: Mapping[str, Any]) -> Image:
    try:
        return open_image(image_bytes(values[IMAGE]))
    except Exception as error:  # a decoder may raise anything on a broken file
        raise BuildError(broken_image(values[IMAGE], values["source_index"], error)) from error
