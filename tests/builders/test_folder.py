"""Dataset folders: nothing unfinished looks finished, nothing edited passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.errors import BuildError
from builders.folder import MANIFEST, is_current, new_folder, read_manifest, verify_folder, write_manifest
from builders.locks import held
from builders.names import check_names
from builders.unqover import build_unqover
from unqover_data import ProbeLists

FACTS: dict[str, Any] = {"name": "x", "version": "1.0.0", "default_config": "qa", "configs": {"qa": {}}}


def test_a_folder_appears_under_its_name_only_when_the_block_ends_well(tmp_path: Path) -> None:
    target = tmp_path / "set"

    def interrupted() -> None:
        with new_folder(target) as partial:
            (partial / "README.md").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    with new_folder(target) as partial:
        assert not target.exists()
        write_manifest(partial, FACTS)
    assert read_manifest(target)["name"] == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_in_the_way_stays_unless_told_otherwise(tmp_path: Path) -> None:
    target = tmp_path / "set"
    with new_folder(target) as partial:
        write_manifest(partial, FACTS)
    with pytest.raises(BuildError, match="exists already; pass --overwrite"), new_folder(target):
        raise AssertionError
    with new_folder(target, overwrite=True) as partial:
        write_manifest(partial, {**FACTS, "version": "2.0.0"})
    assert read_manifest(target)["version"] == "2.0.0"
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("")
    with (
        pytest.raises(BuildError, match=r"holds no manifest.json, so it is not ours"),
        new_folder(tmp_path / "photos", overwrite=True),
    ):
        raise AssertionError
    assert (tmp_path / "photos" / "a.jpg").is_file()


def test_a_second_build_of_one_folder_is_refused_at_once(tiny_lists: ProbeLists, tmp_path: Path) -> None:
    with held(tmp_path / ".unqover-tiny.lock", RuntimeError()), pytest.raises(BuildError, match="another run is writ"):
        build_unqover(tiny_lists, tmp_path)
    assert not list(tmp_path.glob("*unqover*"))


def test_an_interrupted_overwrite_keeps_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "set"
    with new_folder(target) as partial:
        write_manifest(partial, FACTS)
    with pytest.raises(RuntimeError), new_folder(target, overwrite=True):
        raise RuntimeError
    assert read_manifest(target)["version"] == "1.0.0"


def test_an_overwrite_that_fails_at_the_last_step_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "set"
    with new_folder(target) as partial:
        write_manifest(partial, FACTS)
    rename = Path.rename

    def failing(self: Path, to: Path) -> Path:
        if to == target and "replaced" not in self.name:
            raise KeyboardInterrupt
        return rename(self, to)

    def overwrite() -> None:
        with new_folder(target, overwrite=True) as partial:
            write_manifest(partial, {**FACTS, "version": "2.0.0"})

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(KeyboardInterrupt):
        overwrite()
    assert read_manifest(target)["version"] == "1.0.0"
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_that_appears_during_a_build_stays(tmp_path: Path) -> None:
    target = tmp_path / "set"

    def build(*, overwrite: bool) -> None:
        with new_folder(target, overwrite=overwrite) as partial:
            write_manifest(partial, FACTS)
            target.mkdir(exist_ok=True)
            (target / "thesis.txt").write_text("mine")

    for overwrite, message in ((False, "exists already"), (True, "exists already|is not ours to replace")):
        with pytest.raises(BuildError, match=message):
            build(overwrite=overwrite)
        assert (target / "thesis.txt").read_text() == "mine"
        (target / "thesis.txt").unlink()
        target.rmdir()


def test_a_link_and_the_inside_of_a_dataset_folder_are_no_targets(tmp_path: Path) -> None:
    with new_folder(tmp_path / "set") as partial:
        write_manifest(partial, FACTS)
    (tmp_path / "link").symlink_to(tmp_path / "set")
    with pytest.raises(BuildError, match="is a symbolic link"), new_folder(tmp_path / "link", overwrite=True):
        raise AssertionError
    with pytest.raises(BuildError, match="would lie inside the dataset folder"), new_folder(tmp_path / "set" / "more"):
        raise AssertionError


def _edit(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: _edit(folder / "README.md"), r"was edited: the SHA-256 of README.md is not the manifest's"),
    (lambda folder: (folder / "README.md").unlink(), r"is incomplete: README.md is missing"),
    (lambda folder: (folder / "qa" / "more.parquet").write_text(""), r"holds qa/more.parquet, which its manifest does"),
    (lambda folder: (folder / MANIFEST).unlink(), r"has no manifest.json: it was never finished"),
    (lambda folder: (folder / MANIFEST).write_text("{"), r"is not valid JSON"),
    (lambda folder: (folder / MANIFEST).write_text("[]"), r"manifest.json was edited"),
    (lambda folder: _say(folder, '"version": "1.0.0"', '"version": "9.9.9"'), r"manifest.json was edited"),
    (lambda folder: _claim(folder, 8), r"qa/test has 9 rows, its manifest says 8"),
]


def _say(folder: Path, before: str, after: str) -> None:
    text = (folder / MANIFEST).read_text()
    assert before in text
    (folder / MANIFEST).write_text(text.replace(before, after))


def _claim(folder: Path, rows: int) -> None:
    """Finish the folder with a manifest that miscounts."""
    facts = {key: value for key, value in read_manifest(folder).items() if key not in ("files", "versions", "sha256")}
    facts["configs"]["qa"]["test"]["rows"] = rows
    write_manifest(folder, facts)


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_damage_is_named(
    tiny_lists: ProbeLists, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    folder = build_unqover(tiny_lists, tmp_path).folder
    assert verify_folder(folder)["name"] == "unqover-tiny"
    damage(folder)
    with pytest.raises(BuildError, match=message):
        verify_folder(folder)


def test_what_the_hubs_clients_leave_behind_is_not_damage(tiny_lists: ProbeLists, tmp_path: Path) -> None:
    folder = build_unqover(tiny_lists, tmp_path).folder
    (folder / ".cache" / "huggingface").mkdir(parents=True)
    (folder / ".cache" / "huggingface" / "x.lock").write_text("")
    (folder / ".gitattributes").write_text("")
    verify_folder(folder)


@pytest.mark.parametrize(
    ("config", "split", "message"),
    [("a/b", "test", "config name 'a/b'"), ("", "test", "config name ''"), ("qa", "te-st", "split name 'te-st'")],
)
def test_names_that_the_hub_could_never_load_are_refused(config: str, split: str, message: str) -> None:
    check_names({"mlm-bert": {"test": {}}, "qa": {"dev.v1": {}}})
    with pytest.raises(BuildError, match=message):
        check_names({config: {split: {}}})


def test_a_folder_is_current_only_for_the_very_same_facts(tmp_path: Path) -> None:
    with new_folder(tmp_path / "set") as partial:
        write_manifest(partial, FACTS)
    assert is_current(tmp_path / "set", FACTS)
    assert not is_current(tmp_path / "set", {**FACTS, "version": "1.0.1"})
    assert not is_current(tmp_path / "other", FACTS)
