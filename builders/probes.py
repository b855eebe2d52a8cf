"""Fills templates into probe examples, in Arrow batches: one row holds all four model inputs of one example.

An example is an unordered subject pair, a template and an attribute (Li et al. 2020, section 3.1). Texts are
filled once a pair and template and once an attribute and template; the rows only hold indices into them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unqover_data import ProbeLists, Subject
from unqover_data.checks import ID_SEPARATOR
from unqover_data.model import MASK, Attribute, Slot, Text

ROWS_PER_BATCH = 100_000

_ARTICLE = re.compile(r"(?<!\S)[aA](?= (\S+))")
_STRINGS = (
    *("id", "subject1", "subject2", "group1", "group2", "template", "attribute", "attribute_class"),
    *("text1", "text2", "context_12", "context_21"),
)
_VOWELS = tuple("aeiouAEIOU")
_SPANS = ("span1_12", "span2_12", "span1_21", "span2_21")


class Filled(NamedTuple):
    """A filled text, and the [start, end) character offsets of ``subject1`` and ``subject2`` in it."""

    text: str
    spans: tuple[tuple[int, int], tuple[int, int]]


def fill(
    text: Text,
    subjects: Sequence[Subject] = (),
    attribute: Attribute | None = None,
    *,
    articles: Mapping[str, str],
    english: bool = True,
) -> Filled:
    """Fill the slots of a text, and write the article ``a`` as ``an`` where the word after it asks for it.

    Parameters
    ----------
    text : Text
        Fixed text and slots.
    subjects : sequence of Subject
        What fills ``subject1`` and ``subject2``.
    attribute : Attribute, optional
        What fills ``attribute``.
    articles : mapping of str to str
        Words whose article is not the one that their first letter says.
    english : bool
        Whether ``a`` is an article at all.

    Returns
    -------
    Filled
        Spans are offsets into the final text, recorded as it grows; (0, 0) for a slot that the text has not.

    Examples
    --------
    >>> arab = Subject("Arab", None, {"name": "Arab"})
    >>> fill(("He met a ", Slot("subject1", "name"), " man."), (arab,), articles={})
    Filled(text='He met an Arab man.', spans=((10, 14), (0, 0)))
    """
    done = ""
    spans = {"subject1": (0, 0), "subject2": (0, 0)}
    for piece in text:
        words = piece if isinstance(piece, str) else _words(piece, subjects, attribute)
        if english:
            if "a " in words or "A " in words:
                words = _ARTICLE.sub(lambda match: match[0] + _n(match[1], articles), words)
            if done.endswith((" a ", " A ")) or done in ("a ", "A "):
                done = done[:-1] + _n(words, articles) + " "
        if not isinstance(piece, str) and piece.part in spans:
            spans[piece.part] = (len(done), len(done) + len(words))
        done += words
    return Filled(done, (spans["subject1"], spans["subject2"]))


def _words(slot: Slot, subjects: Sequence[Subject], attribute: Attribute | None) -> str:
    if slot.part == "mask":
        return MASK
    if slot.part == "attribute" and attribute:
        return attribute.forms[slot.form][slot.negated]
    return subjects[slot.part == "subject2"].forms[slot.form]


def _n(words: str, articles: Mapping[str, str]) -> str:
    """What to add to the article before `words`: the released generator's rule, less the exceptions given."""
    article = articles.get(re.split(r"[^\w-]", words, maxsplit=1)[0]) if articles else None
    return "n" if (article == "an" if article else words.startswith(_VOWELS)) else ""


def schema(config: str) -> pa.Schema:
    """Give the Arrow schema of a config, with plain strings, as a reader sees it."""
    asked = asked_column(config)
    span = pa.list_(pa.field("element", pa.int32()), 2)
    fields = [pa.field(name, pa.string()) for name in _STRINGS]
    fields += [pa.field(name, span) for name in _SPANS]
    return pa.schema([*fields, pa.field(asked, pa.string()), pa.field(f"{asked}_negated", pa.string())])


def asked_column(config: str) -> str:
    """Name of the column with what is asked: ``question`` in config ``qa``, else ``statement``."""
    return "question" if config == "qa" else "statement"


