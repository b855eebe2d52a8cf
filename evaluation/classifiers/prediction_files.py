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

A row is named by ``source_index``, by pair id, by its two texts, by index, or by its place in the file. Labels are
names, in any of their usual forms, or indexes into the dataset's classes; `label_map` says so where they are not.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.classifiers.labels import BY_NAME, LabelMap, match_labels
from evaluation.classifiers.matching import Pair
from evaluation.classifiers.names import COLLAPSES, TWO_WAY, is_numbered, label_map_keys, nli_role, plain, shown
from evaluation.errors import EvaluationError

Ints = NDArray[np.int64]

_FIELDS = {
    "source_index": "sourceindex",
    "pair_id": "pairid uid",
    "index": "index idx id row rowindex guid",
    "predicted": "predictedlabel predicted prediction pred predlabel labelpred predictions preds",
    "scores": "logits predictedscores scores probabilities probs predictedprobabilities",
    "gold": "goldlabel gold truelabel label labels target",
}
_TEXTS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("question", "sentence"), ("texta", "textb"))
_KEYS = ("source_index", "pair_id", "index")
_NONE = (None, "", "-", "None", "nan")
_SURPLUS = "surplus cells"
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
        Gold labels that the file has beside them, -1 where it has none that can be read; without or with a label map,
        since numbers may count as the dataset does or as the model. Empty if the file has none.
    source_index, pair_ids, pairs, indexes
        What names the rows, None for what the file lacks; ``indexes`` are ids as text, by whoever wrote them.
    """

    name: str
    predicted: Ints
    gold: tuple[Ints, ...] = ()
    source_index: tuple[int, ...] | None = None
    pair_ids: tuple[str, ...] | None = None
    pairs: tuple[Pair, ...] | None = None
    indexes: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.predicted)


def read_predictions(path: Path, names: Sequence[str], *, label_map: str | None = None) -> PredictionFile:
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

    Raises
    ------
    EvaluationError
        If it cannot be read, has no predictions, or has a label that is none of the dataset's; names the row.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise EvaluationError(f"{path} is no file of predictions: it must end in one of {', '.join(SUFFIXES)}")
    labels = _Labels(path.name, tuple(names), label_map)
    if suffix == ".npy":
        return PredictionFile(path.name, _of_array(path, labels))
    text = read_text(path)
    content = _read(text, suffix, path.name)
    if isinstance(content, Mapping):
        content = [_record(key, value) for key, value in content.items()]
    if not content:
        raise EvaluationError(f"{path.name} has no predictions: it is empty")
    if all(isinstance(row, Mapping) for row in content):
        return _of_records(path.name, content, labels)
    if any(isinstance(row, Mapping) for row in content):
        raise EvaluationError(f"{path.name} mixes objects with other values; write one object a row")
    return PredictionFile(path.name, labels.predicted(content))


def read_text(path: Path) -> str:
    """Read a text file of a user."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path} cannot be read: {error}") from None


