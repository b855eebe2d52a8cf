"""Suites: sets that are scored together under one name."""

from __future__ import annotations

from evaluation.classifiers.ood import OodSpec, load_ood_spec
from evaluation.models import check_choice

SUITES: dict[str, tuple[str, ...]] = {
    "nli-ood": ("hans", "diagnostics", "stress", "anli"),
    "imagenet-a": ("imagenet-a",),
}


def suite_specs(name: str) -> tuple[OodSpec, ...]:
    """Give the sets of a suite, in the order in which they are shown.

    Raises
    ------
    EvaluationError
        If there is no such suite.

    Examples
    --------
    >>> [spec.name for spec in suite_specs("imagenet-a")]
    ['imagenet-a']
    """
    return tuple(load_ood_spec(one) for one in SUITES[check_choice("suite", name, SUITES)])
