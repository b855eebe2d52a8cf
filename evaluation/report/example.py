"""The view *One example*: a row with its four inputs, and how C comes out of their scores (Figure 2 of Li et al. 2020).

The page holds some rows of each set: those that stand out in one of its results, some at random, and a balanced sample
to search in. Scores come from the results alone, texts from the dataset folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import EvaluationError
from evaluation.report.inputs import Inputs, Result, strongest
from evaluation.report.page import Block, Section, Text, View
from evaluation.scores import SCORE_COLUMNS, ScoredRows
from unqover_data.checks import ID_SEPARATOR

if TYPE_CHECKING:
    import pyarrow as pa

PICKS = {
    "strongest": "Strongest preference (largest |C|)",
    "weakest": "Weakest preference (smallest |C|)",
    "positional": "Largest positional error",
    "attribute": "Largest attribute error",
    "random": "Drawn at random",
}
EACH, SEARCHED = 6, 600
"""Rows of a pick in each result, and rows of a set to search in."""

_BALANCED = 30_000  # of the rows of a large set, from which those to search in are drawn evenly

_PARTS = ("subject1", "subject2", "template", "attribute")
_TEXTS = ("attribute_class", "text1", "text2", "context_12", "context_21")
_SPANS = ("span1_12", "span2_12", "span1_21", "span2_21")


@dataclass(frozen=True)
class Scored:
    """A result and its scores, one for all results on the same rows."""

    result: Result
    rows: ScoredRows


def section(inputs: Inputs) -> Section | None:
    """Give the view, if there is a result on a probe set."""
    if not inputs.probes:
        return None
    notes: dict[str, None] = {}
    sets = []
    for results in _alike(inputs):
        scored = [Scored(result, scores_of(result)) for result in results]
        ids, picks = chosen(scored, seed=0)
        texts = texts_of(inputs, results[0], ids)
        if texts is None:
            notes[f"{inputs.missing(results[0])}. Until then this view has scores without texts."] = None
        labels = [inputs.labels[result.model] for result in results]
        sets.append(set_data(scored, ids, picks, texts, labels) | {"first": strongest(results)})
    names = [one["name"] for one in sets]
    for one in sets:
        if names.count(one["name"]) > 1:
            one["name"] = f"{one['name']}, {one['config']}"
    blocks: list[Block] = [*(Text(note, "note") for note in notes), View("example", {"sets": sets, "picks": PICKS})]
    intro = (
        "Nothing in the context answers the question, so a model without a preference gives both subjects the same "
        "score. Each row is asked four times: with the subjects in both orders, and for the attribute and for its "
        "negation. A preference for a place in the sentence, and a negation that is overlooked, cancel out; what is "
        "left is C."
    )
    return Section("example", "One example", intro, blocks)


def _alike(inputs: Inputs) -> Iterable[list[Result]]:
    """Results by set, config and the rows of the set: those of a group are on the same rows."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for results in inputs.datasets.values():
        for result in results:
            facts, built = result.content["dataset"], inputs.folder_of(result)
            rows = built.rows_id(facts["config"]) if built else facts["revision"]
            groups.setdefault((result.dataset, facts["config"], rows), []).append(result)
    return groups.values()


def scores_of(result: Result) -> ScoredRows:
    """Read the scores of a result, which is all that a preference is made of; names are left to the ids."""
    import pyarrow.parquet as pq

    table = pq.read_table(result.scores, columns=["id", *SCORE_COLUMNS])
    scores = np.column_stack([table[name].to_numpy() for name in SCORE_COLUMNS]).astype(np.float64)
    nothing: Any = np.full(len(table), -1, dtype=np.int32)
    return ScoredRows(scores, table["id"].combine_chunks(), (), (), (), (), (), *[nothing] * 7)


def chosen(scored: Sequence[Scored], *, seed: int) -> tuple[list[str], list[dict[str, list[int]]]]:
    """Choose the rows that the page holds.

    Parameters
    ----------
    scored : sequence of Scored
        Of one set.
    seed : int
        Of the random ones and the sample.

    Returns
    -------
    list of str
        Ids: what is picked, then what is there to search in.
    list of dict
        For each result, by the names of `PICKS`, places in those ids.
    """
    place: dict[str, int] = {}
    picks = []
    for one in scored:
        picks.append(
            {
                name: [place.setdefault(key, len(place)) for key in one.rows.ids.take(rows).to_pylist()]
                for name, rows in picked(one.rows, seed=seed).items()
            }
        )
    for key in _searched(scored, seed=seed):
        place.setdefault(key, len(place))
    return list(place), picks


