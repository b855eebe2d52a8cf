"""A folder in which the commands of the pages find what they name: sets, models, features, a file of predictions."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.main import get_command

from probesieve import cli
from tests.doc_pages import ROOT

QA, MASKED, CLASSIFIER = "ORG/QA-MODEL", "ORG/MASKED-LM", "ORG/NLI-MODEL"
SMALL = [
    "source.rows=900",
    "share=0.2",
    "encoder.dimension=16",
    "encoder.hidden=16",
    "encoder.epochs=1",
    "filter.n=300",
    "filter.m=8",
    "filter.t=100",
    "filter.k=60",
    "filter.tau=0.5",
]


class ParsedError(Exception):
    """A command line was accepted; nothing was run."""


def prepare(folder: Path) -> None:
    """Build what is slow or needs the Hub, in small: the planted set, a model of each kind, features, predictions."""
    from builders.aflite import build_aflite
    from builders.specs import load_spec
    from builders.unqover import build_unqover
    from unqover_data import load_lists

    build_unqover(load_lists("religion"), folder / "build")
    built = build_aflite(load_spec("planted-nli", SMALL), folder / "build")
    _models(folder)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 3_000)
    features = rng.normal(size=(3_000, 24)).astype(np.float32)
    features[:, 0] += 2 * labels * (rng.random(3_000) < 0.7)
    np.save(folder / "features.npy", features)
    np.save(folder / "labels.npy", labels)
    _predictions(built.folder, folder / "predictions.jsonl")


def _models(folder: Path) -> None:
    import pyarrow.parquet as pq
    import torch
    import transformers

    from builders.planted import LABELS
    from evaluation.classifiers.blank import write_blank_bert

    rows = pq.read_table(next((folder / "build/unqover-religion/mlm").glob("*.parquet")))
    columns = ("context_12", "context_21", "statement", "statement_negated", "subject1", "subject2")
    texts = [text for column in columns for text in rows[column].unique().to_pylist()]
    base = write_blank_bert(folder / "blank", texts, seed=0, width=64)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    names = {"num_labels": len(LABELS), "id2label": dict(enumerate(LABELS))}
    for name, kind, more in (
        (QA, "BertForQuestionAnswering", {}),
        (MASKED, "BertForMaskedLM", {}),
        (CLASSIFIER, "BertForSequenceClassification", names),
    ):
        torch.manual_seed(0)
        config = transformers.AutoConfig.from_pretrained(base, **more)
        getattr(transformers, kind)(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)


def _predictions(planted: Path, file: Path) -> None:
    import pyarrow.parquet as pq

    rows = [row for part in sorted(planted.glob("*/train-*.parquet")) for row in pq.read_table(part).to_pylist()]
    keys = ("premise", "hypothesis")
    lines = [json.dumps({key: row[key] for key in keys} | {"prediction": row["label"]}) for row in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command of ours in this process and give its exit code; patterns of file names are filled in."""
    filled = [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    try:
        _enter(filled, monkeypatch)
    except SystemExit as ended:
        return 0 if ended.code is None else int(ended.code)
    return 0


def accepts(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Give what the parser of a command of ours says against its words, None if it takes them; nothing is run."""

    def parse(commands: typer.Typer | Callable[..., Any], args: list[str] | None = None) -> None:
        if not isinstance(commands, typer.Typer):
            single = typer.Typer()
            single.command()(commands)
            commands = single
        _parse(get_command(commands), sys.argv[1:] if args is None else args)
        raise ParsedError

    with monkeypatch.context() as patch:
        patch.setattr(cli, "_run", parse)
        patch.setattr(typer, "run", parse)
        try:
            _enter(words, patch)
        except ParsedError:
            return None
        except typer.TyperException as error:
            return error.format_message()
    return "it is no command line of ours"


def _parse(command: Any, args: list[str]) -> None:
    context = command.make_context(command.name or "", list(args))
    if hasattr(command, "resolve_command"):
        _, below, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        _parse(below, rest)


def _enter(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name, *args = words
    if name == "probesieve":
        monkeypatch.setattr(sys, "argv", words)
        cli.main()
    elif name == "python" and args[:1] and args[0].startswith("scripts/"):
        monkeypatch.setattr(sys, "argv", args)
        runpy.run_path(str(ROOT / args[0]), run_name="__main__")
    else:
        pytest.fail(f"{' '.join(words)}: only probesieve and scripts are run; mark the block")
