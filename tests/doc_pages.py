"""Markdown pages as their tests read them: blocks with their marks, commands, links and anchors.

A ``console`` block holds commands, on lines that begin with ``$ `` (lines after a ``\\`` go on), and output. A comment
on the line before a block says what the page does not show: ``<!-- not run: WHY -->`` or ``<!-- file: NAME -->`` (the
block is the content of a file).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOWN = ("", "text", "toml", "json", "yaml", "bibtex", "mermaid")  # languages of what nothing can run
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=fence) *$", re.M | re.S)
_OTHER_FENCE = re.compile(r"^.*(?:`{3}|~{3}).*$", re.M)
_INLINE = re.compile(r"(?<!`)`((?:probesieve |python scripts/)[^`\n]*)`(?!`)")
_MARK = re.compile(r"<!-- (not run|file): (.+?) -->\n+\Z")
_LINK = re.compile(r"(?<!\\)\]\(<?([^)\s>]+)>?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it is, what it is in, what it says, and how it is marked."""

    page: Path
    line: int
    language: str
    text: str
    mark: str | None = None
    why: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page.name}:{self.line}"

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a ``console`` block."""
        return [shlex.split(line[2:], comments=True) for line in self._lines if line.startswith("$ ")]

    @property
    def output(self) -> list[str]:
        """The lines that its commands print, as far as they are shown."""
        return [line for line in self._lines if not line.startswith("$ ") and line.strip() not in ("", "...")]

    @property
    def _lines(self) -> list[str]:
        return re.sub(r"\\\n\s*", " ", self.text).splitlines()


def pages() -> list[Path]:
    """README first, then the pages of docs in the order of their index, then those that it does not name."""
    index = ROOT / "docs" / "README.md"
    named = [index, *(index.parent / target for target in _LINK.findall(index.read_text(encoding="utf-8")))]
    wanted = [page.resolve() for page in named if page.suffix == ".md" and page.parent == index.parent]
    return list(dict.fromkeys([ROOT / "README.md", *wanted, *sorted(index.parent.glob("*.md"))]))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        mark = _MARK.search(before)
        words = mark.groups() if mark else (None, None)
        found.append(Block(page, before.count("\n") + 1, match["language"], match["text"], *words))
    return found


def faults(block: Block) -> Iterator[str]:
    """What keeps a block from being run, or from being marked as one that is not."""
    if block.language == "console":
        if not block.commands:
            yield f"{block.place}: a console block needs a command, on a line that begins with '$ '"
    elif block.language != "python" and block.language not in SHOWN:
        yield f"{block.place}: a {block.language} block is not run; make it a console or python block"
    elif block.language in SHOWN and any(line.startswith("$ ") for line in block.text.splitlines()):
        yield f"{block.place}: a command in this block is not run; make it a console block"
    if block.mark == "not run" and block.language in SHOWN:
        yield f"{block.place}: nothing would run this block, so it needs no mark"


def unread_fences(page: Path) -> list[str]:
    """Lines with a fence that `blocks` does not read: indented, of tildes, or never closed."""
    return _OTHER_FENCE.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))


def inline_commands(page: Path) -> list[list[str]]:
    """The words of each command of ours that stands in a sentence or a table."""
    return [shlex.split(text) for text in _INLINE.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))]


def broken_links(page: Path) -> Iterator[str]:
    """Links to files that are not there, or to headings that they lack; addresses with a scheme are not followed."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists():
            yield f"{page.name}: {target} is not there"
        elif anchor and anchor not in anchors(file):
            yield f"{page.name}: {target} names no heading of {file.name}"


def anchors(page: Path) -> set[str]:
    """Anchors as GitHub makes them of headings."""
    found: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = found[slug] = found.get(slug, -1) + 1
        names.add(f"{slug}-{count}" if count else slug)
    return names
