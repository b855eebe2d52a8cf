"""Words of others in what we write: cards, front matter, lines on a terminal."""

from __future__ import annotations

import html
import re
import unicodedata

_JOINERS = "\u200c\u200d"
_SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # letters and accents of which nothing is seen
_MARKS = re.compile(r"([\\`*_{}\[\]#|~$])")
_STARTS = re.compile(r"^(?:([-+=])(?= |\1|$)|(\d+)([.)])(?= |$))")
_LINK = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://|www\.|(?:mailto|xmpp):|[\w.+-]+@)[^\s`|<>]*[^\s`|<>.,;:!?'\")\]]", re.IGNORECASE
)


def visible(text: str, *, keep: str = "") -> str:
    """Return a text with every sign written out that would act and not be seen.

    These are control characters, marks that turn the direction of what follows, spaces without a width and the
    like. Joiners stay where they belong, behind a letter of a script that uses them.

    Parameters
    ----------
    text : str
        Any text.
    keep : str
        Signs to leave as they are, such as line breaks.

    Examples
    --------
    >>> visible("a\\u202eb\\x1b[31m"), visible("\\u0915\\u094d\\u200d\\u0937") == "\\u0915\\u094d\\u200d\\u0937"
    ('a[U+202E]b[U+001B][31m', True)
    """
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    before = " " + text
    return "".join(
        sign if sign in keep or not is_hidden(sign, before=last) else f"[U+{ord(sign):04X}]"
        for last, sign in zip(before, text, strict=False)
    )


def is_hidden(sign: str, *, before: str = " ") -> bool:
    """Whether a sign acts and is not seen where it stands behind the sign `before`."""
    if sign in _JOINERS:
        return before.isascii() or unicodedata.category(before)[0] not in "LMS"
    hides = unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    return sign in _BLANK or (hides and sign not in _SEEN)


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
