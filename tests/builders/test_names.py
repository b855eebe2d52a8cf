"""Names that become paths: nothing of a manifest leads out of a folder, and what builds can be read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.aflite import build_aflite
from builders.errors import BuildError
from builders.folder import MANIFEST, read_manifest, sha256, verify_folder
from builders.names import as_file_name, inside, is_file_name
from builders.schema import own_sum
from builders.unqover import build_unqover
from tests.builders.filtered_sets import build, spec_of
from unqover_data import ProbeLists

ODD = ["/elsewhere/x", "../x", "..", ".", "", "a/../../x", "a\\x", "a\0x", "a\nx", "x" * 300]
Edit = Callable[[dict[str, Any], str], object]


def _as_config(manifest: dict[str, Any], name: str) -> None:
    manifest["configs"][name] = manifest["configs"]["filtered"]


def _as_split(manifest: dict[str, Any], name: str) -> None:
    manifest["configs"]["filtered"][name] = manifest["configs"]["filtered"]["train"]
    manifest["counts"][name] = manifest["counts"]["train"]


def _as_file(manifest: dict[str, Any], name: str) -> None:
    manifest["configs"]["filtered"]["train"]["files"] = [name]
    manifest["files"][name] = {"bytes": 1, "sha256": "0" * 64}


FIELDS: dict[str, Edit] = {
    "name": lambda manifest, name: manifest.update(name=name),
    "version": lambda manifest, name: manifest.update(version=name),
    "config": _as_config,
    "split": _as_split,
    "file": _as_file,
}


def forge(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest, with a sum of itself that fits: it has no secret."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    edit(manifest)
    manifest["sha256"] = own_sum(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("filtered")).folder


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("field", FIELDS)
def test_a_name_of_a_manifest_that_leads_elsewhere_is_refused(
    made: Path, tmp_path: Path, field: str, name: str
) -> None:
    folder = shutil.copytree(made, tmp_path / "set")
    forge(folder, lambda manifest: FIELDS[field](manifest, name))
    with pytest.raises(BuildError, match=r"set/manifest\.json is no manifest of this version: .*name|version") as told:
        read_manifest(folder)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 600 + len(str(folder))


def test_a_private_file_is_neither_hashed_nor_read(made: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("private")
    folder = shutil.copytree(made, tmp_path / "set")
    for name in ("../secret", str(secret)):
        facts = {"bytes": 7, "sha256": sha256(secret)}
        forge(folder, lambda manifest, name=name, facts=facts: manifest["files"].update({name: facts}))  # type: ignore[misc]
        with pytest.raises(BuildError, match="file name"):
            verify_folder(folder)
        shutil.copy(made / MANIFEST, folder / MANIFEST)


@pytest.mark.parametrize("name", ODD)
def test_a_spec_or_list_with_an_odd_name_builds_nothing(name: str, tiny_lists: ProbeLists, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="name must be"):
        build_aflite(replace(spec_of(), name=name + "/"), tmp_path / "out")
    with pytest.raises(BuildError, match="name must be"):
        build_unqover(replace(tiny_lists, name=name + "/"), tmp_path / "out")
    with pytest.raises(BuildError, match="version must be"):
        build_unqover(tiny_lists, tmp_path / "out", version=name)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_the_longest_names_that_build_can_be_read(tiny_lists: ProbeLists, tmp_path: Path) -> None:
    built = build_unqover(replace(tiny_lists, name="x" * 112), tmp_path, version="999999999.0.0")
    assert verify_folder(built.folder)["name"] == f"unqover-{'x' * 112}"
    with pytest.raises(BuildError, match="120 at most"):
        build_unqover(replace(tiny_lists, name="x" * 113), tmp_path)


@pytest.mark.parametrize("name", ODD)
def test_a_path_of_names_stays_inside(name: str, tmp_path: Path) -> None:
    assert not is_file_name(name)
    with pytest.raises(BuildError, match="cannot be the name of a file or folder"):
        inside(tmp_path, "good", name)
    assert inside(tmp_path, "a b", ".c-ü") == tmp_path / "a b" / ".c-ü"
    assert is_file_name(as_file_name(name)) == (name not in ("", ".", "..", "x" * 300))
