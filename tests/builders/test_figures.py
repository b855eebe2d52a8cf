"""Figures hold the numbers that they are given, say them in words, and are drawn."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builders import pictures
from builders.aflite import build_aflite
from builders.figures import (
    Figure,
    counts,
    label_shares,
    phase_means,
    phase_sizes,
    score_history,
    scores,
    shares,
    similarity,
)
from builders.folder import verify_folder
from builders.pictures import draw
from builders.unqover import build_unqover
from tests.builders.filtered_sets import build, spec_of
from unqover_data import load_lists

PHASES = [
    {"phase": 0, "size": 100, "removed": 30, "bias": 0.9, "histogram": [1, 0, 0, 3]},
    {"phase": 1, "size": 70, "removed": 5, "bias": 0.5, "histogram": [1, 0, 0, 1]},
]
BLOCK = {
    "label": "<b>sun</b>",
    "kept": [["train", 3], ["train", 9]],
    "removed": [["train", 1]],
    "similarity": [[1.0, -0.2, 0.4], [-0.2, 1.0, 0.5], [0.4, 0.5, 1.0]],
}


def values_of(figure: Figure) -> list[dict[str, Any]]:
    spec = figure.spec()
    name = (spec.get("data") or spec["layer"][0]["data"])["name"]
    values: list[dict[str, Any]] = spec["datasets"][name]
    return values


def test_a_name_that_every_javascript_object_has_is_drawn(tmp_path: Path) -> None:
    numbers = {"constructor": 3, "toString": 2}
    draw([counts("c", numbers), label_shares({"kept": numbers, "removed": numbers})], tmp_path / "names.png")
    assert (tmp_path / "names.png").is_file()


def test_phases_are_divided_into_those_that_stay_and_leave() -> None:
    figure = phase_sizes(PHASES)
    found = {(one["phase"], one["what"]): one["rows"] for one in values_of(figure)}
    assert found == {(0, "stay"): 70, (0, "leave"): 30, (1, "stay"): 65, (1, "leave"): 5}
    assert figure.alt == "Bars by phase: 100 rows at the start, 65 left after 2 phases."


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_phase_without_scores_has_no_mean(missing: float | None) -> None:
    figure = phase_means([*PHASES, {"phase": 2, "size": 65, "removed": 0, "bias": missing}])
    assert [one["mean"] for one in values_of(figure)] == [0.9, 0.5]
    assert "0.90 in phase 0, 0.50 in phase 1" in figure.alt


def test_scores_are_bins_of_the_range_from_0_to_1() -> None:
    figure = scores({"kept": [2, 0, 1, 0], "removed": [0, 0, 0, 4]}, tau=0.75)
    last = next(one for one in values_of(figure) if one["part"] == "removed" and one["rows"] == 4)
    assert (last["from"], last["to"]) == (0.75, 1)
    assert "3 kept rows, most often with scores from 0 to 0.25" in figure.alt
    assert "4 removed rows, most often with scores from 0.75 to 1" in figure.alt
    assert "no row was scored" in scores({"kept": [0, 0], "removed": [0, 0]}).alt


def test_the_history_has_shares_of_each_phase() -> None:
    figure = score_history(PHASES)
    found = {(one["phase"], one["from"]): one["share"] for one in values_of(figure)}
    assert (found[0, 0.75], found[1, 0.75], found[1, 0.25]) == (0.75, 0.5, 0)
    assert "75% in the highest in phase 0, 50% in the highest in phase 1" in figure.alt
    assert score_history(PHASES[:1]).alt.count("in phase") == 1


def test_shares_by_hand() -> None:
    """4 of 10 kept rows and 20 of 30 removed ones are a: 24 of 40 before."""
    found = shares({"kept": {"a": 4, "b": 6}, "removed": {"a": 20, "b": 10}})
    assert found["before"] == {"a": 0.6, "b": 0.4}
    assert found["kept"] == {"a": 0.4, "b": 0.6}
    assert found["removed"]["a"] == pytest.approx(2 / 3)
    assert shares({"kept": {"a": 4}, "removed": {"a": 0}})["removed"] == {"a": 0}


def test_of_many_labels_those_are_shown_that_change_most() -> None:
    kept = {f"label {number}": 10 for number in range(40)} | {"grows": 200}
    figure = label_shares({"kept": kept, "removed": dict.fromkeys(kept, 10)})
    names = {one["label"] for one in values_of(figure)}
    assert len(names) == 24
    assert "grows" in names
    assert figure.title == "Label shares (the 24 of 41 that change most)"


def test_similarities_are_between_the_rows_that_are_named() -> None:
    figure = similarity(BLOCK, least=-0.2)
    found = {(one["first"], one["second"]): one["cosine"] for one in values_of(figure)}
    assert len(found) == 9
    assert found["kept 1", "kept 2"] == found["kept 2", "kept 1"] == -0.2
    assert found["kept 2", "removed 1"] == 0.5
    assert "is -0.20 between the 2 kept rows shown and unknown between the 1 removed" in figure.alt


def test_a_class_that_lost_all_its_rows_has_a_heat_map_too() -> None:
    block = {"label": "a", "kept": [], "removed": [["train", 0], ["train", 1]], "similarity": [[1, 0.5], [0.5, 1]]}
    assert [one["first"] for one in values_of(similarity(block))] == [
        "removed 1",
        "removed 1",
        "removed 2",
        "removed 2",
    ]


def test_all_are_drawn_with_names_as_they_are(tmp_path: Path) -> None:
    odd = {"a.b[0]": 3, "</script>": 2, 'it\'s "x" \\ y': 1, "": 4}
    figures = [
        counts("Counts", odd),
        phase_sizes(PHASES),
        phase_means(PHASES),
        scores({"kept": [1, 2], "removed": [0, 3]}, tau=0.5),
        score_history(PHASES),
        label_shares({"kept": odd, "removed": odd}),
        similarity(BLOCK),
    ]
    draw(figures, tmp_path / "all.png", width=100, columns=3)
    draw(figures, tmp_path / "again.png", width=100, columns=3)
    assert (tmp_path / "all.png").read_bytes() == (tmp_path / "again.png").read_bytes()
    for figure in figures:
        assert figure.spec()["width"] == "container"
        assert figure.spec()["description"] == figure.alt
    assert {one["label"] for one in values_of(figures[5])} == set(odd)


def limited(*args: object, kilobytes: int) -> subprocess.CompletedProcess[str]:
    limit = ("bash", "-c", f'ulimit -v {kilobytes}; exec "$@"', "-", sys.executable, "-m", "probesieve")
    return subprocess.run([*limit, *map(str, args)], capture_output=True, text=True, cwd=Path(__file__).parents[2])


def test_a_limit_on_memory_costs_the_pictures_and_no_more(tmp_path: Path) -> None:
    """vl-convert ends its process at four gigabytes of address space, and draws at eighty."""
    args = ("build", "unqover", "religion", "--config", "qa", "--no-progress", "--out")
    whole, without = build_unqover(load_lists("religion"), tmp_path / "whole", configs=["qa"]).folder, tmp_path / "some"
    for state in ("built", "up to date"):
        done = limited(*args, without, kilobytes=4_000_000)
        assert (done.returncode, done.stdout.count(state)) == (0, 1)
        assert done.stderr.count("\n") == 1
        assert "no charts were drawn: vl-convert" in done.stderr
    manifest = verify_folder(without / "unqover-religion")
    assert manifest["undrawn"] == ["lists.png"]
    card = (without / "unqover-religion" / "README.md").read_text(encoding="utf-8")
    picture = re.compile(r"!\[.*\n\n")
    assert card == picture.sub("", (whole / "README.md").read_text(encoding="utf-8"))
    again = limited(*args, without, "--overwrite", kilobytes=80_000_000)
    assert (again.returncode, again.stderr) == (0, "")
    files = {path.name: path.read_bytes() for path in (without / "unqover-religion").iterdir() if path.is_file()}
    assert files == {path.name: path.read_bytes() for path in whole.iterdir() if path.is_file()}


def test_a_filtered_card_does_without_what_could_not_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = build(tmp_path)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10**9, 10**9))
    monkeypatch.setattr(pictures, "_CHILD", "import os; os.abort()")
    done = build_aflite(spec_of(), tmp_path / "other", source=tmp_path / "source", features=tmp_path / "features.npy")
    assert set(verify_folder(done.folder)["undrawn"]) == {path.name for path in whole.folder.glob("*.png")}
    assert not list(done.folder.glob("*.png"))
    cards = [(built.folder / "README.md").read_text(encoding="utf-8") for built in (whole, done)]
    assert cards[1] == re.sub(r"!\[.*\n\n", "", cards[0])
