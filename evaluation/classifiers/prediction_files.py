"""Reads predictions that others published, in the forms that are common.

=========================== =========================================================================================
file                        what is in it
=========================== =========================================================================================
``.jsonl``, ``.json``       an object a row: what row it is, and a predicted label or scores; a Trainer's
                            ``eval_predictions.jsonl`` has premise, hypothesis, label, predicted_label, predicted_scores
``.json``                   an object from pair id, or index, to label, scores or an object; a list in row order
``.csv``, ``.tsv``, ``.txt`` a header and a row a line, as in submissions: index and prediction, pairID and gold_label
``.npy``                    labels, shape (rows,), or logits, shape (rows, classes), in row order
=========================== =========================================================================================

A row is named by ``source_index``, by pair id, by its texts, by index, or by its place in the file. Labels are
names, in any of their usual forms, or indexes into the dataset's classes; `label_map` says so where they are not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from builders.arrays import open_npy
from evaluation.classifiers.labels import BY_NAME, LabelMap, match_labels
from evaluation.classifiers.matching import Pair
from evaluation.classifiers.names import COLLAPSES, TWO_WAY, is_numbered, label_map_keys, nli_role, plain, shown
from evaluation.classifiers.text_files import read_text, rows_of
from evaluation.errors import EvaluationError
from unqover_data.files import json_of

Ints = NDArray[np.int64]

_FIELDS = {
    "source_index": "sourceindex",
    "pair_id": "pairid uid",
    "index": "index idx id row rowindex guid",
    "predicted": "predictedlabel predicted prediction pred predlabel labelpred predictions preds",
    "scores": "logits predictedscores scores probabilities probs predictedprobabilities",
    "gold": "goldlabel goldlabels gold truelabel truelabels true truth groundtruth ytrue actual expected label labels "
    "target",
}
_TEXTS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("question", "sentence"), ("texta", "textb"))
_ALONE = (("text",), ("sentence",))
_KEYS = ("source_index", "pair_id", "index")
_NONE = (None, "", "-", "None", "nan")
_WHOLE = re.compile(r"\d{1,18}(\.0+)?")
UNKNOWN, NO_CLASS = -1, -2
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".txt", ".npy")


@dataclass(frozen=True)
class PredictionFile:
    """Predictions of one model, a row of the file each.

    Attributes
    ----------
    name : str
        Of the file.
    predicted : int64 array, shape (rows,)
        Index into the dataset's classes.
    gold : tuple of int64 array, shape (rows,)
        Gold labels that the file has beside them, -1 where it says none and -2 where it says what is no class of the
        dataset; without or with a label map, since numbers may count as the dataset does or as the model. Empty if the
        file has none.
    source_index, pair_ids, pairs, indexes
        What names the rows, None for what the file lacks; ``indexes`` are ids as text, by whoever wrote them.
    columns : tuple of (str, str)
        What each of ``source_index``, ``pair_id`` and ``index`` is called in the file.
    """

    name: str
    predicted: Ints
    gold: tuple[Ints, ...] = ()
    source_index: tuple[int, ...] | None = None
    pair_ids: tuple[str, ...] | None = None
    pairs: tuple[Pair, ...] | None = None
    indexes: tuple[str, ...] | None = None
    columns: tuple[tuple[str, str], ...] = ()

    def column(self, what: str, default: str) -> str:
        """Return what the file calls the column of ``source_index``, ``pair_id`` or ``index``."""
        return dict(self.columns).get(what, default)

    def __len__(self) -> int:
        return len(self.predicted)


def read_predictions(
    path: Path,
    names: Sequence[str],
    *,
    label_map: str | None = None,
    inputs: Sequence[str] = (),
    name: str | None = None,
) -> PredictionFile:
    """Read a file of predictions.

    Parameters
    ----------
    path : Path
        In one of the forms above.
    names : sequence of str
        The dataset's classes. Three-way predictions for a two-way set are taken as in `LabelMap`.
    label_map : str, optional
        What the file's labels or columns of logits mean, ``0=contradiction,1=neutral,2=entailment``, where they are
        numbers of another order than the dataset's.
    inputs : sequence of str
        What the dataset calls its one or two columns of text, by which the file may name rows too.
    name : str, optional
        What to call the file, where its own name does not tell it apart.

    Raises
    ------
    EvaluationError
        If it cannot be read, has no predictions, says one thing in two ways, or has a label that is none of the
        dataset's; names the row.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise EvaluationError(f"{path} is no file of predictions: it must end in one of {', '.join(SUFFIXES)}")
    name = path.name if name is None else name
    labels = _Labels(name, tuple(names), label_map)
    if suffix == ".npy":
        return PredictionFile(name, _of_array(path, labels))
    text = read_text(path)
    content = rows_of(text, suffix, name)
    if not content:
        raise EvaluationError(f"{name} has no predictions: it is empty")
    if all(isinstance(row, Mapping) for row in content):
        return _of_records(name, content, labels, inputs)
    if any(isinstance(row, Mapping) for row in content):
        raise EvaluationError(f"{name} mixes objects with other values; write one object a row")
    return PredictionFile(name, labels.predicted(content))


