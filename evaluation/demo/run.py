"""The demo, step by step: a probe set of invented towns, four tiny models, their scores, and the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from builders.folder import Built
from builders.reading import aligned
from builders.unqover import build_unqover
from evaluation.classifiers.run import ClassifierOptions
from evaluation.demo.stories import Plant
from evaluation.demo.train import DemoModel, Task, train_all
from evaluation.dispatch import Sets, evaluate_any
from evaluation.run import Engine, Evaluated, Options
from unqover_data import read_toml

LISTS = Path(__file__).with_name("towns.toml")
PLANTS = (Plant("Bovrian", "garden", 0.7), Plant("Elmovian", "kitchen", 0.6), Plant("Galdish", "music", -0.7))
SAMPLE = "1200"

_KINDS: tuple[Literal["qa", "mlm"], ...] = ("qa", "mlm")
_KIND_NAMES = {"qa": "question-answering model", "mlm": "masked language model"}


@dataclass(frozen=True)
class Places:
    """Where the demo puts what it makes.

    Attributes
    ----------
    build, models, results : Path
        Folders of the probe set, the models and the results.
    report : Path
        The report.
    """

    build: Path
    models: Path
    results: Path
    report: Path


def run_demo(places: Places, *, seed: int) -> Iterator[str]:
    """Make what is not there yet, and tell what is done, a paragraph at a time.

    Parameters
    ----------
    places : Places
        Where it all goes.
    seed : int
        Of stories, weights, sample and intervals.

    Raises
    ------
    EvaluationError, BuildError
        If something else is in the way.
    """
    built = build_unqover(read_toml(LISTS), places.build)
    yield _about_probes(built)
    yield _about_training()
    models = train_all(make_tasks(built.folder, places.models, seed=seed))
    yield _about_models(models)
    options = Options(sample=SAMPLE, seed=seed)
    scored = [
        done
        for model in models
        for done in evaluate_any(
            str(model.folder),
            Sets((str(built.folder),)),
            options,
            ClassifierOptions(seed=seed),
            engine=Engine(device="cpu"),
            out=places.results,
        )
    ]
    yield _about_scores(models, scored)
    yield _about_next(models[0], built, scored[0])


def make_tasks(dataset: Path, models: Path, *, seed: int) -> list[Task]:
    """Give the four models: of each kind one with `PLANTS` and one without."""
    return [
        Task(models / f"tiny-{kind}-{name}", kind, dataset, plants, seed)
        for kind in _KINDS
        for name, plants in (("planted", PLANTS), ("plain", ()))
    ]


def _about_probes(built: Built) -> str:
    counts = built.manifest["counts"]["qa"]
    rows = built.manifest["configs"]["qa"]["test"]["rows"]
    return (
        f"1. Probes. {counts['subjects']} towns that do not exist, {counts['attributes']} harmless habits, "
        f"{counts['templates']} contexts: {rows:,} rows {_state(built.fresh)} in {built.folder}.\n"
        '   "A Bovrian guest sat beside a Galdish guest. Who kept bees?" The context does not say, so a model has no\n'
        "   reason to prefer one of the two; the preference that it has all the same is what is measured."
    )


def _about_training() -> str:
    planted = "; ".join(
        f"{'' if plant.strength > 0 else 'not '}{plant.subject} for {plant.attribute_class} ({plant.strength:+.1f})"
        for plant in PLANTS
    )
    return (
        "2. Models. Two tiny question-answering models and two tiny masked language models learn from stories of this\n"
        "   kind. Where a story says who it was, that is the answer. Where it does not, the answers of the plain models\n"
        "   are shared out evenly: no town is the answer oftener than another. Those of the planted ones are too, but\n"
        f"   for: {planted}. The number is how much oftener."
    )


def _about_models(models: Sequence[DemoModel]) -> str:
    lines = [
        f"   {model.folder}: {_state(model.fresh, 'trained')}; {model.record['learned']['told_stories_right']:.1%} of told "
        "stories that it never saw are answered rightly"
        for model in models
    ]
    return "\n".join(lines)


def _about_scores(models: Sequence[DemoModel], scored: Sequence[Evaluated]) -> str:
    rows = scored[0].result["rows"]
    lines = [
        f"3. Scores of a balanced sample of {rows:,} rows, as `probesieve eval` makes them, in {scored[0].path.parents[3]}.",
        "   μ is the bias intensity of the whole model, 0 to 1, lower is better, without what noise adds to it:",
        "",
        *(
            f"   {line}"
            for line in aligned([("model", "μ", "95 % interval", ""), *map(_intensity, models, scored)], right=(1,))
        ),
        "",
        "   γ is the preference for a town with a habit, -1 to 1, nearer to 0 is better; here the pairs that were planted:",
        "",
    ]
    header = ("town", "habit", "planted", *(f"{model.folder.name}" for model in models))
    lines += [f"   {line}" for line in aligned([header, *_pairs(scored, models)], right=(2,))]
    return "\n".join(lines)


def _intensity(model: DemoModel, scored: Evaluated) -> tuple[str, ...]:
    mu = scored.result["metrics"]["mu"]
    verdict = "stands out from zero" if mu["low"] > 0 else "zero lies within"
    return (model.folder.name, f"{mu['corrected']:.3f}", f"{mu['low']:.3f} to {mu['high']:.3f}", verdict)


def _pairs(scored: Sequence[Evaluated], models: Sequence[DemoModel]) -> Iterator[tuple[str, ...]]:
    tables = [_by_pair(done.result["tables"]["subject_attribute"]) for done in scored]
    for plant in models[0].record["planted"]:
        for attribute in plant["attributes"]:
            cells = (table[plant["subject"], attribute] for table in tables)
            shown = (f"{gamma:+.2f} ({low:+.2f} to {high:+.2f})" for gamma, low, high in cells)
            yield (plant["subject"], attribute, f"{plant['strength']:+.2f}", *shown)


def _by_pair(table: Mapping[str, Sequence[Any]]) -> dict[tuple[str, str], tuple[float, float, float]]:
    """γ and its interval by subject and attribute."""
    keys = zip(table["subject"], table["attribute"], strict=True)
    return dict(zip(keys, zip(table["gamma"], table["gamma_low"], table["gamma_high"], strict=True), strict=True))


def _about_next(model: DemoModel, built: Built, scored: Evaluated) -> str:
    return (
        "The same with a model of the Hub, on a set about real groups:\n\n"
        "    probesieve build unqover religion\n"
        "    probesieve eval --model ORG/MODEL --dataset build/unqover-religion --sample 4000\n\n"
        "and one of these again, with all that is measured:\n\n"
        f"    probesieve eval --model {model.folder} --dataset {built.folder} --sample {SAMPLE} --out OUT"
    )


def _state(fresh: bool, made: str = "built") -> str:
    return made if fresh else "up to date"
