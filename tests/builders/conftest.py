"""What tests of the builders share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from tests.hub_fixtures import TOKEN
from tests.hub_server import HubServer


@pytest.fixture
def pushing(hub_here: HubServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A Hub to which this very process pushes."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own, of retries and bars
        yield hub_here
