"""Writes a filtered folder: the rows, the pictures, the card and the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aflite.results import histogram
from builders.atomic import write_text
from builders.cards import front_matter
from builders.figures import PARTS, label_shares, phase_means, phase_sizes, scores
from builders.filtered import CONFIGS, Outcome, write_parts
from builders.filtered_cards import filtered_card
from builders.findings import Findings
from builders.folder import Built, new_folder, write_manifest
from builders.pictures import draw, draw_gallery
from builders.similarity import SIMILARITY, heat_maps, write_similarity
from builders.workspace import Workspace
from unqover_data.signs import visible

if TYPE_CHECKING:
    from datasets import Dataset

_TOLD = 4
PHASES, SCORES, LABELS, ALIKE, EXAMPLES = (
    f"{name}.png" for name in ("phases", "scores", "labels", "similarity", "examples")
)


def write_filtered(
    target: Path,
    facts: Mapping[str, Any],
    splits: Mapping[str, Dataset],
    outcomes: Mapping[str, Outcome],
    findings: Findings,
    space: Workspace,
    *,
    overwrite: bool,
) -> Built:
    """Write the folder of a filtered set.

    Parameters
    ----------
    target : Path
        The folder.
    facts : mapping
        What the manifest says about where the rows come from and how they were scored; ``source.unlabelled``
        has the rows without a label, by split.
    splits : mapping of str to datasets.Dataset
        The labelled rows.
    outcomes : mapping of str to Outcome
        What became of them.
    findings : Findings
        Numbers and examples.
    space : Workspace
        Keeps the time.
    overwrite : bool
        Whether to replace a folder that is there.

    Raises
    ------
    BuildError
        If a folder is in the way.
    """
    facts = {
        **facts,
        "counts": count(splits, outcomes, facts["source"]["unlabelled"]),
        "labels": label_counts({name: splits[name] for name in facts["inputs"]["source"]["filtered"]}, outcomes),
        "filter": {
            "stop_reason": findings.stop_reason,
            "phases": list(findings.phases),
            "subsets": findings.subsets,
            "breakdown": findings.breakdown,
        },
        "default_config": CONFIGS[0],
    }
    with new_folder(target, overwrite=overwrite) as partial:
        with space.timed("folder"):
            facts["configs"], infos = write_parts(splits, outcomes, partial, label=facts["name"])
            alts, undrawn = _draw(partial, facts, outcomes, findings)
            if undrawn:
                facts["undrawn"] = undrawn
            if findings.similarity:
                write_similarity(findings.similarity, partial / SIMILARITY)
            card = front_matter(facts, infos) + filtered_card(facts, findings, alts)
            write_text(partial / "README.md", card)
        manifest = write_manifest(partial, facts)
    return Built(target, manifest, fresh=True, seconds=dict(space.seconds), reused=tuple(sorted(space.reused)))


def count(
    splits: Mapping[str, Dataset], outcomes: Mapping[str, Outcome], unlabelled: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Count the rows of each split of the source; the four parts add up to ``source``."""
    counts = {}
    for split in {**splits, **unlabelled}:
        without = unlabelled.get(split, 0)
        parts = np.bincount(outcomes[split].part, minlength=3) if split in splits else np.zeros(3, int)
        counts[split] = {
            "source": int(parts.sum()) + without,
            "unlabelled": without,
            **{config: int(number) for config, number in zip(CONFIGS, parts, strict=True)},
        }
    return counts


def histograms(part: NDArray[np.int8], predictability: NDArray[np.float64]) -> dict[str, list[int]]:
    """Count the kept and the removed rows that have a score in 20 equal bins of [0, 1]."""
    return {name: histogram(predictability[part == code]).tolist() for code, name in enumerate(PARTS)}


def label_counts(splits: Mapping[str, Dataset], outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, int]]:
    """Count the labels among the rows of each config, over all of `splits`."""
    names = next(iter(splits.values())).features["label"].names
    totals = np.zeros((len(CONFIGS), len(names)), dtype=np.int64)
    for split, rows in splits.items():
        labels = rows.select_columns(["label"]).with_format("arrow")[:]["label"].to_numpy()
        np.add.at(totals, (outcomes[split].part, labels), 1)
    return {config: dict(zip(names, row.tolist(), strict=True)) for config, row in zip(CONFIGS, totals, strict=True)}


def _draw(
    folder: Path, facts: Mapping[str, Any], outcomes: Mapping[str, Outcome], findings: Findings
) -> tuple[dict[str, str], list[str]]:
    """Draw the pictures of the card, give what each of them shows, and the names of those that cannot be drawn."""
    part, predictability = (
        np.concatenate([getattr(outcome, name) for outcome in outcomes.values()]) for name in ("part", "predictability")
    )
    kept_removed = {name: facts["labels"][config] for name, config in zip(PARTS, CONFIGS[:2], strict=True)}
    figures = {
        PHASES: [phase_sizes(findings.phases), phase_means(findings.phases)],
        SCORES: [scores(histograms(part, predictability), facts["inputs"]["filter"]["tau"])],
        LABELS: [label_shares(kept_removed)],
    }
    undrawn = [name for name, drawn in figures.items() if not draw(drawn, folder / name)]
    if findings.similarity and (maps := heat_maps(findings.similarity)):
        figures[ALIKE] = maps
        if not draw(maps, folder / ALIKE, width=200, columns=min(3, len(maps)), legend="shared"):
            undrawn.append(ALIKE)
    alts = {name: " ".join(one.alt for one in drawn[:_TOLD]) for name, drawn in figures.items() if name not in undrawn}
    rows = {"most predictable": findings.most, "least predictable": findings.least}
    if any("image" in example.inputs for example in (*findings.most, *findings.least)):
        gallery = {
            title: [(one.inputs["image"], visible(one.label)) for one in examples] for title, examples in rows.items()
        }
        draw_gallery(gallery, folder / EXAMPLES)
        told = [f"{title}: {', '.join(label for _, label in images)}" for title, images in gallery.items()]
        alts[EXAMPLES] = f"Images with their labels, {'; '.join(told)}"
    return alts, undrawn
