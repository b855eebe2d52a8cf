"""What a plan of tables says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.errors import BuildError
from builders.names import is_file_name
from builders.tables import from_table
from evaluation.classifiers.ood import list_sets
from evaluation.errors import EvaluationError
from evaluation.models import check_choice
from unqover_data.files import FileError, read_bytes, toml_of

PLANS_DIR = Path(__file__).parent
IN_DISTRIBUTION, OUT_OF_DISTRIBUTION = "in-distribution", "out-of-distribution"
KINDS = (IN_DISTRIBUTION, OUT_OF_DISTRIBUTION)


@dataclass(frozen=True)
class SetPlan:
    """A filtered set.

    Attributes
    ----------
    head : str
        What tables call it: the features that it was filtered on.
    folder : str, optional
        A built folder.
    build : str, optional
        Instead: the spec that it is built from, where it is not there yet.
    values : tuple of str
        ``KEY=VALUE`` for the spec.
    features : str, optional
        File of the features of its kept and removed rows; that of the build by default.
    """

    head: str
    folder: str | None = None
    build: str | None = None
    values: tuple[str, ...] = ()
    features: str | None = None


@dataclass(frozen=True)
class ModelPlan:
    """A classifier.

    Attributes
    ----------
    head : str
        What tables call it.
    settings : mapping
        Of `TransformerSettings` or `ImageSettings`; the paper's where not said.
    like : str, optional
        Another model of the plan whose settings it has, for one that reads less.
    inputs : tuple of str
        Input columns that it reads; empty for all.
    blank : bool
        Whether it is a small BERT that starts from random weights, so that no model need be fetched.
    words : str, optional
        Instead of all that: the column whose words decide, by their association with the labels.
    annotators : str, optional
        Instead of all that: the file in the folder of downloads (``--data``) with the labels of several annotators a
        row, of people, whose accuracy is that of `evaluation.classifiers.humans`.
    """

    head: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    like: str | None = None
    inputs: tuple[str, ...] = ()
    blank: bool = False
    words: str | None = None
    annotators: str | None = None

    @property
    def trained(self) -> bool:
        """Whether it is a network, and not words or people."""
        return self.words is None and self.annotators is None


@dataclass(frozen=True)
class Measure:
    """A column of a table out of distribution.

    Attributes
    ----------
    head : str
        Its head.
    on : str
        A set out of distribution, such as ``hans``, or a set of the plan.
    path : tuple of str
        Where the number stands, a share or a table that has one as ``value``: in the ``splits`` of a result on a set of
        the plan (``validation``, ``accuracy``, ``kept``), in the ``report`` of one on a set out of distribution
        (``groups``, ``heuristic``, ``subsequence``, ``accuracy``).
    split : str, optional
        Split of a set out of distribution that has several.
    """

    head: str
    on: str
    path: tuple[str, ...]
    split: str | None = None


@dataclass(frozen=True)
class Tuning:
    """Further training on a set out of distribution before it is scored.

    Attributes
    ----------
    head : str
        What the row adds to its name.
    on : str
        The set.
    where : mapping of str to str
        Which of its training rows.
    """

    head: str
    on: str
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TablePlan:
    """A table.

    Attributes
    ----------
    number : str
        The paper's.
    title : str
        What it shows.
    kind : str
        ``in-distribution``: a row a model; trained and scored on all rows, on a random subset and on the kept rows of
        each set. ``out-of-distribution``: a row a training set (and model and tuning), a column a measure.
    sets : tuple of str
        Sets of the plan, of one source; all rows and random rows are the first's.
    models : tuple of str
        Models of the plan.
    split : str
        Split that is scored in distribution.
    single_model : bool
        Whether rows kept by a single model at once are compared, too.
    columns : tuple of Measure
        Out of distribution.
    tunings : tuple of Tuning
        Out of distribution: each row also after these.
    note : str, optional
        A line below the table.
    """

    number: str
    title: str
    kind: str
    sets: tuple[str, ...]
    models: tuple[str, ...]
    split: str = "validation"
    single_model: bool = False
    columns: tuple[Measure, ...] = ()
    tunings: tuple[Tuning, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class Plan:
    """Tables, and what they need.

    Attributes
    ----------
    title : str
        Title of the page.
    note : str
        What the reader must know first: of a small plan, that it is small.
    seeds : tuple of int
        Every model is trained with each.
    sets, models : mapping
        By the names that tables use.
    tables : tuple of TablePlan
        In order.

    Raises
    ------
    EvaluationError
        If they do not go together.
    """

    title: str
    note: str
    seeds: tuple[int, ...]
    sets: Mapping[str, SetPlan]
    models: Mapping[str, ModelPlan]
    tables: tuple[TablePlan, ...]

    def __post_init__(self) -> None:
        """Refuse what could not be run, before hours go into it."""
        for fault in _faults(self):
            raise EvaluationError(f"plan {self.title!r}: {fault}")

    def settings(self, model: str) -> Mapping[str, Any]:
        """Give the training settings of a model."""
        plan = self.models[model]
        return {**(self.models[plan.like].settings if plan.like else {}), **plan.settings}

    def blank(self, model: str) -> bool:
        """Whether a model starts from random weights."""
        plan = self.models[model]
        return self.models[plan.like].blank if plan.like else plan.blank


def list_plans() -> list[str]:
    """Names of the plans that come with the tool."""
    return sorted(path.stem for path in PLANS_DIR.glob("*.toml"))


def load_plan(name: str) -> Plan:
    """Read a plan.

    Parameters
    ----------
    name : str
        One of `list_plans`, or a path that ends in ``.toml``.

    Raises
    ------
    EvaluationError
        If there is no such plan, or it does not go together.
    """
    path = Path(name) if name.endswith(".toml") else PLANS_DIR / f"{check_choice('plan', name, list_plans())}.toml"
    try:
        return from_table(Plan, toml_of(read_bytes(path)), path.name)
    except OSError as error:
        raise EvaluationError(f"plan {name} cannot be read: {error.strerror}") from error
    except FileError as error:
        raise EvaluationError(f"{path.name} {error}") from error
    except BuildError as error:
        raise EvaluationError(str(error)) from error


def _faults(plan: Plan) -> Iterator[str]:
    """What is wrong with a plan, in words; the first is enough."""
    seeds = plan.seeds
    if not seeds or not 0 <= min(seeds) <= max(seeds) < 2**32 or len(set(seeds)) < len(seeds):
        yield f"seeds must be one or more numbers from 0 to 2**32 - 1, each once, not {list(seeds)}"
    if odd := [name for name in (*plan.sets, *plan.models) if not is_file_name(name)]:
        yield f"names of sets and models become folders, and {odd[0]!r} cannot"
    for name, one in plan.sets.items():
        if (one.folder is None) == (one.build is None):
            yield f"set {name} needs either a folder or a spec to build"
        if one.values and one.build is None:
            yield f"set {name} has values, but no spec to build with them"
    for name, model in plan.models.items():
        if model.like is not None and model.like not in plan.models:
            yield f"model {name} is like {model.like!r}, which is no model of the plan"
        if not model.trained and (model.settings or model.like or model.inputs or model.blank):
            yield f"model {name} is words or people and is not trained: leave out all but head and that"
        if model.annotators is not None and not all(map(is_file_name, model.annotators.split("/"))):
            yield f"model {name}: annotators must be a file in the folder of downloads, not {model.annotators!r}"
        if model.words and model.annotators:
            yield f"model {name} is either words or people (annotators), not both"
    for table in plan.tables:
        yield from _faults_of_table(plan, table)


def _faults_of_table(plan: Plan, table: TablePlan) -> Iterator[str]:
    where = f"table {table.number}"
    if table.kind not in KINDS:
        yield f"{where}: kind must be one of {', '.join(KINDS)}, not {table.kind!r}"
    for what, names, known in (("set", table.sets, plan.sets), ("model", table.models, plan.models)):
        if not names:
            yield f"{where} needs a {what}"
        for name in names:
            if name not in known:
                yield f"{where}: there is no {what} {name!r} in the plan (there are {', '.join(known)})"
    if (table.kind == OUT_OF_DISTRIBUTION) != bool(table.columns) or (table.tunings and not table.columns):
        yield f"{where}: columns and tunings are those of a table out of distribution, which needs columns"
    if table.columns and (without := [name for name in table.models if not plan.models[name].trained]):
        yield f"{where}: model {without[0]} is words or people and is scored in distribution only"
    for on in (*(one.on for one in table.columns), *(one.on for one in table.tunings)):
        if on not in {*plan.sets, *list_sets()}:
            yield f"{where}: {on!r} is neither a set of the plan nor one of {', '.join(list_sets())}"
