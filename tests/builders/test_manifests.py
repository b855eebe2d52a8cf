"""Manifests: one that is damaged in a field, with a sum that fits, ends every reader with a line."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest

from builders.errors import BuildError
from builders.folder import MANIFEST, read_manifest, verify_folder
from builders.schema import own_sum
from builders.similarity import SIMILARITY, heat_maps, read_similarity
from builders.unqover import build_unqover
from evaluation.built_sets import find_built
from evaluation.classifiers.sets import labelled_splits, matching_rows, read_split
from evaluation.errors import EvaluationError
from evaluation.probe_sets import open_probe_set
from tests.builders.filtered_sets import build
from tests.damaged import WRONG, damaged, places
from unqover_data import ProbeLists


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("filtered")).folder


def _read(folder: Path) -> None:
    """Do what commands do with a set before they do what takes long."""
    built = find_built(str(folder))
    if built.builder == "unqover":
        open_probe_set(str(folder), config="qa")
    elif built.builder == "aflite":
        for split in labelled_splits(built):
            read_split(built, split)
        matching_rows(built, "train")


@pytest.mark.parametrize("kind", ["unqover", "aflite"])
def test_damage_of_any_one_field_ends_with_a_line(
    kind: str, tiny_lists: ProbeLists, filtered: Path, tmp_path: Path
) -> None:
    made = build_unqover(tiny_lists, tmp_path).folder if kind == "unqover" else filtered
    folder = shutil.copytree(made, tmp_path / "set")
    path = folder / MANIFEST
    whole = json.loads(path.read_text(encoding="utf-8"))
    told: list[str] = []
    for at in (at for at in places(whole) if at[:1] != ("files",) or at[1:2] in ((), ("README.md",))):
        for value in WRONG:
            content = damaged(whole, at, value)
            if isinstance(content, dict):
                content["sha256"] = own_sum(content)
            path.write_text(json.dumps(content), encoding="utf-8")
            try:
                read_manifest(folder)
            except BuildError as error:
                told.append(str(error))
                continue
            if at[:1] in (("configs",), ("columns",), ("breakdown",), ("labels",), ("counts",), ("builder",)):
                with contextlib.suppress(BuildError, EvaluationError):
                    _read(folder)
    assert len(told) > 250
    assert not [message for message in told if str(path) not in message or "\n" in message]


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"rows": ' + b"1" * 5_000 + b"}", b'{"rows": "\xff"}', b'{"a": "\\ud800"}']
)
def test_what_is_no_json_within_limits_ends_with_a_line(text: bytes, filtered: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(filtered, tmp_path / "set")
    (folder / SIMILARITY).write_bytes(text)
    with pytest.raises(BuildError, match=r"similarity\.json (is|holds) .*; build the folder again"):
        read_similarity(folder)
    (folder / MANIFEST).write_bytes(text)
    with pytest.raises(BuildError, match=r"manifest\.json (is|holds) .*; build the folder again"):
        verify_folder(folder)


def test_damage_of_stored_similarity_ends_with_a_line(filtered: Path, tmp_path: Path) -> None:
    path = shutil.copy(filtered / SIMILARITY, tmp_path / SIMILARITY)
    whole = json.loads(Path(path).read_text(encoding="utf-8"))
    refused = 0
    for at in places(whole):
        for value in WRONG:
            Path(path).write_text(json.dumps(damaged(whole, at, value)), encoding="utf-8")
            try:
                found = read_similarity(tmp_path)
            except BuildError:
                refused += 1
                continue
            if at[:1] == ("blocks",):
                heat_maps(found or {})
    assert refused > 100
