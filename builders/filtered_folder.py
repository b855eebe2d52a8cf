"""Writes a filtered folder: the rows, the pictures, the card and the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.cards import front_matter
from builders.filtered import CONFIGS, Outcome, write_parts
from builders.filtered_cards import filtered_card
from builders.findings import Findings
from builders.folder import Built, new_folder, write_manifest
from builders.pictures import draw_gallery, draw_phases, draw_scores
from builders.workspace import Workspace

if TYPE_CHECKING:
    from datasets import Dataset

PHASES, SCORES, EXAMPLES = "phases.png", "scores.png", "examples.png"


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
            _draw(partial, outcomes, findings)
            card = front_matter(facts, infos) + filtered_card(facts, findings)
            (partial / "README.md").write_text(card, encoding="utf-8")
        facts["seconds"] = {stage: round(seconds, 2) for stage, seconds in space.seconds.items()}
        facts["reused"] = sorted(space.reused)
        manifest = write_manifest(partial, facts)
    return Built(target, manifest, fresh=True)


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


def label_counts(splits: Mapping[str, Dataset], outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, int]]:
    """Count the labels among the rows of each config, over all of `splits`."""
    names = next(iter(splits.values())).features["label"].names
    totals = np.zeros((len(CONFIGS), len(names)), dtype=np.int64)
    for split, rows in splits.items():
        labels = rows.select_columns(["label"]).with_format("arrow")[:]["label"].to_numpy()
        np.add.at(totals, (outcomes[split].part, labels), 1)
    return {config: dict(zip(names, row.tolist(), strict=True)) for config, row in zip(CONFIGS, totals, strict=True)}


def _draw(folder: Path, outcomes: Mapping[str, Outcome], findings: Findings) -> None:
    sizes = [phase["size"] for phase in findings.phases]
    draw_phases(sizes, [phase["bias"] for phase in findings.phases], folder / PHASES)
    parts = np.concatenate([outcome.part for outcome in outcomes.values()])
    scores = np.concatenate([outcome.predictability for outcome in outcomes.values()])
    known = ~np.isnan(scores)
    draw_scores(
        {
            config: np.histogram(scores[known & (parts == code)], bins=20, range=(0, 1))[0].tolist()
            for code, config in enumerate(CONFIGS[:2])
        },
        folder / SCORES,
    )
    rows = {"most predictable": findings.most, "least predictable": findings.least}
    if any("image" in example.inputs for example in (*findings.most, *findings.least)):
        draw_gallery(
            {title: [(one.inputs["image"], one.label) for one in examples] for title, examples in rows.items()},
            folder / EXAMPLES,
        )
