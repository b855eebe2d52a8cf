"""What the tests of sources share: specs, and reading without a word about where."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

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


def png(grey: int) -> bytes:
    file = io.BytesIO()
    Pillow.new("L", (2, 2), grey).save(file, format="PNG")
    return file.getvalue()


def put(root: Path, *names: str) -> Path:
    for grey, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(grey))
    return root


def shard(path: Path, *samples: dict[str, Any]) -> Path:
    """Write samples as 0000.png, 0000.cls, ...; dicts as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as file:
        for number, sample in enumerate(samples):
            for part, value in sample.items():
                content = value if isinstance(value, bytes) else json.dumps(value).encode()
                member = tarfile.TarInfo(f"{path.stem}/{number:04d}.{part}")
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
    return path
