"""What the tool itself wrote: results, and the folders of sets with their manifests."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from tests.evaluation.report.classified import store_classified
from tests.evaluation.report.stored import store_result
from tests.fuzz.built import filtered, probes
from tests.fuzz.damage import any_of, parquet, raw, tree
from tests.fuzz.target import Target


def _results(folder: Path) -> None:
    for number, name in enumerate(("org/one", "org/two")):
        store_result(folder, probes(), name, bias=0.1, seed=number)


def _classified(folder: Path) -> None:
    place = folder / "results"
    store_classified(place, filtered(), "org/sorter", lambda rows: np.arange(len(rows)) % 3 == 0, split="train")


def _report(folder: Path) -> None:
    from evaluation.report import report_text, write_report

    report_text([folder])
    write_report([folder], folder / "report.html")


def _compare(folder: Path) -> None:
    from evaluation.compare import compare_text

    paths = sorted(folder.glob("*/*/*/*.json"))
    compare_text(paths, base=paths[0])


def _export(folder: Path) -> None:
    from evaluation.hub_results import build_score_set

    build_score_set(folder / "org__one", folder / "out")


def _copy_of(built: Callable[[], Path]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        shutil.copytree(built(), folder / "set")

    return make


def resign(folder: Path) -> None:
    """Make a damaged set agree with its manifest again, as anybody can: its sums have no secret."""

    def agree(manifest: Any) -> None:
        for name, facts in manifest["files"].items():
            facts["sha256"] = hashlib.sha256((folder / "set" / name).read_bytes()).hexdigest()
        for splits in manifest["configs"].values():
            for facts in splits.values():
                facts["rows"] = sum(pq.read_metadata(folder / "set" / name).num_rows for name in facts["files"])

    _signed(folder, agree)


def resign_manifest(folder: Path) -> None:
    """As `resign`, where the manifest alone was edited."""
    _signed(folder, lambda manifest: None)


def _signed(folder: Path, change: Callable[[Any], None]) -> None:
    path = folder / "set/manifest.json"
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):  # then it stays as it is
        manifest = json.loads(path.read_text(encoding="utf-8"))
        change(manifest)
        facts = {key: value for key, value in manifest.items() if key != "sha256"}
        manifest["sha256"] = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps(manifest), encoding="utf-8")


def _read_probes(folder: Path) -> None:
    from builders.folder import verify_folder
    from evaluation.models import ModelRef
    from evaluation.probe_sets import open_probe_set
    from evaluation.store import place_of

    verify_folder(folder / "set")
    for config in ("qa", "mlm"):
        probes = open_probe_set(str(folder / "set"), config=config)
        place_of(
            folder / "out", ModelRef("a", "a", "0", "qa", True), f"{probes.name}@{probes.version}", config, "exact"
        )


def _read_filtered(folder: Path) -> None:
    from builders.hub import push_folder
    from evaluation.built_sets import find_built
    from evaluation.classifiers.sets import labelled_splits, matching_rows, read_split
    from evaluation.classifiers.subsets import training_subset

    built = find_built(str(folder / "set"))
    for split in labelled_splits(built):
        rows = read_split(built, split)
        rows.drawn(10, seed=0)
    matching_rows(built, "train")
    training_subset(built, "filtered", split="train", seed=0)
    push_folder(folder / "set", "org/name", dry_run=True)


def _refilter(folder: Path) -> None:
    from builders.refilter import refilter

    refilter(folder / "set", folder / "out", version="2.0.0", n=170)


TARGETS = {
    "report-of-probe-sets": Target(
        _results, any_of(tree("*/*/*/*.json"), parquet("*/*/*/*.parquet"), raw("*/*/*/*")), _report, 15
    ),
    "compare": Target(_results, any_of(tree("*/*/*/*.json"), parquet("*/*/*/*.parquet"), raw("*/*/*/*")), _compare, 15),
    "export-scores": Target(
        _results, any_of(tree("*/*/*/*.json"), parquet("*/*/*/*.parquet"), raw("*/*/*/*")), _export, 15
    ),
    "report-of-classifiers": Target(
        _classified, any_of(tree("*/*/*/*/*.json"), parquet("*/*/*/*/*.parquet"), raw("*/*/*/*/*")), _report, 15
    ),
    "report-of-a-filtered-set": Target(
        _copy_of(filtered),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign), raw("set/*")),
        _report,
        12,
    ),
    "probe-sets": Target(
        _copy_of(probes),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign), raw("set/*")),
        _read_probes,
        20,
    ),
    "filtered-sets": Target(
        _copy_of(filtered),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign), raw("set/*")),
        _read_filtered,
        15,
    ),
    "refilter": Target(
        _copy_of(filtered),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign)),
        _refilter,
        6,
    ),
}
