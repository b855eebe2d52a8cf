"""What every error has in common that a person, not the code, can mend."""

from __future__ import annotations

MOST_SIGNS = 2_000


class OneLine(Exception):
    """An error whose message is one plain line, whatever a file or an option put into it."""

    def __str__(self) -> str:
        """Return the message; see `one_line`."""
        return one_line(super().__str__())


def one_line(message: str) -> str:
    """Return a message as one line, odd signs written as escapes, cut where a terminal has had enough.

    Examples
    --------
    >>> one_line("no set 'a\\x1b[2J\\u202e'\\nhere")
    "no set 'a\\\\x1b[2J\\\\u202e' here"
    """
    if len(message) > MOST_SIGNS:
        message = f"{message[: MOST_SIGNS // 2]} ... {message[-MOST_SIGNS // 2 :]}"
    words = " ".join(message.split())
    return words if words.isprintable() else "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in words)
