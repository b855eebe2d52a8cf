"""What a class of probes consists of: subjects, attributes and templates, whatever file they were read from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

PairRule = Literal["all", "between-groups"]


class ListError(ValueError):
    """A list that cannot be used, as one line: file, entry, field, and what to do.

    Attributes
    ----------
    problems : list of str
        Every problem that was found; the message holds the first and how many follow.
    """

    def __init__(self, problems: list[str]) -> None:
        more = f" (and {len(problems) - 1} more; see: probesieve validate)" if len(problems) > 1 else ""
        super().__init__(problems[0] + more)
        self.problems = problems


class Slot(NamedTuple):
    """A place in a template that a subject, an attribute or the mask fills."""

    part: Literal["subject1", "subject2", "attribute", "mask"]
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
    """An attribute: `forms` maps each form (``singular``, ...) to the statement and its negation."""

    name: str
    attribute_class: str | None
    forms: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Template:
    """A context and what is asked of it: a question, or a statement with the mask; `kind` names its attributes."""

    id: str
    kind: str
    context: Text
    asked: Text
    negated: Text


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

    def subject_pairs(self, config: str) -> list[tuple[Subject, Subject]]:
        """Every unordered pair that is compared, in list order."""
        pairs = itertools.combinations(self.configs[config].subjects, 2)
        return [(one, two) for one, two in pairs if self.pairs == "all" or one.group != two.group]

    def rows(self, config: str) -> int:
        """Rows of a config: subject pairs x templates x attributes of each template's kind."""
        a_pair = sum(len(self.attributes[template.kind]) for template in self.configs[config].templates)
        return len(self.subject_pairs(config)) * a_pair
