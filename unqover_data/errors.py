"""What every error has in common that a person, not the code, can mend."""

from __future__ import annotations

from unqover_data.signs import visible

MOST_SIGNS = 2_000


class OneLine(Exception):
    """An error whose message is one plain line, whatever a file or an option put into it."""

    def __str__(self) -> str:
        """Return the message; see `one_line`."""
        return one_line(super().__str__())


def one_line(message: str) -> str:
    """Return a message as one line, hidden signs written out, cut where a terminal has had enough.

    Examples
    --------
    >>> one_line("no set 'a\\x1b[2J\\u202e'\\nhere")
    "no set 'a[U+001B][2J[U+202E]' here"
    """
    if len(message) > MOST_SIGNS:
        message = f"{message[: MOST_SIGNS // 2]} ... {message[-MOST_SIGNS // 2 :]}"
    return visible(" ".join(message.split()))
