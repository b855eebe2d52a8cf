"""Which class name means the same as which other."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from evaluation.errors import EvaluationError

ENTAILMENT, NEUTRAL, CONTRADICTION, NOT_ENTAILMENT = "entailment", "neutral", "contradiction", "not_entailment"
TWO_WAY, THREE_WAY = {ENTAILMENT, NOT_ENTAILMENT}, {ENTAILMENT, NEUTRAL, CONTRADICTION}
COLLAPSES = {ENTAILMENT: ENTAILMENT, NEUTRAL: NOT_ENTAILMENT, CONTRADICTION: NOT_ENTAILMENT}

_FORMS = {
    ENTAILMENT: "entailment entail entails entailed e",
    NEUTRAL: "neutral n",
    CONTRADICTION: "contradiction contradict contradicts contradicted contradictory c",
    NOT_ENTAILMENT: "notentailment nonentailment noentailment notentail notentails notentailed nonentailed",
}
_ROLES = {form: role for role, forms in _FORMS.items() for form in forms.split()}
_NUMBERED = re.compile(r"(label[\s_-]?)?\d+", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015]+")
_SHOWN = 6


def plain(name: str) -> str:
    """Give a name without case, hyphens, spaces and underscores.

    Examples
    --------
    >>> plain("Non-Entailment") == plain("non_entailment")
    True
    """
    return _SEPARATORS.sub("", name.casefold())


def nli_role(name: str) -> str | None:
    """Give the label of natural-language inference that a name stands for, None if for none.

    Examples
    --------
    >>> nli_role("CONTRADICTS"), nli_role("non-entailment"), nli_role("dog")
    ('contradiction', 'not_entailment', None)
    """
    return _ROLES.get(plain(name))


def is_numbered(classes: Sequence[str]) -> bool:
    """Whether any class has only a number for a name, as in configurations that nobody filled in."""
    return any(_NUMBERED.fullmatch(name.strip()) for name in classes)


def shown(names: Iterable[str]) -> str:
    """Give names for a message, the first few of many."""
    every = list(names)
    return ", ".join(every[:_SHOWN]) + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "")


def mismatch(classes: Sequence[str], names: Sequence[str], lacking: Sequence[str]) -> EvaluationError:
    """Give the error for classes that do not match; it names both sides."""
    return EvaluationError(
        f"the classes do not match: the dataset has {shown(names)}; the model has {shown(classes)}"
        + (f"; none of them is {shown(lacking)}" if lacking else "; some of them mean the same")
        + "; pass a model of this task, or --label-map if its names are wrong"
    )


def read_label_map(text: str, classes: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Read ``LABEL_0=entailment,...`` or ``0=entailment,...``: what each class of a model means.

    Parameters
    ----------
    text : str
        Every class once, by its name or its index. Names may have commas.
    classes : sequence of str
        The model's own names.
    names : sequence of str
        The dataset's. For a two-way set of natural-language inference the three-way labels will do too.

    Returns
    -------
    tuple of str
        New names in the order of `classes`.

    Raises
    ------
    EvaluationError
        If it cannot be read, names an unknown class of either side, or leaves one out or repeats it.
    """
    given: dict[int, str] = {}
    for key, value in _entries(text):
        place = _place(key, classes)
        if place in given:
            raise EvaluationError(f"--label-map gives class {key!r} twice")
        given[place] = _meant(value, names)
    if left := [name for place, name in enumerate(classes) if place not in given]:
        raise EvaluationError(f"--label-map must give every class of the model; it leaves out {shown(left)}")
    repeated = [name for name, times in Counter(given.values()).items() if times > 1]
    if wrong := [name for name in repeated if nli_role(name) != NOT_ENTAILMENT]:
        raise EvaluationError(f"--label-map gives {shown(wrong)} to more than one class of the model")
    return tuple(given[place] for place in range(len(classes)))


def label_map_keys(text: str) -> list[str]:
    """Give the classes that a map names, in its order."""
    return [key for key, _ in _entries(text)]


def _entries(text: str) -> list[tuple[str, str]]:
    entries = []
    for part in re.split(r",(?=[^,=]+=)", text):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if not key or not value:
            raise EvaluationError(f"--label-map {part!r} is not CLASS=NAME, as in 0=entailment,1=neutral")
        entries.append((key, value))
    return entries


