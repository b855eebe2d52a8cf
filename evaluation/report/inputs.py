"""What a report is made of: the results and the built folders at the paths that were given; reads only the disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.errors import BuildError
from builders.folder import MANIFEST
from evaluation.built_sets import BuiltSet, find_built
from evaluation.errors import EvaluationError
from evaluation.probe_sets import open_probe_set
from evaluation.scores import ScoredRows
from evaluation.stored import NoResultError, read_stored


@dataclass(frozen=True)
class Model:
    """A model as it was scored: the same checkpoint under another protocol or prefix is another.

    Attributes
    ----------
    name : str
        As the user gave it to ``probesieve eval``.
    sha, kind : str
        As in the result.
    how : str
        Whatever else decides its scores, as JSON.
    parameters : int or None
        Their number; None where the result does not say.
    """

    name: str
    sha: str
    kind: str
    how: str
    parameters: int | None = field(default=None, compare=False)

    @property
    def short(self) -> str:
        """The name without its owner or folders."""
        return Path(self.name).name or self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Whatever else decides its scores."""
        return dict(json.loads(self.how))


@dataclass(frozen=True)
class Result:
    """A stored result on one set, and the model and the set's ``NAME@VERSION`` that it is of."""

    path: Path
    content: Mapping[str, Any]
    model: Model

    @property
    def dataset(self) -> str:
        """Name and version of the set."""
        facts = self.content["dataset"]
        return f"{facts['name']} {facts['version']}"

    @property
    def scores(self) -> Path:
        """The Parquet file with what was scored row by row."""
        return self.path.with_suffix(".parquet")

    @property
    def intensity(self) -> float:
        """Of a probe result, its corrected μ, or the plain one where noise cannot be told."""
        found = self.content["metrics"]["mu"]
        return float(found["value"] if found["corrected"] is None else found["corrected"])


def strongest(results: Sequence[Result]) -> int:
    """Give the place of the probe result with the largest μ, which a view shows first."""
    return max(range(len(results)), key=lambda place: results[place].intensity)


@dataclass(frozen=True)
class Inputs:
    """All that lies at the paths.

    Attributes
    ----------
    probes, classifiers : tuple of Result
        On probe sets, with ``metrics`` and ``tables``; of classifiers, with ``splits``.
    folders : tuple of BuiltSet
        Built dataset folders of every builder.
    bases : mapping of str to str
        Model and the model that it was fine-tuned from, by name, as the user gave them; empty for none.
    """

    probes: tuple[Result, ...]
    classifiers: tuple[Result, ...]
    folders: tuple[BuiltSet, ...]
    bases: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """Models of the probe results, by number of parameters as far as it is known, then by name."""
        seen = dict.fromkeys(result.model for result in self.probes)
        return tuple(sorted(seen, key=lambda m: (m.parameters is None, m.parameters or 0, m.short, m.kind, m.how)))

    @cached_property
    def labels(self) -> dict[Model, str]:
        """A name for each model that no other has: its short name, with as much more as sets it apart."""
        return _labels([*self.models, *dict.fromkeys(result.model for result in self.classifiers)])

    @cached_property
    def datasets(self) -> dict[str, list[Result]]:
        """Probe results by set, in the order of the sets' names and of `models`."""
        order = {model: place for place, model in enumerate(self.models)}
        results = sorted(self.probes, key=lambda result: (result.dataset, order[result.model]))
        return {
            name: [one for one in results if one.dataset == name] for name in dict.fromkeys(r.dataset for r in results)
        }

    def folder_of(self, result: Result) -> BuiltSet | None:
        """Give the built folder of a result's set: one that was given, where it was, or the Hub's cache; else None."""
        facts = result.content["dataset"]
        for built in self.folders:
            if built.is_of(result.content):
                return built
        source = Path(facts["source"]).expanduser()
        if not source.is_dir():
            source = _cached(facts["source"], facts["revision"])
        try:
            built = find_built(str(source))
        except (BuildError, EvaluationError):
            return None
        same_commit = source.name == facts["revision"]
        return built if same_commit or built.is_of(result.content) else None

    def rows_of(self, result: Result) -> ScoredRows | None:
        """Give a probe result's rows with their scores; None where the set is not on this disk (see `missing`)."""
        import pyarrow.parquet as pq

        built = self.folder_of(result)
        if built is None:
            return None
        rows = _probe_rows(str(built.folder), built.revision, result.content["dataset"]["config"])
        return ScoredRows.from_tables(rows, pq.read_table(result.scores), subset=True)

    def groups_of(self, result: Result) -> dict[str, str]:
        """Give the group (region, gender) of each subject; empty where the set has none or is not on this disk."""
        built = self.folder_of(result)
        return {} if built is None else _groups(str(built.folder), built.revision, result.content["dataset"]["config"])

    @staticmethod
    def missing(result: Result) -> str:
        """Say what to pass so that `rows_of` finds the set of a result."""
        facts = result.content["dataset"]
        return (
            f"The rows of {facts['name']} {facts['version']} are not at {facts['source']} as they were scored. "
            "Pass the dataset folder beside the results: probesieve report RESULTS FOLDER --out report.html"
        )


@lru_cache(maxsize=2)
def _probe_rows(folder: str, revision: str, config: str) -> pa.Table:
    """Read the rows once for the results that follow each other; `revision` tells a folder that was built anew."""
    return open_probe_set(folder, config=config).rows


def config_files(built: BuiltSet, config: str) -> list[Path]:
    """Return the files of a config of a probe set that a result names.

    Raises
    ------
    EvaluationError
        If the set has no such config.
    """
    configs = built.manifest["configs"]
    if config not in configs:
        raise EvaluationError(
            f"{built.folder} has no config {config!r}, which a result on it names: score the model again"
        )
    return built.files(configs[config]["test"]["files"])


