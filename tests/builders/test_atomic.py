"""Files and folders that are whole or absent, and one run at a time in a place."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
import pytest

from builders.atomic import scratch, sweep, whole_file, whole_folder, write_text
from builders.errors import BuildError
from builders.locks import claimed, held


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "numbers.json"
    write_text(path, "old")

    def half() -> None:
        with whole_file(path) as unfinished:
            unfinished.write_text("ha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "old"
    write_text(path, "new")
    assert path.read_text() == "new"
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.usefixtures("umask")
def test_what_a_library_wrote_for_its_owner_alone_gets_the_permissions_of_new_files(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "model") as unfinished:
        (unfinished / "deep").mkdir()
        for name in ("model.safetensors", "deep/config.json"):
            os.close(os.open(unfinished / name, os.O_CREAT | os.O_WRONLY, 0o600))
    with whole_file(tmp_path / "one.bin") as one:
        one.unlink()
        os.close(os.open(one, os.O_CREAT | os.O_WRONLY, 0o600))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [mode(path) for path in files] == [0o640] * 3


def test_what_a_killed_run_left_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".set.unfinished" / "deep").mkdir(parents=True)
    (tmp_path / ".set.lock").touch()
    (tmp_path / ".page.html.unfinished").write_text("half")
    with whole_folder(tmp_path / "set") as unfinished:
        assert list(unfinished.iterdir()) == []
    write_text(tmp_path / "page.html", "whole")
    (tmp_path / ".page.cache").mkdir()
    with scratch(tmp_path / ".page.cache"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "set"]


def test_a_folder_that_was_about_to_be_replaced_is_put_back(tmp_path: Path) -> None:
    """Killed between two renames: the old folder is away, the new one not in its place."""
    (tmp_path / ".set.replaced").mkdir()
    (tmp_path / ".set.replaced" / "old").touch()
    with pytest.raises(BuildError, match="is there already"), whole_folder(tmp_path / "set"):
        pass
    assert (tmp_path / "set" / "old").is_file()
    with whole_folder(tmp_path / "set", check=lambda: None) as unfinished:
        (unfinished / "new").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["set", "new"]


def test_a_sweep_takes_what_is_unfinished_and_leaves_what_a_run_goes_on_from(tmp_path: Path) -> None:
    for name in (".a.unfinished", ".aflite-x1", ".features.partial", "model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "model" / ".x.lock").touch()
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".features.partial", "model"]
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    def full(unfinished: Path, name: str) -> None:
        (unfinished / "a.txt").write_text("a")
        os.utime(unfinished / "a.txt", (1, 1))
        (unfinished / name).write_text("ha")
        raise OSError(number, os.strerror(number))  # as writes have it, which know no name

    with pytest.raises(BuildError, match=r"no room is left for .*/page\.html \("), whole_file(tmp_path / "page.html"):
        raise OSError(number, os.strerror(number))
    with (
        pytest.raises(BuildError, match=r"no room is left for .*b\.parquet \("),
        whole_folder(tmp_path / "s") as folder,
    ):
        full(folder, "b.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_second_writer_is_refused_at_once_and_a_thread_may_claim_twice(tmp_path: Path) -> None:
    raised: list[Any] = []

    def second() -> None:
        for write in (lambda: claimed(tmp_path / "set"), lambda: whole_folder(tmp_path / "set")):
            try:
                with write():
                    pass
            except BuildError as error:
                raised.append(str(error))

    with claimed(tmp_path / "set"), whole_folder(tmp_path / "set"):
        other = threading.Thread(target=second)
        other.start()
        other.join()
    assert len(raised) == 2
    assert all("another run is writing" in message and "\n" not in message for message in raised)
    with claimed(tmp_path / "set"):
        pass


@pytest.mark.parametrize("error", [OSError(errno.ENOLCK, "No locks available"), NotImplementedError("no flock")])
def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    (tmp_path / "lock").touch()  # as the library has made it by then
    with pytest.raises(BuildError, match="without file locking"), held(tmp_path / "lock", RuntimeError()):
        pass
    assert not list(tmp_path.iterdir())