def _of_array(path: Path, labels: _Labels) -> Ints:
    try:
        array = open_npy(path)
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{path} cannot be read as a NumPy array: {error}") from None
    if not len(np.shape(array)) or not array.size:
        raise EvaluationError(f"{path.name} has no predictions: it is empty")
    if array.ndim == 2:
        return labels.of_scores(array)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return labels.predicted(array.tolist())
    raise EvaluationError(
        f"{path.name} must hold whole numbers of shape (rows,) or logits of shape (rows, classes), "
        f"not {array.dtype} of shape {array.shape}"
    )


def _find(fields: Collection[str], what: str) -> list[str]:
    """The fields that say one thing, the surest first."""
    return [name for name in _FIELDS[what].split() if name in fields]


def _of_records(
    name: str, content: Sequence[Mapping[str, Any]], labels: _Labels, inputs: Sequence[str]
) -> PredictionFile:
    rows = [_plain_keys(name, number, row) for number, row in enumerate(content, start=1)]
    fields = set(rows[0])
    written = {plain(str(key)): str(key) for key in content[0]}
    found = {what: _find(fields, what) for what in _FIELDS}
    texts = [columns for columns in _text_columns(inputs) if fields.issuperset(columns)]
    predicted, gold = _roles_of_labels(name, fields, found)

    def column(field: str) -> list[Any]:
        if (odd := next((number for number, row in enumerate(rows, start=1) if field not in row), None)) is not None:
            raise EvaluationError(f"{name}, row {odd} has no field {field!r}, which the first has")
        return [row[field] for row in rows]

    def agreed(what: str) -> list[Any] | None:
        """What names the rows: the same in all fields that say it."""
        columns = [column(field) for field in found[what]]
        for field, values in zip(found[what][1:], columns[1:], strict=True):
            _check_agree(name, found[what][0], list(map(str, columns[0])), field, list(map(str, values)))
        return columns[0] if columns else None

    numbers, ids, indexes = agreed("source_index"), agreed("pair_id"), agreed("index")
    said = labels.predicted(column(predicted[0]))
    for field in predicted[1:]:
        _check_agree(name, predicted[0], said.tolist(), field, labels.readable(column(field)))
    for field in gold[1:]:
        firsts = labels.readable(column(gold[0]))
        _check_agree(name, gold[0], firsts, field, labels.readable(column(field)))
    both = [[str(text) for text in column(field)] for field in texts[0]] if texts else None
    for pair in texts[1:]:
        for first, second, ones in zip(texts[0], pair, both or (), strict=True):
            _check_agree(name, first, ones, second, list(map(str, column(second))))
    return PredictionFile(
        name,
        said,
        labels.gold(column(gold[0])) if gold else (),
        None if numbers is None else tuple(_whole(value, name, row) for row, value in enumerate(numbers, start=1)),
        None if ids is None else tuple(map(str, ids)),
        None if both is None else tuple(zip(*both, strict=True)),
        None if indexes is None else tuple(map(str, indexes)),
        tuple((what, written[found[what][0]]) for what in _KEYS if found[what]),
    )


def _text_columns(inputs: Sequence[str]) -> list[tuple[str, ...]]:
    """Columns that may hold the texts of a row: those that the dataset has, and the usual ones."""
    own = tuple(map(plain, inputs))
    return list(dict.fromkeys([*([own] if own else []), *(_ALONE if len(own) == 1 else _TEXTS)]))


