"""Commands that are killed at some moments, or find the disk full; ``tests/kill_loop.py`` alone does all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

QUICK = ("build unqover --overwrite", "eval probe set", "export-scores", "push")


def test_nothing_half_finished_looks_finished_and_the_same_again_ends_with_the_same() -> None:
    command = [sys.executable, "-m", "tests.kill_loop", "--moments", "4", "--full-disks", "1", "--only", *QUICK]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["command"], one["moments"]) for one in found] == [(name, 5) for name in QUICK]
    assert [fault for one in found for fault in one["faults"]] == []
