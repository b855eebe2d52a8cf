"""The Hub's client while we ask: each answer is looked at, and each request comes to an end.

The client repeats on its own what was not answered, waits without limit for some answers, and takes some refusals for
a missing file. Its session is therefore wrapped once, at the one method through which every request goes, in requests
as in httpx.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

BUSY = (429, 500, 502, 503, 504)
SILENCE = 30.0  # seconds for which a server may say nothing to who reads
_SILENCE_OF_WRITES = 600.0  # as above, while it takes in files
_RESUMES = 5  # of one download in one try
_watches: list[_Watch] = []
_lock = threading.Lock()
_client = logging.getLogger("huggingface_hub")
_level = {"own": logging.NOTSET}


class Unusable(Exception):
    """An answer that is of no use: a status that means "later", a page of HTML, or one of too many cut downloads."""

    def __init__(self, status: int, *, said: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"status {status} {said}".strip())
        self.status, self.said, self.retry_after = status, said, retry_after


class Unanswered(Exception):
    """No answer at all; of a kind that the client does not know, and so does not repeat.

    Attributes
    ----------
    lost : Exception
        What the session raised; `datasets` takes the cause away where it raises an error again.
    """

    def __init__(self, lost: Exception) -> None:
        super().__init__(str(lost))
        self.lost = lost


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Look at each answer that the client's session gets in the block, and keep its warnings off the terminal.

    Raises
    ------
    Unusable, Unanswered
        From the calls of the client in the block.
    """
    in_time()
    watch = _Watch()
    with _lock:
        if not _watches:
            _level["own"] = _client.level
            _client.setLevel(logging.ERROR)
        _watches.append(watch)
    try:
        yield
    finally:
        with _lock:
            _watches.remove(watch)
            if not _watches:
                _client.setLevel(_level["own"])


def in_time() -> None:
    """Give every request of the client's session a limit for the server's silence."""
    from huggingface_hub.utils._http import get_session  # `utils` has it, too, but not for mypy

    session: Any = get_session()
    if isinstance(session.send, _Send):
        return
    session.send = _Send(session.send)


class _Send:
    """``send`` of a session."""

    def __init__(self, send: Any) -> None:
        self._send = send

    def __call__(self, request: Any, **options: Any) -> Any:
        sends = request.method == "PUT" or not (_watches or request.method in ("GET", "HEAD"))
        most = _SILENCE_OF_WRITES if sends else SILENCE
        if hasattr(request, "extensions"):  # httpx
            limits = request.extensions.get("timeout") or dict.fromkeys(("connect", "read", "write", "pool"))
            request.extensions["timeout"] = {kind: min(value or most, most) for kind, value in limits.items()}
        else:
            given = options.get("timeout")
            options["timeout"] = min(given, most) if isinstance(given, (int, float)) else most
        try:
            response = self._send(request, **options)
        except Exception as error:
            names = {kind.__name__ for kind in type(error).__mro__}
            if _watches and names & {"TransportError", "RequestException"}:
                raise Unanswered(error) from error
            raise
        for watch in tuple(_watches):
            watch.look(request, response)
        return response


class _Watch:
    """What one question of ours has seen."""

    def __init__(self) -> None:
        self._resumed: Counter[str] = Counter()

    def look(self, request: Any, response: Any) -> None:
        """Raise `Unusable` for an answer that the client would misunderstand."""
        try:
            self._look(request, response)
        except Unusable:
            response.close()
            raise

    def _look(self, request: Any, response: Any) -> None:
        status, headers = response.status_code, response.headers
        unclear = status in (403, 404) and "x-error-code" not in headers and "/resolve/" in str(response.url)
        if status in BUSY or unclear:  # a Hub says why, and what does not say so is not known to be missing
            said = headers.get("x-error-message", "")
            raise Unusable(status, said=said, retry_after=_seconds(headers.get("retry-after")))
        page = "text/html" in headers.get("content-type", "") and request.method != "PUT"  # some storage's answer
        if status == 200 and page and "x-repo-commit" not in headers:
            raise Unusable(200)
        if "range" in request.headers and request.method == "GET":
            self._resumed[str(request.url)] += 1
            if self._resumed[str(request.url)] > _RESUMES:
                raise Unusable(206)


def _seconds(header: str | None) -> float | None:
    """Seconds of a Retry-After header; None for a date."""
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
