"""Signs that act and are not seen, written out."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"
_SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "FULLWIDTH", "IDEOGRAPHIC")
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # letters and accents of which nothing is seen


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


def is_unspaced(sign: str) -> bool:
    """Whether a sign is of a script that puts no spaces between words, or of its punctuation.

    Examples
    --------
    >>> [is_unspaced(sign) for sign in "張あส：A가"]
    [True, True, True, True, False, False]
    """
    return unicodedata.name(sign, "").startswith(_UNSPACED)
