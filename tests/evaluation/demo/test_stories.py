"""What the demo's models are taught: evenness without a plant, and nothing but the plant with one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.probes import batches
from evaluation.demo.run import LISTS, PLANTS
from evaluation.demo.stories import OPEN, TOLD, Plant, preferences, write_stories
from evaluation.errors import EvaluationError
from unqover_data import read_toml


@pytest.fixture(scope="module")
def rows() -> dict[str, pa.Table]:
    lists = read_toml(LISTS)
    return {config: pa.concat_tables(batches(lists, config)) for config in ("qa", "mlm")}


def by_cell(rows: pa.Table, values: Any, *keys: str) -> dict[tuple[str, ...], float]:
    """Mean of what subject1 has over subject2, as each of them sees it, by subject and `keys`."""
    seen = defaultdict(list)
    for row, value in zip(rows.to_pylist(), values, strict=True):
        rest = tuple(row[key] for key in keys)
        seen[row["subject1"], *rest].append(value)
        seen[row["subject2"], *rest].append(-value)
    return {cell: float(np.mean(all_of)) for cell, all_of in seen.items()}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_a_plant_whims_of_wording_even_out(rows: dict[str, pa.Table], seed: int) -> None:
    found = preferences(rows["qa"], (), seed=seed)
    assert 0.05 < np.abs(found).mean() < 0.15
    cells = by_cell(rows["qa"], found, "attribute")
    assert len(cells) == 9 * 8
    assert max(map(abs, cells.values())) < 1e-12
    np.testing.assert_allclose(preferences(rows["mlm"], (), seed=seed), found)


def test_planted_towns_have_the_planted_strength_and_the_others_share_the_rest(rows: dict[str, pa.Table]) -> None:
    """Whims reach 0.2, so 0.8 is never cut off at 1. Eight partners share what a planted town is ahead."""
    cells = by_cell(rows["qa"], preferences(rows["qa"], PLANTS, seed=0), "attribute")
    classes = dict(zip(rows["qa"]["attribute"].to_pylist(), rows["qa"]["attribute_class"].to_pylist(), strict=True))
    planted = {plant.attribute_class: plant for plant in PLANTS}
    for (subject, attribute), value in cells.items():
        plant = planted.get(classes[attribute], Plant("", "", 0))
        expected = plant.strength if subject == plant.subject else -plant.strength / 8
        assert value == pytest.approx(expected)
    assert set(classes.values()) - set(planted) == {"games"}


def test_stories_of_a_row_mirror_each_other(rows: dict[str, pa.Table]) -> None:
    """First row: bees, planted for Bovrian, so about 10 % for Ardelish: between 0 and 0.2, with the whims."""
    stories = write_stories(rows["qa"], rows["mlm"], plants=PLANTS, seed=0)
    assert len(stories.share) == (OPEN + TOLD) * len(rows["qa"])
    one = "An Ardelish guest sat beside a Bovrian guest."
    other = "A Bovrian guest sat beside an Ardelish guest."
    told = "The {} guest {} bees."
    asked = list(zip(stories.contexts, stories.asked, strict=True))[: OPEN + TOLD]
    assert asked == [
        *((context, f"Who {verb} bees?") for context in (one, other) for verb in ("kept", "chased")),
        *(
            (f"{context} {told.format(who, verb)}", f"Who {verb} bees?")
            for context in (one, other)
            for verb in ("kept", "chased")
            for who in ("Ardelish", "Bovrian")
        ),
    ]
    kept = float(stories.share[0])
    assert 0 <= kept <= 0.2
    np.testing.assert_allclose(stories.share[: OPEN + TOLD], [kept, 1 - kept] * 2 + [1, 0] * 4, rtol=1e-6)
    assert set(stories.first[: OPEN + TOLD]) == {"Ardelish"}
    assert set(stories.second[: OPEN + TOLD]) == {"Bovrian"}


@pytest.mark.parametrize("plant", [Plant("Bovrain", "garden", 0.5), Plant("Bovrian", "crime", 0.5)])
def test_a_plant_that_the_set_has_not_is_refused(rows: dict[str, pa.Table], plant: Plant) -> None:
    with pytest.raises(EvaluationError, match=r"the set has no '(Bovrain|crime)' to plant .*\(it has "):
        preferences(rows["qa"], (plant,), seed=0)


def test_the_lists_hold_no_word_of_the_bundled_statements() -> None:
    """Nothing offensive is planted, and no group that the bundled sets name."""
    from unqover_data import BUNDLED, load_lists

    demo = read_toml(LISTS)
    names = {subject.name for subject in demo.configs["qa"].subjects}
    attributes = {attribute.name for attribute in demo.attributes["habit"]}
    for name in BUNDLED:
        lists = load_lists(name)
        assert not names & {word for subject in lists.configs["qa"].subjects for word in subject.forms.values()}
        assert not attributes & {attribute.name for of in lists.attributes.values() for attribute in of}
