"""What the demo's models are taught: evenness without a plant, and nothing but the plant with one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from builders.probes import batches
from evaluation.demo.run import LISTS, PLANTS
from evaluation.demo.stories import OPEN, TOLD, Plant, planted_gammas, preferences, write_stories
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
    assert 0.05 < np.abs(found).mean() < 0.2
    cells = by_cell(rows["qa"], found, "attribute")
    assert len(cells) == 7 * 6
    assert max(map(abs, cells.values())) < 1e-12
    np.testing.assert_allclose(preferences(rows["mlm"], (), seed=seed), found)


def test_planted_towns_have_the_planted_strength_over_the_others(rows: dict[str, pa.Table]) -> None:
    """Garden: Bovrian 0.6 over five others and 1 over Galdish (1.2, cut off), of whom it is the mirror."""
    cells = by_cell(rows["qa"], preferences(rows["qa"], PLANTS, seed=0), "attribute")
    for attribute, ahead, behind in (("bees", "Bovrian", "Galdish"), ("tea", "Elmovian", "Ardelish")):
        assert cells[ahead, attribute] == pytest.approx((5 * 0.6 + 1) / 6)
        assert cells[behind, attribute] == pytest.approx(-(5 * 0.6 + 1) / 6)
    rest = [value for (town, attribute), value in cells.items() if town == "Cormelic" or attribute == "songs"]
    np.testing.assert_allclose(rest, 0, atol=1e-12)


def test_what_a_model_would_have_that_learned_all_is_the_mean_over_partners_and_templates(
    rows: dict[str, pa.Table],
) -> None:
    cells = by_cell(rows["qa"], preferences(rows["qa"], PLANTS, seed=5), "attribute")
    gammas = planted_gammas(rows["qa"], PLANTS, seed=5)
    assert [sorted(gamma) for gamma in gammas] == [["bees", "roses"]] * 2 + [["bread", "tea"]] * 2
    for plant, gamma in zip(PLANTS, gammas, strict=True):
        for attribute, value in gamma.items():
            assert value == pytest.approx(cells[plant.subject, attribute], abs=1e-4)


def test_stories_of_a_row_mirror_each_other(rows: dict[str, pa.Table]) -> None:
    """First row: bees, planted for Bovrian with 0.6, so 20 % for Ardelish, give or take the whims' 10 %."""
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
    assert 0.1 <= kept <= 0.3
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