def batches(lists: ProbeLists, config: str) -> Iterator[pa.Table]:
    """Give all rows of a config in order (pair, template, attribute), a batch at a time.

    Yields
    ------
    pyarrow.Table
        About `ROWS_PER_BATCH` rows with the columns of `schema`, repeated strings as dictionary arrays.
    """
    a_pair = _APair(lists, config)
    pairs = lists.subject_pairs(config)
    while some := list(itertools.islice(pairs, max(1, ROWS_PER_BATCH // a_pair.rows))):
        yield a_pair.table(some)


def row_at(lists: ProbeLists, config: str, index: int) -> dict[str, Any]:
    """Give the row that `batches` gives at `index`, without making the others."""
    a_pair = _APair(lists, config)
    pair, cell = divmod(index, a_pair.rows)
    pairs = itertools.islice(lists.subject_pairs(config), pair, pair + 1)
    row: dict[str, Any] = a_pair.table(list(pairs)).slice(cell, 1).to_pylist()[0]
    return row


class _APair:
    """The rows of one subject pair: all attributes of the first template, of the second, and so on."""

    def __init__(self, lists: ProbeLists, config: str) -> None:
        self.schema = schema(config)
        self.templates = lists.configs[config].templates
        self.counts = [len(lists.attributes[template.kind]) for template in self.templates]
        self.rows = sum(self.counts)
        self.articles, self.english = lists.articles, lists.language.split("-")[0] == "en"
        self.halves = [_halves(template.context) for template in self.templates]
        self.filled_halves: dict[tuple[int, str, str], Filled] = {}
        asked = asked_column(config)
        cells = [(template, attribute) for template in self.templates for attribute in lists.attributes[template.kind]]
        self.attributes = pa.array([attribute.name for _, attribute in cells])
        self.columns = {
            "template": _encoded([template.id for template, _ in cells]),
            "attribute": self.attributes.dictionary_encode(),
            "attribute_class": _encoded([attribute.attribute_class for _, attribute in cells]),
            asked: _encoded([self._fill(template.asked, attribute=attribute).text for template, attribute in cells]),
            f"{asked}_negated": _encoded([self._fill(template.negated, attribute=a).text for template, a in cells]),
        }

    def _fill(self, text: Text, subjects: Sequence[Subject] = (), attribute: Attribute | None = None) -> Filled:
        return fill(text, subjects, attribute, articles=self.articles, english=self.english)

    def _context(self, number: int, first: Subject, second: Subject) -> Filled:
        """Fill the context of a template, from halves that are the same for every partner of a subject."""
        filled = []
        for half, part, subject in zip(self.halves[number], ("subject1", "subject2"), (first, second), strict=True):
            key = (number, part, subject.name)
            if key not in self.filled_halves:
                self.filled_halves[key] = self._fill(half, (subject, subject))
            filled.append(self.filled_halves[key])
        head, tail = filled
        shift, (start, end) = len(head.text), tail.spans[1]
        return Filled(head.text + tail.text, (head.spans[0], (shift + start, shift + end)))

    def _answer(self, number: int, subject: Subject) -> str:
        """Fill the mask of a template that names the form for it; empty for others."""
        form = self.templates[number].mask_form
        return self._fill((Slot("subject1", form),), (subject,)).text if form else ""

    def table(self, pairs: Sequence[tuple[Subject, Subject]]) -> pa.Table:
        """Give the rows of several pairs."""
        ids, contexts_12, contexts_21, texts1, texts2, spans = [], [], [], [], [], []
        for one, two in pairs:
            for number, template in enumerate(self.templates):
                context_12, (span1_12, span2_12) = self._context(number, one, two)
                context_21, (span2_21, span1_21) = self._context(number, two, one)
                ids.append(ID_SEPARATOR.join((one.name, two.name, template.id)))
                contexts_12.append(context_12)
                contexts_21.append(context_21)
                texts1.append(self._answer(number, one) or context_12[slice(*span1_12)])
                texts2.append(self._answer(number, two) or context_12[slice(*span2_12)])
                spans.append((span1_12, span2_12, span1_21, span2_21))
        context_of_row = np.repeat(np.arange(len(ids)), np.tile(self.counts, len(pairs)))
        pair_of_row = pa.array(np.repeat(np.arange(len(pairs)), self.rows))
        cell_of_row = pa.array(np.tile(np.arange(self.rows), len(pairs)))
        columns = {name: column.take(cell_of_row) for name, column in self.columns.items()}
        for number in (0, 1):
            columns[f"subject{number + 1}"] = _encoded([pair[number].name for pair in pairs]).take(pair_of_row)
            columns[f"group{number + 1}"] = _encoded([pair[number].group for pair in pairs]).take(pair_of_row)
        of_row = pa.array(context_of_row)
        texts = {"context_12": contexts_12, "context_21": contexts_21, "text1": texts1, "text2": texts2}
        columns |= {name: _encoded(values).take(of_row) for name, values in texts.items()}
        prefixes = pa.array(ids).take(of_row)
        columns["id"] = pc.binary_join_element_wise(prefixes, self.attributes.take(cell_of_row), ID_SEPARATOR)
        offsets = np.array(spans, dtype=np.int32)
        for number, name in enumerate(_SPANS):
            values = offsets[:, number][context_of_row].reshape(-1)
            columns[name] = pa.FixedSizeListArray.from_arrays(values, type=self.schema.field(name).type)
        return pa.table([columns[name] for name in self.schema.names], names=self.schema.names)


def _halves(context: Text) -> tuple[Text, Text]:
    """Cut a context behind its first subject."""
    cut = 1 + next(i for i, piece in enumerate(context) if isinstance(piece, Slot) and piece.part == "subject1")
    return context[:cut], context[cut:]


def _encoded(values: Sequence[str | None]) -> pa.DictionaryArray:
    return pa.array(values, pa.string()).dictionary_encode()
