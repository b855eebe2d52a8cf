"""The checks every class of probes passes before anything is built from it, whatever format it was read from."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from unqover_data.model import MASK, Part, ProbeLists, Slot, Subject, Template, Text
from unqover_data.signs import is_unspaced

ID_SEPARATOR = "|"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_lists(lists: ProbeLists, source: str) -> list[str]:
    """Give every problem of `lists`, each as one line that names file, entry and field; none is good.

    Parameters
    ----------
    lists : ProbeLists
        What was read.
    source : str
        The file, or folder and class, that it was read from.
    """
    problems = [f"{source}: {problem}" for problem in _identity(lists)]
    for config in lists.configs:
        problems += [f"{source}: {problem}" for problem in _subjects(lists, config)]
        problems += _templates(lists, config, source)
    problems += _attributes(lists, source)
    return list(dict.fromkeys(problems))


def _identity(lists: ProbeLists) -> Iterator[str]:
    if not _NAME.fullmatch(lists.name):
        yield f"name: must be lower-case letters, digits and single hyphens, not {lists.name!r}"
    if not _VERSION.fullmatch(lists.version):
        yield f"version: must be MAJOR.MINOR.PATCH such as 1.0.0, not {lists.version!r}"
    if not _LANGUAGE.fullmatch(lists.language):
        yield f"language: must be a language code such as en, not {lists.language!r}"
    for word in lists.articles:
        if not re.fullmatch(r"[\w-]+", word):
            yield f"articles: {word!r} must be one word"


def _subjects(lists: ProbeLists, config: str) -> Iterator[str]:
    subjects = lists.configs[config].subjects
    if len(subjects) < 2:
        yield f"subjects: needs at least two, has {len(subjects)}"
    yield from _repeated("subjects", "name", (subject.name for subject in subjects))
    for form in sorted({form for template in lists.configs[config].templates for form in template.subject_forms}):
        yield from _repeated("subjects", form, (s.forms[form] for s in subjects if form in s.forms))
    for subject in subjects:
        yield from _unfit(f"subject {subject.name!r}: name", subject.name, identifies=True)
        for form, words in subject.forms.items():
            yield from _unfit(f"subject {subject.name!r}: {form}", words)
    if lists.pairs == "between-groups":
        groups = Counter(subject.group for subject in subjects)
        for subject in subjects:
            if subject.group is None:
                yield f"subject {subject.name!r}: group: is missing, and pairs are between groups"
        if len(groups) < 2 or len(set(groups.values())) > 1:
            sizes = ", ".join(f"{group}: {size}" for group, size in groups.items())
            yield f"subjects: group: two or more groups of equal size are needed for pairs between groups ({sizes})"


def _templates(lists: ProbeLists, config: str, source: str) -> Iterator[str]:
    templates = lists.configs[config].templates
    asked = "question" if config == "qa" else "statement"
    if not templates:
        yield f"{source}: templates: needs at least one, has none"
    for template in templates:
        for problem in _template(lists, config, template, asked):
            yield f"{template.origin or source}: template {template.id!r}: {problem}"
    for problem in _repeated("templates", "id", (template.id for template in templates)):
        yield f"{source}: {problem}"
    texts = Counter((template.context, template.asked) for template in templates)
    for template in templates:
        if texts[template.context, template.asked] > 1:
            yield f"{template.origin or source}: template {template.id!r}: another has the same context and {asked}"


def _template(lists: ProbeLists, config: str, template: Template, asked: str) -> Iterator[str]:
    yield from _unfit("id", template.id, identifies=True)
    needed: tuple[Part, ...] = ("attribute",) if config == "qa" else ("attribute", "mask")
    yield from _slot_counts("context", template.context, ("subject1", "subject2"))
    yield from _slot_counts(asked, template.asked, needed)
    yield from _slot_counts(f"negated {asked}", template.negated, needed)
    if [slot.part for slot in _slots(template.context)] == ["subject2", "subject1"]:
        yield "context: the slot for subject1 must stand before the one for subject2"
    if any(slot.negated for slot in _slots(template.asked)):
        yield f"{asked}: asks the negation of the attribute"
    if not all(slot.negated for slot in _slots(template.negated) if slot.part == "attribute"):
        yield f"negated {asked}: does not ask the negation of the attribute"
    if not lists.attributes.get(template.kind):
        yield f"attributes: there are none of kind {template.kind!r}"
    yield from _subject_forms(lists.configs[config].subjects, template, asked)
    asking = (*_slots(template.asked), *_slots(template.negated))
    for form in sorted({slot.form for slot in asking if slot.part == "attribute"}):
        for attribute in lists.attributes.get(template.kind, ()):
            if form not in attribute.forms:
                yield f"{asked}: attribute {attribute.name!r} lacks the form {form!r}"
    for field, text in (("context", template.context), (asked, template.asked), (asked, template.negated)):
        for piece in text:
            if isinstance(piece, str):
                yield from _unfit(field, piece)
                yield from (f"{field}: {problem}" for problem in _giveaways(lists, piece))
        for before, after in itertools.pairwise(text):
            if lists.language == "en" and isinstance(after, Slot) and re.search(r"\b[Aa]n $", str(before)):
                yield f"{field}: write 'a', not 'an', before a slot; it becomes 'an' where the word needs it"


def _subject_forms(subjects: Sequence[Subject], template: Template, asked: str) -> Iterator[str]:
    """Forms that subjects lack, and a mask at which each order would have another."""
    standing = list(dict.fromkeys(slot.form for slot in _slots(template.context)))
    for form in template.subject_forms:
        field = "context" if form in standing else asked
        lacking = [subject.name for subject in subjects if form not in subject.forms]
        if len(lacking) == len(subjects) > 0:
            known = ", ".join(sorted({form for subject in subjects for form in subject.forms}))
            yield f"{field}: no subject has the form {form!r} (they have {known})"
        else:
            yield from (f"{field}: subject {name!r} lacks the form {form!r}" for name in lacking)
    if len(standing) > 1 and not template.mask_form and any(slot.part == "mask" for slot in _slots(template.asked)):
        forms = " and ".join(map(repr, standing))
        hint = f"say which is asked for, such as {{mask:{standing[0]}}}"
        yield f"{asked}: the subjects stand in the forms {forms}: {hint}"


def _attributes(lists: ProbeLists, source: str) -> Iterator[str]:
    for kind, attributes in lists.attributes.items():
        for problem in _repeated(f"attributes.{kind}", "name", (attribute.name for attribute in attributes)):
            yield f"{source}: {problem}"
        for attribute in attributes:
            where = f"{attribute.origin or source}: attribute {attribute.name!r}"
            yield from _unfit(f"{where}: name", attribute.name, identifies=True)
            for form, (statement, negation) in attribute.forms.items():
                if _normal(statement) == _normal(negation):
                    yield f"{where}: {form}: statement and negation are both {statement!r}"
                for text in (statement, negation):
                    yield from _unfit(f"{where}: {form}", text)
                    yield from (f"{where}: {form}: {problem}" for problem in _giveaways(lists, text))
        for form in sorted({form for attribute in attributes for form in attribute.forms}):
            statements = (attribute.forms[form][0] for attribute in attributes if form in attribute.forms)
            yield from (f"{source}: {p}" for p in _repeated(f"attributes.{kind}", form, statements))


def _giveaways(lists: ProbeLists, text: str) -> Iterator[str]:
    """Subjects and hint words that stand in fixed text as words of their own.

    The released lists have two ("white teeth"); they are kept as they are, for comparison with the paper.
    """
    if lists.edition == "released":
        return
    words = {word for c in lists.configs.values() for subject in c.subjects for word in subject.forms.values()}
    yield from (f"the subject {word!r} stands in the fixed text {text!r}" for word in sorted(words) if _has(text, word))
    yield from (f"{text!r} gives a hint: {word!r}" for word in lists.hints if _has(text, word))


def _has(text: str, word: str) -> bool:
    """Whether a word stands in a text, in any case; anywhere, in scripts that put no spaces between words."""
    if word.casefold() not in text.casefold():
        return False
    return any(map(is_unspaced, word)) or bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE))


def _normal(text: str) -> str:
    """A text without what filling evens out: articles, spaces, case."""
    return " ".join("a" if word == "an" else word for word in text.casefold().split())


def _unfit(where: str, text: str, *, identifies: bool = False) -> Iterator[str]:
    """What no text may hold, and what no part of a row's id may hold besides."""
    if _CONTROL.search(text):
        yield f"{where}: {text!r} holds a line break, a tab or another control character"
    if MASK in text:
        yield f"{where}: {text!r} holds {MASK}, which stands for a slot"
    if identifies and ID_SEPARATOR in text:
        yield f"{where}: must not hold {ID_SEPARATOR!r}, which joins the parts of a row's id"


def _slots(text: Text) -> list[Slot]:
    return [piece for piece in text if isinstance(piece, Slot)]


def _slot_counts(field: str, text: Text, parts: tuple[Part, ...]) -> Iterator[str]:
    counts = Counter(slot.part for slot in _slots(text))
    for part in parts:
        if counts[part] != 1:
            yield f"{field}: needs the slot for {part} exactly once, has it {counts[part]} times"
    for part in counts.keys() - set(parts):
        yield f"{field}: has a slot for {part}, which does not belong there"


def _repeated(entries: str, field: str, values: Iterable[str]) -> Iterator[str]:
    seen: dict[str, Counter[str]] = {}
    for value in values:
        seen.setdefault(unicodedata.normalize("NFC", value), Counter())[value] += 1
    for one, ways in seen.items():
        if len(ways) > 1:
            written = " and ".join(ascii(way) for way in ways)
            yield f"{entries}: {field}: {one!r} stands {ways.total()} times, spelt in Unicode as {written}; keep one"
        elif ways.total() > 1:
            yield f"{entries}: {field}: {one!r} stands {ways.total()} times"