def _place(key: str, classes: Sequence[str]) -> int:
    if classes.count(key) == 1:
        return classes.index(key)
    numbers = [str(place) for place in range(len(classes))]
    if key in numbers:
        return numbers.index(key)
    raise EvaluationError(
        f"the model has no class {key!r} (it has {shown(classes)}){_close(key, [*classes, *numbers])}"
    )


def _meant(value: str, names: Sequence[str]) -> str:
    """Give the dataset's name, or the three-way label, that a value of a map stands for."""
    if found := [name for name in names if name == value] or [name for name in names if plain(name) == plain(value)]:
        return found[0]
    roles = {nli_role(name): name for name in names}
    if role := nli_role(value):
        if role in roles:
            return roles[role]
        if set(roles) == TWO_WAY:
            return role
    raise EvaluationError(f"--label-map: the dataset has no class {value!r} ({shown(names)}){_close(value, names)}")


def _close(given: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(given, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def match_by_name(classes: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    """Match classes as they are written, then as `plain` has them, then by the synonyms between their commas.

    A class that is matched is out of the later rounds, so that "missile" is not taken for "projectile, missile". Where
    a model gives two classes one name (ImageNet's "crane", which datasets tell apart as "crane" and "crane2"), they go
    by index if there are equally many classes on both sides and all others stand in the same place.

    Returns
    -------
    tuple of int
        For each of `classes` an index into `names`, -1 for those that `names` lacks.

    Raises
    ------
    EvaluationError
        If one of `names` has no class, or several that fit equally well.
    """
    target = [-1] * len(classes)
    open_names = set(range(len(names)))
    for spell in (_whole, _plain_whole, _synonyms):
        for place, name in _round(classes, names, target, open_names, spell):
            target[place] = name
            open_names.discard(name)
    if open_names and _only_repeated_left(classes, names, target, open_names):
        return tuple(range(len(classes)))
    if open_names:
        lacking = [names[place] for place in sorted(open_names)]
        known = set().union(*map(_synonyms, classes))
        if unclear := [name for name in lacking if _synonyms(name) & known]:
            raise EvaluationError(
                f"the classes do not match: several of the model's fit the dataset's {shown(unclear)} equally well; "
                "rename the dataset's classes as the model has them"
            )
        raise mismatch(classes, names, lacking)
    return tuple(target)


def _only_repeated_left(
    classes: Sequence[str], names: Sequence[str], target: Sequence[int], open_names: set[int]
) -> bool:
    """Whether both sides are in the same order as far as names tell, and the rest are names that the model repeats."""
    if len(classes) != len(names) or 2 * len(open_names) >= len(names):
        return False
    repeated = {name for name, times in Counter(map(plain, classes)).items() if times > 1}
    left = {plain(classes[place]) for place in open_names}
    in_place = all(to in (-1, place) for place, to in enumerate(target))
    return in_place and left <= repeated and left <= {plain(names[place]) for place in open_names}


def _whole(name: str) -> set[str]:
    return {name}


def _plain_whole(name: str) -> set[str]:
    return {plain(name)}


def _synonyms(name: str) -> set[str]:
    return {found for part in name.split(",") if (found := plain(part))}


def _round(
    classes: Sequence[str],
    names: Sequence[str],
    target: Sequence[int],
    open_names: set[int],
    spell: Callable[[str], set[str]],
) -> list[tuple[int, int]]:
    """Give pairs of class and name, each of which fits the other better than any that is left."""
    holders: dict[str, list[int]] = {}
    for place, name in enumerate(classes):
        if target[place] < 0:
            for form in spell(name):
                holders.setdefault(form, []).append(place)
    best: dict[int, int] = {}
    for name_place in sorted(open_names):
        votes = Counter(place for form in spell(names[name_place]) for place in holders.get(form, ()))
        first = votes.most_common(2)
        if first and (len(first) == 1 or first[0][1] > first[1][1]):
            best[name_place] = first[0][0]
    claimed = Counter(best.values())
    return [(place, name) for name, place in best.items() if claimed[place] == 1]