def json_lines(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Give where each line is and what is in it; blank lines are left out.

    Raises
    ------
    EvaluationError
        If a line is not JSON.
    """
    # str.splitlines would also split at separators that JSON allows inside of texts.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{name}, line {number}", json.loads(line)
            except ValueError as error:
                raise EvaluationError(f"{name}, line {number} is not JSON ({error})") from None


def _read(text: str, suffix: str, name: str) -> Any:
    if suffix == ".jsonl":
        return _lines(text, name)
    return _json(text, name) if suffix == ".json" else _table(text, name)


def _json(text: str, name: str) -> Any:
    """Read one JSON value, or one a line."""
    try:
        whole = json.loads(text)
    except ValueError:
        return _lines(text, name)
    if not isinstance(whole, Mapping | list):
        raise EvaluationError(f"{name} must hold an object or a list, or an object a line")
    return whole


def _lines(text: str, name: str) -> list[Any]:
    return [value for _, value in json_lines(text, name)]


def _table(text: str, name: str) -> list[dict[str, Any]]:
    tabs = "\t" in text.split("\n", 1)[0]
    # Quotes in tables with tabs are part of the text, as in GLUE's.
    reader = csv.DictReader(
        io.StringIO(text, newline=""),
        delimiter="\t" if tabs else ",",
        quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
        restkey=_SURPLUS,
    )
    try:
        rows = list(reader)
    except csv.Error as error:
        raise EvaluationError(f"{name}, line {reader.line_num} cannot be read as a table: {error}") from None
    if (odd := next((number for number, row in enumerate(rows, start=1) if _SURPLUS in row), None)) is not None:
        raise EvaluationError(f"{name}, row {odd} has more cells than the header")
    return [dict(row) for row in rows]


def _record(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"index": key, **value}
    return {"index": key, "scores" if isinstance(value, list) else "predicted": value}


def _of_array(path: Path, labels: _Labels) -> Ints:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
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


def _find(fields: set[str], what: str) -> str | None:
    return next((name for name in _FIELDS[what].split() if name in fields), None)


def _of_records(name: str, content: Sequence[Mapping[str, Any]], labels: _Labels) -> PredictionFile:
    rows = [{plain(str(key)): value for key, value in row.items()} for row in content]
    fields = set(rows[0])
    found = {what: _find(fields, what) for what in _FIELDS}
    texts = next((pair for pair in _TEXTS if fields.issuperset(pair)), None)
    predicted, gold = _roles_of_labels(name, fields, found)

    def column(field: str | None) -> list[Any] | None:
        if field is None:
            return None
        if (odd := next((number for number, row in enumerate(rows, start=1) if field not in row), None)) is not None:
            raise EvaluationError(f"{name}, row {odd} has no field {field!r}, which the first has")
        return [row[field] for row in rows]

    numbers = column(found["source_index"])
    ids, indexes = column(found["pair_id"]), column(found["index"])
    both = None if texts is None else [column(text) or [] for text in texts]
    return PredictionFile(
        name,
        labels.predicted(column(predicted) or []),
        labels.gold(column(gold)),
        None if numbers is None else tuple(_whole(value, name, row) for row, value in enumerate(numbers, start=1)),
        None if ids is None else tuple(map(str, ids)),
        None if both is None else tuple((str(one), str(other)) for one, other in zip(*both, strict=True)),
        None if indexes is None else tuple(map(str, indexes)),
    )


def _roles_of_labels(name: str, fields: set[str], found: Mapping[str, str | None]) -> tuple[str, str | None]:
    """Tell which field is the prediction and which the gold label."""
    if stated := found["predicted"] or found["scores"]:
        return stated, found["gold"]
    if {"label", "goldlabel"} <= fields:
        return "label", "goldlabel"
    key = next((found[what] for what in _KEYS if found[what]), None)
    if key is not None and len(rest := fields - {key}) == 1:  # a submission calls its predictions what it likes
        return rest.pop(), None
    raise EvaluationError(
        f"{name} has no predictions: it needs a field predicted_label, prediction or logits; "
        f"it has {shown(sorted(fields))}"
    )


def _whole(value: Any, name: str, row: int) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise EvaluationError(f"{name}, row {row}: source_index must be a whole number, not {value!r}") from None


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
        read = [[self._place(value, way) for value in values] for way in self.ways]
        return tuple(np.array([-1 if place is None else place for place in places]) for places in read)

    def _place(self, value: Any, way: LabelMap) -> int | None:
        if value in _NONE or isinstance(value, bool):
            return None
        if way is not self.own and str(value) in self.keys:
            return way.target[self.keys.index(str(value))]
        if isinstance(value, str):
            place = self.of_name.get(plain(value), self.of_role.get(nli_role(value) or ""))
            if place is not None:
                return place
        try:
            number = float(value)
        except (TypeError, ValueError):
            return None
        return way.target[int(number)] if number in range(len(way.target)) else None


def _classes_of(label_map: str) -> tuple[str, ...]:
    keys = label_map_keys(label_map)
    return tuple(f"LABEL_{place}" for place in range(len(keys))) if is_numbered(keys) else tuple(keys)


def _parsed(value: Any) -> Any:
    """Give scores that stand in a table's cell as text as what they are."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
