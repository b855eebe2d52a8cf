"""What goes wrong between us and a Hub, told in one line; requests that only read are repeated where that may help.

The one place that knows how the client fails: huggingface_hub stands on requests (0.30), httpx (1) or httpx2 (2), and
their errors have no base in common. What they would wait for without limit or misunderstand, `builders.hub_watch`
raises.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from builders.errors import BuildError, HubError
from builders.hub_watch import BUSY, Unanswered, Unusable, in_time, watched
from unqover_data.errors import one_line

Kind = Literal["dataset", "model"]
T = TypeVar("T")

HUB = "https://huggingface.co"
TRIES = 4  # of one request
FIRST_PAUSE = 1.0  # seconds, doubled each time, where the server names none
PATIENCE = 120.0  # seconds that the pauses of one request may take together
_BROKEN = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "IncompleteRead"}
_SILENT = {"ReadTimeout"}  # of a server that takes a request and says nothing, or stops in the middle
_BROKEN_SIGNS = ("Consistency check failed", "Connection aborted")  # of the client, and of requests
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asked:
    """What was asked of a Hub, for the line that tells a failure.

    Attributes
    ----------
    doing : str
        Such that "cannot `doing` `repo`" is a sentence: ``fetch config.json of``.
    repo : str
        ORG/NAME.
    kind : str
        ``dataset`` or ``model``.
    revision : str, optional
        Branch, tag or commit, if one was asked for.
    write : bool
        Whether it changes the repository.
    """

    doing: str
    repo: str
    kind: Kind
    revision: str | None = None
    write: bool = False

    @property
    def page(self) -> str:
        """The repository's page."""
        return f"{endpoint()}/{'datasets/' if self.kind == 'dataset' else ''}{self.repo}"


def endpoint() -> str:
    """The Hub that is asked."""
    from huggingface_hub import constants

    return str(constants.ENDPOINT)


def offline() -> bool:
    """Whether HF_HUB_OFFLINE is set, so that only the cache counts."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def cache_folder(repo: str, kind: Kind) -> Path:
    """Where the client's cache keeps a repository."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type=kind)


def ask(action: Callable[[], T], asked: Asked) -> T:
    """Return what `action` returns, a call of the Hub's client that only reads and may be repeated.

    It is repeated after an answer that means "later" (429, 500, 502, 503, 504) and when the connection broke off: at
    most `TRIES` times in all, after the seconds that the server asks for, at most `PATIENCE` together.

    Raises
    ------
    HubError
        If it fails; one line that says what failed and what to do.
    """
    waited = 0.0
    for attempt in range(1, TRIES + 1):
        with told(asked):
            try:
                with watched():
                    return action()
            except Exception as error:
                pause = _pause(error, attempt)
                if pause is None or attempt == TRIES or waited + pause > PATIENCE:
                    raise
                _log.info("cannot %s %s yet, again in %g s: %s", asked.doing, asked.repo, pause, one_line(error))
        time.sleep(pause)
        waited += pause
    raise AssertionError  # the last try returns or raises


@contextlib.contextmanager
def told(asked: Asked) -> Iterator[None]:
    """Turn whatever the Hub's client raises in the block into a `HubError` of one line without the token."""
    try:
        in_time()
        yield
    except (BuildError, HubError):
        raise
    except Exception as error:  # no base in common, see above
        from huggingface_hub.errors import HFValidationError

        if isinstance(error, HFValidationError):
            raise BuildError(f"{asked.kind} {asked.repo!r} is no name that a Hub takes: {one_line(error)}") from error
        line = hub_line(error, asked)
        if line is None and isinstance(error, (KeyError, TypeError, AttributeError)):
            line = _no_hub(asked)
        line = line or f"cannot {asked.doing} {asked.repo}: {type(error).__name__}: {error}"
        raise HubError(one_line(without_token(line), most=600)) from error


def hub_line(error: BaseException, asked: Asked) -> str | None:
    """Tell a failure of a Hub or of the way to it; None if `error` and its causes are of neither."""
    causes = causes_of(error)
    names = {name for cause in causes for name in _type_names(cause)}
    if "GatedRepoError" in names:
        login = "" if _token() else ", log in with `hf auth login`"
        return f"{asked.repo} is gated: ask for access at {asked.page}{login}, then run the same command again"
    if "RepositoryNotFoundError" in names:
        hint = "your token cannot see it" if _token() else "run `hf auth login` or set HF_TOKEN"
        return f"{asked.repo} does not exist on {endpoint()}, or is private: check the name; {hint}"
    if "RevisionNotFoundError" in names:
        return f"{asked.repo} has no revision {asked.revision!r} on {endpoint()}"
    if names & {"EntryNotFoundError", "RemoteEntryNotFoundError"} and "LocalEntryNotFoundError" not in names:
        at = f" at {asked.revision[:12]}" if asked.revision else ""
        return f"cannot {asked.doing} {asked.repo}{at}: it has no such file (404)"
    for cause in causes:
        if isinstance(cause, Unusable):
            return _unusable_line(cause, asked)
        if status := status_of(cause):
            return _status_line(status, getattr(cause, "server_message", None) or "", asked)
    if offline() and names & {"OfflineModeIsEnabled", "LocalEntryNotFoundError"}:
        unset = f"cannot {asked.doing} {asked.repo}: HF_HUB_OFFLINE is set; run the same command with HF_HUB_OFFLINE=0"
        return unset if asked.write else missing_offline(asked)
    cannot = f"cannot {asked.doing} {asked.repo}"
    if names & _BROKEN or any(sign in str(cause) for cause in causes for sign in _BROKEN_SIGNS):
        return f"{cannot}: the connection to {endpoint()} broke off{_again(asked)}"
    if names & _SILENT:
        return (
            f"{cannot}: {endpoint()} does not answer, or stopped in the middle; run the same command again later, and "
            "what has arrived is not fetched anew"
        )
    if names & {"JSONDecodeError", "FileMetadataError"}:
        return _no_hub(asked)
    if names & {"HTTPError", "TransportError", "RequestException", "ConnectionError", "EntryNotFoundError"}:
        reason = f"{type(causes[-1]).__name__}: {causes[-1]}"
        known = not asked.write and cache_folder(asked.repo, asked.kind).is_dir()
        fetched = "; HF_HUB_OFFLINE=1 takes what an earlier run has fetched" if known else ""
        return f"{cannot}: no answer from {endpoint()} ({reason}); check the network and HF_ENDPOINT{fetched}"
    return None


