"""What a stored result must hold, for all who read one: the report, the terminal, and what goes to the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from builders.names import check_names, check_set_name, check_version, is_file_name
from builders.schema import Count, Number, Share, Sum, Text, convert

_Commit = Annotated[str, Meta(pattern=r"\A(sha256:)?[0-9a-f]{7,64}\Z")]
_Mean = Annotated[float, Meta(ge=-1e-6, le=1 + 1e-6)]  # of float32 probabilities
_Signed = Annotated[float, Meta(ge=-1 - 1e-6, le=1 + 1e-6)]
_Some = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class _Model(Struct):
    name: Text
    sha: _Commit
    kind: Text


class _Dataset(Struct):
    name: str
    version: str
    source: Text
    revision: _Commit
    rows: Count


class _ProbeDataset(_Dataset):
    config: str


class _LabelledDataset(_Dataset):
    names: Annotated[list[str], Meta(min_length=1)]


class _Parquet(Struct):
    rows: Count
    sha256: Sum


class _Settings(Struct):
    protocol: str


class _Scalars(Struct):
    """A report sets models apart by all settings, whatever they are."""

    settings: dict[str, str | int | float | bool | None]


class _ProbeSettings(_Settings):
    sample: str | None


class _ClassifierSettings(_Settings):
    limit: Count | None
    seed: Count


class _Result(Struct, kw_only=True):
    """Of every model."""

    model: _Model
    rows: _Some
    seconds: Annotated[float, Meta(ge=0, le=1e12)]
    finished: Annotated[str, Meta(pattern=r"\A\d{4}-\d\d-\d\dT[\d:.+Z-]+\Z")]
    versions: dict[str, str]
    parquet: _Parquet | None = None
    sha256: Sum | None = None


class _Coverage(Struct):
    coverage: Share = 1.0
    rows: Count | None = None
    rows_kept: Count | None = None
    subjects_left_out: list[str] = field(default_factory=list)
    subjects_left_out_in_part: list[str] = field(default_factory=list)
    subjects_unplaced: list[str] = field(default_factory=list)


class _Scorer(Struct):
    parameters: Count | None = None
    prompt_example: str | None = None
    prompt_sha256: Sum | None = None
    chat_date: Text | None = None


class _Estimate(Struct):
    value: _Mean
    n: Count
    low: Number | None
    high: Number | None
    corrected: Number | None


class _Metrics(Struct, forbid_unknown_fields=True):
    mu: _Estimate
    eta: _Estimate
    delta: _Estimate
    epsilon: _Estimate
    average_score: _Estimate


class _Table(Struct):
    """Columns of one length; those that name the cells are there or not by the table's name."""

    n: list[Count]
    gamma: list[_Signed]
    gamma_low: list[Number | None]
    gamma_high: list[Number | None]
    p: list[Share | None]
    q: list[Share | None]
    eta: list[_Signed]
    eta_low: list[Number | None]
    eta_high: list[Number | None]
    subject: list[str] | None = None
    group: list[str] | None = None
    attribute: list[str] | None = None
    attribute_class: list[str] | None = None


class _Tables(Struct, forbid_unknown_fields=True):
    subject: _Table
    subject_attribute: _Table
    subject_class: _Table | None = None
    group: _Table | None = None
    group_attribute: _Table | None = None
    group_class: _Table | None = None


class _ProbeResult(_Result, kw_only=True):
    dataset: _ProbeDataset
    settings: _ProbeSettings
    coverage: _Coverage
    scorer: _Scorer
    means: dict[str, Number | None]
    metrics: _Metrics
    tables: _Tables


class _Rate(Struct):
    value: Share
    low: Share
    high: Share
    n: Count


class _Difference(Struct):
    value: _Signed
    low: _Signed
    high: _Signed


class _Rates(Struct):
    full: _Rate
    kept: _Rate | None
    removed: _Rate | None
    random: _Rate | None


class _Broken(Struct):
    source_index: Count
    why: str


class _AllBroken(Struct):
    rows: Count
    first: list[_Broken]


class _Scores(Struct):
    accuracy: _Rate
    by_label: dict[str, _Rate] = field(default_factory=dict)


class _Reference(Struct):
    title: str
    label: str | None
    accuracy: dict[str, Share]


class _Report(Struct):
    """Of a set out of distribution."""

    metrics: Annotated[list[str], Meta(min_length=1)]
    all: _Scores
    groups: dict[str, dict[str, _Scores]]
    references: list[_Reference]


