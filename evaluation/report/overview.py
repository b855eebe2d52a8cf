"""The view *Overview*: what was measured, how to read it, which model is worse, and what cannot be concluded."""

from __future__ import annotations

from evaluation.report.inputs import Inputs
from evaluation.report.models import aggregates_table
from evaluation.report.page import Block, Section, Text


def section(inputs: Inputs) -> Section | None:
    """Give the view, if there is a result or a folder."""
    if not inputs.probes:
        return None
    blocks: list[Block] = [Text("Numbers", "heading"), aggregates_table(inputs)]
    return Section("overview", "Overview", "", blocks)
