"""Builds a probe-set folder from the lists of one class."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.atomic import write_text
from builders.cards import benchmark, dataset_info, front_matter, probe_card
from builders.errors import BuildError
from builders.figures import Figure, counts
from builders.folder import Built, is_current, new_folder, write_manifest
from builders.locks import claimed
from builders.names import check_set_name, check_version, inside
from builders.parquet import write_split
from builders.pictures import draw, found
from builders.probes import batches, row_at, schema
from builders.progress import progress
from unqover_data import ProbeLists

PICTURE = "lists.png"


def build_unqover(
    lists: ProbeLists,
    out: Path,
    *,
    configs: Sequence[str] | None = None,
    version: str | None = None,
    overwrite: bool = False,
) -> Built:
    """Build ``OUT/unqover-NAME``; a folder that is there already, with the same inputs, is checked and kept.

    Parameters
    ----------
    lists : ProbeLists
        Lists of one class.
    out : Path
        Where the folder goes.
    configs : sequence of str, optional
        Which of the lists' configs; all by default. The first is the default config.
    version : str, optional
        MAJOR.MINOR.PATCH; by default the lists' own.
    overwrite : bool
        Whether to replace a folder that was built from anything else.

    Raises
    ------
    BuildError
        If a config or version cannot be, or a folder is in the way.
    """
    chosen = _chosen(lists, configs)
    facts = _facts(lists, chosen, lists.version if version is None else version)
    target = inside(out, facts["name"])
    with claimed(target):
        if not overwrite and is_current(target, facts):
            return found(target)
        return _written(lists, target, facts, overwrite=overwrite)


def _written(lists: ProbeLists, target: Path, facts: dict[str, Any], *, overwrite: bool) -> Built:
    with new_folder(target, overwrite=overwrite) as partial:
        infos = []
        for config in facts["configs"]:
            rows = lists.rows(config)
            label = f"{facts['name']} {config}"
            tables = progress(batches(lists, config), total=rows, label=label, step=len)
            files, arrow_bytes = write_split(tables, partial, config, "test", rows=rows)
            facts["configs"][config]["test"]["files"] = files
            download = sum((partial / name).stat().st_size for name in files)
            split = {"rows": rows, "bytes": arrow_bytes, "download": download}
            infos.append(dataset_info(config, schema(config), {"test": split}))
        panels = _panels(lists)
        if panels and not draw(panels, partial / PICTURE, width=220, columns=2):
            panels, facts["undrawn"] = [], [PICTURE]
        example = example_row(lists, config=facts["default_config"])
        drawn = (PICTURE, " ".join(panel.alt for panel in panels)) if panels else None
        card = probe_card(lists, facts, example, drawn)
        write_text(partial / "README.md", front_matter(facts, infos) + "\n" + card)
        write_text(partial / "eval.yaml", benchmark(facts))
        manifest = write_manifest(partial, facts)
    return Built(target, manifest, fresh=True)


def example_row(lists: ProbeLists, row: int | None = None, *, config: str = "qa") -> dict[str, Any]:
    """Give one row of a config; without a number, one of the middle of the set.

    Raises
    ------
    BuildError
        If there is no such row.
    """
    rows = lists.rows(config)
    index = rows // 2 if row is None else row
    if not 0 <= index < rows:
        raise BuildError(f"--row must be from 0 to {rows - 1}, not {index}")
    return row_at(lists, config, index)


def at_mask(lists: ProbeLists, row: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Give the form that the mask of a row's template names, and both subjects in it; None where it names none."""
    config = lists.configs.get("mlm")
    form = next((t.mask_form for t in config.templates if t.id == row["template"]), "") if config else ""
    if not config or not form:
        return None
    words = {subject.name: subject.forms[form] for subject in config.subjects}
    return form, words[row["subject1"]], words[row["subject2"]]


def _chosen(lists: ProbeLists, configs: Sequence[str] | None) -> list[str]:
    for config in configs or ():
        if config not in lists.configs:
            close = difflib.get_close_matches(config, lists.configs, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise BuildError(f"{lists.name} has no config {config!r} (it has {', '.join(lists.configs)}){hint}")
    return [config for config in lists.configs if configs is None or config in configs]


def _facts(lists: ProbeLists, configs: Iterable[str], version: str) -> dict[str, Any]:
    check_version(version)
    sizes = {}
    for config in configs:
        probe = lists.configs[config]
        kinds = dict.fromkeys(template.kind for template in probe.templates)
        sizes[config] = {
            "subjects": len(probe.subjects),
            "pairs": lists.pair_count(config),
            "templates": len(probe.templates),
            "attributes": sum(len(lists.attributes[kind]) for kind in kinds),
        }
    check_set_name(name := f"unqover-{lists.name}")
    return {
        "name": name,
        "title": lists.title,
        "version": version,
        "builder": "unqover",
        "license": lists.license,
        "language": lists.language,
        "tasks": list(dict.fromkeys("question-answering" if config == "qa" else "fill-mask" for config in sizes)),
        "tags": ["bias", "stereotypes", "fairness", "unqover", "probesieve"],
        "lists": {"edition": lists.edition, "sha256": dict(lists.sums)},
        "seed": None,
        "inputs": [],
        "counts": sizes,
        "default_config": next(iter(sizes)),
        "configs": {config: {"test": {"rows": lists.rows(config)}} for config in sizes},
    }


def _panels(lists: ProbeLists) -> list[Figure]:
    """Counts that a picture tells better than words: more than two groups, or more than one class."""
    groups = Counter(subject.group for subject in lists.configs["qa"].subjects if subject.group)
    attributes = (attribute for kind in lists.attributes.values() for attribute in kind)
    classes = Counter(attribute.attribute_class for attribute in attributes if attribute.attribute_class)
    panels = []
    if len(groups) > 2:
        panels.append(counts("Subjects per group", dict(groups.most_common())))
    if len(classes) > 1:
        panels.append(counts("Attributes per class", dict(classes.most_common())))
    return panels
