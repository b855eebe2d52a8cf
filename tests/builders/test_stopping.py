"""Signals end a run with one line that says how it goes on, and not in the middle of what must be finished."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import stopping
from builders.stopping import Stopped, goes_on_from, kept_from_children, told_when_stopped, undisturbed, watch

REPOSITORY = Path(__file__).parents[2]
NOTHING = "stopped; nothing unfinished was left behind\n"


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    for number in before:
        signal.signal(number, signal.SIG_DFL)  # a shell may have started the tests deaf to it
    yield
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_told_in_one_line(number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, told_when_stopped(), told_when_stopped():
        signal.raise_signal(number)
    assert ended.value.code == code
    assert capsys.readouterr().err == NOTHING


def test_what_goes_on_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), told_when_stopped(), goes_on_from(tmp_path), goes_on_from(tmp_path / "not there"):
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err == f"stopped; run the same command again to go on from {tmp_path}\n"


def test_an_error_that_a_library_makes_of_a_signal_is_told_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def swallowed() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ImportError("numpy failed to import") from error

    with pytest.raises(SystemExit) as ended, told_when_stopped(), goes_on_from(tmp_path):
        swallowed()
    assert ended.value.code == 130
    assert capsys.readouterr().err == f"stopped; run the same command again to go on from {tmp_path}\n"


def test_a_second_signal_while_the_first_is_told_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def both() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit) as ended, told_when_stopped():
        both()
    assert ended.value.code == 130
    assert capsys.readouterr().err == NOTHING


def test_what_must_be_finished_is_finished_first() -> None:
    watch()
    done = []

    def clean() -> None:
        with undisturbed():
            with undisturbed():
                signal.raise_signal(signal.SIGINT)
            done.append("cleaned")

    with pytest.raises(Stopped):
        clean()
    assert done == ["cleaned"]


def test_an_error_without_a_signal_passes() -> None:
    with pytest.raises(ImportError), told_when_stopped():
        raise ImportError
    assert stopping._state.number is None


@pytest.mark.parametrize("module", ["probesieve.cli", "typer", "builders.unqover", "vl_convert"])
def test_a_signal_at_an_import_is_told(module: str, tmp_path: Path) -> None:
    code = (
        "import importlib.abc, signal, sys\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.argv = ['probesieve', 'build', 'unqover', 'religion', '--out', {str(tmp_path / 'out')!r}]\n"
        "from probesieve.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, NOTHING)
    assert not list(tmp_path.rglob("*unqover*"))


def test_processes_that_start_are_deaf_to_ctrl_c_and_the_one_that_starts_them_hears_it_after() -> None:
    ask = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    said = []

    def start() -> None:
        with kept_from_children():
            said.append(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout)
            signal.raise_signal(signal.SIGINT)

    watch()
    with pytest.raises(Stopped):
        start()
    assert said == ["True\n"]
