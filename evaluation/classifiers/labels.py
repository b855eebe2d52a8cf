"""Meets a model's classes with a dataset's by their names, whatever the order of either.

Models of one task number its classes in every order there is, so an index says nothing. Names are compared without
regard to case, hyphens, spaces and underscores; the labels of natural-language inference also under their usual other
forms, image classes also by the synonyms that ImageNet separates with commas ("tench, Tinca tinca").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.classifiers.names import (
    COLLAPSES,
    THREE_WAY,
    TWO_WAY,
    is_numbered,
    match_by_name,
    mismatch,
    nli_role,
    plain,
    read_label_map,
    shown,
)
from evaluation.errors import EvaluationError

_ONE_OF_SEVERAL = "single_label_classification"

BY_NAME = "the same classes, matched by name"
BY_MAP = "the model's classes as --label-map gives them"
COLLAPSED = (
    "a three-way model on a two-way set: its decision among three classes, with neutral and contradiction then taken "
    "as not_entailment; P(not_entailment) = P(neutral) + P(contradiction)"
)
SUBSET = "the model's logits of the dataset's {} of its {} classes, the others left out before softmax and argmax"


@dataclass(frozen=True)
class Mapped:
    """What a model says, in the dataset's classes.

    Attributes
    ----------
    probabilities : float32 array, shape (rows, K)
        In [0, 1], summing to 1 a row; columns in the order of the dataset's names.
    predicted : int64 array, shape (rows,)
        The model's decision as an index into the dataset's names. It is the argmax of `probabilities`, but for a
        three-way model on a two-way set: there the decision is made first, see `LabelMap`.
    """

    probabilities: NDArray[np.float32]
    predicted: NDArray[np.int64]


@dataclass(frozen=True)
class LabelMap:
    """Turns what a model gives into probabilities and decisions over a dataset's classes.

    A three-way model on a two-way set decides among its three classes, and neutral and contradiction are then taken as
    not_entailment, as the authors of HANS score such models (McCoy et al. 2019): so results compare with published
    ones, and the model's decision is the one that it was trained for. Adding the two probabilities first would give
    not_entailment two chances against one: (0.4, 0.3, 0.3) is entailment to the model and would be 0.6 against it. The
    probabilities are added all the same, since P(not_entailment) is their sum; they serve calibration, not decision.

    A dataset with only some of the model's classes (the 200 of ImageNet-A) is scored on the logits of those: softmax
    and argmax see no other class.

    Attributes
    ----------
    classes : tuple of str
        The model's classes in its order; those of the label map where one was given.
    names : tuple of str
        The dataset's, in its order.
    target : tuple of int
        For each class of the model an index into `names`; -1 for one that the dataset lacks.
    rule : str
        How the two meet, in a line for tables and cards.
    """

    classes: tuple[str, ...]
    names: tuple[str, ...]
    target: tuple[int, ...]
    rule: str

    @property
    def facts(self) -> dict[str, Any]:
        """What a stored result says of the match: the rule, and the dataset's class of each index of the model."""
        return {"rule": self.rule, "classes": [self.names[to] if to >= 0 else None for to in self.target]}

    def of_logits(self, logits: ArrayLike) -> Mapped:
        """Map logits; softmax is in float64 whatever their type.

        Parameters
        ----------
        logits : array_like, shape (rows, classes of the model)

        Returns
        -------
        Mapped
            The same to the last bit for every order of the model's classes; ties go to the dataset's first class.

        Raises
        ------
        EvaluationError
            If the width is not that of the model, or a value is not finite.
        """
        values = self._checked(logits)[:, self._order]
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        return self._mapped(powers / powers.sum(axis=1, keepdims=True), values.argmax(axis=1))

    @property
    def _order(self) -> list[int]:
        """The classes that count, in the dataset's order, so that the model's own order cannot show."""
        used = [place for place, to in enumerate(self.target) if to >= 0]
        return sorted(used, key=lambda place: (self.target[place], nli_role(self.classes[place]) or ""))

    def _checked(self, logits: ArrayLike) -> NDArray[np.float64]:
        array = np.asarray(logits, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(self.classes):
            raise EvaluationError(f"logits must be of shape (rows, {len(self.classes)}), not {array.shape}")
        if bad := int((~np.isfinite(array)).any(axis=1).sum()):
            raise EvaluationError(
                f"{bad} of {len(array)} rows have logits that are not finite; where a model overflows in half "
                "precision, use float32"
            )
        return array

    def _mapped(self, used: NDArray[np.float64], decided: NDArray[np.intp]) -> Mapped:
        to = np.array(self.target, dtype=np.int64)[self._order]
        probabilities = np.zeros((len(used), len(self.names)))
        if len(np.unique(to)) == len(to):
            probabilities[:, to] = used
        else:
            for column, name in enumerate(to):
                probabilities[:, name] += used[:, column]
        return Mapped(np.minimum(probabilities, 1.0).astype(np.float32), to[decided])


def match_labels(
    id2label: Mapping[Any, str] | Sequence[str], names: Sequence[str], *, label_map: str | None = None
) -> LabelMap:
    """Match a model's classes with a dataset's by name.

    Parameters
    ----------
    id2label : mapping of index to name, or sequence of names
        As in a model's configuration; indexes may be text.
    names : sequence of str
        The dataset's class names.
    label_map : str, optional
        What the model's classes mean, instead of its own names: ``LABEL_0=entailment,LABEL_1=neutral,...`` or
        ``0=entailment,1=neutral,...``, every class once.

    Raises
    ------
    EvaluationError
        If the model's classes have no names and there is no `label_map`; if a map is wrong or incomplete; if a class of
        the dataset has none, or more than one, among the model's; if a two-way model meets a three-way set.

    Examples
    --------
    >>> match_labels(["CONTRADICTION", "ENTAILMENT", "NEUTRAL"], ["entailment", "neutral", "contradiction"]).target
    (2, 0, 1)
    >>> match_labels(["entailment", "neutral", "contradiction"], ["entailment", "non-entailment"]).target
    (0, 1, 1)
    """
    classes, wanted = classes_in_order(id2label), tuple(names)
    if label_map is not None:
        matched = _match(read_label_map(label_map, classes, wanted), wanted)
        return replace(matched, rule=BY_MAP) if matched.rule == BY_NAME else matched
    if is_numbered(classes) and set(classes) != set(wanted):
        raise EvaluationError(
            f"the model's classes have no names ({shown(classes)}): say which is which with "
            f"--label-map {','.join(f'{i}={name}' for i, name in enumerate(wanted[:3]))}"
            f"{',...' if len(wanted) > 3 else ''} in the order that the model was trained with"
        )
    return _match(classes, wanted)


def _match(classes: tuple[str, ...], wanted: tuple[str, ...]) -> LabelMap:
    if all(map(nli_role, (*classes, *wanted))):
        return _match_nli(classes, wanted)
    target = match_by_name(classes, wanted)
    return _label_map(classes, wanted, target)


def check_outputs(config: Mapping[str, Any], name: str, *, of_text: bool, label_map: str | None = None) -> None:
    """Refuse a model whose outputs are not one decision among classes, or whose names for them contradict.

    Parameters
    ----------
    config : mapping
        Its ``config.json``.
    name : str
        What the model is called.
    of_text : bool
        Whether it classifies text; of ImageNet's classes two are called crane.
    label_map : str, optional
        With one, the names in the configuration do not count.

    Raises
    ------
    EvaluationError
        If it gives several labels a row, or numbers; if it has one class only; if its tables of names contradict.

    Examples
    --------
    >>> swapped = {"id2label": {"0": "no", "1": "yes"}, "label2id": {"yes": 0, "no": 1}}
    >>> check_outputs(swapped, "org/it", of_text=True, label_map="0=no,1=yes")
    """
    if (kind := config.get("problem_type")) not in (None, _ONE_OF_SEVERAL):
        raise EvaluationError(
            f"{name} is of problem_type {kind!r}, so it does not decide for one class of a row: pass a model of "
            f"problem_type {_ONE_OF_SEVERAL}"
        )
    table, counted = config.get("id2label"), config.get("num_labels", config.get("_num_labels"))
    if (counted if table is None else len(table)) == 1:
        raise EvaluationError(
            f"{name} has one class, so it tells nothing apart: pass a classifier of the set's classes"
        )
    if table is None or label_map is not None:
        return
    names = [str(value) for value in table.values()]
    if fault := next(_faults(table, names, config.get("label2id"), counted, of_text=of_text), None):
        raise EvaluationError(f"{name}: config.json {fault}: mend it, or say what its classes mean with --label-map")


def _faults(
    table: Mapping[str, Any], names: Sequence[str], backwards: Any, counted: Any, *, of_text: bool
) -> Iterator[str]:
    """What contradicts in the names of a model's classes; the first is enough."""
    if isinstance(counted, int) and counted != len(names):
        yield f"has num_labels {counted} and {len(names)} names in id2label"
    if of_text and (twice := [one for one, times in Counter(map(plain, names)).items() if times > 1]):
        yield f"gives several classes the name {twice[0]!r} in id2label"
    if not isinstance(backwards, Mapping) or is_numbered(names):  # many write names into one table and leave the other
        return
    by_number = {str(int(number)): name for number, name in zip(table, names, strict=True)}
    for name, number in backwards.items():
        known = by_number.get(str(number))
        if not is_numbered([name]) and (known is None or plain(known) != plain(name)):
            yield f"calls class {number} {known!r} in id2label and {name!r} in label2id"


def classes_in_order(id2label: Mapping[Any, str] | Sequence[str]) -> tuple[str, ...]:
    """Give the names of a model's classes in the order of its outputs.

    Raises
    ------
    EvaluationError
        If they are not numbered from 0.
    """
    if not isinstance(id2label, Mapping):
        return tuple(id2label)
    try:
        numbered = {int(index): str(name) for index, name in id2label.items()}
        return tuple(numbered[index] for index in range(len(id2label)))
    except (KeyError, ValueError):
        raise EvaluationError(
            f"id2label of the model must number its {len(id2label)} classes from 0; it has {shown(map(str, id2label))}"
        ) from None


def _match_nli(classes: tuple[str, ...], names: tuple[str, ...]) -> LabelMap:
    """Match labels of natural-language inference, of two ways or three."""
    roles, wanted = [nli_role(name) for name in classes], [nli_role(name) for name in names]
    if set(wanted) == TWO_WAY and set(roles) == THREE_WAY and len(roles) == 3:
        target = tuple(wanted.index(COLLAPSES[role]) for role in roles if role)
        return LabelMap(classes, names, target, COLLAPSED)
    if set(roles) == TWO_WAY and not set(wanted) <= TWO_WAY:
        raise EvaluationError(
            f"a two-way model ({shown(classes)}) cannot be scored on a set with {shown(names)}: its not_entailment "
            "may be neutral or contradiction; pass a three-way model, or a two-way set such as HANS or QNLI"
        )
    if set(wanted) == TWO_WAY and set(roles) == TWO_WAY:  # a label map may name several classes not_entailment
        return LabelMap(classes, names, tuple(wanted.index(role) for role in roles), BY_NAME)
    if len(set(roles)) < len(roles) or not set(wanted) <= set(roles):
        raise mismatch(classes, names, [name for name, role in zip(names, wanted, strict=True) if role not in roles])
    return _label_map(classes, names, tuple(wanted.index(role) if role in wanted else -1 for role in roles))


def _label_map(classes: tuple[str, ...], names: tuple[str, ...], target: tuple[int, ...]) -> LabelMap:
    rule = SUBSET.format(len(names), len(classes)) if -1 in target else BY_NAME
    return LabelMap(classes, names, target, rule)
