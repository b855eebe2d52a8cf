"""Cutting again from stored scores keeps the rows that a run with the other value keeps."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.aflite import build_aflite
from builders.errors import BuildError
from builders.folder import Built, verify_folder, write_manifest
from builders.locks import held
from builders.refilter import refilter
from tests.builders.filtered_sets import build, spec_of


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("stored"), "filter.tau=0.7", "filter.n=100", easy_share=0.4)


def rows_of(built: Built, config: str) -> set[tuple[str, int, int | None]]:
    """Split, place and phase of every row of a config."""
    found = set()
    for split, entry in built.manifest["configs"].get(config, {}).items():
        for name in entry["files"]:
            table = pq.read_table(built.folder / name)
            columns = (table["source_index"].to_pylist(), table["removed_in_phase"].to_pylist())
            found |= {(split, place, phase) for place, phase in zip(*columns, strict=True)}
    return found


@pytest.mark.parametrize(
    ("n", "tau", "reason"),
    [(101, None, "few_predictable"), (250, None, "reached_n"), (379, None, "reached_n"), (None, 0.9, "few_predictable"),
     (None, 1.0, "few_predictable"), (250, 0.8, "reached_n")],
)  # fmt: skip
def test_the_rows_are_those_of_a_run_from_the_start(
    stored: Built, tmp_path: Path, n: int | None, tau: float | None, reason: str
) -> None:
    root = stored.folder.parents[1]
    cut = refilter(stored.folder, tmp_path / "cut", version="1.1.0", n=n, tau=tau)
    overrides = [f"filter.n={n or 100}", f"filter.tau={tau or 0.7}"]
    direct = build_aflite(
        spec_of(*overrides), tmp_path / "direct", source=root / "source", features=root / "features.npy"
    )
    for config in ("filtered", "removed"):
        assert rows_of(cut, config) == rows_of(direct, config)
    assert cut.manifest["counts"] == direct.manifest["counts"]
    assert cut.manifest["filter"]["stop_reason"] == direct.manifest["filter"]["stop_reason"] == reason
    sizes = [[phase["size"] for phase in done.manifest["filter"]["phases"]] for done in (cut, direct)]
    assert sizes[0] == sizes[1]
    baseline = [
        sorted(
            (split, *pair)
            for config in ("filtered", "removed")
            for split, entry in done.manifest["configs"][config].items()
            for table in (pq.read_table(done.folder / name) for name in entry["files"])
            for pair in zip(table["source_index"].to_pylist(), table["in_random_subset"].to_pylist(), strict=True)
        )
        for done in (cut, direct)
    ]
    assert baseline[0] == baseline[1]


def test_it_is_a_dataset_folder_that_says_where_it_is_from(stored: Built, tmp_path: Path) -> None:
    cut = refilter(stored.folder, tmp_path, version="1.1.0", n=220)
    verify_folder(cut.folder)
    assert cut.manifest["inputs"]["refiltered_from"] == {"version": "1.0.0", "sha256": stored.manifest["sha256"]}
    card = (cut.folder / "README.md").read_text(encoding="utf-8")
    assert "| `filter.n` | 220 | cut again |" in card
    assert "Rows were cut again from the scores of version 1.0.0" in card
    assert not refilter(stored.folder, tmp_path, version="1.1.0", n=220).fresh


def test_a_second_run_into_one_folder_is_refused_at_once(stored: Built, tmp_path: Path) -> None:
    root = stored.folder.parents[1]
    features = {"source": root / "source", "features": root / "features.npy"}
    with held(tmp_path / ".snli-aflite.lock", RuntimeError()):
        with pytest.raises(BuildError, match="another run is writing"):
            refilter(stored.folder, tmp_path, version="1.1.0", n=220)
        with pytest.raises(BuildError, match="another run is writing"):
            build_aflite(spec_of(), tmp_path, work=tmp_path / "work", **features)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("n", "tau", "message"),
    [
        (90, None, "n must be at least 100"),
        (None, 0.5, "tau must be at least 0.7"),
        (None, 1.5, "tau must be at most 1"),
        (380, None, "n must be below the 380 scored rows"),
    ],
)
def test_what_needs_other_phases_is_refused(
    stored: Built, tmp_path: Path, n: int | None, tau: float | None, message: str
) -> None:
    with pytest.raises(BuildError, match=message):
        refilter(stored.folder, tmp_path, version="1.1.0", n=n, tau=tau)


def changed(stored: Built, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of a folder, and the facts with which its manifest can be written again."""
    shutil.copytree(stored.folder, folder)
    return folder, {key: value for key, value in stored.manifest.items() if key not in ("versions", "files", "sha256")}


def test_files_that_only_the_card_names_are_not_read(stored: Built, tmp_path: Path) -> None:
    folder, facts = changed(stored, tmp_path / "changed")
    card = (folder / "README.md").read_text(encoding="utf-8")
    elsewhere = card.replace("path: filtered/", f"path: {tmp_path}/elsewhere/")
    assert elsewhere != card
    (folder / "README.md").write_text(elsewhere, encoding="utf-8")
    write_manifest(folder, facts)
    cut = refilter(folder, tmp_path / "out", version="1.1.0", n=220)
    assert cut.manifest["counts"]["train"]["source"] == stored.manifest["counts"]["train"]["source"]
    (folder / "README.md").write_text("---\ndataset_info: 3\n---\n", encoding="utf-8")
    write_manifest(folder, facts)
    with pytest.raises(BuildError, match=r"README\.md does not declare"):
        refilter(folder, tmp_path / "none", version="1.1.0", n=220)


def test_images_without_bytes_in_a_folder_are_refused(stored: Built, tmp_path: Path) -> None:
    folder, facts = changed(stored, tmp_path / "changed")
    (folder / "secret.png").write_bytes(b"secret")
    chosen = folder / stored.manifest["configs"]["removed"]["train"]["files"][0]
    for file in folder.rglob("*.parquet"):
        table = pq.read_table(file)
        images = [{"bytes": b"x", "path": "x"}] * len(table)
        if file == chosen:
            last, images[-1] = len(table) - 1, {"bytes": None, "path": str(folder / "secret.png")}
        pq.write_table(table.set_column(table.column_names.index("votes"), "votes", pa.array(images)), file)
    card = (folder / "README.md").read_text(encoding="utf-8").replace("    sequence: string\n", "    dtype: image\n")
    (folder / "README.md").write_text(card, encoding="utf-8")
    write_manifest(folder, facts)
    with pytest.raises(BuildError, match=f"'votes' of removed/train has no bytes in row {last}"):
        refilter(folder, tmp_path / "out", version="1.1.0", n=220)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    from builders.unqover import build_unqover
    from unqover_data import load_lists

    probes = build_unqover(load_lists("religion"), tmp_path, configs=["qa"])
    with pytest.raises(BuildError, match="is no filtered set"):
        refilter(probes.folder, tmp_path, version="1.1.0", n=220)
