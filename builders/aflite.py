"""Builds a filtered folder: source, warm-up sample, warm-up model, features of the rest, AFLite, folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from builders.disk import told_when_full
from builders.errors import BuildError
from builders.features.encoder import Recipe
from builders.features.esim import EsimRecipe, EsimSettings
from builders.features.ids import check_ids
from builders.features.images import ImageRecipe
from builders.features.store import StoredFeatures, compute_features, read_features, reordered
from builders.features.transformer import TransformerRecipe, TransformerSettings
from builders.filtered import CONFIGS, REMOVED, WARMUP, Outcome, draw_baseline, draw_order
from builders.filtered_folder import write_filtered
from builders.findings import Findings, Pool, compare_subsets, count_by, pick
from builders.folder import Built, check_outside, check_target, is_current, sha256
from builders.locks import claimed
from builders.names import check_names, check_set_name, check_version, inside
from builders.pictures import found
from builders.progress import counter
from builders.similarity import measure_similarity
from builders.sources import read_source
from builders.sources.rows import SourceRows
from builders.sources.spec import IMAGE, LABEL
from builders.specs import SetSpec
from builders.tables import to_table
from builders.workspace import Workspace

if TYPE_CHECKING:
    from aflite.results import FilterResult, PhaseRecord

_MOST_VALUES = 100
_LIBRARIES = {"transformer": "transformers", "esim": "torch", "timm": "timm"}


@dataclass(frozen=True)
class Machine:
    """Where a build runs; nothing of it changes what comes out, but for rounding.

    Attributes
    ----------
    device : str, optional
        ``cpu`` or ``cuda``; by default cuda where there is one.
    workers : int
        Processes that decode images.
    """

    device: str | None = None
    workers: int = 2

    @property
    def torch_device(self) -> str:
        """The device that it comes down to."""
        import torch

        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")


def build_aflite(
    spec: SetSpec,
    out: Path,
    *,
    source: Path | None = None,
    features: Path | None = None,
    work: Path | None = None,
    version: str | None = None,
    overwrite: bool = False,
    machine: Machine | None = None,
) -> Built:
    """Build ``OUT/NAME-aflite``; a folder that is there already, from the same inputs, is checked and kept.

    Parameters
    ----------
    spec : SetSpec
        What to build.
    out : Path
        Where the folder goes.
    source : Path, optional
        Local file or folder to read instead of the spec's source.
    features : Path, optional
        ``.npy`` or ``.safetensors`` with a row for each row of the filtered splits, or for each labelled one of them,
        instead of an encoder: the splits in the order in which the spec names them, each in its source's order. A file
        ``.ids.csv`` beside it is compared with the rows, see `builders.features.ids`. No warm-up sample is taken then.
    work : Path, optional
        What the stages make is kept here and used again; by default ``OUT/.work/NAME-aflite``.
    version : str, optional
        MAJOR.MINOR.PATCH; by default the spec's own.
    overwrite : bool
        Whether to replace a folder that was built from anything else.
    machine : Machine, optional
        Where it runs.

    Raises
    ------
    BuildError
        If the spec, the source or the features cannot be used, or a folder is in the way.
    HubError
        If a source or model cannot be had from the Hub.
    """
    spec = replace(spec, version=spec.version if version is None else version)
    check_version(spec.version)
    check_set_name(spec.folder_name)
    space = Workspace(work or inside(out, ".work", spec.folder_name))
    target = inside(out, spec.folder_name)
    for path in (target, space.root / "lock"):
        check_outside(path)
    with told_when_full(space.root), claimed(target), space.held():
        return _build(
            spec, target, space, source=source, features=features, overwrite=overwrite, machine=machine or Machine()
        )


def _build(
    spec: SetSpec,
    target: Path,
    space: Workspace,
    *,
    source: Path | None,
    features: Path | None,
    overwrite: bool,
    machine: Machine,
) -> Built:
    with space.timed("source"):
        rows = read_source(spec.source, work=space.root / "source", path=source)
    check_names({CONFIGS[0]: rows.splits})
    recipe = None if features else make_recipe(spec, rows, machine)
    share = spec.share if recipe else 0.0
    inputs = _inputs(spec, rows, share, recipe, features)
    facts = _facts(spec, rows, share, features, inputs)
    if not overwrite and is_current(target, facts):
        return found(target)
    check_target(target, overwrite=overwrite)
    _check_columns(spec, rows)
    pool = _pool(spec, rows, share)
    parameters = _parameters(spec, pool)
    stored = _features(space, rows, pool, recipe, inputs, features)
    with space.timed("filter"):
        result = _filter(space, parameters, pool, stored, inputs, machine)
    outcome = _outcome(spec, pool, result)
    columns = list(spec.source.inputs)
    with space.timed("report"):
        findings = Findings(
            phases=tuple(_record(phase) for phase in result.history),
            stop_reason=str(result.stop_reason),
            subsets=compare_subsets(spec.filter, spec.seed, pool, outcome, stored, device=machine.torch_device),
            breakdown=count_by(pool.rows, outcome, spec.breakdown),
            most=pick(pool.rows, outcome, columns, spec.seed, hardest=False),
            least=pick(pool.rows, outcome, columns, spec.seed, hardest=True),
            similarity=measure_similarity(pool, outcome, stored.features, spec.seed),
        )
    outcomes = {name: outcome.take(place) for name, place in pool.bounds.items()}
    for name in rows.splits.keys() - outcomes.keys():
        outcomes[name] = Outcome.untouched(len(rows.splits[name]))
    built = write_filtered(target, facts, rows.splits, outcomes, findings, space, overwrite=overwrite)
    space.log(built)
    return built


def _facts(
    spec: SetSpec,
    rows: SourceRows,
    share: float,
    features: Path | None,
    inputs: Mapping[str, Any],
) -> dict[str, Any]:
    """What the manifest and the card say that is known before the build."""
    ran = "no encoder" if features else spec.encoder_kind
    # Where the rows came from has its own place in the card, also when they did not come from the spec's source.
    unused = ("source.", "share", "encoder.") if features else ("source.",)
    return {
        "name": spec.folder_name,
        "version": spec.version,
        "inputs": inputs,
        "title": spec.title,
        "builder": "aflite",
        "description": spec.description,
        "license": spec.license,
        "language": spec.language,
        "tasks": list(spec.tasks),
        "tags": ["aflite", "adversarial-filtering", "probesieve"],
        "limits": list(spec.limits),
        "citation": spec.citation,
        "columns": list(spec.source.inputs),
        "breakdown": spec.breakdown,
        "spec": [[*entry] for entry in spec.values() if not entry[0].startswith(unused)],
        "source": {"origin": rows.origin, "revision": rows.revision, "unlabelled": dict(rows.unlabelled)},
        "encoder": {**({} if features else inputs["features"]), "kind": ran, "trained": share > 0},
        "seed": spec.seed,
    }


def _check_columns(spec: SetSpec, rows: SourceRows) -> None:
    """Before hours go into features that the filter or the card then has no use for."""
    splits = [rows.splits[name] for name in spec.source.filtered]
    there = splits[0].features.arrow_schema
    for name, column in (("filter.groups", spec.filter.groups), ("breakdown", spec.breakdown)):
        if not column:
            continue
        if column not in there.names:
            raise BuildError(
                f"{name}: there is no column {column!r} (there are {', '.join(there.names)}); --set {name}= for none"
            )
        if pa.types.is_nested(kind := there.field(column).type):
            raise BuildError(f"{name}: column {column!r} holds {kind}; name one that holds text or numbers")
    if spec.breakdown:
        values = len({value for split in splits for value in split.unique(spec.breakdown)})
        if values > _MOST_VALUES:
            raise BuildError(
                f"breakdown: column {spec.breakdown!r} has {values:,} values, more than the {_MOST_VALUES} that a card"
                " can count by; name another, or --set breakdown= for none"
            )


def make_recipe(spec: SetSpec, rows: SourceRows, machine: Machine) -> Recipe:
    """Give the recipe that a spec names."""
    columns = tuple(spec.source.inputs)
    names = tuple(next(iter(rows.splits.values())).features["label"].names)
    settings = spec.encoder
    if isinstance(settings, TransformerSettings):
        return TransformerRecipe(settings, inputs=columns, names=names, device=machine.device)
    if isinstance(settings, EsimSettings):
        return EsimRecipe(settings, inputs=columns, names=names, device=machine.device)
    return ImageRecipe(settings, inputs=columns, names=names, device=machine.device, workers=machine.workers)


def _inputs(
    spec: SetSpec, rows: SourceRows, share: float, recipe: Recipe | None, features: Path | None
) -> dict[str, Any]:
    """Everything that decides rows and scores, as JSON values."""
    asked = to_table(spec.source)
    read = {key: asked.get(key) for key in ("config", "inputs", "label", "names", "filtered")}
    library = _LIBRARIES[spec.encoder_kind]
    return {
        "source": {"revision": rows.revision, **read},
        "seed": spec.seed,
        "share": share,
        "features": {"sha256": sha256(features)}
        if features
        else {"kind": spec.encoder_kind, **(recipe.identity() if recipe else {})},
        "filter": to_table(spec.filter),
        "libraries": {name: metadata.version(name) for name in sorted({"torch", library})},
    }


def _pool(spec: SetSpec, rows: SourceRows, share: float) -> Pool:
    from datasets import concatenate_datasets

    splits = {name: rows.splits[name] for name in spec.source.filtered}
    together = concatenate_datasets(list(splits.values()))
    ends = np.cumsum([len(split) for split in splits.values()])
    bounds = {name: slice(int(end) - len(splits[name]), int(end)) for name, end in zip(splits, ends, strict=True)}
    labels = together.select_columns(["label"]).with_format("arrow")[:]["label"].to_numpy()
    n_rows = len(together)
    size = round(share * n_rows)
    if share and not 0 < size < n_rows - 1:
        raise BuildError(f"share = {share} of {n_rows} rows leaves no warm-up sample, or nothing else; change it")
    return Pool(together, labels.astype(np.int64), bounds, *draw_order(n_rows, size, spec.seed))


def _features(
    space: Workspace, rows: SourceRows, pool: Pool, recipe: Recipe | None, inputs: Mapping[str, Any], path: Path | None
) -> StoredFeatures:
    """Features of the rows that are not in the warm-up sample."""
    if recipe is None:
        with space.timed("features"):
            return _given(space, rows, pool, Path(str(path)))
    needed = {key: value for key, value in inputs.items() if key != "filter"}
    folder = None
    if pool.warm.size:
        folder = space.place("model", needed)
        with space.timed("warm-up"):
            _train(recipe, pool, folder, inputs["seed"], space)
    with space.timed("features"):
        stored = compute_features(
            recipe.load(folder),
            pool.rows.select(pool.rest),
            space.root / "features",
            inputs=needed,
            n_classes=len(pool.rows.features["label"].names),
        )
    if stored.reused:
        space.reused.add("features")
    return stored


def _given(space: Workspace, rows: SourceRows, pool: Pool, path: Path) -> StoredFeatures:
    """Features of a file, whose rows are the labelled rows of the filtered splits, or all rows of these."""
    without = sum(rows.unlabelled.get(split, 0) for split in pool.bounds)
    n_rows = pool.labels.size
    labelled, every = "labelled rows of the filtered splits", "rows of the filtered splits"
    space.root.mkdir(parents=True, exist_ok=True)
    given = read_features(path, n_rows={labelled: n_rows, every: n_rows + without}, work=space.root)
    places = np.arange(n_rows)
    if given.rows == every:
        places = pool.rows.select_columns(["source_index"]).with_format("arrow")[:]["source_index"].to_numpy().copy()
        before = 0
        for split, place in pool.bounds.items():
            places[place] += before
            before += place.stop - place.start + rows.unlabelled.get(split, 0)
    splits = np.repeat(list(pool.bounds), [place.stop - place.start for place in pool.bounds.values()])
    count = given.features.shape[0]
    check_ids(path, pool.rows, splits.tolist(), places, count=count, hidden=(LABEL, IMAGE))
    features = reordered(given.features, places[pool.rest], space.root)
    return StoredFeatures(features, None, reused=False, path=path)


def _train(recipe: Recipe, pool: Pool, folder: Path, seed: int, space: Workspace) -> None:
    done = folder / "trained"
    if done.is_file():
        space.reused.add("warm-up")
        return
    folder.mkdir(exist_ok=True)
    recipe.train(pool.rows.select(pool.warm), folder, seed=seed)
    done.touch()


def _parameters(spec: SetSpec, pool: Pool) -> dict[str, Any]:
    """Parameters of the filter, those that it would refuse refused."""
    from aflite import check_parameters

    named = to_table(spec.filter)
    column = named.pop("groups", None)
    parameters = {**named, "seed": spec.seed, "groups": _groups(pool, column) if column else None}
    with _told():
        check_parameters(pool.rest.size, **parameters)
    return parameters


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn what the filter refuses into a `BuildError`."""
    try:
        yield
    except ValueError as error:
        raise BuildError(f"filter: {error}; change a value with --set filter.NAME=VALUE") from error


