"""What the view of filtered sets shows, against the folder's own rows and numbers by hand."""

from __future__ import annotations

import base64
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.folder import Built
from builders.refilter import refilter
from builders.similarity import SIMILARITY
from evaluation.built_sets import find_built
from evaluation.errors import EvaluationError
from evaluation.report import report_text, write_report
from evaluation.report.accuracies import scored_models
from evaluation.report.filtered_rows import read_filtered_rows, thumbnails
from evaluation.report.filtering import section
from evaluation.report.gallery import gallery
from evaluation.report.inputs import read_inputs
from evaluation.report.page import Figure, Section, Table, Text, View
from tests.evaluation.report.classified import store_classified
from tests.evaluation.report.conftest import ODD_NAMES


def blocks_of(found: Section | None, kind: type) -> list[Any]:
    assert found is not None
    return [block for block in found.blocks if isinstance(block, kind)]


def shown_of(built: Built, budget: int = 10**6) -> dict[str, Any]:
    return gallery(read_filtered_rows(find_built(str(built.folder))), budget)


def test_rows_are_in_source_order_with_their_scores(filtered: Built) -> None:
    rows = read_filtered_rows(find_built(str(filtered.folder)))
    assert rows.labels.size == 380
    for split in range(3):
        assert (np.diff(rows.source_index[rows.split == split]) > 0).all()
    table = pq.read_table(filtered.folder / filtered.manifest["configs"]["removed"]["test"]["files"][0])
    for row in table.to_pylist()[:5]:
        place = rows.find("test", row["source_index"])
        assert place is not None
        assert rows.inputs([place]) == [[row["premise"], row["hypothesis"].strip()]]
        assert rows.outcome.predictability[place] == row["predictability"]
        assert rows.outcome.removed_in_phase[place] == row["removed_in_phase"]
        assert rows.labels[place] == row["label"]
    assert rows.find("test", 3) is None  # has no label


def test_galleries_hold_the_ends_of_the_scores(filtered: Built) -> None:
    found = shown_of(filtered)
    rows = read_filtered_rows(find_built(str(filtered.folder)))
    everything, *classes = found["groups"]
    assert [group["name"] for group in classes] == ODD_NAMES
    kept = [found["rows"][number] for number in everything["kept"]]
    removed = [found["rows"][number] for number in everything["removed"]]
    assert len(kept) == len(removed) == 12
    kept_scores = np.sort(rows.outcome.predictability[rows.outcome.removed_in_phase < 0])
    assert [row["score"] for row in kept] == pytest.approx(kept_scores[:12], abs=1e-4)
    assert {(row["phase"], row["score"]) for row in removed} == {(0, 1.0)}
    for group in classes:
        for side in ("kept", "removed"):
            assert {found["rows"][number]["label"] for number in group[side]} == {group["name"]}
    shown = [(row["place"], row["label"]) for row in found["rows"]]
    assert len(set(shown)) == len(shown)


def test_stored_similarities_are_shown_with_their_rows(filtered: Built) -> None:
    found = shown_of(filtered)
    assert found["similar"]
    for group in found["groups"][1:]:
        assert len(group["kept"]) == len(group["removed"]) == 8
        assert group["alt"].startswith(f"Heat map of {group['name']}")
        assert group["means"]["removed"] > group["means"]["kept"]
    for one in found["neighbors"]:
        assert found["rows"][one["row"]]["phase"] is None
        assert all(found["rows"][number]["phase"] is not None for number in one["removed"])
        assert one["similarity"] == sorted(one["similarity"], reverse=True)


def test_a_folder_that_was_cut_again_has_galleries_without_similarities(filtered: Built, tmp_path: Path) -> None:
    cut = refilter(filtered.folder, tmp_path / "cut", version="1.1.0", n=200)
    found = shown_of(cut)
    assert not found["similar"]
    assert found["neighbors"] == []
    assert [group["name"] for group in found["groups"]] == ["all labels", *ODD_NAMES]
    assert all(set(group) == {"name", "kept", "removed"} for group in found["groups"])
    texts = " ".join(one.text for one in blocks_of(section(read_inputs([cut.folder])), Text))
    assert "200 of 380 scored rows were kept (52.6 %)" in texts
    assert "Cut again from the scores of version 1.0.0" in texts


