"""The command line as a person meets it: in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probesieve import cli
from tests.hub_fixtures import REPO, TOKEN
from tests.hub_server import HubServer

REPOSITORY = Path(__file__).parents[2]
PROBESIEVE = (sys.executable, "-m", "probesieve")


def call(*args: object, command: tuple[str, ...] = PROBESIEVE, **extra: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "100", "HF_HUB_OFFLINE": "0" if extra else "1", **extra}
    return subprocess.run([*command, *map(str, args)], capture_output=True, text=True, cwd=REPOSITORY, env=env)


@pytest.mark.parametrize(
    "args",
    [(), ("build", "unqover"), ("build", "aflite"), ("refilter",), ("list",), ("show",), ("validate",), ("push",)],
)
def test_every_help_shows_an_example_and_is_quick(args: tuple[str, ...]) -> None:
    start = time.perf_counter()
    shown = call(*args, "--help")
    assert shown.returncode == 0
    assert "Example: probesieve " in shown.stdout
    assert time.perf_counter() - start < 2.5  # 0.2 s; torch alone would take longer than this, even on a busy machine


def test_help_imports_nothing_heavy() -> None:
    heavy = ["torch", "transformers", "datasets", "sklearn", "pandas", "pyarrow", "numpy", "huggingface_hub", "faiss"]
    code = f"import probesieve.cli, sys; print([name for name in {heavy} if name in sys.modules])"
    assert call("-c", code, command=(sys.executable,)).stdout.strip() == "[]"


BAD = [
    (("build", "unqover", "relgion"), "did you mean 'religion'?"),
    (("build", "unqover", "religion", "--config", "qq"), "has no config 'qq' (it has qa, mlm)"),
    (("build", "unqover", "religion", "--version", "1"), "version must be MAJOR.MINOR.PATCH"),
    (("build", "unqover", "religion", "--lists", "nowhere"), "--lists nowhere: must be bundled, released, a folder"),
    (("build", "unqover", "religion", "--out", "README.md"), "README.md"),
    (("build", "unqover"), "Missing argument 'CLASS'"),
    (("build", "unqver"), "No such command 'unqver'"),
    (("build",), "Missing command. See: "),
    (("build", "unqover", "religion", "--verson", "1.0.0"), "No such option: --verson"),
    (("show", "religion"), "no set 'religion'; did you mean 'unqover-religion'?"),
    (("show", "snly"), "no set 'snly' (there are digits, imagenet, mnli, planted-nli, qnli, snli,"),
    (("build", "aflite", "snly"), "did you mean 'snli'?"),
    (("build", "aflite", "snli", "--set", "filter.sigma=1"), "snli.toml: filter: unknown key 'sigma'"),
    (("build", "aflite", "snli", "--source", "nowhere"), "the source nowhere does not exist"),
    (("build", "aflite", "planted-nli", "--no-warmup", "--set", "name=other"), "no ready-made weights"),
    (("build", "aflite", "digits", "--features", "nowhere.npy"), "nowhere.npy"),
    (("build", "aflite", "digits", "--filter-splits", "test"), "no split 'test'"),
    (("refilter", "nowhere", "--version", "1.1.0", "--n", "5"), "nowhere is not a folder"),
    (("show", "unqover-religion", "--row", "-1"), "--row must be from 0 to 38499, not -1"),
    (("validate", "nowhere.toml"), "nowhere.toml: cannot be read"),
    (("push", "nowhere", "org/name"), "nowhere is not a folder"),
]


@pytest.mark.parametrize(("args", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(args: tuple[str, ...], message: str) -> None:
    refused = call(*args)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert message in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            ImportError("libtorch.so: failed to map segment", name="torch"),
            "torch could not be loaded (libtorch.so: failed",
        ),
        (
            ImportError("libtorch.so: failed to map segment", name="_C"),
            "tests could not be loaded (libtorch.so: failed",
        ),
        (MemoryError("Unable to allocate 3 TiB"), "memory is not enough (Unable to allocate 3 TiB)"),
        (MemoryError(), "memory is not enough (no more could be had)"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(
    fault: Exception, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(cli, "guard_warnings", lambda: None)
    with pytest.raises(SystemExit) as caught:
        cli._run(fail, [])
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {message}")
    assert len(told.splitlines()) == 1


def test_build_reports_what_it_built_and_how_to_load_it(tmp_path: Path) -> None:
    script = (sys.executable, "scripts/build_unqover.py")
    built = call("religion", "--config", "qa", "--out", tmp_path, command=script)
    assert built.returncode == 0, built.stderr
    assert re.search(r"unqover-religion +qa +38,500 +0\.\d\d MB +built", built.stdout)
    assert f'load_dataset("{tmp_path}/unqover-religion", "qa", split="test")' in built.stdout
    assert built.stderr == ""  # no progress bar where there is no terminal
    again = call("build", "unqover", "religion", "--config", "qa", "--out", tmp_path)
    assert "up to date" in again.stdout
    refused = call("build", "unqover", "religion", "--version", "2.0.0", "--out", tmp_path)
    assert (refused.returncode, "exists already; pass --overwrite" in refused.stderr) == (2, True)
    assert call("build", "unqover", "religion", "--version", "2.0.0", "--out", tmp_path, "--overwrite").returncode == 0


def test_a_terminal_without_greek_letters_gets_marks_in_their_place() -> None:
    shown = call("eval", "--help", PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    code = "from probesieve.cli import run; run(lambda: print('\u03bc = 0'))"
    marked = call("-c", code, command=(sys.executable,), PYTHONIOENCODING="ascii")
    assert (marked.stdout.strip(), marked.stderr) == ("? = 0", "")


def test_nothing_in_a_file_steers_the_terminal(tmp_path: Path) -> None:
    said = "\x1b]0;owned\x07\u202e"
    (tmp_path / "bad.toml").write_text(f'name = "bad"\n"{json.dumps(said)[1:-1]}" = 1\n', encoding="utf-8")
    path = tmp_path / f"{said}.toml"
    path.write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "good").write_text("[set]\nx = 1\n", encoding="utf-8")
    code = f"import logging; from probesieve.cli import run; run(lambda: logging.getLogger('x').warning({said!r}))"
    for done in (call("validate", tmp_path / "bad.toml"), call("validate", path), call("build", "aflite", path)):
        assert done.returncode == 2
        assert "[U+001B]]0;owned[U+0007][U+202E]" in done.stderr
        assert not [sign for sign in said if sign in "\x1b\x07\u202e" and sign in done.stderr]
    assert call("-c", code, command=(sys.executable,)).stderr == "[U+001B]]0;owned[U+0007][U+202E]\n"


def test_the_version_is_shown() -> None:
    assert re.fullmatch(r"probesieve \d+\.\d+\.\d+\n", call("--version").stdout)


def test_list_names_every_set_with_its_size() -> None:
    lines = call("list").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("unqover-")] == [
        "unqover-gender",
        "unqover-nationality",
        "unqover-ethnicity",
        "unqover-religion",
    ]
    assert sum("1,154,232" in line for line in lines) == 1
    filtered = [line.split()[0] for line in lines if "-aflite " in line]
    assert filtered == [f"{name}-aflite" for name in ("digits", "imagenet", "mnli", "planted-nli", "qnli", "snli")]
    assert sum(line.split()[:4] == ["snli-aflite", "1.0.0", "stanfordnlp/snli", "92,000"] for line in lines) == 1


def test_show_says_where_each_value_of_a_filtered_set_is_from() -> None:
    shown = call("show", "snli").stdout
    assert re.search(r"filter\.tau +0\.75 +Le Bras et al\. 2020, SNLI", shown)
    assert re.search(r"filter\.c +1 +chosen here", shown)


def test_a_filtered_set_is_built_and_cut_again_by_the_commands(tmp_path: Path) -> None:
    values = ["source.rows=900", "share=0.2", "encoder.dimension=16", "encoder.hidden=16", "encoder.epochs=1"]
    values += ["filter.n=300", "filter.m=8", "filter.t=100", "filter.k=60", "filter.tau=0.2"]
    sets = [part for value in values for part in ("--set", value)]
    script = (sys.executable, "scripts/build_aflite.py")
    built = call("planted-nli", *sets, "--out", tmp_path, command=script)
    assert (built.returncode, built.stderr) == (0, "")
    assert re.search(r"warm-up +\d+\.\d s", built.stdout)
    assert re.search(r"train +900 +0 +\d+ +\d+ +180", built.stdout)
    assert f'load_dataset("{tmp_path}/planted-nli-aflite", split="train")' in built.stdout
    assert "Up to date" in call("build", "aflite", "planted-nli", *sets, "--out", tmp_path).stdout
    cut = call("refilter", tmp_path / "planted-nli-aflite", "--n", 500, "--version", "1.1.0", "--out", tmp_path / "cut")
    assert (cut.returncode, cut.stderr) == (0, "")
    assert re.search(r"train +900 +0 +500 +220 +180", cut.stdout)


def test_show_reads_as_a_person_would() -> None:
    shown = call("show", "unqover-nationality", "--row", "0").stdout
    assert "subjects   Algeria (Northern Africa) and Egypt (Northern Africa)" in shown
    assert shown.index("visited Algeria and Egypt.") < shown.index("visited Egypt and Algeria.")
    assert shown.count("Which place was full of thieves?") == 2
    assert shown.count("Which place was full of honest people?") == 2


def test_validate_lists_every_fault_on_a_line_of_its_own(tiny_toml: Path) -> None:
    good = call("validate", tiny_toml)
    assert (good.returncode, good.stdout) == (0, f"{tiny_toml}: good; 3 subjects, 9 rows in qa, 3 rows in mlm\n")
    text = (
        tiny_toml.read_text(encoding="utf-8").replace('"never lied"', '"lied"').replace('id = "office"', 'id = "move"')
    )
    tiny_toml.write_text(text, encoding="utf-8")
    bad = call("validate", tiny_toml)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert len(bad.stderr.splitlines()) == 2
    assert all(line.startswith("tiny.toml: ") for line in bad.stderr.splitlines())


def test_a_class_of_ones_own_is_built_by_the_same_command(tiny_toml: Path, tmp_path: Path) -> None:
    built = call("build", "unqover", "all", "--lists", tiny_toml, "--out", tmp_path / "out")
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "out" / "unqover-tiny" / "qa" / "test-00000-of-00001.parquet").is_file()


def test_the_quickstarts_first_row_is_the_first_row() -> None:
    shown = call("show", "unqover-religion", "--row", "0").stdout
    page = (REPOSITORY / "docs" / "quickstart.md").read_text(encoding="utf-8")
    (context,) = re.findall(r'probes\[0\]\["context_12"\] +# \'(.*)\'', page)
    assert context in shown


def test_the_pages_own_class_builds(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "probe-sets.md").read_text(encoding="utf-8")
    (toml,) = re.findall(r"<!-- file: age.toml -->\n```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "age.toml").write_text(toml, encoding="utf-8")
    shown = call("show", "unqover-age", "--lists", tmp_path / "age.toml")
    assert "an elderly" in shown.stdout
    built = call("build", "unqover", "age", "--lists", tmp_path / "age.toml", "--out", tmp_path / "out")
    assert "2,100" in built.stdout  # 3 pairs x 14 templates x 50 attributes


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_shows_on_a_terminal_and_can_be_switched_off(tmp_path: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    def seen(*args: str) -> bytes:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        command = [*PROBESIEVE, "build", "unqover", "religion", "--out", str(tmp_path / args[0]), *args[1:]]
        subprocess.run(command, cwd=REPOSITORY, stderr=theirs, stdout=subprocess.DEVNULL, check=True)
        os.close(theirs)
        try:
            return os.read(ours, 65536)
        except OSError:  # the terminal is closed and nothing was written
            return b""
        finally:
            os.close(ours)

    assert b"unqover-religion qa" in seen("on")
    assert seen("off", "--no-progress") == b""


def test_push_from_build_to_load(hub: HubServer, tmp_path: Path) -> None:
    """Build 1.0.0 and 1.1.0, push both, load both by their tags; the same push again is success."""
    here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": TOKEN}
    script = (sys.executable, "scripts/push_dataset.py")
    for version, command in (("1.0.0", script), ("1.1.0", (*PROBESIEVE, "push"))):
        out = tmp_path / version
        built = call("build", "unqover", "religion", "--config", "qa", "--version", version, "--out", out)
        assert built.returncode == 0, built.stderr
        pushed = call(out / "unqover-religion", REPO, "--no-progress", command=command, **here)
        assert (pushed.returncode, pushed.stderr) == (0, "")
        assert f"Pushed v{version} to the dataset {REPO}" in pushed.stdout
        again = call(out / "unqover-religion", REPO, "--no-progress", command=command, **here)
        assert (again.returncode, again.stderr) == (0, "")
        assert f"v{version} of {REPO} is published already" in again.stdout
    code = (
        "from datasets import load_dataset\n"
        "for tag in ('v1.0.0', 'v1.1.0'):\n"
        f"    rows = load_dataset('{REPO}', split='test', revision=tag)\n"
        "    print(tag, len(rows), rows[0]['context_12'])"
    )
    loaded = call("-c", code, command=(sys.executable,), **here).stdout.splitlines()
    assert loaded == [
        f"v{version} 38500 An atheist man sat on a bench next to a Buddhist man." for version in ("1.0.0", "1.1.0")
    ]
    dry = call("push", tmp_path / "1.1.0" / "unqover-religion", "org/other", "--dry-run", **here)
    assert (dry.returncode, "org/other" in hub.repos) == (0, False)
    assert "Dry run, nothing was sent" in dry.stdout


def test_a_push_without_a_token_or_to_a_folder_edited_is_one_line(hub: HubServer, tmp_path: Path) -> None:
    call("build", "unqover", "religion", "--config", "qa", "--out", tmp_path)
    here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": ""}
    refused = call("push", tmp_path / "unqover-religion", REPO, **here)
    assert (refused.returncode, len(refused.stderr.strip().splitlines())) == (1, 1)
    assert "no Hugging Face token was found" in refused.stderr
    with (tmp_path / "unqover-religion" / "README.md").open("a") as card:
        card.write("more")
    edited = call("push", tmp_path / "unqover-religion", REPO, **here)
    assert (edited.returncode, hub.log) == (2, [])
    assert "was edited: the SHA-256 of README.md" in edited.stderr
