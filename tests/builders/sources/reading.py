"""What the tests of sources share: specs, and reading without a word about where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.errors import BuildError
from builders.sources import SourceRows, SourceSpec, read_source

SHARED = Path(__file__).parents[4] / "shared" / "data"
NAMES = ("entailment", "neutral", "contradiction")

Read = Callable[..., SourceRows]


def nli(**fields: Any) -> SourceSpec:
    return SourceSpec(**{"inputs": {"premise": "premise", "hypothesis": "hypothesis"}, "names": NAMES, **fields})


def pictures(**fields: Any) -> SourceSpec:
    return SourceSpec(**{"inputs": {"image": "image"}, **fields})


def refused(spec: SourceSpec, path: Path | None, *parts: str) -> None:
    """Assert that reading ends with one line that holds `parts`, and leaves nothing that looks finished."""
    work = (path or Path()).parent / "refused"
    with pytest.raises(BuildError) as caught:
        read_source(spec, work=work, path=path)
    assert "\n" not in str(caught.value)
    assert not [part for part in parts if part not in str(caught.value)], str(caught.value)
    assert not list(work.glob(".*"))