def test_a_folder_of_before_reads_as_one_without_similarities(filtered: Built, tmp_path: Path) -> None:
    old = shutil.copytree(filtered.folder, tmp_path / "old")
    (old / SIMILARITY).unlink()
    assert not shown_of(Built(old, filtered.manifest, fresh=False))["similar"]


def test_a_file_of_similarities_that_names_other_rows_is_refused(filtered: Built, tmp_path: Path) -> None:
    other = shutil.copytree(filtered.folder, tmp_path / "other")
    text = (other / SIMILARITY).read_text(encoding="utf-8").replace('"kept":[["', '"kept":[["no ', 1)
    (other / SIMILARITY).write_text(text, encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"similarity\.json names row \d+ of no \w+, which is not there"):
        shown_of(Built(other, filtered.manifest, fresh=False))


def test_a_missing_file_is_told(filtered: Built, tmp_path: Path) -> None:
    broken = shutil.copytree(filtered.folder, tmp_path / "broken")
    (broken / filtered.manifest["configs"]["removed"]["train"]["files"][0]).unlink()
    with pytest.raises(EvaluationError, match="is missing or cannot be read; build or fetch the set again"):
        section(read_inputs([broken]))


def test_images_are_small_and_stay_within_their_budget(digits: Built) -> None:
    from PIL import Image

    found = shown_of(digits)
    assert found["image"]
    for row in found["rows"]:
        kind, content = row["inputs"][0].split(",")
        assert kind == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as image:
            assert image.size == (8, 8)
    one = len(found["rows"][0]["inputs"][0])
    few = shown_of(digits, 10 * one)
    taken = [row["inputs"][0] for row in few["rows"] if row["inputs"][0]]
    assert 0 < sum(map(len, taken)) <= 10 * one
    assert None in [row["inputs"][0] for row in few["rows"]]


