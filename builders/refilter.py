"""Cuts a filtered set again, at a higher n or tau, from the scores that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.atomic import scratch
from builders.disk import told_when_full
from builders.embedded import check_embedded
from builders.errors import BuildError
from builders.filtered import CONFIGS, FILTERED, REMOVED, SCORE_COLUMNS, WARMUP, Outcome, draw_baseline, draw_order
from builders.filtered_folder import write_filtered
from builders.findings import Findings, count_by, pick
from builders.folder import Built, check_outside, check_target, is_current, verify_folder
from builders.locks import claimed
from builders.names import check_version, inside
from builders.pictures import found
from builders.progress import without_bars_of_datasets
from builders.sources.raw import innermost, one_line
from builders.workspace import Workspace

if TYPE_CHECKING:
    from datasets import Dataset

_MADE_ANEW = {"undrawn", "files", "versions", "sha256", "configs", "counts", "labels", "filter", "seconds", "reused"}


def refilter(
    folder: Path,
    out: Path,
    *,
    version: str,
    n: int | None = None,
    tau: float | None = None,
    overwrite: bool = False,
) -> Built:
    """Build ``OUT/NAME-aflite`` with the rows that a run with another `n` or `tau` would have kept.

    Until it ends, a run of AFLite with the same seed depends on neither, so a run with a higher one is the
    beginning of the run that is stored: exactly the same rows stay. Only scores of rows that come back are those
    of the phase that had removed them. A lower value would need phases that never ran, and features.

    Parameters
    ----------
    folder : Path
        A folder of `build_aflite`.
    out : Path
        Where the new folder goes.
    version : str
        MAJOR.MINOR.PATCH of the new folder.
    n : int, optional
        Rows to keep at least; not below the stored run's.
    tau : float, optional
        Least predictability of a removed row, in [0, 1]; not below the stored run's.
    overwrite : bool
        Whether to replace a folder that is there.

    Raises
    ------
    BuildError
        If the folder is no filtered set, or a value needs phases that never ran.
    """
    from datasets import concatenate_datasets

    check_version(version)
    manifest = verify_folder(folder)
    if manifest.get("builder") != "aflite":
        raise BuildError(f"{folder} is no filtered set; refilter takes a folder of: probesieve build aflite")
    settings = manifest["inputs"]["filter"]
    n, tau = settings["n"] if n is None else n, settings["tau"] if tau is None else tau
    _check(settings, n, tau)
    scored = manifest["filter"]["phases"][0]["size"]
    if n >= scored:
        raise BuildError(f"n must be below the {scored:,} scored rows, not {n:,}")
    scored_splits = manifest["inputs"]["source"]["filtered"]
    target = inside(out, manifest["name"])
    origin = {"version": manifest["version"], "sha256": manifest["sha256"]}
    inputs = {**manifest["inputs"], "filter": {**settings, "n": n, "tau": tau}, "refiltered_from": origin}
    known = {"name": manifest["name"], "version": version, "inputs": inputs}
    check_outside(target)
    with claimed(target), scratch(target.with_name(f".{target.name}.cache")) as cache:
        if not overwrite and is_current(target, known):
            return found(target)
        check_target(target, overwrite=overwrite)
        space = Workspace(cache)
        with space.timed("source"):
            splits, outcomes = _read(folder, manifest, cache)
        ends = np.cumsum([0, *(len(splits[name]) for name in scored_splits)])
        bounds = {name: slice(*ends[i : i + 2].tolist()) for i, name in enumerate(scored_splits)}
        stored = _joined([outcomes[name] for name in bounds])
        _, order = draw_order(stored.part.size, int(np.count_nonzero(stored.part == WARMUP)), manifest["seed"])
        outcome, phases, reason = cut_again(stored, order, manifest["filter"], n=n, tau=tau, k=settings["k"])
        draw_baseline(outcome, bounds, manifest["seed"])
        outcomes |= {name: outcome.take(place) for name, place in bounds.items()}
        facts = {key: value for key, value in manifest.items() if key not in _MADE_ANEW} | known
        facts["spec"] = _respecified(manifest["spec"], n, tau)
        pool = concatenate_datasets([splits[name] for name in bounds])
        columns = manifest["columns"]
        findings = Findings(
            phases=phases,
            stop_reason=reason,
            subsets={},
            breakdown=count_by(pool, outcome, manifest["breakdown"]),
            most=pick(pool, outcome, columns, manifest["seed"], hardest=False),
            least=pick(pool, outcome, columns, manifest["seed"], hardest=True),
        )
        return write_filtered(target, facts, splits, outcomes, findings, space, overwrite=overwrite)


def cut_again(
    stored: Outcome, order: NDArray[np.int64], run: Mapping[str, Any], *, n: int, tau: float, k: int
) -> tuple[Outcome, tuple[dict[str, Any], ...], str]:
    """Follow a stored run until it would have ended at `n` or `tau`, and keep what had not left by then.

    Parameters
    ----------
    stored : Outcome
        The stored run's, of all rows.
    order : ndarray of int64
        The scored rows in the order in which they were scored.
    run : mapping
        Its ``phases``, a record each, and its ``stop_reason``.
    n, tau, k
        The parameters; `n` and `tau` not below the stored run's, `k` its own.

    Returns
    -------
    Outcome
        Without a random baseline.
    tuple of dict
        The records of the phases that remain. How many rows reached another `tau` is not known any more.
    str
        Why the run ends.
    """
    part = np.where(stored.part == REMOVED, FILTERED, stored.part).astype(np.int8)
    removed_in = np.full_like(stored.removed_in_phase, -1)
    left, reason, records = int(run["phases"][0]["size"]), str(run["stop_reason"]), []
    for record in run["phases"]:
        rows = order[stored.removed_in_phase[order] == record["phase"]]
        scores = stored.predictability[rows]
        rows = rows[np.argsort(-scores, kind="stable")]
        leaving = rows[stored.predictability[rows] >= tau][: max(0, left - n)]
        part[leaving], removed_in[leaving] = REMOVED, record["phase"]
        left -= leaving.size
        same = leaving.size == record["removed"]
        records.append({**record, "removed": int(leaving.size), "eligible": record["eligible"] if same else None})
        if left <= n or leaving.size < k:
            reason = "reached_n" if left <= n else "few_predictable"
            break
    outcome = replace(stored, part=part, removed_in_phase=removed_in, in_random_subset=np.zeros(part.size, bool))
    return outcome, tuple(records), reason


def _check(settings: Mapping[str, Any], n: int, tau: float) -> None:
    for name, value in (("n", n), ("tau", tau)):
        if value < settings[name]:
            raise BuildError(
                f"{name} must be at least {settings[name]}, that of the stored run, not {value}: lower values need"
                f" phases that never ran; build anew with --set filter.{name}={value}"
            )
    if not tau <= 1:  # NaN is not
        raise BuildError(f"tau must be at most 1, not {tau}")
    if settings["strategy"] == "sampling":
        raise BuildError("a run with strategy 'sampling' drew its slices at random; they cannot be cut again")


def _read(folder: Path, manifest: Mapping[str, Any], cache: Path) -> tuple[dict[str, Dataset], dict[str, Outcome]]:
    """Put the rows of each split back in source order."""
    from datasets import concatenate_datasets

    parts: dict[str, list[tuple[int, Dataset]]] = {split: [] for split in manifest["counts"]}
    features = _features(folder, manifest["configs"])
    for config, of in manifest["configs"].items():
        for split, entry in of.items():
            rows = _rows([folder / name for name in entry["files"]], features[config], cache)
            check_embedded(rows, f"{config}/{split}")
            parts[split].append((CONFIGS.index(config), rows))
    splits, outcomes = {}, {}
    for split, held in parts.items():
        if not held:
            continue
        together = concatenate_datasets([rows for _, rows in held])
        code = np.concatenate([np.full(len(rows), code, np.int8) for code, rows in held])
        table = together.select_columns(["source_index", *SCORE_COLUMNS]).with_format("arrow")[:]
        order = np.argsort(table["source_index"].to_numpy())
        values = {
            "predictability": table["predictability"].to_numpy(),
            "times_scored": table["times_scored"].to_numpy(),
            "removed_in_phase": table["removed_in_phase"].fill_null(-1).to_numpy(),
            "in_random_subset": table["in_random_subset"].to_numpy(),
        }
        outcomes[split] = Outcome(part=code[order], **{name: array[order] for name, array in values.items()})
        splits[split] = together.remove_columns(list(SCORE_COLUMNS)).select(order)
    return splits, outcomes


def _rows(files: Sequence[Path], features: Any, cache: Path) -> Dataset:
    """Read files of a folder; `load_dataset` would read whatever files and addresses the card names."""
    from datasets import Dataset

    try:
        with told_when_full(cache), without_bars_of_datasets():
            return Dataset.from_parquet([str(file) for file in files], features=features, cache_dir=str(cache))
    except BuildError:
        raise
    except Exception as error:  # those of `datasets` have no base in common
        raise BuildError(
            f"{files[0]} cannot be read with the columns that README.md declares ({one_line(innermost(error))}); build "
            "the folder again with --overwrite"
        ) from error


def _features(folder: Path, configs: Iterable[str]) -> dict[str, Any]:
    """Types of the columns of each config, as the card declares them: Parquet has no names of labels."""
    from datasets.info import DatasetInfosDict

    try:
        declared = DatasetInfosDict.from_directory(str(folder))
        return {config: declared[config].features for config in configs}
    except Exception as error:  # of a card that anyone may have written
        raise BuildError(
            f"{folder}/README.md does not declare the columns of every config; build the folder again with --overwrite"
        ) from error


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    names = [field.name for field in fields(Outcome)]
    return Outcome(**{name: np.concatenate([getattr(one, name) for one in outcomes]) for name in names})


def _respecified(spec: Sequence[Sequence[str]], n: int, tau: float) -> list[list[str]]:
    """The spec's values with the new n and tau."""
    changed = {"filter.n": f"{n:,}", "filter.tau": f"{tau:g}"}
    return [
        [key, changed[key], "cut again"] if changed.get(key, value) != value else [key, value, source]
        for key, value, source in spec
    ]