@lru_cache(maxsize=8)
def _groups(folder: str, revision: str, config: str) -> dict[str, str]:
    import pyarrow.parquet as pq

    built = find_built(folder)
    groups: dict[str, str] = {}
    for file in config_files(built, config):
        for number in (1, 2):
            names = pq.read_table(file, columns=[f"subject{number}", f"group{number}"])
            pairs = names.group_by(names.column_names).aggregate([])
            groups |= {row[f"subject{number}"]: row[f"group{number}"] for row in pairs.to_pylist()}
    return {subject: groups[subject] for subject in sorted(groups) if groups[subject]}


def read_inputs(paths: Sequence[Path], *, bases: Iterable[str] = ()) -> Inputs:
    """Find the results and the built folders at some paths.

    Parameters
    ----------
    paths : sequence of Path
        Result JSON files, dataset folders, and folders that hold either, however deep; hidden folders are left out.
    bases : iterable of str
        ``TUNED=BASE``, by the names that the results or the report have; ``TUNED=`` for a model that has no base.

    Raises
    ------
    EvaluationError
        If there is nothing, a result is broken or without its Parquet, or two are of one model on one set.
    BuildError
        If a dataset folder is unfinished or its manifest was edited.
    """
    results: dict[Path, Result] = {}
    folders: dict[Path, BuiltSet] = {}
    for path in paths:
        if not path.exists():
            raise EvaluationError(f"there is nothing at {path}: pass result files, results folders or dataset folders")
        before = len(results) + len(folders)
        for found in _walk(path) if path.is_dir() else [path]:
            if found.name == MANIFEST:
                built = find_built(str(found.parent))
                folders[found.parent.resolve()] = built
            elif result := _read(found, strict=found == path or "@" in found.parent.name):
                results[found.resolve()] = result
        if path.is_dir() and len(results) + len(folders) == before and len(paths) == 1:
            raise EvaluationError(f"{path} holds no result and no dataset folder: score a model with probesieve eval")
    probes = tuple(result for result in results.values() if "metrics" in result.content)
    classifiers = tuple(result for result in results.values() if "splits" in result.content)
    _check_distinct(probes)
    return Inputs(probes, classifiers, tuple(folders.values()), _pairs(bases, probes))


def _walk(folder: Path) -> Iterable[Path]:
    """JSON files below a folder, of a built folder its manifest alone, in the order of their names."""
    if (folder / MANIFEST).is_file():
        yield folder / MANIFEST
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.suffix == ".json":
            yield path


def _read(path: Path, *, strict: bool) -> Result | None:
    """Read a result; another file is refused if it was named or lies where results do, else passed over."""
    try:
        content = read_stored(path)
    except NoResultError:
        if strict:
            raise
        return None
    return Result(path, content, _model(content))


def _model(content: Mapping[str, Any]) -> Model:
    facts = content["model"]
    apart = {"model", "kind", "dataset", "sample", "seed", "limit"}
    how = {key: value for key, value in content["settings"].items() if key not in apart and value}
    parameters = content.get("scorer", {}).get("parameters")
    return Model(facts["name"], facts["sha"], facts["kind"], json.dumps(how, sort_keys=True), parameters)


def _check_distinct(probes: Iterable[Result]) -> None:
    seen: dict[tuple[Model, str], Path] = {}
    for result in probes:
        other = seen.setdefault((result.model, result.dataset), result.path)
        if other != result.path:
            raise EvaluationError(f"{result.path} and {other} are of one model on {result.dataset}: pass one of them")


def _labels(models: Sequence[Model]) -> dict[Model, str]:
    def of(model: Model) -> list[str]:
        special = ", ".join(f"{k} {v}" for k, v in model.settings.items() if (k, v) not in _USUAL)
        shown = f" ({special})" if special else ""
        return [
            model.short,
            f"{model.short}{shown}",
            f"{model.name}{shown}",
            f"{model.name}{shown} {model.kind}",
            f"{model.name}{shown} {model.kind} {model.sha[:7]}",
            f"{model.name}{shown} {model.kind} {model.sha}",
        ]

    forms = {model: of(model) for model in models}
    labels: dict[Model, str] = {}
    for model, mine in forms.items():
        others = [form for other, form in forms.items() if other != model]
        labels[model] = next((f for level, f in enumerate(mine) if all(o[level] != f for o in others)), mine[-1])
    return labels


_USUAL = {("protocol", "exact"), ("dtype", "float32")}


def _pairs(bases: Iterable[str], probes: Sequence[Result]) -> dict[str, str]:
    known = {name for result in probes for name in (result.model.name, result.model.short)}
    pairs = {}
    for given in bases:
        tuned, equals, base = given.partition("=")
        names = (tuned, base) if base or not equals else (tuned,)
        if unknown := [name for name in names if name not in known]:
            have = ", ".join(sorted(known)) or "none"
            raise EvaluationError(
                f"--base {given!r} must be TUNED=BASE of scored models; {unknown[0]!r} is not among {have}"
            )
        pairs[tuned] = base
    return pairs


def _cached(repo_id: str, sha: str) -> Path:
    """Where the Hub's cache holds a data set at a commit; the path need not be there."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.file_download import repo_folder_name

    try:
        folder = repo_folder_name(repo_id=repo_id, repo_type="dataset")
    except HFValidationError:  # a path
        folder = "none"
    return Path(constants.HF_HUB_CACHE) / folder / "snapshots" / sha
