"""Specs of the sets out of distribution: one TOML file each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builders.errors import BuildError
from builders.names import is_file_name
from builders.tables import from_table
from evaluation.errors import EvaluationError
from evaluation.models import check_choice
from unqover_data.files import FileError, read_bytes, toml_of

SETS_DIR = Path(__file__).parent / "sets"
METRICS = ("accuracy", "matthews")
CLASSES = ("imagenet-a",)
MODALITIES = ("text", "image")
INPUTS = {"text": ("premise", "hypothesis"), "image": ("image",)}
OURS = ("id", "label", "source_index")


@dataclass(frozen=True)
class Hub:
    """A dataset repository; `revision` is a sha, or a branch whose sha is found when it is read."""

    id: str
    revision: str = "main"


@dataclass(frozen=True)
class Part:
    """Rows that are read from one file.

    Attributes
    ----------
    files : tuple of str
        Endings of the path of the file as distributed, ``{split}`` in place of the split; the first that is there.
    hub : str, optional
        Pattern of the files on the Hub.
    values : mapping of str to str
        Columns that have one value throughout; a group column that is not among them is null.
    optional : bool
        Whether the set is whole without it.
    """

    files: tuple[str, ...] = ()
    hub: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False


@dataclass(frozen=True)
class Group:
    """A column by which scores are broken down.

    Attributes
    ----------
    column : str
        The column.
    values : tuple of str
        Values that must occur, in the order in which they are shown.
    separator : str, optional
        What stands between values where a cell may have several; the row counts for each of them.
    of : tuple of str
        For a column that the source does not have: the columns whose names are its values, where they are filled.
    mean_of : str, optional
        Another column, over whose values accuracies are averaged within each value of this one.
    by_label : bool
        Whether each value is also broken down by gold label.
    """

    column: str
    values: tuple[str, ...] = ()
    separator: str | None = None
    of: tuple[str, ...] = ()
    mean_of: str | None = None
    by_label: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        """Values that must occur."""
        return self.values or self.of

    @property
    def several(self) -> bool:
        """Whether a row may have more than one value, so that the column holds lists."""
        return bool(self.separator or self.of)


@dataclass(frozen=True)
class Reference:
    """Accuracies that are known of a model, to be shown beside those of another; `label` is the gold label."""

    title: str
    group: str
    accuracy: Mapping[str, float]
    label: str | None = None


@dataclass(frozen=True)
class OodSpec:
    """A set out of distribution.

    Attributes
    ----------
    modality : str
        One of `MODALITIES`.
    home : str
        Where its authors distribute it.
    labels : tuple of str
        Names of the labels in the order of their numbers, also of numbers in a file that does not name them.
    classes : str, optional
        Instead of `labels` for images: one of `CLASSES`.
    written : mapping of str to str
        Labels as files have them, where that is not their name.
    unlabelled : tuple of str
        What stands in place of a label that is not known; such rows are left out and counted.
    splits : tuple of str
        What ``{split}`` may be in `parts`, the default first.
    layouts : tuple of mapping of str to str
        Columns by the names that they get; the first layout that a file has is taken.
    metrics : tuple of str
        Of `METRICS`, the main one first.
    by_label : bool
        Whether the whole set is broken down by gold label.

    Raises
    ------
    EvaluationError
        If the fields do not go together.
    """

    name: str
    title: str
    modality: str
    description: str
    citation: str
    home: str
    parts: tuple[Part, ...]
    layouts: tuple[Mapping[str, str], ...]
    labels: tuple[str, ...] = ()
    classes: str | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    unlabelled: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("accuracy",)
    by_label: bool = False
    groups: tuple[Group, ...] = ()
    references: tuple[Reference, ...] = ()
    hub: Hub | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be read or reported."""
        for fault in _faults(self):
            raise EvaluationError(f"spec {self.name}: {fault}")

    def names(self) -> tuple[str, ...]:
        """Names of the labels in the order of their numbers."""
        from evaluation.classifiers.ood.imagenet import imagenet_a_classes

        return imagenet_a_classes() if self.classes else self.labels

    def split(self, chosen: str | None = None) -> str:
        """Give the split to read, empty if the set has no choice of them.

        Raises
        ------
        EvaluationError
            If there is no such split.
        """
        if chosen is None:
            return self.splits[0] if self.splits else ""
        if not self.splits:
            raise EvaluationError(f"{self.name} has no choice of splits, so leave out split {chosen!r}")
        return str(check_choice(f"split of {self.name}", chosen, self.splits))


