"""The report on results and built folders: one HTML page that opens without a network, or text for a terminal.

A view of the page is a module here with ``section(inputs) -> Section | None``, listed in `SECTIONS`; None where the
inputs have nothing for it. What a `Section` is made of: `evaluation.report.page`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from builders.atomic import write_text
from builders.errors import BuildError
from builders.folder import check_outside
from builders.locks import claimed
from evaluation.errors import EvaluationError
from evaluation.report.inputs import Inputs, read_inputs
from evaluation.report.page import Section, missing_part, page

SECTIONS = (
    "overview",
    "models",
    "associations",
    "ranks",
    "example",
    "filtering",
)
"""Modules of the views, in the order of their tabs."""

_log = logging.getLogger(__name__)

WARNING = (
    "This report names groups of people together with statements about them, offensive ones in most sets. They are "
    "data, made to measure what models associate with whom. Nobody asserts them."
)
NOTHING = (
    "there is nothing to report, neither a result nor a filtered set (a probe set alone shows nothing): score a model "
    "with probesieve eval"
)
FOOTER = (
    "Made by probesieve from stored results. Methods: Li et al. 2020, UnQovering Stereotyping Biases via "
    "Underspecified Questions; Le Bras et al. 2020, Adversarial Filters of Dataset Biases."
)


def write_report(paths: Sequence[Path], out: Path, *, title: str | None = None, bases: Iterable[str] = ()) -> Path:
    """Write the report as one HTML file that needs neither a server nor a network.

    Parameters
    ----------
    paths : sequence of Path
        Result JSON files, results folders, dataset folders; see `evaluation.report.inputs.read_inputs`.
    out : Path
        The file; one that is there is replaced.
    title : str, optional
        Of the page.
    bases : iterable of str
        ``TUNED=BASE`` for models whose base their names do not tell, ``TUNED=`` for those that have none.

    Raises
    ------
    EvaluationError
        If there is nothing to report, a result cannot be read, or `out` is no HTML file.
    BuildError
        If a dataset folder cannot be read, the file would lie in one, or another run is writing it.
    """
    check_page(out)
    with claimed(out):
        inputs = read_inputs(paths, bases=bases)
        sections = sections_of(inputs)
        write_text(out, page(title or _title(inputs), _lead(inputs), sections, warning=_warning(inputs), footer=FOOTER))
    return out


def check_page(out: Path) -> None:
    """Raise `EvaluationError` or `BuildError` if a report may not be written there."""
    if out.suffix.lower() not in (".html", ".htm") or out.is_dir():
        raise EvaluationError(f"a report must be a file that ends in .html, not {out}{' (a folder)' * out.is_dir()}")
    check_outside(out)


def report_text(paths: Sequence[Path], *, bases: Iterable[str] = (), color: bool = False) -> str:
    """Give the summary tables of a report for a terminal.

    Parameters
    ----------
    paths, bases
        As for `write_report`.
    color : bool
        Whether the terminal shows colours.

    Raises
    ------
    EvaluationError, BuildError
        As `write_report`.
    """
    from evaluation.report.text import inputs_text

    inputs = read_inputs(paths, bases=bases)
    if text := inputs_text(inputs, _warning(inputs), color=color):
        return text
    raise EvaluationError(NOTHING)


def sections_of(inputs: Inputs) -> list[Section]:
    """Give the views for which there is something; one that cannot be made says why.

    Raises
    ------
    EvaluationError, BuildError
        If there is none, or none can be made.
    """
    sections, failed = [], []
    for name in SECTIONS:
        try:
            section = import_module(f"{__name__}.{name}").section(inputs)
        except (BuildError, EvaluationError) as error:
            failed.append(error)
            _log.warning("the view %s is missing in the report: %s", name, error)
            section = Section(name, name.capitalize(), "", [missing_part(error)])
        sections += [section] if section else []
    if len(sections) == len(failed):
        raise next(iter(failed), EvaluationError(NOTHING))
    return sections


def _warning(inputs: Inputs) -> str | None:
    """Give the content warning, where there is anything of a probe set."""
    return WARNING if inputs.probes or any(built.builder == "unqover" for built in inputs.folders) else None


def _title(inputs: Inputs) -> str:
    if not inputs.probes:
        return "What the filter kept, and how hard it is"
    only = not inputs.classifiers and all(built.builder == "unqover" for built in inputs.folders)
    return "Whom models associate with what" + ("" if only else ", and what the filter kept")


def _lead(inputs: Inputs) -> str:
    parts = []
    if inputs.probes:
        parts.append(f"{_many(len(inputs.models), 'model')} on {_many(len(inputs.datasets), 'probe set')}")
    if inputs.classifiers:
        parts.append(_many(len(inputs.classifiers), "result") + " of classifiers")
    if inputs.folders:
        parts.append(_many(len(inputs.folders), "dataset folder"))
    return ", ".join(parts) + "."


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
