"""The stories that the demo's models learn from: made of a probe set, with and without a planted preference.

Every row of the set gives four *open* stories, its own inputs: two people, and a question that the context leaves
open. Their answer is not one town but how often it is the one and how often the other. It also gives eight *told*
stories, where one more sentence says who it was, so that a model learns to read and does not only guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.errors import EvaluationError
from evaluation.scores import Codes, FloatArray, encode
from unqover_data.model import MASK

OPEN, TOLD = 4, 8
"""Stories of each kind that a row gives: orders x polarities, and for told ones x which of the two it was."""

_WHIM = 0.1


@dataclass(frozen=True)
class Plant:
    """A preference to plant.

    Attributes
    ----------
    subject, attribute_class : str
        Who, and with what; all attributes of the class.
    strength : float
        From -1 to 1: how much oftener the subject is the answer than a partner of which nothing is planted, 0.6 for
        80 % to 20 %; of the negated attribute as much less often.
    """

    subject: str
    attribute_class: str
    strength: float


@dataclass(frozen=True)
class Stories:
    """Texts with their answers, `OPEN` + `TOLD` a row, row after row, the open ones first.

    Attributes
    ----------
    contexts, asked : list of str
        Context, and question or statement with a mask.
    first, second : list of str
        The two that may be the answer, as they stand in the text.
    share : float32 array, shape (stories,)
        How often it is the first, from 0 to 1.
    """

    contexts: list[str]
    asked: list[str]
    first: list[str]
    second: list[str]
    share: NDArray[np.float32]


def write_stories(rows: pa.Table, statements: pa.Table, *, plants: Sequence[Plant], seed: int) -> Stories:
    """Write the stories of a probe set.

    Parameters
    ----------
    rows : pyarrow.Table
        Rows of the config whose question or statement is asked.
    statements : pyarrow.Table
        The same rows of config ``mlm``: their statements tell who it was.
    plants : sequence of Plant
        What to plant; nothing for answers that are even.
    seed : int
        Of the whims.

    Raises
    ------
    EvaluationError
        If a subject or class is not in the set.
    """
    asked = asked_of(rows)
    of = {name: rows[name].to_pylist() for name in ("text1", "text2", "context_12", "context_21")}
    asks = [rows[asked].to_pylist(), rows[f"{asked}_negated"].to_pylist()]
    tells = [statements["statement"].to_pylist(), statements["statement_negated"].to_pylist()]
    ahead = (1 + preferences(rows, plants, seed=seed)) / 2
    stories: list[tuple[str, str, int, float]] = []
    for row, share in enumerate(ahead.tolist()):
        contexts = (of["context_12"][row], of["context_21"][row])
        for context in contexts:
            stories += [(context, asks[0][row], row, share), (context, asks[1][row], row, 1 - share)]
        for context in contexts:
            for ask, tell in zip(asks, tells, strict=True):
                for who, answer in (("text1", 1.0), ("text2", 0.0)):
                    told = f"{context} {tell[row].replace(MASK, of[who][row])}"
                    stories.append((told, ask[row], row, answer))
    texts, questions, whose, shares = zip(*stories, strict=True)
    first, second = ([of[name][row] for row in whose] for name in ("text1", "text2"))
    return Stories(list(texts), list(questions), first, second, np.array(shares, dtype=np.float32))


def preferences(rows: pa.Table, plants: Sequence[Plant], *, seed: int) -> FloatArray:
    """Give how much oftener subject1 than subject2 is the answer of each row's open stories.

    Besides what is planted there are whims of wording: asked in one wording a town is a little ahead with an attribute,
    in another as much behind. They even out over the wordings, as what is no preference should.

    Returns
    -------
    float64 array, shape (N,)
        In [-1, 1]; without plants, the mean over partners and templates of any subject and attribute is 0.
    """
    subjects, pair = encode(rows, ("subject1", "subject2"))
    classes, (of_class,) = encode(rows, ("attribute_class",))
    found = _whims(rows, pair, len(subjects), np.random.default_rng(seed))
    for plant in plants:
        subject, wanted = _place(plant.subject, subjects), _place(plant.attribute_class, classes)
        for codes, strength in zip(pair, (plant.strength, -plant.strength), strict=True):
            found[(codes == subject) & (of_class == wanted)] += strength
    return found.clip(-1, 1)


def _place(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise EvaluationError(f"the set has no {name!r} to plant a preference for (it has {', '.join(names)})")
    return names.index(name)


def planted_gammas(rows: pa.Table, plants: Sequence[Plant], *, seed: int) -> list[dict[str, float]]:
    """Give for each plant, by attribute, the γ that a model would have which learned the stories by heart.

    Returns
    -------
    list of dict of str to float
        In [-1, 1]; the planted strength, and more where a partner has the opposite planted.
    """
    found = preferences(rows, plants, seed=seed)
    names = {
        name: np.array(rows[name].to_pylist()) for name in ("subject1", "subject2", "attribute", "attribute_class")
    }
    gammas = []
    for plant in plants:
        sides = [(names["subject1"] == plant.subject, 1), (names["subject2"] == plant.subject, -1)]
        of_class = names["attribute_class"] == plant.attribute_class
        mine = {}
        for attribute in np.unique(names["attribute"][of_class]):
            seen = [sign * found[side & (names["attribute"] == attribute)] for side, sign in sides]
            mine[str(attribute)] = round(float(np.concatenate(seen).mean()), 4)
        gammas.append(mine)
    return gammas


def _whims(rows: pa.Table, pair: Sequence[Codes], subjects: int, rng: np.random.Generator) -> FloatArray:
    """Give every subject and attribute the steps of a ladder from -1 to 1, one a wording, in chance order."""
    _, (attribute,) = encode(rows, ("attribute",))
    _, (asked,) = encode(rows, (asked_of(rows),))
    found = np.zeros(len(rows))
    for one in np.unique(attribute):
        mine = np.flatnonzero(attribute == one)
        wordings, wording = np.unique(asked[mine], return_inverse=True)
        ladder = np.linspace(-1, 1, len(wordings)) if len(wordings) > 1 else np.zeros(1)
        steps = rng.permuted(np.tile(ladder, (subjects, 1)), axis=1)
        found[mine] = _WHIM * (steps[pair[0][mine], wording] - steps[pair[1][mine], wording])
    return found


def asked_of(rows: pa.Table) -> str:
    """Name of the column with what is asked."""
    return "question" if "question" in rows.column_names else "statement"
