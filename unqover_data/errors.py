"""What every error has in common that a person, not the code, can mend."""

from __future__ import annotations

from unqover_data.signs import visible

MOST_SIGNS = 2_000
_MOST_OF_OTHERS = 300


class OneLine(Exception):
    """An error whose message is one plain line, whatever a file or an option put into it."""

    def __str__(self) -> str:
        """Return the message; see `one_line`."""
        return one_line(super().__str__(), most=MOST_SIGNS)


def one_line(said: object, *, most: int = _MOST_OF_OTHERS) -> str:
    """Return a text, or what an error says, as one line: hidden signs written out, cut in the middle if it is long.

    Examples
    --------
    >>> one_line("no set 'a\\x1b[2J\\u202e'\\nhere")
    "no set 'a[U+001B][2J[U+202E]' here"
    """
    text = str(said)
    if len(text) > most:
        text = f"{text[: most // 2]} ... {text[-most // 2 :]}"
    return visible(" ".join(text.split())) or type(said).__name__
