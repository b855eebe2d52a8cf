"""Words of others in what we write: cards, front matter, lines on a terminal."""

from __future__ import annotations

import html
import re

from unqover_data.signs import visible

_MARKS = re.compile(r"([\\`*_{}\[\]#|~$])")
_STARTS = re.compile(r"^(?:([-+=])(?= |\1|$)|(\d+)([.)])(?= |$))")
_LINK = re.compile(  # its beginnings have a longest, so that a long word is not read again from each of its signs
    r"(?:[a-z][a-z0-9+.-]{0,31}://|www\.|(?:mailto|xmpp):|[\w.+-]{1,64}@)[^\s`|<>]*[^\s`|<>.,;:!?'\")\]]", re.IGNORECASE
)


def markdown(text: str) -> str:
    """Return a text as one line of Markdown in which its own markup, of Markdown and of HTML, is text.

    An address becomes code, since a page would make a link of it.

    Examples
    --------
    >>> print(markdown("# <b>*Not*</b> [so](x)"), markdown("see www.example.org."))
    \\# &lt;b&gt;\\*Not\\*&lt;/b&gt; \\[so\\](x) see `www.example.org`.
    """
    line = visible(" ".join(text.split()))
    done, end = "", 0
    for found in _LINK.finditer(line):
        done += f"{_escaped(line[end : found.start()])}`{found[0]}`"
        end = found.end()
    return _STARTS.sub(_start_escaped, done + _escaped(line[end:]))


def _start_escaped(start: re.Match[str]) -> str:
    """What would start a list or underline a heading, as text."""
    return f"\\{start[1]}" if start[1] else f"{start[2]}\\{start[3]}"


def code(text: str, *, cell: bool = False) -> str:
    """Return a text as code in a line of Markdown or a cell of a table; as `markdown` does if it would end either."""
    line = visible(" ".join(text.split()))
    return f"`{line}`" if line and "`" not in line and not (cell and "|" in line) else markdown(text)


def fenced(text: str, language: str) -> str:
    """Return lines as a block of code that nothing in them ends."""
    runs = re.findall(r"`{3,}", text)
    fence = "`" * (1 + max(map(len, runs), default=2))
    return f"{fence}{language}\n{visible(text, keep=chr(10))}\n{fence}"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", html.escape(text, quote=False))