def picked(rows: ScoredRows, *, seed: int) -> dict[str, NDArray[np.int64]]:
    """Give the places of the rows of each of `PICKS`, the most extreme first; of equal ones the first."""
    from evaluation.metrics import attribute_errors, comparative_bias, positional_errors

    size = np.abs(comparative_bias(rows))
    drawn = np.random.default_rng(seed).choice(len(rows), min(EACH, len(rows)), replace=False)
    return {
        "strongest": np.argsort(-size, kind="stable")[:EACH],
        "weakest": np.argsort(size, kind="stable")[:EACH],
        "positional": np.argsort(-positional_errors(rows), kind="stable")[:EACH],
        "attribute": np.argsort(-attribute_errors(rows), kind="stable")[:EACH],
        "random": drawn,
    }


def _searched(scored: Sequence[Scored], *, seed: int) -> list[str]:
    """Ids of a balanced sample of the rows that as many results as can be have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from evaluation.sampling import sample_rows

    counts = pc.value_counts(pa.chunked_array([one.rows.ids for one in scored]))
    times = counts.field("counts").to_numpy()
    least = next(number for number in range(len(scored), 0, -1) if number == 1 or (times >= number).sum() >= SEARCHED)
    ids = counts.field("values").filter(pa.array(times >= least))
    if len(ids) <= SEARCHED:
        return list(ids.to_pylist())
    if len(ids) > _BALANCED:
        ids = ids.take(pa.array(np.sort(np.random.default_rng(seed).choice(len(ids), _BALANCED, replace=False))))
    columns = zip(*_parts(ids.to_pylist(), scored[0].result), strict=True)
    table = pa.table(dict(zip(_PARTS, map(list, columns), strict=True)))
    return list(ids.take(pa.array(sample_rows(table, SEARCHED, seed=seed))).to_pylist())


def _parts(ids: Iterable[str], result: Result) -> list[list[str]]:
    """Take ids apart into what `_PARTS` names."""
    parts = [key.split(ID_SEPARATOR) for key in ids]
    if any(len(part) != len(_PARTS) for part in parts):
        raise EvaluationError(
            f"{result.scores} has ids that are not subject|subject|template|attribute; score the model again"
        )
    return parts


def texts_of(inputs: Inputs, result: Result, ids: Sequence[str]) -> pa.Table | None:
    """Read texts and spans of some rows of a result's set, in this order; None where the set is not on this disk."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from builders.probes import asked_column

    built = inputs.folder_of(result)
    if built is None:
        return None
    config = result.content["dataset"]["config"]
    asked = asked_column(config)
    columns = ["id", *_TEXTS, *_SPANS, asked, f"{asked}_negated"]
    wanted = pa.array(ids, pa.string())
    files = built.files(built.manifest["configs"][config]["test"]["files"])
    plain = [name for name in columns if name not in ("id", *_SPANS)]
    only = pc.field("id").isin(wanted)
    some = (pq.read_table(file, columns=columns, filters=only, read_dictionary=plain) for file in files)
    found = pa.concat_tables(some).rename_columns(["id", *_TEXTS, *_SPANS, "asked", "asked_negated"])
    places = pc.index_in(wanted, value_set=found["id"].combine_chunks())
    if places.null_count:
        raise EvaluationError(f"{built.source} lacks rows that {result.path} has; was it built anew? score again")
    return found.take(places)


def set_data(
    scored: Sequence[Scored],
    ids: Sequence[str],
    picks: Sequence[dict[str, list[int]]],
    texts: pa.Table | None,
    labels: Sequence[str],
) -> dict[str, Any]:
    """Give the rows of a set with the scores of every result, as ``example.js`` takes them; words stand once.

    Returns
    -------
    dict
        ``words``; ``rows``: by column, for each row a place in those, of ``span...`` two numbers; ``results``: label,
        number of rows scored, picks, and the eight scores of each row or None, in the shortest form that is the same
        float32 again.
    """
    words: dict[str, int] = {}

    def coded(values: Iterable[str | None]) -> list[int | None]:
        return [None if value is None else words.setdefault(value, len(words)) for value in values]

    parts = _parts(ids, scored[0].result)
    rows: dict[str, list[Any]] = {name: coded(part[number] for part in parts) for number, name in enumerate(_PARTS)}
    if texts is not None:
        rows |= {name: coded(texts[name].to_pylist()) for name in (*_TEXTS, "asked", "asked_negated")}
        rows |= {name: texts[name].to_pylist() for name in _SPANS}
    facts = scored[0].result.content["dataset"]
    return {
        "name": scored[0].result.dataset,
        "config": facts["config"],
        "rows": rows,
        "results": [
            {
                "model": label,
                "settings": _settings(one.result),
                "scored": len(one.rows),
                "picks": pick,
                "scores": _scores(one.rows, ids),
            }
            for one, pick, label in zip(scored, picks, labels, strict=True)
        ],
        "words": list(words),
    }


def _settings(result: Result) -> str:
    """What besides the texts went into the scores."""
    of = result.model.settings
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in of.items())


def _scores(rows: ScoredRows, ids: Sequence[str]) -> list[list[float] | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(pa.array(ids, pa.string()), value_set=rows.ids).to_pylist()
    return [None if place is None else [float(str(np.float32(s))) for s in rows.scores[place]] for place in places]
