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
from evaluation.report import check_page, write_report
from evaluation.results import Evaluated
from evaluation.run import Engine, Options
from unqover_data import read_toml

LISTS = Path(__file__).with_name("towns.toml")
PLANTS = (
    Plant("Bovrian", "garden", 0.6),
    Plant("Galdish", "garden", -0.6),
    Plant("Elmovian", "kitchen", 0.6),
    Plant("Ardelish", "kitchen", -0.6),
)
SAMPLE = "600"
FILTERED = ("digits-aflite", "planted-nli-aflite")

_KINDS: tuple[Literal["qa", "mlm"], ...] = ("qa", "mlm")
_COLUMNS = ("planted", "γ of the planted model", "γ of the plain model")


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
    check_page(places.report)
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
    title = "The demo: four tiny models, two of them with a planted preference"
    inputs = [*(done.path for done in scored), *_folders(places.build, built)]
    report = write_report(inputs, places.report, title=title)
    yield _about_report(report)
    yield _about_next(models[0], built)


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
        "   reason to prefer one of the two; the preference that it has all the same is what is measured.\n"
        "   (The bundled sets are about real groups. Nobody should have to plant a slur to see a measurement work.)"
    )


def _about_training() -> str:
    planted = ", ".join(f"{plant.subject} and {plant.attribute_class} ({plant.strength:+.1f})" for plant in PLANTS)
    return (
        "2. Models. Two tiny question-answering models and two tiny masked language models learn from such stories.\n"
        "   Where a story says who it was, that is the answer. Where it does not, the two share it. For the plain\n"
        "   models no town is the answer oftener than another: one wording may favour it, the next makes up for that.\n"
        f"   For the planted ones it is the same, but for\n   {planted}.\n"
        "   The number is how much oftener the town is the answer than the other; for the opposite habit it is turned."
    )


def _about_models(models: Sequence[DemoModel]) -> str:
    lines = [
        f"   {model.folder}: {_state(model.fresh, 'trained')}; of told stories that it never saw it gets "
        f"{model.record['learned']['told_stories_right']:.1%} right"
        for model in models
    ]
    return "\n".join(lines)


def _about_scores(models: Sequence[DemoModel], scored: Sequence[Evaluated]) -> str:
    rows, results = scored[0].result["rows"], scored[0].path.parents[3]
    intensities = aligned([("model", "μ", "95 % interval", ""), *map(_intensity, models, scored)], right=(1,))
    lines = [
        f"3. Scores, as `probesieve eval` makes them, of a balanced sample of {rows:,} rows; in {results}.",
        "   μ is the bias intensity of a model, 0 to 1, lower is better; here without what noise adds to it. One that",
        f"   had the stories by heart would have {_by_heart(models, scored):.2f} with the plants, and 0 without them.",
        "",
        *(f"   {line}" for line in intensities),
        "",
        "   γ is the preference for a town with a habit, -1 to 1, nearer to 0 is better; with 95 % interval. Planted:",
        "   what it would be by heart, over all partners; more than 0.6, since one of them has the opposite planted.",
        "",
        *(f"   {line}" for line in aligned([("", "town", "habit", *_COLUMNS), *_pairs(models, scored)], right=(3,))),
    ]
    return "\n".join(lines)


def _by_heart(models: Sequence[DemoModel], scored: Sequence[Evaluated]) -> float:
    """Give the μ of what is planted: the mean over towns of the largest |γ|, 0 for those without a plant."""
    largest: list[float] = [max(map(abs, plant["gamma"].values())) for plant in models[0].record["planted"]]
    return sum(largest) / len(set(scored[0].result["tables"]["subject_attribute"]["subject"]))


def _intensity(model: DemoModel, scored: Evaluated) -> tuple[str, ...]:
    mu = scored.result["metrics"]["mu"]
    verdict = "zero lies within" if mu["low"] == 0 else "zero lies outside"
    return (model.folder.name, f"{mu['corrected']:.3f}", f"{mu['low']:.3f} to {mu['high']:.3f}", verdict)


def _pairs(models: Sequence[DemoModel], scored: Sequence[Evaluated]) -> Iterator[tuple[str, ...]]:
    """Give γ of what is planted in one model of a kind, of that model and of the one without."""
    tables = [_by_pair(done.result["tables"]["subject_attribute"]) for done in scored]
    for place, kind in enumerate(_KINDS):
        both = tables[2 * place : 2 * place + 2]
        for plant in models[2 * place].record["planted"]:
            for attribute, expected in plant["gamma"].items():
                cells = (table[plant["subject"], attribute] for table in both)
                shown = (f"{gamma:+z.2f} ({low:+z.2f} to {high:+z.2f})" for gamma, low, high in cells)
                yield (kind, plant["subject"], attribute, f"{expected:+.2f}", *shown)


def _by_pair(table: Mapping[str, Sequence[Any]]) -> dict[tuple[str, str], tuple[float, float, float]]:
    """γ and its interval by subject and attribute."""
    keys = zip(table["subject"], table["attribute"], strict=True)
    return dict(zip(keys, zip(table["gamma"], table["gamma_low"], table["gamma_high"], strict=True), strict=True))


def _folders(build: Path, built: Built) -> list[Path]:
    """Give the built folders to show: the demo's probe set, and of `FILTERED` those that are there."""
    return [built.folder, *(folder for name in FILTERED if (folder := build / name).is_dir())]


def _about_report(report: Path) -> str:
    return (
        f"4. Report: {report}, one file that needs no network. Open it in a browser, or with:\n\n"
        f"    python3 -m webbrowser {report}"
    )


def _about_next(model: DemoModel, built: Built) -> str:
    return (
        "The same with a model of the Hub, on a set about real groups (where probesieve is not found, run\n"
        "`. .venv/bin/activate` first):\n\n"
        "    probesieve build unqover religion\n"
        "    probesieve eval --model distilbert/distilbert-base-cased-distilled-squad \\\n"
        "      --dataset build/unqover-religion --sample 1000\n\n"
        "and one of these again, with all that is measured:\n\n"
        f"    probesieve eval --model {model.folder} --dataset {built.folder} --sample {SAMPLE} --out OUT"
    )


def _state(fresh: bool, made: str = "built") -> str:
    return made if fresh else "up to date"