def _filter(
    space: Workspace,
    parameters: Mapping[str, Any],
    pool: Pool,
    stored: StoredFeatures,
    inputs: Mapping[str, Any],
    machine: Machine,
) -> FilterResult:
    from aflite import filter_dataset

    ran = {**inputs, "device": machine.torch_device, "version": metadata.version("probesieve")}
    rows = max(0, pool.rest.size - parameters["n"])
    with _told(), counter(total=rows, label="filter: rows removed") as count:
        return filter_dataset(
            stored.features,
            pool.labels[pool.rest],
            **parameters,
            checkpoint=space.place("filter", ran).with_suffix(".npz"),
            device=machine.torch_device,
            on_phase=lambda record: count(record.removed),
        )


def _record(phase: PhaseRecord) -> dict[str, Any]:
    """What a manifest says of a phase: not its time, since equal inputs give equal folders."""
    return {name: value for name, value in asdict(phase).items() if name != "seconds"}


def _groups(pool: Pool, column: str) -> NDArray[np.int64]:
    values = pool.rows.select(pool.rest).select_columns([column]).with_format("arrow")[:][column]
    codes = values.combine_chunks().dictionary_encode(null_encoding="encode").indices
    groups: NDArray[np.int64] = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return groups


def _outcome(spec: SetSpec, pool: Pool, result: FilterResult) -> Outcome:
    """Lay the filter's result over the rows of the pool."""
    outcome = Outcome.untouched(pool.labels.size)
    outcome.part[pool.warm] = WARMUP
    outcome.part[pool.rest[~result.kept]] = REMOVED
    outcome.predictability[pool.rest] = result.predictability
    outcome.times_scored[pool.rest] = result.times_scored
    outcome.removed_in_phase[pool.rest] = result.removed_in_phase
    draw_baseline(outcome, pool.bounds, spec.seed)
    return outcome
