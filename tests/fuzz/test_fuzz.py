"""Damaged input of every kind: each call works, or ends with one line that says what is wrong.

``PROBESIEVE_FUZZ=500`` makes every target's trials 500; ``PROBESIEVE_FUZZ=17:18`` runs trial 17 alone, to see it again.
"""

from __future__ import annotations

import os
import shutil
import signal
import traceback
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.errors import BuildError, HubError
from evaluation.errors import EvaluationError
from tests.fuzz.targets import TARGETS, Target
from unqover_data import ListError

SEED = 20
SECONDS = 30  # for a trial, which takes a fraction of one
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
TOLD = (ListError, BuildError, EvaluationError, HubError)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = signal.signal(signal.SIGALRM, _late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _late(*_: object) -> None:
    raise AssertionError(f"took more than {SECONDS} seconds")


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_ends_with_one_line(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    good = tmp_path / "good"
    good.mkdir()
    target.make(good)
    start, _, end = os.environ.get("PROBESIEVE_FUZZ", str(target.trials)).rpartition(":")
    failed = []
    for trial in range(int(start or 0), int(end)):
        if fault := _trial(target, np.random.default_rng([SEED, zlib.crc32(name.encode()), trial]), good, tmp_path):
            failed.append(f"PROBESIEVE_FUZZ={trial}:{trial + 1} -k {name}: {fault}")
    assert not failed, "\n\n".join([f"{len(failed)} trials failed", *failed])


def _trial(target: Target, rng: np.random.Generator, good: Path, root: Path) -> str | None:
    """Damage a copy of the good files and use it; return what went wrong."""
    folder = root / "trial/a/b"
    shutil.copytree(good, folder)
    what = target.damage(rng, folder)
    signal.alarm(SECONDS)
    try:
        target.run(folder)
    except TOLD as error:
        if any(unicodedata.category(sign) in HIDDEN for sign in str(error)):
            return f"{what}: the message is not one plain line: {str(error)[:500]!r}"
    except OSError as error:  # a command says file and reason, see `probesieve.cli`
        if not (error.filename and error.strerror):
            return f"{what}:\n{_shown(error)}"
    except Exception as error:
        return f"{what}:\n{_shown(error)}"
    finally:
        signal.alarm(0)
        outside = sorted(
            str(path.relative_to(root)) for path in (root / "trial").rglob("*") if folder not in path.parents
        )
        shutil.rmtree(root / "trial")
    if stray := [path for path in outside if path not in ("trial/a", "trial/a/b")]:
        return f"{what}: wrote outside its folder: {', '.join(stray)}"
    return None


def _shown(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "site-packages" not in frame.filename and "/tests/" not in frame.filename]
    last = ours[-1] if ours else frames[-1]
    return f"  {type(error).__name__}: {str(error)[:300]!r} at {last.filename}:{last.lineno} in {last.name}"
