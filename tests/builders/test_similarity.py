"""What a folder keeps of how alike its rows are, against cosines by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders.errors import BuildError
from builders.filtered import FILTERED, REMOVED, WARMUP, Outcome
from builders.findings import Pool
from builders.folder import verify_folder
from builders.refilter import refilter
from builders.similarity import (
    CLASSES,
    SIMILARITY,
    chosen_classes,
    heat_maps,
    measure_similarity,
    read_similarity,
)
from tests.builders.filtered_sets import build


def pool_of(labels: list[int], warm: list[int], sizes: dict[str, int]) -> Pool:
    from datasets import ClassLabel, Dataset, Features, Value

    indexes = [2 * row for size in sizes.values() for row in range(size)]  # every other row of the source is unlabelled
    features = Features({"source_index": Value("int64"), "label": ClassLabel(names=["cat", "dog"])})
    rows = Dataset.from_dict({"source_index": indexes, "label": labels}, features=features)
    ends = np.cumsum([0, *sizes.values()]).tolist()
    bounds = {name: slice(ends[place], ends[place + 1]) for place, name in enumerate(sizes)}
    rest = np.array([row for row in reversed(range(len(labels))) if row not in warm])
    return Pool(rows, np.array(labels), bounds, np.array(warm), rest)


def outcome_of(part: list[int], scores: list[float], phases: list[int]) -> Outcome:
    return Outcome(
        part=np.array(part, np.int8),
        predictability=np.array(scores),
        times_scored=np.where(np.isnan(scores), 0, 5).astype(np.int32),
        removed_in_phase=np.array(phases, np.int32),
        in_random_subset=np.array(part) == FILTERED,
    )


def test_cosines_by_hand() -> None:
    """Rows 0 and 1 (cat, kept) are at right angles; 2 (cat, removed) lies between; 4 (dog, removed) is along 1."""
    nan = float("nan")
    pool = pool_of([0, 0, 0, 1, 1, 0], warm=[5], sizes={"train": 4, "test": 2})
    outcome = outcome_of(
        [FILTERED, FILTERED, REMOVED, FILTERED, REMOVED, WARMUP], [0.2, 0.1, 1.0, 0.3, 0.9, nan], [-1, -1, 0, -1, 1, -1]
    )
    by_row = {0: [2, 0], 1: [0, 3], 2: [1, 1], 3: [-1, 0], 4: [0, 1]}
    features = np.array([by_row[row] for row in pool.rest.tolist()], np.float32)
    found = measure_similarity(pool, outcome, features, seed=0)
    cat, dog = found["blocks"]
    assert cat["kept"] == [["train", 2], ["train", 0]]  # row 1 has the lowest score, then row 0
    assert cat["removed"] == [["train", 4]]
    assert cat["similarity"] == [[1, 0, 0.707], [0, 1, 0.707], [0.707, 0.707, 1]]
    assert (dog["kept"], dog["removed"]) == ([["train", 6]], [["test", 0]])
    assert found["means"]["cat"] == {"kept": 0, "random": 0, "removed": None}
    near = {tuple(one["row"]): (one["removed"], one["similarity"]) for one in found["neighbors"]}
    assert near["train", 2] == ([["test", 0], ["train", 4]], [1, 0.707])
    assert near["train", 6] == ([["test", 0], ["train", 4]], [0, -0.707])
    assert "unknown between the 1 removed" in heat_maps(found)[0].alt


def test_nothing_was_removed() -> None:
    pool = pool_of([0, 0, 1], warm=[], sizes={"train": 3})
    outcome = outcome_of([FILTERED] * 3, [0.5, 0.2, 0.1], [-1] * 3)
    found = measure_similarity(pool, outcome, np.eye(3, dtype=np.float32), seed=0)
    assert found["neighbors"] == []
    assert [len(block["removed"]) for block in found["blocks"]] == [0, 0]
    assert len(heat_maps(found)) == 2


def test_a_class_that_was_never_held_out_has_no_heat_map() -> None:
    pool = pool_of([0, 0, 1], warm=[], sizes={"train": 3})
    outcome = outcome_of([FILTERED] * 3, [0.5, 0.2, float("nan")], [-1] * 3)
    found = measure_similarity(pool, outcome, np.eye(3, dtype=np.float32), seed=0)
    assert [block["label"] for block in found["blocks"]] == ["cat"]
    assert found["means"]["dog"] == {"kept": None, "random": None, "removed": None}


def test_of_many_classes_some_are_chosen_from_least_to_most_lost() -> None:
    """Class i of 40 loses i of its 40 rows."""
    labels = np.repeat(np.arange(40), 40)
    part = np.where(np.tile(np.arange(40), 40) < labels, REMOVED, FILTERED)
    chosen = chosen_classes(labels, part, 45)
    assert len(chosen) == CLASSES
    assert (chosen[0], chosen[-1]) == (0, 39)
    assert max(np.diff(chosen)) <= 4
    assert chosen_classes(np.array([4, 4, 1]), np.array([FILTERED, REMOVED, FILTERED]), 6) == [1, 4]


def test_the_folder_keeps_it_and_the_card_shows_it(tmp_path: Path) -> None:
    built = build(tmp_path)
    stored = read_similarity(built.folder)
    assert stored is not None
    assert built.manifest["files"][SIMILARITY]["bytes"] == (built.folder / SIMILARITY).stat().st_size
    assert [block["label"] for block in stored["blocks"]] == ["entailment", "neutral", "contradiction"]
    # The removed rows of a class have a column of their own that is 8 larger: they are far more alike.
    assert all(of["removed"] > of["kept"] + 0.5 for of in stored["means"].values())
    card = (built.folder / "README.md").read_text(encoding="utf-8")
    assert "## How alike the rows are\n\n![Heat map of entailment: the mean cosine is" in card
    for name in ("phases.png", "scores.png", "labels.png", "similarity.png"):
        assert (built.folder / name).read_bytes().startswith(b"\x89PNG")
        assert f"]({name})" in card
    cut = refilter(built.folder, tmp_path / "cut", version="1.1.0", n=200)
    verify_folder(cut.folder)
    assert read_similarity(cut.folder) is None
    assert "How alike" not in (cut.folder / "README.md").read_text(encoding="utf-8")


def test_a_broken_file_is_told(tmp_path: Path) -> None:
    (tmp_path / SIMILARITY).write_text('{"blocks": []}', encoding="utf-8")
    with pytest.raises(
        BuildError, match=r"similarity\.json is not what a build writes: .*`means`; build the folder again"
    ):
        read_similarity(tmp_path)
    (tmp_path / SIMILARITY).write_text("{", encoding="utf-8")
    with pytest.raises(BuildError, match=r"similarity\.json is not valid JSON .* build the folder again"):
        read_similarity(tmp_path)