def missing_offline(asked: Asked) -> str:
    """Say that the cache lacks what was asked for, and how to fill it."""
    at = f" at {asked.revision}" if asked.revision else ""
    return (
        f"cannot {asked.doing} {asked.repo}{at}: HF_HUB_OFFLINE is set and it is not in the cache; "
        "run the same command once with HF_HUB_OFFLINE=0"
    )


def without_token(line: str) -> str:
    """Return a line with stars in place of the user's token."""
    token = _token()
    return line.replace(token, "***") if token else line


def _unusable_line(answer: Unusable, asked: Asked) -> str:
    if answer.status == 200:
        return (
            f"cannot {asked.doing} {asked.repo}: {endpoint()} answers with a web page (HTML), as a proxy or a login "
            "page does; check the network and HF_ENDPOINT"
        )
    if answer.status == 206:
        return f"cannot {asked.doing} {asked.repo}: the connection to {endpoint()} broke off{_again(asked)}"
    return _status_line(answer.status, answer.said, asked, answer.retry_after)


def _no_hub(asked: Asked) -> str:
    return (
        f"cannot {asked.doing} {asked.repo}: {endpoint()} answers, but not as a Hub does; "
        "check the network and HF_ENDPOINT"
    )


def _again(asked: Asked) -> str:
    if asked.write:
        return "; run the same command again, and what has arrived is not sent anew"
    return " again and again; run the same command again, and what has arrived is not fetched anew"


def _status_line(status: int, said: str, asked: Asked, wait: float | None = None) -> str:
    cannot, hub = f"cannot {asked.doing} {asked.repo}", endpoint()
    if status == 429:
        when = f"{wait:,.0f} seconds" if wait else "a few minutes"
        return f"{cannot}: {hub} asks to slow down (429); wait {when}, then run the same command again"
    if status == 401:
        login = "run `hf auth login` again, or set HF_TOKEN to a valid one"
        return f"{cannot}: {hub} {'refused the token' if _token() else 'wants a token'} (401): {login}"
    if status == 403 and asked.write:
        org = asked.repo.split("/")[0]
        return f"the token has no right to {asked.doing} {asked.repo} (403): use one with write access to {org}"
    if status == 403:
        return f"{cannot}: {hub} refuses it (403); see {asked.page} for who may read it, or `hf auth login`"
    if status == 409 and asked.write:
        return (
            f"{hub} will not {asked.doing} {asked.repo} (409): it was created this moment, or the token cannot see it"
        )
    if status == 412 and asked.write:
        return f"{asked.repo} was changed by someone else during this push (412): nothing was committed; push again"
    reason = f" ({said})" if said else ""
    later = "; run the same command again later" if status >= 500 else ""
    return f"{cannot}: {hub} answered {status}{reason}{later}"


def _pause(error: BaseException, attempt: int) -> float | None:
    """Seconds after which to try again, None if that cannot help."""
    own: float = FIRST_PAUSE * 2 ** (attempt - 1)
    for cause in causes_of(error):
        if isinstance(cause, Unusable):
            return (own if cause.retry_after is None else cause.retry_after) if cause.status in BUSY else None
        if (_BROKEN | _SILENT) & set(_type_names(cause)) or any(sign in str(cause) for sign in _BROKEN_SIGNS):
            return own
    return None


def causes_of(error: BaseException) -> list[BaseException]:
    """The error, what it was raised from, and so on."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        if isinstance(cause, Unanswered):
            cause = cause.lost
        else:
            cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return seen


def _type_names(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def status_of(error: BaseException) -> int | None:
    """HTTP status of an error, None if there was no answer."""
    status: int | None = getattr(getattr(error, "response", None), "status_code", None)
    return status


def _token() -> str | None:
    from huggingface_hub import get_token

    with contextlib.suppress(OSError, ValueError):
        return get_token()
    return None


def without_xet_elsewhere() -> None:
    """Turn Xet off for any Hub but huggingface.co: others lack it, and the client does not fall back."""
    if os.environ.get("HF_ENDPOINT", HUB).rstrip("/") == HUB or "HF_HUB_DISABLE_XET" in os.environ:
        return
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    from huggingface_hub import constants

    constants.HF_HUB_DISABLE_XET = True  # for when something else imported the client before
