"""A generated corpus of English inference pairs whose annotation artifacts are known, to see what a filter removes.

Premise and hypothesis speak of the same people at the same moment, as in SNLI, and every label follows from the two
sentences. What differs is how much the hypothesis alone gives away:

- ``cue``: the hypothesis has a word that no other label has, after the give-away words of SNLI's hypotheses
  (Gururangan et al. 2018, "Annotation Artifacts in Natural Language Inference Data", section 4: generic words for
  entailment, purpose and "first" for neutral, "nobody" and "sleeping" for contradiction)
- ``length``: three words for entailment, eight or nine for contradiction, from sixteen on for neutral
- ``none``: each hypothesis is as likely under any label, and so is each bag of words of premise and hypothesis
  together; the label depends on who stands where: which of two is older, whose hat is red, who has more
"""

from __future__ import annotations

import functools
import itertools
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.errors import BuildError

if TYPE_CHECKING:
    from datasets import Dataset

LABELS = ("entailment", "neutral", "contradiction")
ARTIFACTS = ("cue", "length", "none")
# As in SNLI, where a hypothesis-only classifier is right on two thirds (Gururangan et al. 2018, table 2), most rows
# have an artifact; the two shares are chosen here.
CUE_SHARE = 0.5
LENGTH_SHARE = 0.2
MAX_ROWS = 200_000

_ENTAILMENT, _NEUTRAL, _CONTRADICTION = range(3)
_DRAWS = 16

Pair = tuple[str, str]


def planted_rows(n_rows: int, *, seed: int) -> Dataset:
    """Generate labelled inference pairs with known artifacts.

    Parameters
    ----------
    n_rows : int
        Rows, from 9 (one of each label and artifact) to `MAX_ROWS`.
    seed : int
        Equal seeds give equal rows.

    Returns
    -------
    datasets.Dataset
        Columns ``premise``, ``hypothesis`` (string), ``label`` (int64: 0 entailment, 1 neutral, 2 contradiction) and
        ``artifact`` (string: "cue" in `CUE_SHARE` of the rows, "length" in `LENGTH_SHARE`, "none" in the rest), in
        random order. No pair occurs twice, and the labels of each artifact are equally many, up to one row.

    Raises
    ------
    BuildError
        If `n_rows` is out of range or `seed` is negative.
    """
    from datasets import Dataset, Features, Value

    if not 9 <= n_rows <= MAX_ROWS:
        raise BuildError(f"n_rows must be from 9 to {MAX_ROWS:,}, not {n_rows:,}")
    if seed < 0:
        raise BuildError(f"seed must be 0 or more, not {seed}")
    *of_cells, of_order = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(10))
    rows: list[tuple[str, str, int, str]] = []
    cells = itertools.product(zip(ARTIFACTS, _sizes(n_rows), strict=True), range(3))
    for ((artifact, size), label), generator in zip(cells, of_cells, strict=True):
        wanted = (size - label + 2) // 3
        pairs = itertools.islice(_unique(_PAIRS[artifact], label, generator), wanted)
        rows += [(*pair, label, artifact) for pair in pairs]
    columns = zip(*(rows[i] for i in of_order.permutation(n_rows)), strict=True)
    features = Features(
        premise=Value("string"), hypothesis=Value("string"), label=Value("int64"), artifact=Value("string")
    )
    return Dataset.from_dict(dict(zip(features, map(list, columns), strict=True)), features=features)


def cue_words() -> dict[str, tuple[str, ...]]:
    """Give the planted words of each label, in lower case."""
    return {label: tuple(words) for label, words in _words()["cues"].items()}


def _sizes(n_rows: int) -> tuple[int, int, int]:
    cue, length = max(3, round(CUE_SHARE * n_rows)), max(3, round(LENGTH_SHARE * n_rows))
    return min(cue, n_rows - length - 3), length, n_rows - length - min(cue, n_rows - length - 3)


@functools.cache
def _words() -> dict[str, Any]:
    return tomllib.loads(resources.files("builders").joinpath("planted_words.toml").read_text(encoding="utf-8"))


class _Draw:
    """Choices that uniform numbers make, one after the other."""

    def __init__(self, uniforms: list[float]) -> None:
        self._uniforms = iter(uniforms)

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(next(self._uniforms) * len(items))]

    def distinct(self, items: Sequence[Any], count: int) -> list[Any]:
        left = list(items)
        return [left.pop(int(next(self._uniforms) * len(left))) for _ in range(count)]


def _unique(pair: Callable[[_Draw, int], Pair], label: int, generator: np.random.Generator) -> Iterator[Pair]:
    seen: set[Pair] = set()
    while True:
        for uniforms in generator.random((1000, _DRAWS)).tolist():
            made = pair(_Draw(uniforms), label)
            if made not in seen:
                seen.add(made)
                yield made


def _scene(draw: _Draw) -> tuple[str, str, str, str, str]:
    """Give person, verb, thing, place and where another place is, for a premise that says all but the last."""
    words = _words()
    activity = draw.pick(words["activities"])
    thing = f"a {draw.pick(words['sizes'])} {draw.pick(activity['things'])}"
    place, elsewhere = draw.distinct(words["outdoors"] + words["indoors"], 2)
    return draw.pick(words["people"]), activity["verb"], thing, place, elsewhere


