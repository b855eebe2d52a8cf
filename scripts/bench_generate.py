"""Time, peak memory and file size of building each probe set, as a Markdown table.

Every build is a process of its own, timed from its start to its end, so that imports count. Example:
``python scripts/bench_generate.py --repeat 5``
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from builders.folder import read_manifest
from probesieve.cli import run
from unqover_data import BUNDLED

# The released generator on the gender set (its lists, the same 1,372,000 examples), measured once on a machine of
# the same kind (2 cores): 134 s and 6.0 GB.
RELEASED_SECONDS, RELEASED_MB = 134.0, 6000.0


def bench(
    lists: Annotated[str, typer.Option(help="As for `probesieve build unqover`.")] = "bundled",
    repeat: Annotated[int, typer.Option(help="Builds of each set; the median is reported.")] = 3,
) -> None:
    """Build config qa of every set and report what it took."""
    print("| set | rows | seconds | rows/s | peak memory | file |\n|---|---|---|---|---|---|")
    for name in BUNDLED:
        runs = [measure(name, lists) for _ in range(repeat)]
        seconds, peak, size, rows = sorted(runs)[repeat // 2]
        print(f"| {name} | {rows:,} | {seconds:.2f} | {rows / seconds:,.0f} | {peak:.0f} MB | {size:.2f} MB |")
        if name == "gender":
            ratio = f"{RELEASED_SECONDS / seconds:.0f} times faster, {RELEASED_MB / peak:.0f} times less memory"
            print(
                f"| gender, released generator | {rows:,} | {RELEASED_SECONDS:.0f} | | {RELEASED_MB:.0f} MB | {ratio} |"
            )


def measure(name: str, lists: str) -> tuple[float, float, float, int]:
    """Seconds, peak resident MB, MB of Parquet, and rows of one build."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "probesieve", "build", "unqover", name, "--lists", lists, "--config", "qa"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, "--out", out], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"the build of {name} failed")
        manifest = read_manifest(Path(out) / f"unqover-{name}")
        split = manifest["configs"]["qa"]["test"]
        size = sum(manifest["files"][file]["bytes"] for file in split["files"])
    return seconds, usage.ru_maxrss / 1024, size / 1e6, split["rows"]


run(bench)
