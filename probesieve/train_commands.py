"""The commands that train classifiers for comparison; each parses, makes one library call and prints the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probesieve.options import Progress, Workers
from probesieve.output import say


def train(
    data: Annotated[str, typer.Option(help="Filtered folder, ORG/NAME, or a set with training rows such as anli.")],
    subset: Annotated[str, typer.Option(help="full, filtered, removed, random or single-model.")] = "full",
    seed: Annotated[list[int] | None, typer.Option(help="Of weights, order and dropout; may be repeated.")] = None,
    model: Annotated[
        str | None, typer.Option(help="What to start from; RoBERTa-large or EfficientNet-B7 by default.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another training setting; repeatable.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(help="Input column that the model sees (hypothesis); repeatable, all by default."),
    ] = None,
    split: Annotated[str, typer.Option(help="Split to train on.")] = "train",
    limit: Annotated[int | None, typer.Option(help="Most rows to train on, drawn at random.")] = None,
    features: Annotated[
        Path | None, typer.Option(help="Features that the set was filtered on, for single-model.")
    ] = None,
    files: Annotated[Path | None, typer.Option(help="Files of a set such as anli; from the Hub by default.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Which rows of such a set: round=R1.")
    ] = None,
    score: Annotated[
        list[str] | None, typer.Option(metavar="SPLIT", help="Score on this split, mean over seeds; repeatable.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder that gets a folder a checkpoint.")] = Path("models"),
    results: Annotated[Path, typer.Option(help="Results folder, for --score.")] = Path("results"),
    device: Annotated[str | None, typer.Option(help="cuda where there is one, else cpu.")] = None,
    workers: Workers = 2,
    progress: Progress = True,
) -> None:
    """Train a classifier with the paper's settings on a subset of a filtered set.

    Example: probesieve train --data build/snli-aflite --subset filtered --seed 0 --seed 1 --score validation
    """
    from builders.aflite import Machine
    from builders.progress import switch_off
    from evaluation.classifiers.seeds import score_seeds
    from evaluation.classifiers.tables import markdown
    from evaluation.classifiers.train import TrainingRequest, train_seeds

    if not progress:
        switch_off()
    machine = Machine(device=device, workers=workers)
    request = TrainingRequest(
        data=data,
        subset=subset,
        split=split,
        features=features,
        files=files,
        where=tuple(where or ()),
        limit=limit,
        model=model,
        values=tuple(values or ()),
        inputs=tuple(inputs or ()),
        score=tuple(score or ()),
    )
    folders = []
    for trained in train_seeds(request, out, seeds=seed or [0], machine=machine):
        folders.append(trained.folder)
        say(f"{'Trained' if trained.fresh else 'Was there'}: {trained.folder}")
    if score:
        say(f"\n{markdown(score_seeds(folders, data, splits=score, machine=machine, out=results))}")


def tables(
    plan: Annotated[str, typer.Option(help="small, paper, or a path that ends in .toml.")] = "small",
    table: Annotated[list[str] | None, typer.Option(help="Number of a table; repeatable, all by default.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Files of the sets out of distribution; from the Hub by default.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Most rows to train on and to score, for a first look.")] = None,
    out: Annotated[Path, typer.Option(help="Gets the tables, and sets, models and results.")] = Path("tables"),
    device: Annotated[str | None, typer.Option(help="cuda where there is one, else cpu.")] = None,
    workers: Workers = 2,
    progress: Progress = True,
) -> None:
    """Lay out the tables of the AFLite paper, training and scoring what is not there yet.

    Exit code 1 if a table cannot be made.

    Example: probesieve tables --plan small
    """
    from builders.aflite import Machine
    from builders.progress import switch_off
    from evaluation.classifiers.plans import load_plan
    from evaluation.classifiers.reproduce import TABLES, reproduce

    if not progress:
        switch_off()
    machine = Machine(device=device, workers=workers)
    made = reproduce(load_plan(plan), out, tables=table, machine=machine, data=data, limit=limit)
    say(f"{made.text}\nStored: {out / TABLES[0]}")
    if made.missing:
        raise typer.Exit(1)
