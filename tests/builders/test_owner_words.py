"""What the owner wrote in a card on the Hub, between its marks, outlives a push; nothing else there does."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

from builders.errors import BuildError, HubError
from builders.folder import verify_folder, write_manifest
from builders.hub import push_folder, verify_revision
from builders.owner_words import SECTION, SectionError, as_built, with_words, words
from builders.unqover import build_unqover
from tests.hub_fixtures import NEW, REPO, Make, contents, published
from tests.hub_server import HubServer
from tests.hub_store import File
from unqover_data import ProbeLists

SAID = b"---\nlicense: other\n---\n# Mine\n\n<!-- not: a mark --> \xc3\xa9\r\n"


def edit(hub: HubServer, card: bytes) -> None:
    repo = hub.repos[REPO]
    files = repo.commits[repo.resolve("main")].files | {"README.md": File(card, lfs=False)}
    repo.add("refs/heads/main", files, "a hand", repo.resolve("main"))


def marked(folder: Path) -> Path:
    """Give a folder a card with a section, as builds do, and a manifest anew."""
    manifest = verify_folder(folder)
    (folder / "manifest.json").unlink()
    with (folder / "README.md").open("a", encoding="utf-8") as file:
        file.write(SECTION)
    write_manifest(
        folder, {key: value for key, value in manifest.items() if key not in ("sha256", "files", "versions")}
    )
    return folder


def test_words_are_carried_into_the_next_version(pushing: HubServer, make_folder: Make) -> None:
    old, new = marked(make_folder("1.0.0")), marked(make_folder("1.1.0", NEW))
    push_folder(old, REPO)
    edit(pushing, with_words(published(pushing, "main")["README.md"], SAID) + b"elsewhere\n")
    done = push_folder(new, REPO)
    assert done.overwritten == ("README.md",)  # of what was written elsewhere
    card = published(pushing, "v1.1.0")["README.md"]
    assert words(card) == SAID
    assert as_built(card) == contents(new)["README.md"]
    assert verify_revision(new, REPO, "v1.1.0") == done.sha
    assert push_folder(new, REPO).published

    edit(pushing, with_words(card, b"Other words.\n"))
    newest = marked(make_folder("1.2.0", NEW))
    assert push_folder(newest, REPO).overwritten == ()
    assert words(published(pushing, "v1.2.0")["README.md"]) == b"Other words.\n"
    assert words(published(pushing, "v1.1.0")["README.md"]) == SAID


def test_a_copy_from_the_hub_is_as_built(
    pushing: HubServer, make_folder: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = marked(make_folder())
    card = folder / "README.md"
    card.write_bytes(with_words(card.read_bytes(), SAID))
    verify_folder(folder)
    push_folder(folder, REPO)
    assert published(pushing, "v1.0.0")["README.md"] == card.read_bytes()
    card.write_bytes(with_words(card.read_bytes(), b"Older words.\n"))
    with caplog.at_level(logging.WARNING):
        assert push_folder(folder, REPO).published
    assert "the owner's words" in caplog.text
    card.write_bytes(card.read_bytes() + b"elsewhere")
    with pytest.raises(BuildError, match=r"the SHA-256 of README\.md"):
        verify_folder(folder)


BEGIN, END = b"<!-- owner: begin -->\n", b"<!-- owner: end -->\n"


@pytest.mark.parametrize(
    ("section", "stand"),
    [
        (BEGIN + b"words", "begin in line 1"),
        (b"words\n" + END, "end in line 2"),
        (END + b"words\n" + BEGIN, "end in line 1, begin in line 3"),
        (BEGIN + END + b"words\n" + END, "begin in line 1, end in line 2, end in line 4"),
        (BEGIN + BEGIN + END + END, "begin in line 1, begin in line 2, end in line 3, end in line 4"),
        (BEGIN + b"words\n" + END.strip() + b" more\n", "begin in line 1"),
        (BEGIN + b"w\xffrds\n" + END, "position 1: invalid start byte"),
        (BEGIN.strip() + b" words " + END, "line, and begin in line 1 is not"),
        (b"> " + BEGIN + b"> words\n> " + END, "line, and begin in line 1 is not"),
        (b"\r" + (BEGIN + b"words\n" + END).replace(b"\n", b"\r"), "line, and begin in line 1 is not"),
    ],
)
def test_marks_that_could_lose_words_are_refused(
    pushing: HubServer, make_folder: Make, section: bytes, stand: str
) -> None:
    with pytest.raises(SectionError, match=f"(and are |in |its ){stand}\\)?$"):
        words(section)
    push_folder(marked(make_folder()), REPO)
    edit(pushing, b"---\nlicense: mit\n---\n" + section)
    before = pushing.writes()
    with pytest.raises(HubError, match=r"README\.md of .*the owner's section .* mend it on the Hub") as caught:
        push_folder(marked(make_folder("1.1.0")), REPO)
    assert "\n" not in str(caught.value)
    assert pushing.writes() == before


def test_a_card_without_a_section_gets_one_for_words(pushing: HubServer, make_folder: Make) -> None:
    push_folder(make_folder(), REPO)
    edit(pushing, published(pushing, "main")["README.md"] + BEGIN + SAID + END)
    push_folder(make_folder("1.1.0"), REPO)
    assert words(published(pushing, "v1.1.0")["README.md"]) == SAID
    assert push_folder(make_folder("1.1.0"), REPO).published


def test_built_cards_end_with_an_empty_section(tmp_path: Path, tiny_lists: ProbeLists) -> None:
    lists = dataclasses.replace(tiny_lists, title="<!-- owner: begin -->", limits=("\n<!-- owner: end -->\n",))
    card = (build_unqover(lists, tmp_path).folder / "README.md").read_bytes()
    assert card.endswith(BEGIN + END)
    assert words(card) == b""


def test_a_tag_on_something_else_is_told_as_such(pushing: HubServer, make_folder: Make) -> None:
    push_folder(make_folder(name="unqover-gender"), REPO)
    with pytest.raises(HubError, match="holds unqover-gender, not unqover-religion; push to another name"):
        push_folder(make_folder(), REPO)
    foreign = pushing.create("org/foreign")
    foreign.refs["refs/tags/v1.0.0"] = foreign.resolve("main")
    with pytest.raises(HubError, match=r"org/foreign has the tag v1\.0\.0 on files that are no set of ours"):
        push_folder(make_folder(), "org/foreign")
