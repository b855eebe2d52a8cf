"""What a manifest must hold. It is checked where it is read, so that whoever uses it may rely on it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from builders.errors import BuildError
from builders.names import check_file_of_set, check_names, check_set_name, check_version
from builders.schema import Count, Number, Share, Sum, Text, convert


class _File(Struct):
    bytes: Count
    sha256: Sum


class _Split(Struct):
    rows: Count
    files: Annotated[list[str], Meta(min_length=1)]


class _Manifest(Struct):
    """Of every set."""

    name: str
    version: str
    default_config: str
    configs: dict[str, dict[str, _Split]]
    files: dict[str, _File]
    sha256: Sum
    versions: dict[str, str]
    builder: str | None = None


class _Origin(Struct):
    version: str
    sha256: Sum


class _Filtered(Struct):
    filtered: Annotated[list[str], Meta(min_length=1)]


class _Parameters(Struct):
    n: Count
    m: Count
    t: Count
    k: Count
    tau: Share
    c: Number
    model: Text
    strategy: Text


class _Inputs(Struct):
    source: _Filtered
    filter: _Parameters
    refiltered_from: _Origin | None = None


class _Phase(Struct):
    phase: Count
    size: Count
    bias: float | None  # NaN where no row was scored
    removed: Count
    eligible: Count | None
    histogram: Annotated[list[Count], Meta(min_length=1)]


class _Subset(Struct):
    rows: Count
    bias: Share | None
    accuracy: Share | None = None


class _Part(Struct):
    scored: Count
    kept: Count
    removed: Count


class _Run(Struct):
    stop_reason: Text
    phases: Annotated[list[_Phase], Meta(min_length=1)]
    subsets: dict[str, _Subset]
    breakdown: dict[str, _Part]


class _Counts(Struct):
    source: Count
    unlabelled: Count
    filtered: Count
    removed: Count
    warmup: Count


class _Labels(Struct):
    filtered: Annotated[dict[str, Count], Meta(min_length=1)]
    removed: dict[str, Count]
    warmup: dict[str, Count]


class _Source(Struct):
    origin: str
    revision: str
    unlabelled: dict[str, Count]


class _Encoder(Struct):
    kind: str
    trained: bool


class _FilteredManifest(Struct):
    """Of a filtered set besides, all that a report shows and another cut takes over."""

    title: str
    description: str
    license: str | None
    language: str
    tasks: list[str]
    tags: list[str]
    limits: list[str]
    citation: str | None
    columns: Annotated[list[str], Meta(min_length=1)]
    breakdown: str | None
    spec: list[tuple[str, str, str]]
    seed: Count
    source: _Source
    encoder: _Encoder
    inputs: _Inputs
    counts: dict[str, _Counts]
    labels: _Labels
    filter: _Run


def check_manifest(content: Any) -> None:
    """Raise `ValueError` for the first thing that a manifest lacks, or that cannot be so.

    Parameters
    ----------
    content : object
        What ``manifest.json`` holds.
    """
    manifest = convert(content, _Manifest)
    check_set_name(manifest.name)
    check_version(manifest.version)
    check_names(manifest.configs)
    _require(manifest.configs, {manifest.default_config}, "configs")
    for name in manifest.files:
        check_file_of_set(name)
    for config, splits in manifest.configs.items():
        for split, facts in splits.items():
            for name in facts.files:
                if name not in manifest.files:
                    raise BuildError(f"{name!r} of {config}/{split} is not among files")
    if manifest.builder == "unqover":
        for config, splits in manifest.configs.items():
            _require(splits, {"test"}, f"configs.{config}")
    if manifest.builder == "aflite":
        _check_filtered(manifest, convert(content, _FilteredManifest))


def _check_filtered(manifest: _Manifest, facts: _FilteredManifest) -> None:
    from builders.filtered import CONFIGS  # which reads sources, and so manifests
    from builders.filtered_cards import REASONS, SUBSETS

    _require(CONFIGS, manifest.configs, "the configs of a filtered set")
    _require(manifest.configs, {CONFIGS[0]}, "configs")
    _require(
        facts.counts, {*facts.inputs.source.filtered, *(s for of in manifest.configs.values() for s in of)}, "counts"
    )
    _require(REASONS, {facts.filter.stop_reason}, "the reasons to stop (filter.stop_reason)")
    _require(SUBSETS, facts.filter.subsets, "the subsets (filter.subsets)")
    for labels in (facts.labels.removed, facts.labels.warmup):
        _require(labels, facts.labels.filtered, "labels")
    if len({len(phase.histogram) for phase in facts.filter.phases}) > 1:
        raise BuildError("filter.phases have histograms of different lengths")


def _require(there: Any, wanted: Any, where: str) -> None:
    if missing := sorted({*wanted} - {*there}):
        raise BuildError(f"{missing[0]!r} is not among {where}")
