"""Makes the tables of a plan: trains and scores what is not there yet, and lays the numbers out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builders.aflite import Machine
from builders.atomic import write_text
from builders.errors import BuildError, HubError
from evaluation import store
from evaluation.classifiers.bench import Bench, Source
from evaluation.classifiers.plans import IN_DISTRIBUTION, Plan, TablePlan
from evaluation.classifiers.plans.spec import Measure, Tuning
from evaluation.classifiers.subsets import SINGLE_MODEL
from evaluation.classifiers.tables import Table, less, markdown
from evaluation.errors import EvaluationError
from evaluation.models import check_choice

TABLES = "tables.md", "tables.json"
_HEADS = {"full": "all rows", "random": "random rows", SINGLE_MODEL: "one model, once"}
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reproduced:
    """The tables, and which of them could not be made.

    Attributes
    ----------
    text : str
        Markdown, with the reasons in place of tables that are missing.
    missing : tuple of str
        Titles of those.
    """

    text: str
    missing: tuple[str, ...]


def reproduce(
    plan: Plan,
    out: Path,
    *,
    tables: Sequence[str] | None = None,
    machine: Machine | None = None,
    data: Path | None = None,
    limit: int | None = None,
) -> Reproduced:
    """Make the tables of a plan; what is there already is not made again.

    Parameters
    ----------
    plan : Plan
        What is wanted.
    out : Path
        Gets ``tables.md`` and ``tables.json`` (with the value of every seed), and all that they come from.
    tables : sequence of str, optional
        Numbers of the tables; all by default.
    machine, data, limit
        As for `Bench`.

    Returns
    -------
    Reproduced
        The tables as Markdown. One whose sets or models cannot be had stands there with the reason.

    Raises
    ------
    EvaluationError
        If a table is not in the plan.
    """
    numbers = list(dict.fromkeys(table.number for table in plan.tables))
    for number in tables or ():
        check_choice("table", number, numbers)
    bench = Bench(plan, out, machine=machine or Machine(), data=data, limit=limit)
    pages = [f"## {plan.title}", plan.note, _seeds_text(plan, limit)]
    stored, missing = [], []
    for table in plan.tables:
        if tables and table.number not in tables:
            continue
        title = f"Table {table.number}. {table.title}"
        _logger.info("%s", title)
        try:
            made = replace(_table(bench, table), title=title)
        except (BuildError, EvaluationError, HubError) as error:
            missing.append(title)
            pages.append(f"### {title}\n\nNot made: {' '.join(str(error).split())}")
            continue
        pages.append(markdown(made))
        stored.append(made.to_json())
    text = "\n\n".join(pages) + "\n"
    write_text(out / TABLES[0], text)
    store.write_json(out / TABLES[1], {"plan": plan.title, "seeds": plan.seeds, "limit": limit, "tables": stored})
    return Reproduced(text, tuple(missing))


def _seeds_text(plan: Plan, limit: int | None) -> str:
    several = f"mean ± standard deviation over {len(plan.seeds)} seeds" if len(plan.seeds) > 1 else "one seed"
    most = f" At most {limit:,} rows were used for training and for scoring, so these are first looks." if limit else ""
    return f"Accuracy in percent, {several}.{most}"


def _table(bench: Bench, table: TablePlan) -> Table:
    sources = list(_sources(bench.plan, table))
    make = _in_distribution if table.kind == IN_DISTRIBUTION else _out_of_distribution
    return make(bench, table, sources)


def _sources(plan: Plan, table: TablePlan) -> Iterator[Source]:
    first = table.sets[0]
    for subset in ("full", "random", *([SINGLE_MODEL] if table.single_model else [])):
        yield Source(_HEADS[subset], first, subset)
    for key in table.sets:
        yield Source(plan.sets[key].head, key, "filtered")


def _in_distribution(bench: Bench, table: TablePlan, sources: list[Source]) -> Table:
    filtered = [place for place, source in enumerate(sources) if source.subset == "filtered"]
    heads = [source.head for source in sources] + [f"drop, {sources[place].head}" for place in filtered]
    rows: list[tuple[str, tuple[tuple[float, ...] | int, ...]]] = []
    for model in table.models:
        cells = [bench.accuracies(source, model, table.split) for source in sources]
        drops = [less(cells[0], cells[place]) for place in filtered]
        rows.append((bench.plan.models[model].head, (*cells, *drops)))
    sizes = [len(bench.training_rows(source.key, source.subset, 0).rows) for source in sources]
    rows.append(("rows to train on", (*sizes, *[()] * len(filtered))))
    notes = ["Each column is trained on and scored on rows of its own kind; drop is all rows less that column."]
    for people in (plan for plan in map(bench.plan.models.__getitem__, table.models) if plan.annotators):
        file = bench.labels_of_people(str(people.annotators))
        missing = "" if file.is_file() else f", and {file} is not there: pass the folder that has it as --data"
        notes.append(f"{people.head}: one annotator at a time against the gold label, of {file.name}{missing}.")
    return Table(table.title, tuple(heads), tuple(rows), (*notes, *([table.note] if table.note else [])))


def _out_of_distribution(bench: Bench, table: TablePlan, sources: list[Source]) -> Table:
    rows = []
    for model in table.models:
        for source in sources:
            of = f"{bench.plan.models[model].head}, " if len(table.models) > 1 else ""
            for tuning in (None, *table.tunings):
                cells = [_run(bench, source, model, tuning, seed, table.columns) for seed in bench.plan.seeds]
                name = f"{of}{source.head}{f' {tuning.head}' if tuning else ''}"
                rows.append((name, tuple(zip(*cells, strict=True))))
    heads = tuple(column.head for column in table.columns)
    first = "Each row is trained on these rows, each column is scored on others."
    return Table(table.title, heads, tuple(rows), (first, *([table.note] if table.note else [])))


def _run(
    bench: Bench, source: Source, model: str, tuning: Tuning | None, seed: int, columns: Sequence[Measure]
) -> list[float]:
    """Give the numbers of one training run in every column."""
    checkpoint = bench.checkpoint(source, model, seed)
    if tuning is not None:
        checkpoint = bench.tuned(checkpoint, tuning, model, seed)
    return [bench.measure(checkpoint, column) for column in columns]
