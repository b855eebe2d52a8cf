"""Faults for the tests' Hub: what goes wrong with which requests.

``hub.faults.append(Fault("GET", r"/resolve/.*\\.parquet$", cut=0.5, times=1))`` cuts the first download of a Parquet
file in the middle; `Fault.seen` holds the requests that it met. The first fault that meets a request is the one done.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

from tests.hub_store import Answer, refusal

HTML = b"<!DOCTYPE html>\n<html><head><title>Sign in to the network</title></head><body>Welcome</body></html>\n"


@dataclass
class Fault:
    """One way to fail; give exactly one of `status`, `cut`, `html`, `truncate`, `corrupt`, unless it is only slow.

    Attributes
    ----------
    method, path : str
        Regular expressions: the whole method (GET does not mean HEAD), and one that is searched in the path.
    times, after : int
        How many requests it meets, None for all, once so many have passed.
    status : int
        Answer with this status; with the header Retry-After if `retry_after` is given.
    cut : float
        Close the connection after this share of the body; -1 before anything is sent.
    html : bool
        A page of HTML with status 200.
    truncate : float
        Send only this share of the body, and call it the whole.
    corrupt : bool
        Change the last byte of the body.
    slow : float
        Seconds to wait before anything is sent.
    acts : bool
        Whether the server does what was asked before it answers a status or HTML or cuts at -1.
    """

    method: str
    path: str
    times: int | None = None
    after: int = 0
    status: int | None = None
    retry_after: str | None = None
    cut: float | None = None
    html: bool = False
    truncate: float | None = None
    corrupt: bool = False
    slow: float = 0
    acts: bool = False
    passed: int = 0
    seen: list[tuple[str, str]] = field(default_factory=list)

    def meets(self, method: str, path: str) -> bool:
        """Whether this request is one of those that fail; counts it."""
        if not re.fullmatch(self.method, method) or not re.search(self.path, path):
            return False
        if self.passed < self.after:
            self.passed += 1
            return False
        if self.times is not None and len(self.seen) >= self.times:
            return False
        self.seen.append((method, path))
        return True

    @property
    def answers(self) -> bool:
        """Whether the server's own answer is not needed, so that it does nothing."""
        return not self.acts and (self.status is not None or self.html or self.cut == -1)

    def spoilt(self, answer: Answer | None) -> Answer:
        """The answer in place of the server's."""
        if self.status is not None:
            wrong = refusal(self.status, message=f"an injected {self.status}")
            if self.retry_after is not None:
                wrong.headers["Retry-After"] = self.retry_after
            return wrong
        if self.html:
            return Answer(200, HTML, Content_Type="text/html; charset=utf-8")
        return answer or Answer(200, {})

    def body(self, content: bytes) -> bytes:
        """What is sent of the body; its length is announced."""
        if self.truncate is not None:
            return content[: int(len(content) * self.truncate)]
        if self.corrupt and content:
            return content[:-1] + bytes([content[-1] ^ 1])
        return content

    def kept(self, content: bytes) -> bytes:
        """What is sent before the connection is closed."""
        return content if self.cut is None else content[: int(len(content) * self.cut)]

    def wait(self) -> None:
        """Be slow."""
        threading.Event().wait(self.slow)  # `hub_here` takes the pauses out of time.sleep
