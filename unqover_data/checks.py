"""The checks every class of probes passes before anything is built from it, whatever format it was read from."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from unqover_data.model import ProbeLists, Slot, Template, Text

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")

ID_SEPARATOR = "|"


def check_lists(lists: ProbeLists, source: str) -> list[str]:
    """Give every problem of `lists`, each as one line that names `source`, entry and field; none is good."""
    problems = [f"{source}: {problem}" for problem in _identity(lists)]
    for config in lists.configs:
        problems += [f"{source}: {problem}" for problem in _config(lists, config)]
    problems += [f"{source}: {problem}" for problem in _attributes(lists)]
    return list(dict.fromkeys(problems))


def _identity(lists: ProbeLists) -> Iterator[str]:
    if not _NAME.fullmatch(lists.name):
        yield f"name: must be lower-case letters, digits and single hyphens, not {lists.name!r}"
    if not _VERSION.fullmatch(lists.version):
        yield f"version: must be MAJOR.MINOR.PATCH such as 1.0.0, not {lists.version!r}"
    if not _LANGUAGE.fullmatch(lists.language):
        yield f"language: must be a language code such as en, not {lists.language!r}"


def _config(lists: ProbeLists, config: str) -> Iterator[str]:
    subjects, templates = lists.configs[config].subjects, lists.configs[config].templates
    if len(subjects) < 2:
        yield f"subjects: needs at least two, has {len(subjects)}"
    if not templates:
        yield "templates: needs at least one, has none"
    yield from _repeated("subjects", "name", (subject.name for subject in subjects))
    yield from _repeated("templates", "id", (template.id for template in templates))
    yield from _separators("subject", (subject.name for subject in subjects))
    yield from _separators("template", (template.id for template in templates))
    if lists.pairs == "between-groups":
        groups = Counter(subject.group for subject in subjects)
        for subject in subjects:
            if subject.group is None:
                yield f"subject {subject.name!r}: group: is missing, and pairs are between groups"
        if len(groups) < 2 or len(set(groups.values())) > 1:
            sizes = ", ".join(f"{group}: {size}" for group, size in groups.items())
            yield f"subjects: group: two or more groups of equal size are needed for pairs between groups ({sizes})"
    for template in templates:
        for problem in _template(lists, config, template):
            yield f"template {template.id!r}: {problem}"
    for form in sorted({slot.form for template in templates for slot in _slots(template.context)}):
        yield from _repeated("subjects", form, (s.forms[form] for s in subjects if form in s.forms))


def _template(lists: ProbeLists, config: str, template: Template) -> Iterator[str]:
    asked_field = "question" if config == "qa" else "statement"
    fields = [("context", template.context), (asked_field, template.asked), (asked_field, template.negated)]
    yield from _slot_counts("context", template.context, ("subject1", "subject2"))
    if [slot.part for slot in _slots(template.context)] == ["subject2", "subject1"]:
        yield "context: the slot for subject1 must stand before the one for subject2"
    for _, text in fields[1:]:
        yield from _slot_counts(asked_field, text, ("attribute",) if config == "qa" else ("attribute", "mask"))
    attributes = lists.attributes.get(template.kind, ())
    if not attributes:
        yield f"attributes: there are none of kind {template.kind!r}"
    for slot in _slots(template.context):
        for subject in lists.configs[config].subjects:
            if slot.form not in subject.forms:
                yield f"context: subject {subject.name!r} lacks the form {slot.form!r}"
    for slot in _slots(template.asked):
        for attribute in attributes:
            if slot.part == "attribute" and slot.form not in attribute.forms:
                yield f"{asked_field}: attribute {attribute.name!r} lacks the form {slot.form!r}"
    for field, text in fields:
        for piece in text:
            if isinstance(piece, str):
                yield from (f"{field}: {problem}" for problem in _giveaways(lists, piece))
        for before, after in itertools.pairwise(text):
            if lists.language == "en" and isinstance(after, Slot) and re.search(r"\b[Aa]n $", str(before)):
                yield f"{field}: write 'a', not 'an', before a slot; it becomes 'an' where the word needs it"


def _attributes(lists: ProbeLists) -> Iterator[str]:
    for kind, attributes in lists.attributes.items():
        names = [attribute.name for attribute in attributes]
        yield from _repeated(f"attributes.{kind}", "name", names)
        yield from _separators("attribute", names)
        for attribute in attributes:
            for form, (statement, negation) in attribute.forms.items():
                where = f"attribute {attribute.name!r}: {form}: "
                if statement == negation:
                    yield where + f"statement and negation are both {statement!r}"
                for text in (statement, negation):
                    yield from (where + problem for problem in _giveaways(lists, text))
        for form in sorted({form for attribute in attributes for form in attribute.forms}):
            statements = (attribute.forms[form][0] for attribute in attributes if form in attribute.forms)
            yield from _repeated(f"attributes.{kind}", form, statements)


def _giveaways(lists: ProbeLists, text: str) -> Iterator[str]:
    """Subjects and hint words that stand in fixed text as words of their own."""
    words = {word for c in lists.configs.values() for subject in c.subjects for word in subject.forms.values()}
    words |= {word[:1].upper() + word[1:] for word in words}
    for word in sorted(words):
        if word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            yield f"the subject {word!r} stands in the fixed text {text!r}"
    for word in lists.hints:
        if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE):
            yield f"{text!r} gives a hint: {word!r}"


def _slots(text: Text) -> list[Slot]:
    return [piece for piece in text if isinstance(piece, Slot)]


def _slot_counts(field: str, text: Text, parts: Iterable[str]) -> Iterator[str]:
    counts = Counter(slot.part for slot in _slots(text))
    for part in parts:
        if counts[part] != 1:  # type: ignore[index]
            yield f"{field}: needs the slot for {part} exactly once, has it {counts[part]} times"  # type: ignore[index]


def _repeated(entries: str, field: str, values: Iterable[str]) -> Iterator[str]:
    for value, count in Counter(values).items():
        if count > 1:
            yield f"{entries}: {field}: {value!r} stands {count} times"


def _separators(entry: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if ID_SEPARATOR in name:
            yield f"{entry} {name!r}: must not hold {ID_SEPARATOR!r}, which joins the parts of a row's id"