class _Summary(Struct):
    rows: Count
    accuracy: _Rates
    classes: dict[str, dict[str, _Rate] | None]
    groups: dict[str, dict[str, dict[str, _Rate]] | None]
    ece: dict[str, Share | None]
    drop: _Difference | None
    label_order: str | None
    broken: _AllBroken
    report: _Report | None


class _Labels(Struct):
    rule: str


class _ClassifierResult(_Result, kw_only=True):
    dataset: _LabelledDataset
    settings: _ClassifierSettings
    labels: _Labels
    groups: list[str]
    splits: Annotated[dict[str, _Summary], Meta(min_length=1)]


_AXES = {
    "subject": ("subject",),
    "subject_attribute": ("subject", "attribute"),
    "subject_class": ("subject", "attribute_class"),
    "group": ("group",),
    "group_attribute": ("group", "attribute"),
    "group_class": ("group", "attribute_class"),
}


def check_content(content: Mapping[str, Any]) -> None:
    """Raise `ValueError` for the first thing that a result lacks, or that cannot be so.

    Parameters
    ----------
    content : mapping
        What the JSON file holds, with ``metrics`` or with ``splits``.
    """
    result: _ProbeResult | _ClassifierResult
    convert({"settings": content["settings"]}, _Scalars)
    if "metrics" in content:
        result = convert(content, _ProbeResult)
        check_set_name(result.dataset.name)
        check_version(result.dataset.version)
        check_names({result.dataset.config: {}})
        paths = {}
        faults = _probe_faults(result)
    else:  # sets out of distribution have names and versions of their own
        result = convert(content, _ClassifierResult)
        paths = {"dataset.name": result.dataset.name, "dataset.version": result.dataset.version}
        paths |= {f"splits.{split}": split for split in result.splits}
        faults = _classifier_faults(result, content["splits"])
    for where, name in {**paths, "settings.protocol": result.settings.protocol}.items():
        if not is_file_name(name):
            raise ValueError(f"{where} must do as the name of a file or folder, not {name[:100]!r}")
    if fault := next(iter(faults), None):
        raise ValueError(fault)


def _probe_faults(result: _ProbeResult) -> Iterator[str]:
    if (result.scorer.prompt_example is None) != (result.scorer.prompt_sha256 is None):
        yield "scorer must have prompt_example and prompt_sha256 or neither"
    for name in _Metrics.__struct_fields__:
        found: _Estimate = getattr(result.metrics, name)
        if (found.low is None) != (found.high is None):
            yield f"metrics.{name} must have low and high or neither"
        if found.low is not None and found.corrected is None and name in ("mu", "eta"):
            yield f"metrics.{name} must have corrected, as it has low and high"
    for name in _AXES:
        if (table := getattr(result.tables, name)) is None:
            continue
        columns = {axis: getattr(table, axis) for axis in _AXES[name]}
        yield from (f"tables.{name} lacks {axis}" for axis, values in columns.items() if values is None)
        others = (getattr(table, column) for column in _Table.__struct_fields__)
        if len({len(values) for values in others if values is not None}) > 1:
            yield f"columns of tables.{name} are of different lengths"


def _classifier_faults(result: _ClassifierResult, splits: Mapping[str, Any]) -> Iterator[str]:
    for split, summary in result.splits.items():
        there = [name for name in _Rates.__struct_fields__ if getattr(summary.accuracy, name)]
        for name in ("classes", "groups", "ece"):
            of = getattr(summary, name)
            yield from (f"splits.{split}.{name} lacks {subset}" for subset in there if of.get(subset) is None)
        if summary.broken.rows and not summary.broken.first:
            yield f"splits.{split}.broken names no row"
        if summary.report:
            yield from _report_faults(f"splits.{split}.report", summary.report, splits[split]["report"])


def _report_faults(where: str, report: _Report, content: Mapping[str, Any]) -> Iterator[str]:
    """Metrics stand under their names among the scores, and so do means over other columns."""
    yield from _lacking(f"{where}.all", report.metrics, content["all"])
    for scores in (content["all"], *(one for values in content["groups"].values() for one in values.values())):
        for name in scores:
            if name.startswith("mean_over_") or name in {*report.metrics} - {"accuracy"}:
                convert(scores[name], _Signed)


def _lacking(where: str, wanted: Iterable[str], there: Iterable[str]) -> Iterator[str]:
    return (f"{name!r} is not among {where}" for name in sorted({*wanted} - {*there}))
