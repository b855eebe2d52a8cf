"""Kills every command that writes, at many moments, runs it again, and compares with a run that was let be.

``OMP_NUM_THREADS=1 python -m tests.kill_loop`` does it for all of them. Half of the moments are changes of the folder
(a file opened, renamed or removed), which are counted first, half are points in time. Then no file may grow beyond some
sizes, as on a full disk. A child is forked for each run, so torch is imported once; the parent does no work of its
own, and so has one thread. Output is a JSON line a command: changes, moments, and what was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets  # noqa: F401  (once, before the forks)
import numpy as np
import torch
import transformers

from builders.aflite import Machine, build_aflite
from builders.features.transformer import TransformerSettings
from builders.planted import LABELS
from builders.refilter import refilter
from builders.unqover import build_unqover
from evaluation import store
from evaluation.built_sets import find_built
from evaluation.classifiers.blank import write_blank_bert
from evaluation.classifiers.run import ClassifierOptions, evaluate_classifier
from evaluation.classifiers.subsets import training_subset
from evaluation.classifiers.train import train_classifier
from evaluation.hub_results import build_score_set
from evaluation.models import resolve_model
from evaluation.probe_sets import open_probe_set
from evaluation.report import write_report
from evaluation.run import Engine, Options, evaluate
from probesieve.eval_commands import difficulty
from tests.builders.filtered_sets import SIZES, spec_of, write_features, write_source
from tests.evaluation.classifiers import training_sets
from tests.evaluation.classifiers.exact_models import save_tokenizer
from tests.evaluation.conftest import LISTS, tokenizer_of
from tests.kill_children import Done, forked, limited
from tests.kill_push import PushLoop
from unqover_data import read_toml

CPU = Engine(device="cpu", batch_size=8)
TIMES = {"seconds", "finished", "sha256"}  # of results; the last is the sum of all that one says
MARKERS = ("manifest.json", "exact.json", "training.json")


class Kit:
    """What the commands work on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lists = root / "few.toml"

    def make(self) -> None:
        """Write it; in a child, since it starts threads."""
        self.lists.write_text(LISTS, encoding="utf-8")
        build_unqover(read_toml(self.lists), self.root)
        labels = write_source(self.root / "source")
        write_features(self.root / "features.npy", labels, easy_share=0.4)
        self.filtered(self.root / "out")
        self._predictions(SIZES["train"])
        training_sets.build(self.root / "training")
        write_blank_bert(self.root / "blank", training_sets.WORDS, seed=0, layers=1, width=64, max_length=32)
        self._models()
        self.scored(self.root / "results")

    def _models(self) -> None:
        torch.manual_seed(0)
        tokenizer = tokenizer_of("bytes")
        tokenizer.save_pretrained(self.root / "qa")
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        config = transformers.BertConfig(vocab_size=len(tokenizer), **sizes)
        transformers.BertForQuestionAnswering(config).save_pretrained(self.root / "qa")
        (self.root / "classifier").mkdir()
        words = save_tokenizer(self.root / "classifier")
        config = transformers.BertConfig(vocab_size=words, id2label=dict(enumerate(LABELS)), **sizes)
        transformers.BertForSequenceClassification(config).save_pretrained(self.root / "classifier")

    def _predictions(self, rows: int) -> None:
        lines = [json.dumps({"source_index": row, "prediction": LABELS[row % 3]}) for row in range(rows)]
        (self.root / "predictions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def filtered(self, out: Path, *more: str, **options: Any) -> Path:
        spec = spec_of("filter.tau=0.7", "filter.n=100", *more)
        source, features = self.root / "source", self.root / "features.npy"
        return build_aflite(spec, out, source=source, features=features, **options).folder

    def scored(self, out: Path) -> None:
        probes = open_probe_set(str(self.root / "unqover-few"), config="qa")
        evaluate(resolve_model(str(self.root / "qa")), probes, Options(), engine=CPU, out=out)

    def classified(self, out: Path) -> None:
        how: Any = {"engine": CPU, "out": out, "splits": ["train"]}
        evaluate_classifier(
            str(self.root / "classifier"), str(self.root / "out/snli-aflite"), ClassifierOptions(), **how
        )

    def differing(self, out: Path) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # what a command says is no file of its own
            difficulty(
                [self.root / "predictions.jsonl"], str(self.root / "out/snli-aflite"), "train", out=out / "numbers.json"
            )

    def trained(self, out: Path) -> None:
        data = training_subset(find_built(str(self.root / "training/snli-aflite")), "full")
        values = {**training_sets.TINY, "epochs": 2, "model": str(self.root / "blank")}
        settings = TransformerSettings(**values)
        train_classifier(data, out, settings=settings, seed=0, machine=Machine(device="cpu", workers=0))

    def commands(self) -> dict[str, Callable[[Path], Any]]:
        results = next((self.root / "results").glob("*/*"))
        lists = read_toml(self.lists)
        return {
            "build unqover": lambda out: build_unqover(lists, out),
            "build unqover --overwrite": lambda out: build_unqover(lists, out, version="2.0.0", overwrite=True),
            "build aflite": self.filtered,
            "refilter": lambda out: refilter(self.root / "out/snli-aflite", out, version="1.1.0", n=200),
            "eval probe set": self.scored,
            "eval classifier": self.classified,
            "train": self.trained,
            "report": lambda out: write_report([results, self.root / "unqover-few"], out / "report.html"),
            "export-scores": lambda out: build_score_set(results, out),
            "difficulty --out": self.differing,
        }


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--full-disks", type=int, default=3)
    args = parser.parse_args()
    store.ROWS_PER_SHARD = 60
    with tempfile.TemporaryDirectory() as name:
        tempfile.tempdir = name  # of which a push must leave nothing
        kit = Kit(Path(name) / "kit")
        kit.root.mkdir()
        done = forked(kit.make)
        if done.code:
            sys.exit(done.said)
        commands: dict[str, Callable[[], Loop | PushLoop]] = {
            command: functools.partial(Loop, command, run, Path(name)) for command, run in kit.commands().items()
        }
        commands["push"] = lambda: PushLoop(kit.root / "unqover-few")
        for command, looped in commands.items():
            if args.only is None or command in args.only:
                loop = looped()
                faults = loop.kills(args.moments) + loop.full_disk(args.full_disks)
                facts = {"command": command, "changes": loop.changes, "moments": loop.moments, "faults": faults}
                print(json.dumps(facts), flush=True)


class Loop:
    """One command."""

    def __init__(self, command: str, run: Callable[[Path], Any], root: Path) -> None:
        self.run, self.out, self.moments = run, root / "made", 0
        self.before = root / "before" if "--overwrite" in command else None
        if self.before and not self.before.exists():
            forked(lambda: build_unqover(read_toml(root / "kit/few.toml"), root / "before"))
        self._empty()
        count = root / "count"
        done = forked(lambda: counted(self.out, lambda: self.run(self.out), count))
        if done.code:
            raise SystemExit(f"{command}: {done.said}")
        self.changes, self.whole, self.seconds = int(count.read_text()), content(self.out), done.seconds
        self.old = content(self.before) if self.before else {}

    def kills(self, moments: int) -> list[str]:
        """Kill at so many moments and give what was wrong."""
        faults = []
        changes = np.unique(np.linspace(1, self.changes, -(-moments // 2)).round().astype(int)).tolist()
        for change in changes:
            self._empty()
            killed = forked(lambda at=change: counted(self.out, lambda: self.run(self.out), None, at))
            faults += self._after(f"change {change} of {self.changes}", killed)
        for share in np.linspace(0.05, 0.98, moments - len(changes)):
            self._empty()
            killed = forked(lambda: self.run(self.out), after=float(share) * self.seconds)
            faults += self._after(f"after {share:.0%}", killed)
        return faults

    def full_disk(self, sizes: int) -> list[str]:
        """Let no file grow beyond some sizes, and give what was wrong."""
        faults = []
        largest = max(len(data) for data in self.whole.values() if isinstance(data, bytes))
        for size in (largest // 2, largest - 1, 0)[:sizes]:
            self._empty()
            full = forked(lambda size=size: limited(size, lambda: self.run(self.out)))
            said = full.said.strip()
            if full.code != 2 or "no room is left for" not in said or str(self.out) not in said or "\n" in said:
                faults.append(f"{size} bytes: code {full.code}, {said[-600:]}")
            faults += [f"{size} bytes: {name} was left" for name in left(self.out, goes_on=True)]
            faults += self._after(f"{size} bytes", full)
        return faults

    def _empty(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        if self.before:
            shutil.copytree(self.before, self.out)
        else:
            self.out.mkdir()

    def _after(self, when: str, killed: Done) -> list[str]:
        """What is there is whole; run again, and it is all there, the same, and nothing else."""
        self.moments += 1
        faults, states = [], (self.whole, self.old)
        if killed.code not in (0, 2, -signal.SIGKILL):
            faults.append(f"{when}: {killed.said[-600:]}")
        now = content(self.out)
        for name in now:
            if name.endswith(MARKERS) and not any(stands_for(name, of) == stands_for(name, now) for of in states):
                faults.append(f"{when}: {name} is there and what it stands for is not whole")
        again = forked(lambda: self.run(self.out))
        if again.code and not (now == self.whole and "exists already" in again.said):  # export-scores: it was done
            faults.append(f"{when}: run again: {again.said[-600:]}")
        if (now := content(self.out)) != self.whole:
            different = sorted(name for name in now.keys() | self.whole.keys() if now.get(name) != self.whole.get(name))
            faults.append(f"{when}: differs in {', '.join(different)}")
        return faults + [f"{when}: {name} is left" for name in left(self.out)]


def stands_for(marker: str, files: dict[str, Any]) -> dict[str, Any]:
    """Files that are whole if a marker is there: of its result, or of its folder."""
    beside = marker.removesuffix("json") if marker.endswith("exact.json") else marker.rpartition("/")[0]
    return {name: data for name, data in files.items() if name.startswith(beside)}


def content(folder: Path) -> dict[str, Any]:
    """Bytes of every file that is not hidden, results without their times."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part.startswith(".") for part in name.split("/")):
            found[name] = path.read_bytes()
            if name.endswith(".exact.json"):
                result = json.loads(found[name])
                found[name] = {key: value for key, value in result.items() if key not in TIMES}
    return found


def left(folder: Path, *, goes_on: bool = False) -> list[str]:
    """Hidden files and folders but the work folder, and but what a run that did not end goes on from."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob(".*")]
    return [name for name in names if name != ".work" and not (goes_on and name.endswith(".partial"))]


def counted(folder: Path, run: Callable[[], Any], count: Path | None, fatal: int | None = None) -> None:
    """Count the changes below a folder while `run` goes; kill this process right before one of them."""
    seen = {"changes": 0}

    def changing(event: str, args: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            return
        if str(folder) in str(args[0]):
            seen["changes"] += 1
            if seen["changes"] == fatal:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(changing)
    run()
    if count:
        total = seen["changes"]
        count.write_text(str(total))


if __name__ == "__main__":
    main()
