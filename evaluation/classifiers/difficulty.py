"""Cross-model difficulty: are the rows that a filter keeps hard for models that it never saw?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.classifiers.label_order import find_label_order
from evaluation.classifiers.matching import Ints, Pair, Rows, match_keys, match_pairs, stripped
from evaluation.classifiers.metrics import Difference, Rate, accuracy, difference, rate
from evaluation.classifiers.prediction_files import NO_CLASS, UNKNOWN, PredictionFile
from evaluation.errors import EvaluationError

_NUMBERED = ("source_index", "index", "order")  # ways that show nothing of what is in a row
_SHOWN = 40  # signs of an example
_DIGITS = 18  # of an index; longer ones are ids
_MOST_GOLD_DIFFERS = 0.05  # corrected labels are fewer; another split or label order differs in a third and more


@dataclass(frozen=True)
class Found:
    """Predictions of a file for the rows of a split.

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
    label_order : str or None
        A notice where the labels of the file seem to be in another order.
    notices : tuple of str
        What else a reader should know before believing the numbers: accuracy at chance, rows without prediction, gold
        labels that differ.
    """

    file: str
    matched_by: str
    in_file: int
    rows: int
    matched: int
    unused: int
    gold_differs: int | None
    label_order: str | None
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)


@dataclass(frozen=True)
class Difficulty(Found):
    """How another model does on the rows of a filtered set.

    Attributes
    ----------
    full, kept, removed : Rate
        Accuracy on matched rows: all, the kept, the removed.
    random : Rate or None
        Accuracy on the random subset, as many rows as were kept, drawn from all that were scored; None where none of it
        was matched.
    drop : Difference
        Accuracy on removed less that on kept rows; above 0 where what the filter keeps is harder for this model too.
    """

    full: Rate
    kept: Rate
    removed: Rate
    random: Rate | None
    drop: Difference


@dataclass(frozen=True)
class OodPredictions(Found):
    """How another model does on a set out of distribution; `report` as of `evaluation.classifiers.ood.report`."""

    report: dict[str, Any]


def cross_model_difficulty(file: PredictionFile, rows: Rows, masks: Mapping[str, ArrayLike]) -> Difficulty:
    """Score another model's predictions on what a filter kept and what it removed.

    Parameters
    ----------
    file : PredictionFile
    rows : Rows
        All labelled rows of the split, the warm-up's too: predictions that are in row order are counted off on them.
    masks : mapping of str to bool array, shape (rows,)
        ``kept`` and ``removed``, and ``random`` where there is one.

    Raises
    ------
    EvaluationError
        If no row is found in the file, or none of the kept, or of the removed; if gold labels differ in more than 5 %
        of the rows, which is the mark of another split or label order.
    """
    facts, found, predicted = find_predictions(file, rows)
    hits = predicted == rows.labels[found]
    inside = {name: np.asarray(mask, dtype=bool)[found] for name, mask in masks.items()}
    kept, removed = (rate(hits[inside[name]], what=f"{name} in {file.name}") for name in ("kept", "removed"))
    drawn = inside.get("random")
    return Difficulty(
        **vars(facts),
        full=rate(hits),
        kept=kept,
        removed=removed,
        random=None if drawn is None or not drawn.any() else rate(hits[drawn]),
        drop=difference(removed, kept),
    )


def find_predictions(file: PredictionFile, rows: Rows) -> tuple[Found, NDArray[np.bool_], Ints]:
    """Find the predictions of a file for the rows of a split, and say what is odd about them.

    Returns
    -------
    Found
    bool array, shape (rows,)
        Which rows have a prediction.
    int64 array, shape (matched,)
        The predictions of these.

    Raises
    ------
    EvaluationError
        As `cross_model_difficulty`.
    """
    places, how = locate(file, rows)
    found = places >= 0
    wanted, predicted = rows.labels[found], file.predicted[places[found]]
    differs = _gold_differs(file, places[found], wanted, rows.names)
    order = find_label_order(wanted, predicted, rows.names)
    notices = []
    if order is None and (notice := _at_chance(wanted, predicted, len(rows.names))):
        notices.append(notice)
    if how in _NUMBERED and not found.all():
        notices.append(
            f"{how} finds {int(found.sum()):,} of {len(rows):,} rows, and numbers do not show whether these are the "
            "file's rows: compare some of them"
        )
    if differs:
        notices.append(f"gold labels differ from the dataset's in {differs:,} rows; the dataset's count")
    facts = Found(
        file=file.name,
        matched_by=how,
        in_file=len(file),
        rows=len(rows),
        matched=int(found.sum()),
        unused=len(file) - len(np.unique(places[found])),
        gold_differs=differs,
        label_order=None if order is None else order.text,
        notices=tuple(notices),
    )
    return facts, found, predicted


def _at_chance(labels: Ints, predicted: Ints, classes: int) -> str | None:
    """Say so if guessing, or the frequencies of the decisions alone, explain the accuracy."""
    of_labels, of_decisions = (np.bincount(values, minlength=classes) / len(labels) for values in (labels, predicted))
    chance, share = max(1 / classes, float(of_labels @ of_decisions)), accuracy(labels, predicted)
    if share.low > chance:
        return None
    return (
        f"accuracy {share.value:.3f} on all {share.n:,} rows is not above chance ({chance:.3f}): are the predictions "
        "of these rows, in their order?"
    )


def _gold_differs(file: PredictionFile, places: Ints, labels: Ints, names: Sequence[str]) -> int | None:
    """Count gold labels that differ from the dataset's, in the way of reading them in which fewest do."""
    counts = []
    for gold in (whole[places] for whole in file.gold):
        known = gold != UNKNOWN
        if known.any():
            counts.append((int((gold != labels)[known].sum()), int(known.sum()), gold))
    if not counts:
        return None
    differs, known_rows, gold = min(counts, key=lambda count: count[:2])
    if differs > _MOST_GOLD_DIFFERS * known_rows:
        first = int(np.flatnonzero((gold != UNKNOWN) & (gold != labels))[0])
        said = "none of its classes" if gold[first] == NO_CLASS else names[gold[first]]
        raise EvaluationError(
            f"{file.name} has other gold labels than the dataset in {differs:,} of {known_rows:,} rows (row "
            f"{places[first] + 1:,} of the file says {said}, the dataset {names[labels[first]]}): it is of another "
            "split or set, or numbers its labels in another order, which --label-map can say"
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

    A file that names its rows by ids or texts is not counted off by an index where these find no row: it is refused.

    Raises
    ------
    EvaluationError
        If nothing that the file has finds any row; if its ids and texts find none, whatever else does; if a row has two
        predictions; if numbers of rows begin with 1 or go beyond the split; if two names of a row contradict each
        other.
    """
    ways = list(_ways(file, rows))
    named = [way for way in ways if way.how not in _NUMBERED]
    if (named and not any(way.matched for way in named)) or (ways and not any(way.matched for way in ways)):
        raise _nothing_found(file, rows, ways)
    _check_named(file, ways)
    surest: _Way | None = None
    for way in ways:
        if surest is None and way.numbers is not None:
            _check_range(file, way.column, way.numbers, rows)
        if way.matched and surest is None:
            surest = way
        elif way.matched and surest is not None:
            _check_same_rows(file, rows, surest, way)
    if surest is not None:
        return surest.places, surest.how
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
    examples: tuple[Any, Any] = ("", "")
    numbers: Sequence[int] | None = None

    @property
    def matched(self) -> int:
        """Rows that are found."""
        return int((self.places >= 0).sum())


def _nothing_found(file: PredictionFile, rows: Rows, ways: Sequence[_Way]) -> EvaluationError:
    """Make the error for names that find no row: which were looked for, and how they look on both sides."""
    sides = [
        f"by {way.column} {way.matched:,} found (the file has {_cut(theirs)}, the split {_cut(ours)})"
        for way in ways
        for theirs, ours in [way.examples]
    ]
    return EvaluationError(
        f"{file.name} is not of these {len(rows):,} rows: {'; '.join(sides)}: is it of another split or set?"
    )


def _cut(example: Any) -> str:
    text = " | ".join(example) if isinstance(example, tuple) else str(example)
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...")


def _check_named(file: PredictionFile, ways: Sequence[_Way]) -> None:
    """Raise `EvaluationError` if ids or texts of a file cannot be compared, since the dataset has none of the kind."""
    named = [name for name, there in (("pair_id", file.pair_ids), ("text", file.pairs)) if there is not None]
    named += ["index"] if file.indexes is not None and not _is_numbers(file.indexes) else []
    if named and all(way.how == "index" for way in ways):
        columns = " and ".join(file.column(name, name) for name in named)
        raise EvaluationError(
            f"{file.name} names its rows by {columns}, and this dataset has no such ids or texts to compare: add "
            "source_index, or leave them out to go by index"
        )


def _is_numbers(indexes: Sequence[str]) -> bool:
    return all(index.isdecimal() and len(index) <= _DIGITS for index in indexes)


def _ways(file: PredictionFile, rows: Rows) -> Iterator[_Way]:
    column, indexes = file.column("index", "index"), file.indexes
    if file.source_index is not None:
        name = file.column("source_index", "source_index")
        numbers = [int(number) for number in rows.source_index]
        found = match_keys(numbers, file.source_index, what=f"{file.name}: {name}")
        yield _Way("source_index", name, found, (file.source_index[0], numbers[0]), file.source_index)
    if rows.pair_ids is not None and len(set(rows.pair_ids)) == len(rows):
        for ids, name in ((file.pair_ids, file.column("pair_id", "pair id")), (indexes, column)):
            if ids is not None:
                found = match_keys(rows.pair_ids, ids, what=f"{file.name}: {name}")
                if ids is not indexes or (found >= 0).any() or not _is_numbers(ids):
                    yield _Way("pair id", name, found, (ids[0], rows.pair_ids[0]))
                    indexes = None if ids is indexes else indexes  # these are ids, not numbers of rows
    if file.pairs is not None and rows.pairs is not None and len(file.pairs[0]) == len(rows.pairs[0]):
        _check_one_each(file, file.pairs, rows.pairs)
        yield _Way("text", "text", match_pairs(rows.pairs, file.pairs), (file.pairs[0], rows.pairs[0]))
    if indexes is not None and _is_numbers(indexes):
        of_rows = [int(index) for index in indexes]
        among_labelled = len(file) == len(rows) > max(of_rows)
        counted = _places(rows, len(file)) if among_labelled else rows.source_index
        found = match_keys([int(place) for place in counted], of_rows, what=f"{file.name}: {column}")
        yield _Way("index", column, found, (of_rows[0], int(counted[0])), of_rows)
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
