"""The work folder of a build: what a stage made is kept under a hash of its inputs, and used again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.atomic import sweep
from builders.errors import BuildError
from builders.locks import held
from builders.stopping import goes_on_from

if TYPE_CHECKING:
    from builders.folder import Built


def digest(inputs: Mapping[str, Any]) -> str:
    """Give 16 hexadecimal digits that change with any of the JSON values of `inputs`."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


@dataclass
class Workspace:
    """Paths and times of the stages of one build.

    Attributes
    ----------
    root : Path
        The work folder.
    seconds : dict of str to float
        Wall-clock time of each stage of this run.
    reused : set of str
        Stages that found what they make.
    """

    root: Path
    seconds: dict[str, float] = field(default_factory=dict)
    reused: set[str] = field(default_factory=set)

    def place(self, stage: str, inputs: Mapping[str, Any]) -> Path:
        """Where a stage keeps what it makes of these inputs; its folder is there."""
        self.root.mkdir(parents=True, exist_ok=True)
        return self.root / f"{stage}-{digest(inputs)}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the folder to one build at a time; the lock of a process goes when it is killed.

        Raises
        ------
        BuildError
            If another process builds there.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        busy = BuildError(
            f"another build works in {self.root}: wait for it, or give this one another folder with --work"
        )
        with held(self.root / "lock", busy), goes_on_from(self.root):
            sweep(self.root)
            yield

    def log(self, built: Built) -> None:
        """Add a line to ``log.jsonl``: what was built, how long the stages took, and which found what they make.

        Times lie here and not in the dataset folder, so that equal inputs give equal folders.
        """
        entry = {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "folder": str(built.folder),
            "sha256": built.manifest["sha256"],
            "seconds": {stage: round(seconds, 2) for stage, seconds in built.seconds.items()},
            "reused": list(built.reused),
        }
        with (self.root / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of the block to the stage's."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
