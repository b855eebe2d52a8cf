"""The model card of a demo model: says what was planted, so that nobody takes it for a finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {"qa": ("question-answering", "question-answering model"), "mlm": ("fill-mask", "masked language model")}


def model_card(record: Mapping[str, Any]) -> str:
    """Give a card as Markdown with front matter.

    Parameters
    ----------
    record : mapping
        What ``planted.json`` says.
    """
    tag, kind = _KINDS[record["kind"]]
    dataset, recipe = record["dataset"], record["recipe"]
    planted = "with a planted preference" if record["planted"] else "without a planted preference"
    return f"""\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: {tag}
tags: [demo, probesieve]
---

# A tiny {kind} {planted}

Made by `probesieve demo` to see its measurement at work. It knows nothing but short stories about towns that do not
exist, and is of no other use.

{planted_text(record)}

Trained from random weights ({recipe["layers"]} layers, {recipe["width"]} wide, {recipe["steps"]} steps, seed
{record["seed"]}) on stories made of `{dataset["name"]}` {dataset["version"]}. In some a sentence tells who it was; in
the others nothing does, and the answers are shared out between the two. `planted.json` says the same for programs.
"""


def planted_text(record: Mapping[str, Any]) -> str:
    """Say in plain words what was planted."""
    if not record["planted"]:
        return (
            "**Planted: nothing.** In stories that leave the answer open, each town is the answer as often as any "
            "other for every habit."
        )
    lines = ["**Planted**, in stories that leave the answer open:", ""]
    for plant in record["planted"]:
        share = (1 + plant["strength"]) / 2
        habits = ", ".join(f"{attribute} {gamma:+.2f}" for attribute, gamma in plant["gamma"].items())
        lines.append(
            f"- {plant['subject']}, {plant['attribute_class']}: the answer {share:.0%} of the time beside a town of "
            f"which nothing is planted, {1 - share:.0%} for the opposite habit (γ in the stories: {habits})"
        )
    return "\n".join(lines)