def _cue(draw: _Draw, label: int) -> Pair:
    person, verb, thing, place, _ = _scene(draw)
    words = _words()
    side = "outdoors" if place in words["outdoors"] else "indoors"
    hypotheses = {
        _ENTAILMENT: (
            f"Someone is {side}.",
            f"Someone {verb} {thing}.",
            f"A person is {place}.",
            f"A person {verb} {thing} {side}.",
        ),
        _NEUTRAL: (
            f"The {person} {verb} {thing} because {draw.pick(words['reasons'])}.",
            f"The {person} {verb} {thing} for the first time.",
            f"The {person} wants to win a prize.",
            f"The {person} wants to go home.",
        ),
        _CONTRADICTION: (
            f"Nobody is {place}.",
            f"Nobody {verb} {thing}.",
            f"The {person} is sleeping.",
            f"The {person} is asleep {place}.",
        ),
    }
    return f"A {draw.pick(words['traits'])} {person} {verb} {thing} {place}.", draw.pick(hypotheses[label])


def _length(draw: _Draw, label: int) -> Pair:
    person, verb, thing, place, elsewhere = _scene(draw)
    words = _words()
    premise = f"A {draw.pick(words['traits'])} {person} {verb} {thing} {place}."
    if label == _ENTAILMENT:
        return premise, f"{draw.pick(('The', 'A'))} {person} {verb}."
    if label == _CONTRADICTION:
        return premise, f"{draw.pick(('The', 'A'))} {person} {verb} {thing} {elsewhere}."
    worn = f"in the {draw.pick(words['colours'])} {draw.pick(words['garments'])}"
    more = draw.pick(words["companions"] + words["times"])
    return premise, f"The {person} {worn} {verb} {thing} {place} {more}."


def _order(draw: _Draw, label: int) -> Pair:
    """One is above two others, or below: how the others compare is unknown."""
    words = _words()
    centre, leaf, other = (f"the {person}" for person in draw.distinct(words["people"], 3))
    order = draw.pick(words["orders"])
    tail = order.get("tail", "")
    centre_is_above, centre_first, as_above = (draw.pick((True, False)) for _ in range(3))
    verb = order["one" if centre_first else "two"][0 if centre_first == centre_is_above else 1]
    group = f"{leaf} and {other}"
    premise = f"{centre} {verb} {group}{tail}." if centre_first else f"{group} {verb} {centre}{tail}."
    leaf, other = draw.distinct((leaf, other), 2)
    if label == _NEUTRAL:
        above, below = leaf, other
    else:
        above, below = (centre, leaf) if centre_is_above else (leaf, centre)
        above, below = (above, below) if label == _ENTAILMENT else (below, above)
    first, second = (above, below) if as_above else (below, above)
    return _sentence(premise), _sentence(f"{first} {order['one'][0 if as_above else 1]} {second}{tail}.")


def _colour(draw: _Draw, label: int) -> Pair:
    """Two people, each with a garment of a colour: what the one says of the other's garment is unknown."""
    words = _words()
    people, garments, colours = (draw.distinct(words[name], 2) for name in ("people", "garments", "colours"))
    clause = draw.pick((lambda p, g, c: f"the {p}'s {g} is {c}", lambda p, g, c: f"the {p} wears a {c} {g}"))
    premise = " and ".join(map(clause, people, garments, colours)) + "."
    who, which = draw.pick((0, 1)), draw.pick((0, 1))
    worn = 1 - who if label == _NEUTRAL else who
    colour = {_ENTAILMENT: who, _CONTRADICTION: 1 - who}.get(label, which)
    return _sentence(premise), _sentence(clause(people[who], garments[worn], colours[colour]) + ".")


def _number(draw: _Draw, label: int) -> Pair:
    """Three people, the third with an unknown number of things."""
    words = _words()
    counts = sorted(draw.distinct(range(len(words["numbers"])), 2))
    fewer, more, unknown = draw.distinct(words["people"], 3)
    goods, owns = draw.pick(words["goods"]), draw.pick(words["owns"])
    amounts = [words["numbers"][count] for count in counts] + ["some"]
    clauses = [f"the {p} {owns} {n} {goods}" for p, n in zip((fewer, more, unknown), amounts, strict=True)]
    first, second, third = draw.distinct(clauses, 3)
    as_more = draw.pick((True, False))
    above, below = (more, fewer) if label == _ENTAILMENT else (fewer, more)
    if label == _NEUTRAL:
        above, below = draw.distinct((draw.pick((fewer, more)), unknown), 2)
    one, two = (above, below) if as_more else (below, above)
    hypothesis = f"the {one} {owns} {'more' if as_more else 'fewer'} {goods} than the {two}."
    return _sentence(f"{first}, {second} and {third}."), _sentence(hypothesis)


def _clean(draw: _Draw, label: int) -> Pair:
    kind: Callable[[_Draw, int], Pair] = draw.pick((_order, _colour, _number))
    return kind(draw, label)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


_PAIRS: dict[str, Callable[[_Draw, int], Pair]] = {"cue": _cue, "length": _length, "none": _clean}
