"""Lists, specs and plans: TOML files, and the released layout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import write_released
from tests.evaluation.classifiers.ood_files import write_hans
from tests.evaluation.conftest import LISTS
from tests.fuzz.damage import any_of, odd_file, raw, tree
from tests.fuzz.target import Target

CODE = Path(__file__).parents[2]


def _lists(folder: Path) -> None:
    (folder / "few.toml").write_text(LISTS, encoding="utf-8")


def _read_lists(folder: Path) -> None:
    from builders.unqover import example_row
    from unqover_data import list_classes, load_lists, read_toml

    path = folder / "few.toml"
    read_toml(path)
    lists = load_lists(list_classes(str(path))[0], str(path))
    for config in lists.configs:
        example_row(lists, config=config)


def _build_lists(folder: Path) -> None:
    from builders.unqover import build_unqover
    from unqover_data import read_toml

    build_unqover(read_toml(folder / "few.toml"), folder / "out")


def _read_released(folder: Path) -> None:
    from unqover_data import load_lists

    load_lists("nationality", str(folder))


def _toml_of(place: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for path in (CODE / place).glob("*.toml"):
            shutil.copy(path, folder)

    return make


def _each(folder: Path, read: Callable[[str], Any]) -> None:
    for path in sorted(folder.glob("*.toml")):
        read(str(path))


def _read_specs(folder: Path) -> None:
    from builders.reading import spec_text
    from builders.specs import load_spec

    _each(folder, lambda path: spec_text(load_spec(path)))


def _read_plans(folder: Path) -> None:
    from evaluation.classifiers.plans import load_plan

    def read(path: str) -> None:
        plan = load_plan(path)
        for name in plan.models:
            plan.settings(name), plan.blank(name)

    _each(folder, read)


def _ood(folder: Path) -> None:
    shutil.copy(CODE / "evaluation/classifiers/ood/sets/hans.toml", folder)
    write_hans(folder / "data")


def _read_ood(folder: Path) -> None:
    from evaluation.classifiers.ood import load_ood_spec, read_ood, report

    spec = load_ood_spec(str(folder / "hans.toml"))
    rows = read_ood(spec, folder / "data")
    report(spec, rows.rows, np.zeros(len(rows.rows), np.int64))


TARGETS = {
    "lists": Target(_lists, any_of(tree("*.toml"), tree("*.toml"), raw("*.toml"), odd_file("*.toml")), _read_lists, 40),
    "probe-sets-built": Target(_lists, tree("*.toml"), _build_lists, 8),
    "released-lists": Target(write_released, any_of(raw("*/*"), raw("*/*/*"), odd_file("*/*")), _read_released, 40),
    "filtered-specs": Target(
        _toml_of("builders/sets"),
        any_of(tree("*.toml"), tree("*.toml"), raw("*.toml"), odd_file("*.toml")),
        _read_specs,
        40,
    ),
    "plans": Target(_toml_of("evaluation/classifiers/plans"), any_of(tree("*.toml"), raw("*.toml")), _read_plans, 40),
    "sets-out-of-distribution": Target(_ood, any_of(tree("*.toml"), raw("*.toml"), raw("data/*")), _read_ood, 30),
}
