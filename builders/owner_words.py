"""The section of a card that belongs to who keeps it on the Hub: what stands between its marks outlives every push.

The marks stand alone in their lines, at the end of a card, where nothing between them can reach the front matter. The
manifest's sum of a card is that of the card with the section empty.
"""

from __future__ import annotations

import re

CARD = "README.md"
SECTION = """
<!-- What stands between the next two lines stays when another version is pushed; any other edit is replaced. -->
<!-- owner: begin -->
<!-- owner: end -->
"""
_SIGN = rb"<!--[ \t]*owner:[ \t]*(begin|end)[ \t]*-->"
_ANYWHERE = re.compile(_SIGN, re.IGNORECASE)
_MARK = re.compile(rb"^[ \t]*" + _SIGN + rb"[ \t]*(?:\r?\n|\Z)", re.IGNORECASE | re.MULTILINE)


class SectionError(ValueError):
    """A section that cannot be carried over: says how its marks stand, or where it is no UTF-8."""


def words(card: bytes) -> bytes:
    """Return what stands in the owner's section; nothing without one.

    Raises
    ------
    SectionError
        If there is anything but one begin with one end behind it, or none of the marks is alone in its line, so that
        nobody can say what is the owner's, or if the words are not UTF-8, which the Hub's client does not send.

    Examples
    --------
    >>> words(b"# A\\n<!-- owner: begin -->\\nHello\\n<!-- owner: end -->\\n")
    b'Hello\\n'
    """
    place = _section(card)
    said = card[slice(*place)] if place else b""
    try:
        said.decode()
    except UnicodeDecodeError as error:
        raise SectionError(f"the owner's section is not UTF-8 ({error})") from error
    return said


def with_words(card: bytes, said: bytes) -> bytes:
    """Return a card with `said` in the owner's section; one without a section gets one at its end.

    Raises
    ------
    SectionError
        As `words`.
    """
    place = _section(card)
    if place is None and not said:
        return card
    if place is None:
        card = card.rstrip(b"\n") + b"\n" + SECTION.encode()
        place = _section(card)
        assert place is not None
    return card[: place[0]] + said + card[place[1] :]


def as_built(card: bytes) -> bytes:
    """Return a card with the owner's section empty; as it is where the marks do not enclose one."""
    try:
        return with_words(card, b"")
    except SectionError:
        return card


def _section(card: bytes) -> tuple[int, int] | None:
    marks = list(_MARK.finditer(card))
    kinds = [mark[1].lower() for mark in marks]
    if kinds == [b"begin", b"end"]:
        return marks[0].end(), marks[1].start()
    if not kinds:
        if stray := _ANYWHERE.search(card):
            line = card.count(b"\n", 0, stray.start()) + 1
            stands = f"{stray[1].decode()} in line {line}"
            raise SectionError(f"each mark of the owner's section must be alone in its line, and {stands} is not")
        return None
    lines = [card.count(b"\n", 0, mark.start()) + 1 for mark in marks]
    stand = ", ".join(f"{kind.decode()} in line {line}" for kind, line in zip(kinds, lines, strict=True))
    raise SectionError(f"the marks of the owner's section must be one begin and one end behind it, and are {stand}")
