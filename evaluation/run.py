"""Scores a model on a probe set: resolves, samples, scores shard by shard, sums up."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.progress import progress
from evaluation import store
from evaluation.errors import EvaluationError
from evaluation.models import ModelRef
from evaluation.parallel import backend_arguments, in_parallel
from evaluation.probe_sets import ProbeSet, default_sets, open_probe_set
from evaluation.results import ProbeScores
from evaluation.sampling import sample_rows, sample_size
from evaluation.scorers import check_options, make_scorer
from evaluation.scorers.base import Scorer
from evaluation.scorers.coverage import reasons
from evaluation.scores import SCORE_COLUMNS, ScoredRows
from evaluation.summary import summarize


@dataclass(frozen=True)
class Options:
    """What decides the scores of a model on a set; stored with the result, and compared before a run goes on.

    Attributes
    ----------
    protocol : str
        ``exact`` or ``paper``.
    sample : str or None
        Rows to draw: a share below 1, or a number of rows; None for all.
    seed : int
        Of the sample and of the intervals.
    dtype : str
        ``float32``, ``float16`` or ``bfloat16``.
    context_prefix, prompt, chat, joint, pronouns
        As in `evaluation.scorers.make_scorer`.
    """

    protocol: str = "exact"
    sample: str | None = None
    seed: int = 0
    dtype: str = "float32"
    context_prefix: str | None = None
    prompt: str | None = None
    chat: bool | None = None
    joint: bool = False
    pronouns: bool | None = None


@dataclass(frozen=True)
class Engine:
    """How the work is done; changes no score beyond the tolerance of floating point.

    Attributes
    ----------
    device : str or None
        A torch device; None for ``cuda`` where there is one, else ``cpu``.
    batch_size : int or None
        Inputs at once at most; None for 64, and for text classifiers as many as make a fixed number of tokens.
    workers : int
        Shards at once; those of image classifiers are scored one after the other on this machine.
    decoders : int or None
        Processes that decode images for a classifier on this machine; None for all cores but one, and 16 at most.
        On an engine each worker decodes its own.
    backend : str
        joblib's: ``loky`` on this machine, ``ray`` or ``dask`` on an engine that runs.
    """

    device: str | None = None
    batch_size: int | None = None
    workers: int = 1
    decoders: int | None = None
    backend: str = "loky"

    @property
    def inputs_at_once(self) -> int:
        """Of a probe set."""
        return 64 if self.batch_size is None else self.batch_size


def evaluate_all(
    ref: ModelRef,
    datasets: Sequence[str] | None,
    options: Options,
    *,
    engine: Engine,
    out: Path,
    overwrite: bool = False,
    config: str | None = None,
    dataset_revision: str | None = None,
) -> Iterator[ProbeScores]:
    """Score a model on several probe sets; everything is pinned before the first is scored.

    Parameters
    ----------
    ref : ModelRef
        The model, pinned.
    datasets : sequence of str or None
        Folders or ORG/NAME; None for the four sets in ``./build``, built where they are not there.
    options, engine, out, overwrite
        As for `evaluate`.
    config : str, optional
        Instead of the config for the model's kind.
    dataset_revision : str, optional
        Of the datasets on the Hub.
    """
    chosen = config or ("mlm" if ref.kind == "mlm" else "qa")
    sources = datasets or default_sets(Path("build"))
    sets = [open_probe_set(source, config=chosen, revision=dataset_revision) for source in sources]
    for probes in sets:
        yield evaluate(ref, probes, options, engine=engine, out=out, overwrite=overwrite)


def evaluate(
    ref: ModelRef, probes: ProbeSet, options: Options, *, engine: Engine, out: Path, overwrite: bool = False
) -> ProbeScores:
    """Score a model on a probe set, or give the result that is there; a run that was stopped goes on.

    Parameters
    ----------
    ref : ModelRef
        The model, pinned.
    probes : ProbeSet
        The set, pinned.
    options : Options
        What decides the scores.
    engine : Engine
        How the work is done.
    out : Path
        The results folder.
    overwrite : bool
        Whether to replace a result, or an unfinished run, of other options.

    Raises
    ------
    EvaluationError
        If the model, the set and the options do not go together, or other options made what is there.
    """
    _check(ref, options, engine)
    if options.sample is not None:
        sample_size(options.sample, len(probes.rows))
    place = store.place_of(out, ref, f"{probes.name}@{probes.version}", probes.config, options.protocol)
    settings = {"model": ref.sha, "kind": ref.kind, "dataset": probes.rows_id, **asdict(options)}
    if not overwrite and (found := store.read_result(place, settings, revision=probes.revision)):
        return ProbeScores(found, place.result, fresh=False)
    scorer = _scorer(ref, options, engine)
    able, coverage = scorer.select(probes.rows)
    rows = probes.rows.filter(pa.array(able))
    if not len(rows):
        why = reasons(coverage)
        raise EvaluationError(f"{ref.name} can score no row of {probes.name}: {why}; pass another model or set")
    if options.sample is not None:
        rows = rows.take(pa.array(sample_rows(rows, options.sample, seed=options.seed)))
    with store.locked(place):
        written = {"prompt_sha256": scorer.facts["prompt_sha256"]} if "prompt_sha256" in scorer.facts else {}
        begun = settings | written
        shards = store.open_partial(place, begun, rows, overwrite=overwrite, revision=probes.revision)
        try:
            _score_missing(place, shards, ref, options, engine)
        except BaseException:
            store.abandon(place)
            raise
        scores, seconds = store.merge_shards(place, shards)
        result = {
            "model": ref.facts,
            "dataset": probes.facts,
            "settings": settings,
            "coverage": coverage,
            "scorer": scorer.facts,
            "means": {name: pc.mean(scores[name]).as_py() for name in scores.column_names[1 + len(SCORE_COLUMNS) :]},
            "rows": len(rows),
            "seconds": round(seconds, 3),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": store.versions(),
            **aggregates_of(rows, scores, seed=options.seed),
        }
        result = store.finish(place, result, scores)
    return ProbeScores(result, place.result, fresh=True)


def _check(ref: ModelRef, options: Options, engine: Engine) -> None:
    """Refuse what cannot be before anything is loaded, scored or replaced."""
    given = {"prompt": options.prompt, "chat": options.chat, "pronouns": options.pronouns}
    check_options(ref.kind, options.protocol, dtype=options.dtype, joint=options.joint, **given)
    for name, value, least in (
        ("--workers", engine.workers, 1),
        ("--batch-size", engine.inputs_at_once, 1),
        ("--seed", options.seed, 0),
    ):
        if value < least:
            raise EvaluationError(f"{name} must be at least {least}, not {value}")
    backend_arguments(engine.backend, engine.workers)


def aggregates_of(rows: pa.Table, scores: pa.Table, *, seed: int) -> dict[str, Any]:
    """Give what a result's JSON says beside the run: ``metrics`` and ``tables``; needs no model.

    Parameters
    ----------
    rows, scores : pyarrow.Table
        Probe rows, and the stored scores of all or some of them.
    seed : int
        Of the intervals.
    """
    summary = summarize(ScoredRows.from_tables(rows, scores, subset=True), seed=seed)
    return {"metrics": summary.to_json(), "tables": {name: t.to_pydict() for name, t in summary.tables.items()}}


def _scorer(ref: ModelRef, options: Options, engine: Engine) -> Scorer:
    """Load the model once a process."""
    return _cached_scorer(ref, options, engine.device, engine.inputs_at_once)


@functools.lru_cache(maxsize=1)
def _cached_scorer(ref: ModelRef, options: Options, device: str | None, batch_size: int) -> Scorer:
    chosen = {name: value for name, value in asdict(options).items() if name not in ("sample", "seed")}
    return make_scorer(ref, device=device, batch_size=batch_size, **chosen)


def _score_missing(place: store.Place, shards: int, ref: ModelRef, options: Options, engine: Engine) -> None:
    """Score the shards that no earlier run finished."""
    missing = [number for number in range(shards) if not place.shard(number).is_file()]
    calls = ((place, number, ref, options, engine) for number in missing)
    done = in_parallel(_score_shard, calls, at_once=engine.workers, backend=engine.backend)
    for _ in progress(done, total=shards, label=place.result.stem, done=shards - len(missing)):
        pass


def _score_shard(place: store.Place, number: int, ref: ModelRef, options: Options, engine: Engine) -> None:
    start = time.perf_counter()
    rows = store.shard_rows(place, number)
    scorer = _scorer(ref, options, engine)
    scores = scorer.score(rows).astype(np.float32)
    columns = {"id": rows["id"]} | {name: scores[:, i] for i, name in enumerate(SCORE_COLUMNS)}
    columns |= {name: values.astype(np.float32) for name, values in scorer.row_facts.items()}
    seconds = f"{time.perf_counter() - start:.6f}"
    store.write_table(pa.table(columns).replace_schema_metadata({"seconds": seconds}), place.shard(number))
