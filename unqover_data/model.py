"""What a class of probes consists of: subjects, attributes and templates, whatever file they were read from."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from unqover_data.errors import OneLine

PairRule = Literal["all", "between-groups"]
Part = Literal["subject1", "subject2", "attribute", "mask"]

MASK = "[MASK]"
"""What a mask slot is filled with; a model's own mask token is put in when it is scored."""


class ListError(OneLine, ValueError):
    """A list that cannot be used, as one line: file, entry, field, and what to do.

    Attributes
    ----------
    problems : list of str
        Every problem that was found; the message holds the first and how many follow.
    """

    def __init__(self, problems: list[str]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(problems[0] + more)
        self.problems = problems


class NotFetchedError(ListError):
    """Released lists that could not be fetched, or not as they were pinned."""


class Slot(NamedTuple):
    """A place in a template that a subject, an attribute or the mask fills."""

    part: Part
    form: str = ""
    negated: bool = False


Text = tuple[str | Slot, ...]
"""Fixed text and slots in the order they stand."""


@dataclass(frozen=True)
class Subject:
    """A subject: `name` is canonical, `forms` maps each form (``name``, ``demonym``, ...) to its words."""

    name: str
    group: str | None
    forms: Mapping[str, str]


@dataclass(frozen=True)
class Attribute:
    """An attribute: `forms` maps each form (``singular``, ...) to the statement and its negation.

    `origin` is the file it stands in, for messages.
    """

    name: str
    attribute_class: str | None
    forms: Mapping[str, tuple[str, str]]
    origin: str = ""


@dataclass(frozen=True)
class Template:
    """A context and what is asked of it: a question, or a statement with the mask; `kind` names its attributes.

    `origin` is the file it stands in, for messages.
    """

    id: str
    kind: str
    context: Text
    asked: Text
    negated: Text
    origin: str = ""

    @property
    def mask_form(self) -> str:
        """Form in which both subjects are scored at the mask; empty where it is the one they have in the context."""
        return next((p.form for p in self.asked if isinstance(p, Slot) and p.part == "mask"), "")

    @property
    def subject_forms(self) -> list[str]:
        """Every form of a subject that the template needs, in order of their names."""
        context = (piece.form for piece in self.context if isinstance(piece, Slot))
        return sorted({form for form in (*context, self.mask_form) if form})


@dataclass(frozen=True)
class ProbeConfig:
    """The subjects and templates of one dataset config (``qa``, ``mlm``, ...)."""

    subjects: tuple[Subject, ...]
    templates: tuple[Template, ...]


@dataclass(frozen=True)
class ProbeLists:
    """Everything a probe set is made from.

    Attributes
    ----------
    name, title, version, language, description, license, limits, sources
        What the card says.
    edition : str
        ``bundled``, ``released`` or ``custom``.
    pairs : str
        ``all`` unordered subject pairs, or only those ``between-groups``.
    attributes : mapping of str to tuple of Attribute
        By kind; a template takes all attributes of its kind.
    configs : mapping of str to ProbeConfig
        ``qa`` always; ``mlm`` (and, with the released lists, ``mlm-bert`` and ``mlm-roberta``) where given.
    articles : mapping of str to str
        Words that take another article than their first letter says.
    hints : tuple of str
        Words that would give an answer away and so may stand in no template and no attribute.
    sums : mapping of str to str
        SHA-256 of every file read.
    """

    name: str
    title: str
    version: str
    language: str
    description: str
    edition: str
    pairs: PairRule
    attributes: Mapping[str, tuple[Attribute, ...]]
    configs: Mapping[str, ProbeConfig]
    license: str | None = None
    limits: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    articles: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    sums: Mapping[str, str] = field(default_factory=dict)

    def subject_pairs(self, config: str) -> Iterator[tuple[Subject, Subject]]:
        """Give every unordered pair that is compared, in list order."""
        for one, two in itertools.combinations(self.configs[config].subjects, 2):
            if self.pairs == "all" or one.group != two.group:
                yield one, two

    def pair_count(self, config: str) -> int:
        """Count the pairs of `subject_pairs`."""
        groups = Counter(subject.group for subject in self.configs[config].subjects)
        alike = 0 if self.pairs == "all" else sum(math.comb(size, 2) for size in groups.values())
        return math.comb(groups.total(), 2) - alike

    def rows(self, config: str) -> int:
        """Count the rows of a config: subject pairs x templates x attributes of each template's kind."""
        a_pair = sum(len(self.attributes[template.kind]) for template in self.configs[config].templates)
        return self.pair_count(config) * a_pair