def _plain_keys(name: str, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    found = {plain(str(key)): value for key, value in row.items()}
    if len(found) < len(row):
        raise EvaluationError(f"{name}, row {number} has two fields of one name ({shown(map(str, row))}): leave one")
    return found


def _check_agree(name: str, first: str, ones: Sequence[Any], second: str, others: Sequence[Any]) -> None:
    """Raise `EvaluationError` if two fields that say one thing differ where both can be read."""
    for number, (one, other) in enumerate(zip(ones, others, strict=True), start=1):
        if one != other and None not in (one, other):
            raise EvaluationError(
                f"{name}, row {number}: {first} and {second} mean the same but differ; leave the right one"
            )


def _roles_of_labels(
    name: str, fields: set[str], found: Mapping[str, Sequence[str]]
) -> tuple[Sequence[str], Sequence[str]]:
    """Tell which fields are the prediction and which the gold label."""
    if stated := found["predicted"] or found["scores"]:
        return stated, found["gold"]
    if {"label", "goldlabel"} <= fields:
        return ["label"], [field for field in found["gold"] if field not in ("label", "labels")]
    keys = [field for what in _KEYS for field in found[what]]
    if keys and len(rest := fields - {keys[0]}) == 1:  # a submission calls its predictions what it likes
        return list(rest), ()
    raise EvaluationError(
        f"{name} has no predictions: it needs a field predicted_label, prediction or logits; "
        f"it has {shown(sorted(fields))}"
    )


def _whole(value: Any, name: str, row: int) -> int:
    text = str(value)
    if isinstance(value, bool) or not _WHOLE.fullmatch(text):
        raise EvaluationError(f"{name}, row {row}: source_index must be a whole number, not {value!r}")
    return int(text.partition(".")[0])


class _Labels:
    """Reads labels and scores of a file as indexes into the dataset's classes."""

    def __init__(self, file: str, names: tuple[str, ...], label_map: str | None) -> None:
        self.file, self.names = file, names
        self.own = LabelMap(names, names, tuple(range(len(names))), BY_NAME)
        self.ways, self.keys = [self.own], tuple[str, ...]()
        if label_map is not None:
            self.keys = _classes_of(label_map)
            self.ways.append(match_labels(self.keys, names, label_map=label_map))
        roles = [nli_role(name) for name in names]
        self.of_role = {role: place for place, role in enumerate(roles) if role}
        if set(roles) == TWO_WAY:
            self.of_role |= {three: self.of_role[two] for three, two in COLLAPSES.items()}
        self.of_name = {plain(name): place for place, name in enumerate(names)}

    def predicted(self, values: Sequence[Any]) -> Ints:
        """Read predictions, labels or scores."""
        first = _parsed(values[0])
        if isinstance(first, list):
            widths = {len(row) if isinstance(row := _parsed(value), list) else 0 for value in values}
            if len(widths) > 1:
                raise EvaluationError(f"{self.file} has scores of different lengths, {shown(map(str, sorted(widths)))}")
            return self.of_scores([_parsed(value) for value in values])
        places = [self._place(value, self.ways[-1]) for value in values]
        if None in places:
            row = places.index(None)
            raise EvaluationError(
                f"{self.file}, row {row + 1}: {values[row]!r} is none of the dataset's classes ({shown(self.names)}); "
                "say what it means with --label-map"
            )
        return np.array(places, dtype=np.int64)

    def of_scores(self, scores: Any) -> Ints:
        """Take the class with the highest score of each row."""
        try:
            array = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError):
            raise EvaluationError(f"{self.file} has scores that are not numbers") from None
        labels = self.ways[-1]
        if array.shape[1] != len(labels.classes):
            raise EvaluationError(
                f"{self.file} has scores of {array.shape[1]} classes, the dataset has {len(self.names)} "
                f"({shown(self.names)}): say what they are with --label-map"
            )
        return labels.of_logits(array).predicted

    def gold(self, values: Sequence[Any] | None) -> tuple[Ints, ...]:
        """Read gold labels in every way that they may be meant."""
        if values is None:
            return ()
        return tuple(np.array([self._gold(value, way) for value in values]) for way in self.ways)

    def _gold(self, value: Any, way: LabelMap) -> int:
        unknown = value in _NONE or value != value or str(value) == "-1"
        place = None if unknown else self._place(value, way)
        return UNKNOWN if unknown else NO_CLASS if place is None else place

    def readable(self, values: Sequence[Any]) -> list[int | None]:
        """Read labels or scores one by one, None for what is neither."""
        places: list[int | None] = []
        for value in map(_parsed, values):
            if isinstance(value, list):
                fits = len(value) == len(self.ways[-1].classes) and all(isinstance(one, int | float) for one in value)
                places.append(int(self.of_scores([value])[0]) if fits else None)
            else:
                places.append(self._place(value, self.ways[-1]))
        return places

    def _place(self, value: Any, way: LabelMap) -> int | None:
        if value in _NONE or isinstance(value, bool):
            return None
        if way is not self.own and str(value) in self.keys:
            return way.target[self.keys.index(str(value))]
        if isinstance(value, str):
            place = self.of_name.get(plain(value), self.of_role.get(nli_role(value) or ""))
            if place is not None:
                return place
        if way is self.own and isinstance(value, int) and str(value) in self.of_name:
            return self.of_name[str(value)]  # classes may be called 1, 2 and 3
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        return way.target[int(number)] if number in range(len(way.target)) else None


def _classes_of(label_map: str) -> tuple[str, ...]:
    keys = label_map_keys(label_map)
    return tuple(f"LABEL_{place}" for place in range(len(keys))) if is_numbered(keys) else tuple(keys)


def _parsed(value: Any) -> Any:
    """Give scores that stand in a table's cell as text as what they are."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json_of(value)
        except ValueError:
            return value
    return value
