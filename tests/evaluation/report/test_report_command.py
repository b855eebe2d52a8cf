"""``probesieve report`` as a person meets it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from builders.locks import held
from probesieve.cli import main
from tests.probesieve.test_cli import call


def test_the_script_writes_the_page(few_results: Path, few_folder: Path, tmp_path: Path) -> None:
    script = (sys.executable, "scripts/make_report.py")
    done = call(few_results, few_folder, "--out", tmp_path / "sub" / "report.html", "--title", "Mine", command=script)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Written:" in done.stdout
    assert "<title>Mine</title>" in (tmp_path / "sub" / "report.html").read_text(encoding="utf-8")


def test_a_second_report_into_one_file_is_refused_at_once(
    few_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("evaluation.report.read_inputs", lambda *_, **__: pytest.fail("it read the results"))
    with held(tmp_path / ".page.html.lock", RuntimeError()):
        assert run(monkeypatch, few_results, "--out", tmp_path / "page.html") == 2
    assert "another run is writing" in capsys.readouterr().err


def run(monkeypatch: pytest.MonkeyPatch, *args: object) -> int:
    monkeypatch.setattr(sys, "argv", ["probesieve", "report", *map(str, args)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_text_is_coloured_on_a_terminal_alone(
    few_results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert run(monkeypatch, few_results, "--text") == 0
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(monkeypatch, few_results, "--text") == 0
    assert "\x1b[1m" in capsys.readouterr().out
    monkeypatch.setenv("TERM", "dumb")
    assert run(monkeypatch, few_results, "--text") == 0
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(monkeypatch, few_results, "--text") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_text_and_page_at_once(
    few_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, few_results, "--text") == 0
    assert not list(tmp_path.iterdir())
    assert run(monkeypatch, few_results, "--text", "--out", "both.html") == 0
    assert "Written: both.html" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["both.html"]


def test_bad_input_is_one_line_and_leaves_nothing(
    few_results: Path,
    few_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "report.html"
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.html").mkdir()
    for args, message in (
        ((tmp_path / "none",), "there is nothing at"),
        ((tmp_path / "empty",), "holds no result and no dataset folder"),
        ((broken,), "is not valid JSON"),
        ((few_results, "--base", "one"), "must be TUNED=BASE"),
        ((few_folder,), "there is nothing to report"),
        ((few_folder, "--text"), "there is nothing to report"),
        ((few_results, "--out", tmp_path / "folder.html"), "folder.html (a folder)"),
        ((few_results, "--out", few_folder / "report.html"), "would lie inside the dataset folder"),
    ):
        assert run(monkeypatch, "--out", out, *args) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.strip().splitlines()) == 1
    assert not out.exists()
