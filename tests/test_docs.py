"""What README and docs show is run, in order of the pages; what needs more than a test has is parsed at least."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from probesieve.cli import app
from tests.doc_pages import (
    ROOT,
    Block,
    anchors,
    blocks,
    broken_links,
    faults,
    inline_commands,
    pages,
    unread_fences,
)
from tests.doc_workplace import accepts, prepare, run_command

PAGES = pages()
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
FOLDERS = ("docs", "aflite", "builders", "evaluation", "examples", "scripts", "tests", "unqover_data")
MARKDOWN = sorted([*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))])
page_by_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("docs")
    prepare(folder)
    yield folder
    torch.set_num_threads(threads)


@page_by_page
def test_every_block_runs(
    page: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.mark == "file":
            (workplace / str(block.why)).write_text(block.text, encoding="utf-8")
        elif block.mark:
            continue
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, block.place, "exec"), names)
        elif block.language == "console":
            printed: list[str] = []
            for words in block.commands:
                code = run_command(words, monkeypatch)
                said = capsys.readouterr()
                assert code == 0, f"{block.place}: {' '.join(words)}\n{said.out}\n{said.err}"
                printed += map(str.rstrip, said.out.splitlines())
            assert not [line for line in block.output if line.rstrip() not in printed], block.place


@page_by_page
def test_every_block_is_run_or_marked(page: Path) -> None:
    assert not [fault for block in blocks(page) for fault in faults(block)]
    assert not unread_fences(page)


@page_by_page
def test_commands_that_are_not_run_are_commands(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(page):
        if block.language == "python" and block.mark:
            compile(block.text, block.place, "exec")
        for words in block.commands if block.mark == "not run" else ():
            if words[0] == "probesieve" or (words[:1] == ["python"] and words[1].startswith("scripts/")):
                refused = accepts(words, monkeypatch)
                assert refused is None, f"{block.place}: {' '.join(words)}: {refused}"


@page_by_page
def test_commands_in_sentences_are_commands(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may leave out what they must be given, and name files that are not there."""
    for words in inline_commands(page):
        refused = accepts(words, monkeypatch) or ""
        assert not refused or refused.startswith("Missing") or refused.endswith("does not exist."), (words, refused)


@pytest.mark.parametrize("page", MARKDOWN, ids=[str(path.relative_to(ROOT)) for path in MARKDOWN])
def test_links_lead_somewhere(page: Path) -> None:
    assert not list(broken_links(page))


def commands_of(command: Any, path: tuple[str, ...] = ("probesieve",)) -> Iterator[tuple[str, str]]:
    yield " ".join(path), command.help or ""
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_of(below, (*path, name))


def test_every_help_has_examples_that_the_parser_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    for path, said in commands_of(get_command(app)):
        examples = re.findall(r"Example: (probesieve .+)", said)
        assert examples, path
        for example in examples:
            assert path in example
            assert accepts(example.split(), monkeypatch) is None, example


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        path = tmp_path / "page.md"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_blocks_are_read_with_their_marks_and_commands(written: Any) -> None:
    page = written(
        "a\n\n```console\n$ probesieve list\nset  rows\n$ probesieve show x \\\n    --row 1\n```\n"
        "<!-- not run: needs the Hub -->\n```python\nimport x\n```\n<!-- file: a.toml -->\n\n```toml\na = 1\n```\n"
    )
    found = blocks(page)
    assert found == [
        Block(page, 3, "console", "$ probesieve list\nset  rows\n$ probesieve show x \\\n    --row 1\n"),
        Block(page, 10, "python", "import x\n", "not run", "needs the Hub"),
        Block(page, 15, "toml", "a = 1\n", "file", "a.toml"),
    ]
    assert found[0].commands == [["probesieve", "list"], ["probesieve", "show", "x", "--row", "1"]]
    assert found[0].output == ["set  rows"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```bash\nls\n```\n", "a bash block is not run"),
        ("```console\nls\n```\n", "needs a command"),
        ("```text\n$ probesieve list\n```\n", "a command in this block is not run"),
        ("<!-- not run: why -->\n```toml\na = 1\n```\n", "needs no mark"),
    ],
)
def test_a_block_that_nothing_would_run_is_a_fault(written: Any, text: str, fault: str) -> None:
    (block,) = blocks(written(text))
    (found,) = faults(block)
    assert fault in found


def test_what_is_no_block_of_its_own_does_not_go_unread(written: Any) -> None:
    page = written("- a\n\n  ```console\n  $ ls\n  ```\n\n~~~console\n$ ls\n~~~\n\n```console\n$ ls\n")
    assert not blocks(page)
    assert unread_fences(page) == ["  ```console", "  ```", "~~~console", "~~~", "```console"]
    named = written("Say `probesieve eval --model A`, not `probesieve`:\n```text\n`probesieve x`\n```\n")
    assert inline_commands(named) == [["probesieve", "eval", "--model", "A"]]


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("probesieve eval --model A --dataset B --sample 10", None),
        ("probesieve eval --modell A", "No such option"),
        ("probesieve build aflite", "Missing argument"),
        ("probesieve bild x", "No such command"),
        ("python scripts/push_dataset.py A B --dry-run", None),
        ("python scripts/bench_aflite.py cases --thread 1", "No such option"),
    ],
)
def test_the_parser_takes_or_refuses(line: str, refused: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    said = accepts(line.split(), monkeypatch)
    assert said is None if refused is None else refused in str(said)


def test_links_to_nothing_are_found(written: Any) -> None:
    page = written(
        "# One, two\n[a](#one-two) [b](#three) [c](none.md) [d](https://x.org/none) ```[e](f)```\n# One, two\n"
    )
    assert [line.partition(": ")[2].split()[0] for line in broken_links(page)] == ["#three", "none.md", "f"]
    assert anchors(page) == {"one-two", "one-two-1"}