def test_large_images_are_made_smaller_until_they_fit() -> None:
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 255, (300, 200, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    large = thumbnails([file.getvalue()], 10**6)[0]
    assert large is not None
    with Image.open(io.BytesIO(base64.b64decode(large.split(",")[1]))) as image:
        assert image.size == (75, 112)
    small = thumbnails([file.getvalue(), b"no image", None], len(large) - 1)
    assert small[0] is not None
    assert len(small[0]) < len(large)
    assert small[1:] == [None, None]


def wrong_on_kept(facts: pa.Table) -> Any:
    """Wrong on every second kept row of the source, and on no other row."""
    kept = np.array(facts["part"].to_pylist()) == "filtered"
    return kept & (np.cumsum(kept) % 2 == 0)


def test_accuracies_and_drops_by_hand(filtered: Built, tmp_path: Path) -> None:
    store_classified(tmp_path, filtered.folder, "org/half", wrong_on_kept, split="train")
    kept = filtered.manifest["counts"]["train"]["filtered"]
    full = kept + filtered.manifest["counts"]["train"]["removed"]
    wrong = kept // 2
    ((name, scored),) = scored_models(read_inputs([tmp_path])).items()
    (one,) = scored
    assert name == "snli-aflite 1.0.0"
    assert one.accuracy["kept"]["value"] == pytest.approx(1 - wrong / kept)
    assert one.accuracy["removed"]["value"] == 1
    assert one.drops["full"]["value"] == pytest.approx(wrong / kept - wrong / full)
    assert one.drops["full"]["low"] < one.drops["full"]["value"] < one.drops["full"]["high"]
    random = one.accuracy["random"]["value"] - one.accuracy["kept"]["value"]
    assert one.drops["random"]["value"] == pytest.approx(random)


def test_results_stand_with_the_folder_that_they_are_of(filtered: Built, tmp_path: Path) -> None:
    results = tmp_path / "results"
    store_classified(results, filtered.folder, "org/half", wrong_on_kept, split="train")
    found = section(read_inputs([filtered.folder, results]))
    (table,) = [one for one in blocks_of(found, Table) if one.title == "Accuracy on snli-aflite 1.0.0"]
    columns = {column.name: column.values for column in table.columns}
    assert columns["model"] == ["half"]
    assert columns["kept"][0] < columns["removed"][0] == 1
    assert {"full 95 % interval", "kept n", "drop from full", "drop from random 95 % interval"} <= set(columns)
    assert any("Accuracy of each model by rows: half, train full" in one.alt for one in blocks_of(found, Figure))
    alone = section(read_inputs([results]))  # the folder lies where it was scored
    assert [one.title for one in blocks_of(alone, Table)] == [one.title for one in blocks_of(found, Table)]


def test_results_on_other_rows_of_that_name_and_version_are_told_apart(filtered: Built, tmp_path: Path) -> None:
    gone, results = shutil.copytree(filtered.folder, tmp_path / "gone"), tmp_path / "results"
    store_classified(results, gone, "org/half", wrong_on_kept, split="train")
    shutil.rmtree(gone)
    cut = refilter(filtered.folder, tmp_path / "cut", version="1.0.0", n=200)
    found = section(read_inputs([cut.folder, results]))
    assert not [one for one in blocks_of(found, Table) if one.title.startswith("Accuracy")]
    assert any("that kept other rows: half" in one.text for one in blocks_of(found, Text))
    both = section(read_inputs([cut.folder, filtered.folder, results]))
    assert [one.title for one in blocks_of(both, Table)].count("Accuracy on snli-aflite 1.0.0") == 1
    assert not any("kept other rows" in one.text for one in blocks_of(both, Text))


def test_results_without_their_folder_say_what_to_pass(filtered: Built, tmp_path: Path) -> None:
    gone, results = shutil.copytree(filtered.folder, tmp_path / "gone"), tmp_path / "results"
    store_classified(results, gone, "org/half", wrong_on_kept, split="test")
    shutil.rmtree(gone)
    found = section(read_inputs([results]))
    assert [one.title for one in blocks_of(found, Table)] == ["Accuracy on snli-aflite 1.0.0"]
    assert blocks_of(found, View) == []
    assert any("Pass it too" in one.text for one in blocks_of(found, Text))


def test_every_figure_says_what_it_shows_and_numbers_are_the_manifests(filtered: Built) -> None:
    found = section(read_inputs([filtered.folder]))
    assert all(len(one.alt) > 30 for one in blocks_of(found, Figure))
    tables = {one.title: {c.name: c.values for c in one.columns} for one in blocks_of(found, Table)}
    phases = filtered.manifest["filter"]["phases"]
    assert tables["Phases of snli-aflite 1.0.0"]["rows"] == [one["size"] for one in phases]
    labels = tables["Labels of snli-aflite 1.0.0"]
    assert labels["kept rows"] == list(filtered.manifest["labels"]["filtered"].values())
    assert sum(labels["share removed"]) == pytest.approx(1)


def test_there_is_no_view_without_a_filtered_set(few_folder: Path) -> None:
    assert section(read_inputs([few_folder])) is None


def test_the_terminal_has_sizes_phases_and_drops(filtered: Built, tmp_path: Path) -> None:
    store_classified(tmp_path, filtered.folder, "org/half", wrong_on_kept, split="train")
    text = report_text([filtered.folder, tmp_path])
    assert "150 of 380 scored rows were kept (39.5 %)" in text
    assert "Phases of snli-aflite 1.0.0\n" in text
    (line,) = [line for line in text.splitlines() if line.startswith("half")]
    rates = scored_models(read_inputs([tmp_path]))["snli-aflite 1.0.0"][0].accuracy
    assert [f"{rates[name]['value']:.3f}" for name in ("full", "random", "kept", "removed")] == line.split()[2:6]


def test_a_report_without_probes_warns_of_nothing(filtered: Built, tmp_path: Path) -> None:
    assert "Content warning" not in report_text([filtered.folder])
    page = write_report([filtered.folder], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Content warning" not in page
