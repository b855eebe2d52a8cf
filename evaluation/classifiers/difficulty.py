"""Cross-model difficulty: are the rows that a filter keeps hard for models that it never saw?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.classifiers.label_order import find_label_order
from evaluation.classifiers.matching import Ints, Pair, Rows, match_keys, match_pairs, stripped
from evaluation.classifiers.metrics import Difference, Rate, difference, rate
from evaluation.classifiers.prediction_files import PredictionFile
from evaluation.errors import EvaluationError

_DIGITS = 18  # of an index; longer ones are ids
_MOST_GOLD_DIFFERS = 0.05  # corrected labels are fewer; another split or label order differs in a third and more


@dataclass(frozen=True)
class Difficulty:
    """How another model does on the rows of a filtered set.

    Attributes
    ----------
    file : str
        Of the predictions.
    matched_by : str
        What named the rows: ``source_index``, ``pair id``, ``text``, ``index`` or ``order``.
    in_file, rows, matched : int
        Predictions in the file, rows of the split, and rows that got a prediction.
    unused : int
        Predictions for no row of the split.
    gold_differs : int or None
        Matched rows where the file has another gold label; the dataset's counts. None if the file has none.
    full, kept, removed : Rate
        Accuracy on matched rows: all, the kept, the removed.
    drop : Difference
        Accuracy on removed less that on kept rows; above 0 where what the filter keeps is harder for this model too.
    label_order : str or None
        A notice where the labels of the file seem to be in another order.
    """

    file: str
    matched_by: str
    in_file: int
    rows: int
    matched: int
    unused: int
    gold_differs: int | None
    full: Rate
    kept: Rate
    removed: Rate
    drop: Difference
    label_order: str | None

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)


def cross_model_difficulty(file: PredictionFile, rows: Rows, *, kept: ArrayLike, removed: ArrayLike) -> Difficulty:
    """Score another model's predictions on what a filter kept and what it removed.

    Parameters
    ----------
    file : PredictionFile
    rows : Rows
        All labelled rows of the split, the warm-up's too: predictions that are in row order are counted off on them.
    kept, removed : bool array, shape (rows,)

    Raises
    ------
    EvaluationError
        If no row is found in the file, or none of the kept, or of the removed; if gold labels differ in more than 5 %
        of the rows, which is the mark of another split or label order.
    """
    places, how = locate(file, rows)
    found = places >= 0
    wanted = rows.labels[found]
    differs = _gold_differs(file, places[found], wanted)
    predicted = file.predicted[places[found]]
    hits = predicted == wanted
    order = find_label_order(wanted, predicted, rows.names)
    rates = {
        name: rate(hits[np.asarray(mask, dtype=bool)[found]], what=f"{name} in {file.name}")
        for name, mask in (("kept", kept), ("removed", removed))
    }
    return Difficulty(
        file=file.name,
        matched_by=how,
        in_file=len(file),
        rows=len(rows),
        matched=int(found.sum()),
        unused=len(file) - len(np.unique(places[found])),
        gold_differs=differs,
        full=rate(hits),
        **rates,
        drop=difference(rates["removed"], rates["kept"]),
        label_order=None if order is None else order.text,
    )


def _gold_differs(file: PredictionFile, places: Ints, labels: Ints) -> int | None:
    counts = []
    for gold in file.gold:
        known = gold[places] >= 0
        if known.any():
            counts.append((int((gold[places] != labels)[known].sum()), int(known.sum())))
    if not counts:
        return None
    differs, known_rows = min(counts)
    if differs > _MOST_GOLD_DIFFERS * known_rows:
        raise EvaluationError(
            f"{file.name} has other gold labels than the dataset in {differs:,} of {known_rows:,} rows: it is of "
            "another split, or numbers its labels in another order, which --label-map can say"
        )
    return differs


def locate(file: PredictionFile, rows: Rows) -> tuple[Ints, str]:
    """Find the prediction of each row.

    The surest name that both sides have is taken: ``source_index``, the authors' pair id, the exact texts, an index, or
    at last the order of the file. An index or an order counts either all rows of the source's split or only its
    labelled ones; the number of predictions tells which, and an index that is too high for the labelled rows.

    Returns
    -------
    places : int64 array, shape (rows,)
        Index into the file, -1 for a row without prediction.
    how : str
        What named the rows.

    Raises
    ------
    EvaluationError
        If nothing that the file has finds any row; if a row has two predictions; if numbers of rows begin with 1 or go
        beyond the split; if two names of a row contradict each other.
    """
    tried: list[str] = []
    surest: _Way | None = None
    for way in _ways(file, rows):
        if surest is None and way.numbers is not None:
            _check_range(file, way.column, way.numbers, rows)
        if not (way.places >= 0).any():
            tried.append(way.column)
        elif surest is None:
            surest = way
        else:
            _check_same_rows(file, rows, surest, way)
    if surest is not None:
        return surest.places, surest.how
    if tried:
        raise EvaluationError(
            f"none of the {len(rows):,} rows is in {file.name}, sought by {' and '.join(tried)}: is it of another "
            "split?"
        )
    if (file.pair_ids, file.pairs, file.indexes) != (None,) * 3:
        raise EvaluationError(f"{file.name} names rows by ids or texts that this dataset lacks: add source_index")
    lengths = " or ".join(f"{length:,}" for length in _lengths(rows))
    raise EvaluationError(
        f"{file.name} names no rows and has {len(file):,} predictions, where the split has {lengths} rows: "
        "add source_index, pairID or both texts"
    )


@dataclass(frozen=True)
class _Way:
    """How the predictions of the rows are found: by what kind of name, in which column of the file."""

    how: str
    column: str
    places: Ints
    numbers: Sequence[int] | None = None


def _ways(file: PredictionFile, rows: Rows) -> Iterator[_Way]:
    column, indexes = file.column("index", "index"), file.indexes
    if file.source_index is not None:
        name = file.column("source_index", "source_index")
        numbers = [int(number) for number in rows.source_index]
        found = match_keys(numbers, file.source_index, what=f"{file.name}: {name}")
        yield _Way("source_index", name, found, file.source_index)
    if rows.pair_ids is not None and len(set(rows.pair_ids)) == len(rows):
        for ids, name in ((file.pair_ids, file.column("pair_id", "pair id")), (indexes, column)):
            if ids is not None:
                found = match_keys(rows.pair_ids, ids, what=f"{file.name}: {name}")
                if ids is not indexes or (found >= 0).any():
                    yield _Way("pair id", name, found)
                    indexes = None if ids is indexes else indexes  # these are ids, not numbers of rows
    if file.pairs is not None and rows.pairs is not None:
        _check_one_each(file, file.pairs, rows.pairs)
        yield _Way("text", "text", match_pairs(rows.pairs, file.pairs))
    if indexes is not None and all(index.isdecimal() and len(index) <= _DIGITS for index in indexes):
        of_rows = [int(index) for index in indexes]
        among_labelled = len(file) == len(rows) > max(of_rows)
        counted = _places(rows, len(file)) if among_labelled else rows.source_index
        found = match_keys([int(place) for place in counted], of_rows, what=f"{file.name}: {column}")
        yield _Way("index", column, found, of_rows)
    elif indexes is not None and rows.pair_ids is not None:
        yield _Way("pair id", column, np.full(len(rows), -1, dtype=np.int64))
    nameless = (file.source_index, file.pair_ids, file.pairs, file.indexes) == (None,) * 4
    if nameless and len(file) in _lengths(rows):
        yield _Way("order", "order", _places(rows, len(file)))


def _check_same_rows(file: PredictionFile, rows: Rows, first: _Way, second: _Way) -> None:
    """Raise `EvaluationError` if two names find different predictions for a row; equal texts may stand anywhere."""
    for row in np.flatnonzero((first.places >= 0) & (second.places >= 0) & (first.places != second.places)):
        ones = [int(way.places[row]) for way in (first, second)]
        pairs = file.pairs if "text" in (first.how, second.how) else None
        if pairs is not None and len({stripped(pairs[place]) for place in ones}) == 1:
            continue
        raise EvaluationError(
            f"{file.name}: {first.column} and {second.column} contradict each other: source row "
            f"{rows.source_index[row]:,} is row {ones[0] + 1:,} of the file by the one, {ones[1] + 1:,} by the other; "
            "leave the right one"
        )


def _check_range(file: PredictionFile, what: str, numbers: Sequence[int], rows: Rows) -> None:
    """Raise `EvaluationError` if numbers of rows are counted from 1, or go beyond the split."""
    lengths, highest = _lengths(rows), max(numbers)
    labelled = set(rows.source_index.tolist())
    from_one = min(numbers) == 1 and highest > 1 and len(set(numbers)) == highest
    if from_one and (0 in labelled or (highest in lengths and not set(numbers) <= labelled)):
        raise EvaluationError(
            f"{file.name}: {what} goes from 1 to {highest:,}, but rows are counted from 0: it looks as if it counts "
            "from 1; take 1 from each, or name the rows by pairID or by both texts"
        )
    if rows.source_rows is not None and highest >= rows.source_rows:
        raise EvaluationError(
            f"{file.name}: {what} goes from {min(numbers):,} to {highest:,}, but the rows of the split are 0 to "
            f"{rows.source_rows - 1:,}: is it of another split, or counted from 1?"
        )


def _check_one_each(file: PredictionFile, pairs: Sequence[Pair], known: Sequence[Pair]) -> None:
    """Raise `EvaluationError` if predictions for the same texts differ and there are more of them than rows."""
    said: dict[Pair, list[int]] = {}
    for row, pair in enumerate(map(stripped, pairs)):
        said.setdefault(pair, []).append(row)
    there = Counter(map(stripped, known))
    for pair, of_pair in said.items():
        if 0 < there[pair] < len(of_pair) and len(set(file.predicted[of_pair].tolist())) > 1:
            shown = ", ".join(str(row + 1) for row in of_pair[:4])
            raise EvaluationError(
                f"{file.name}: rows {shown} have the same texts but different predictions, and the split has these "
                f"texts in {there[pair]} of its rows: leave one prediction a row"
            )


def _lengths(rows: Rows) -> list[int]:
    """Numbers of predictions that a file in row order may have."""
    whole = int(rows.source_index.max()) + 1 if rows.source_rows is None else rows.source_rows
    return sorted({len(rows), whole})


def _places(rows: Rows, predictions: int) -> Ints:
    """Place of each row, among the labelled rows where there are as many predictions, else in the source's split."""
    if predictions != len(rows):
        return rows.source_index
    places = np.empty(len(rows), dtype=np.int64)
    places[np.argsort(rows.source_index, kind="stable")] = np.arange(len(rows))
    return places
