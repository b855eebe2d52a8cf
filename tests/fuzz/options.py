"""Values of options, and whole commands."""

from __future__ import annotations

import contextlib
import io
import json
import signal
from pathlib import Path

from tests.builders.filtered_sets import NAMES
from tests.fuzz.built import filtered, probes
from tests.fuzz.damage import DEEP, NOT_NUMBERS, NUMBERS, TEXTS, Rng
from tests.fuzz.models import checkpoint
from tests.fuzz.rows import predictions
from tests.fuzz.target import Target

SETTINGS = (
    "filter.n",
    "filter.tau",
    "filter.c",
    "filter.k",
    "share",
    "seed",
    "name",
    "version",
    "encoder.kind",
    "encoder.learning_rate",
    "encoder.model",
    "source.kind",
    "source.inputs.premise",
    "source.filtered",
    "source.names",
    "source",
    "values_from",
    "x" * 99,
    "",
    ".",
    "a.b.c",
)


def _arguments(folder: Path) -> None:
    (folder / "arguments.json").write_text("[]")


def _set_value(rng: Rng, folder: Path) -> str:
    """Choose ``--set KEY=VALUE``."""
    values = [
        *TEXTS,
        *map(str, NUMBERS),
        *NOT_NUMBERS[True],
        *DEEP,
        "[]",
        "{}",
        "[1]",
        "['a', 'a']",
        '""',
        "a.b=1",
        "1 = 2",
    ]
    pick = [
        f"{SETTINGS[rng.integers(len(SETTINGS))]}={values[rng.integers(len(values))]}"
        for _ in range(rng.integers(1, 4))
    ]
    (folder / "arguments.json").write_text(json.dumps(pick))
    return f"--set {[text[:80] for text in pick]}"


def _use_set_values(folder: Path) -> None:
    from builders.reading import spec_text
    from builders.specs import load_spec

    spec_text(load_spec("snli", json.loads((folder / "arguments.json").read_text())))


def _label_map(rng: Rng, folder: Path) -> str:
    parts = [
        "0",
        "1",
        "2",
        "LABEL_0",
        "entailment",
        "neutral",
        "contradiction",
        "=",
        ",",
        "٣",
        "²",
        "9" * 5_000,
        *TEXTS,
    ]
    text = "".join(parts[rng.integers(len(parts))] for _ in range(rng.integers(1, 12)))
    classes = [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["a", "a"],
        [],
        {"0": "x", "1": 3},
        {"²": "x"},
        {"9" * 5_000: "x"},
        {"a": 1},
    ]
    given = classes[rng.integers(len(classes))]
    (folder / "arguments.json").write_text(json.dumps([text, given]))
    return f"--label-map {text[:200]!r} for {str(given)[:99]}"


