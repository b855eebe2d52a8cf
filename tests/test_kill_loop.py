"""Commands that are killed at some moments, or find the disk full; ``tests/kill_loop.py`` alone does all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

QUICK = ("build unqover", "build unqover --overwrite", "eval probe set", "export-scores", "difficulty --out")
# What writes by libraries of its own, each of which says in its own words that a disk is full.
ALL_WAYS_OF_WRITING = ("build unqover", "eval classifier", "train", "report", "export-scores")


def run_loop(*args: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.kill_loop", *args]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("args", "commands", "moments"),
    [(("--moments", "6"), QUICK, 6), (("--full-disk",), ALL_WAYS_OF_WRITING, 3)],
    ids=["killed", "full disk"],
)
def test_nothing_half_finished_looks_finished_and_the_same_again_ends_with_the_same(
    args: tuple[str, ...], commands: tuple[str, ...], moments: int
) -> None:
    found = run_loop(*args, "--only", *commands)
    assert [one["command"] for one in found] == list(commands)
    assert [one["moments"] for one in found] == [moments] * len(commands)
    assert [fault for one in found for fault in one["faults"]] == []