def list_sets() -> list[str]:
    """Names of the sets out of distribution."""
    return sorted(path.stem for path in SETS_DIR.glob("*.toml"))


def is_ood(source: str) -> bool:
    """Whether a name stands for a set out of distribution: one of `list_sets`, or a spec."""
    return source in list_sets() or source.endswith(".toml")


def load_ood_spec(name: str) -> OodSpec:
    """Read a spec.

    Parameters
    ----------
    name : str
        One of `list_sets`, or a path that ends in ``.toml``.

    Raises
    ------
    EvaluationError
        If there is no such set, or its file is no spec.
    """
    path = Path(name) if name.endswith(".toml") else SETS_DIR / f"{check_choice('set', name, list_sets())}.toml"
    try:
        return from_table(OodSpec, toml_of(read_bytes(path)), path.name)
    except OSError as error:
        raise EvaluationError(
            f"{name} cannot be read ({error.strerror}): pass one of {', '.join(list_sets())}"
        ) from error
    except FileError as error:
        raise EvaluationError(f"{path.name} {error}") from error
    except BuildError as error:
        raise EvaluationError(str(error)) from error


def _faults(spec: OodSpec) -> Iterator[str]:
    """What is wrong with a spec, in words; the first is enough."""
    if spec.modality not in MODALITIES:
        yield f"modality must be one of {', '.join(MODALITIES)}, not {spec.modality!r}"
    if odd := [name for name in (spec.name, *spec.splits) if not is_file_name(name)]:
        yield f"a name or split becomes part of a path, and {odd[0]!r} cannot"
    if bool(spec.labels) == bool(spec.classes):
        yield "needs either labels or classes"
    if len(set(spec.labels)) < len(spec.labels):
        yield f"labels must each stand once, not {', '.join(spec.labels)}"
    for name, listed in (("parts", spec.parts), ("layouts", spec.layouts), ("metrics", spec.metrics)):
        if not listed:
            yield f"{name} must be one or more"
    if spec.classes and spec.classes not in CLASSES:
        yield f"classes must be one of {', '.join(CLASSES)}, not {spec.classes!r}"
    if unknown := [metric for metric in spec.metrics if metric not in METRICS]:
        yield f"metrics must be of {', '.join(METRICS)}, not {unknown[0]!r}"
    if stray := [name for name in spec.written.values() if name not in spec.labels]:
        yield f"written names the label {stray[0]!r}, which is not among labels"
    needed = {*INPUTS[spec.modality], "label"}
    for layout in spec.layouts:
        if missing := needed - set(layout):
            yield f"every layout needs {', '.join(sorted(missing))}"
    groups = {group.column: group for group in spec.groups}
    for column in (*groups, *(column for part in spec.parts for column in part.values)):
        if column in (*OURS, *INPUTS[spec.modality]):
            yield f"a group cannot be called {column!r}, the name of another column"
    for column, group in groups.items():
        if stray := [name for name in group.of if name not in groups]:
            yield f"group {column} is of {stray[0]!r}, which is no group"
        if group.mean_of and group.mean_of not in groups:
            yield f"group {column} averages over {group.mean_of!r}, which is no group"
    for reference in spec.references:
        if reference.group not in groups:
            yield f"reference {reference.title!r} is of {reference.group!r}, which is no group"