def _use_label_map(folder: Path) -> None:
    from evaluation.classifiers.labels import match_labels

    text, classes = json.loads((folder / "arguments.json").read_text())
    match_labels(classes, NAMES, label_map=text)


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("eval", "--model", "{model}", "--dataset", "{probes}", "--sample", "4", "--out", "{out}"),
    ("eval", "--model", "{model}", "--dataset", "{probes}", "--seed", "1", "--batch-size", "4", "--out", "{out}"),
    (
        "eval",
        "--model",
        "{model}",
        "--dataset",
        "{probes}",
        "--context-prefix",
        "x",
        "--dtype",
        "float32",
        "--out",
        "{out}",
    ),
    ("eval", "--model", "{model}", "--dataset", "{probes}", "--config", "qa", "--workers", "1", "--out", "{out}"),
    ("eval", "--model", "{sorter}", "--dataset", "{filtered}", "--limit", "9", "--split", "train", "--out", "{out}"),
    ("eval", "--model", "{sorter}", "--dataset", "{filtered}", "--broken-share", "0", "--seed", "3", "--out", "{out}"),
    ("train", "--data", "{filtered}", "--model", "{sorter}", "--limit", "9", "--subset", "random", "--out", "{out}"),
    ("train", "--data", "{filtered}", "--seed", "9", "--inputs", "premise", "--set", "epochs=1", "--out", "{out}"),
    ("difficulty", "{folder}/p.jsonl", "--dataset", "{filtered}", "--split", "train", "--label-map", "0=neutral"),
    ("humans", "{folder}/p.jsonl", "--dataset", "{filtered}", "--split", "train", "--out", "{out}/x.json"),
    ("compare", "{folder}/p.jsonl", "--top", "3", "--base", "x"),
    ("export-scores", "{folder}", "--version", "1.0.0", "--out", "{out}"),
    ("report", "{filtered}", "--title", "x", "--base", "a=b", "--out", "{out}/x.html"),
    ("refilter", "{filtered}", "--n", "170", "--tau", "0.9", "--version", "1.1.0", "--out", "{out}"),
    ("build", "unqover", "religion", "--config", "mlm", "--version", "x", "--lists", "bundled", "--out", "{out}"),
    ("build", "aflite", "snli", "--source", "{folder}", "--filter-splits", "train", "--workers", "1", "--out", "{out}"),
    (
        "build",
        "aflite",
        "planted-nli",
        "--set",
        "source.rows=0",
        "--version",
        "1.0.0",
        "--device",
        "x",
        "--out",
        "{out}",
    ),
    ("show", "unqover-religion", "--row", "3", "--lists", "bundled"),
    ("tables", "--plan", "x.toml", "--limit", "1", "--table", "9", "--out", "{out}"),
    ("push", "{filtered}", "a", "--dry-run"),
    ("validate", "{folder}/p.jsonl"),
)


def _command(rng: Rng, folder: Path) -> str:
    args = list(COMMANDS[rng.integers(len(COMMANDS))])
    free = [i for i, arg in enumerate(args) if i and not arg.startswith("--") and args[i - 1] not in ("--out", "build")]
    wild = [
        *(text for text in TEXTS if "\0" not in text and text != "\ud800"),
        *(
            "-1",
            "0",
            "nan",
            "inf",
            "1e400",
            str(10**18),
            str(10**30),
            "9" * 5_000,
            "0x10",
            "1_000",
            "\u0663",
            "--",
            "/dev/null",
        ),
        *(
            "{folder}",
            "{model}",
            "{filtered}",
            "{probes}",
            "{sorter}",
            "a/b",
            "a" * 5_000 + "/b",
            "x.toml",
            "~nobody/x",
            "=1",
        ),
    ]
    for place in {free[rng.integers(len(free))] for _ in range(rng.integers(1, 3))}:
        args[place] = wild[rng.integers(len(wild))]
    (folder / "arguments.json").write_text(json.dumps(args))
    return " ".join(arg if len(arg) < 80 else f"{arg[:40]}...({len(arg)})" for arg in args)


def _for_commands(folder: Path) -> None:
    checkpoint(folder)
    predictions(folder)


def _run_command(folder: Path) -> None:
    """Run a command in this process; what it prints on stderr must be one line."""
    from probesieve.cli import _run, app

    names = {
        "folder": folder,
        "out": folder / "out",
        "model": folder / "qa",
        "sorter": folder / "classifier",
        "filtered": filtered(),
        "probes": probes(),
    }
    args = json.loads((folder / "arguments.json").read_text())
    for name, path in names.items():
        args = [arg.replace(f"{{{name}}}", str(path)) for arg in args]
    out, err = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            _run(app, args)
    except SystemExit as end:
        told = err.getvalue().removesuffix("\n")
        plain = all(map(str.isprintable, told.split("\n"))) if args[0] == "validate" else told.isprintable()
        if end.code not in (0, None) and not (end.code in (1, 2) and plain and told):
            raise AssertionError(f"exit {end.code} and on stderr {told[-2000:]!r}") from None
    finally:
        signal.signal(signal.SIGTERM, handler)


TARGETS = {
    "--set": Target(_arguments, _set_value, _use_set_values, 60),
    "--label-map": Target(_arguments, _label_map, _use_label_map, 60),
    "commands": Target(_for_commands, _command, _run_command, 30),
}
