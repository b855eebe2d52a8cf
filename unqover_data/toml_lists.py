"""Reads a class of probes from our TOML files.

A file may `include` others (beside it, or among the bundled ones) that hold templates, attributes and articles.
Slots are written ``{subject1}``, ``{subject1:FORM}``, ``{attribute:FORM}`` and, in a statement, ``{mask}``, or
``{mask:FORM}`` where the form that is asked for is not that of both subjects in the context.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from unqover_data.checks import check_lists
from unqover_data.files import FileError, read_bytes, toml_of
from unqover_data.model import (
    Attribute,
    ListError,
    PairRule,
    Part,
    ProbeConfig,
    ProbeLists,
    Slot,
    Subject,
    Template,
    Text,
)

BUNDLED_DIR = Path(__file__).parent

_TEXTS = {"name", "title", "version", "language", "description", "pairs"}
_REQUIRED = _TEXTS | {"subjects"}
_SHARED = {"templates", "attributes", "articles"}
_OPTIONAL = {"license", "limits", "sources", "hints", "include"} | _SHARED
_SLOT = re.compile(r"\{([^{}]*)\}")
_TEMPLATE_KEYS = ("id", "attributes", "context", "question")


def read_toml(path: Path) -> ProbeLists:
    """Read and check one class.

    Raises
    ------
    ListError
        With every problem found, each naming file, entry and field.
    """
    reader = _Reader()
    lists = reader.read(path)
    problems = reader.problems or check_lists(lists, path.name)
    if problems:
        raise ListError(problems)
    return lists


class _Reader:
    """Collects problems while it reads, so that a file is mended in one go."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.sums: dict[str, str] = {}

    def read(self, path: Path) -> ProbeLists:
        main = self._load(path)
        self._keys(main, _REQUIRED, _OPTIONAL, path.name)
        parts = [(path.name, main)]
        for name in self._included(main, path):
            found = next((f for f in (path.parent / name, BUNDLED_DIR / name) if f.is_file()), None)
            if found is None:
                raise ListError([f"{path.name}: include: {name!r} is neither beside it nor among the bundled files"])
            part = self._load(found)
            self._keys(part, set(), _SHARED, name)
            parts.append((name, part))
        texts = {key: self._text(main.get(key), f"{path.name}: {key}") for key in _TEXTS}
        if texts["pairs"] not in ("all", "between-groups", "?"):
            self.problems.append(f"{path.name}: pairs: must be 'all' or 'between-groups', not {texts['pairs']!r}")
        attributes: dict[str, tuple[Attribute, ...]] = {}
        templates: list[tuple[Template, Template | None]] = []
        articles: dict[str, str] = {}
        for name, part in parts:
            for kind, entries in self._table(part.get("attributes", {}), f"{name}: attributes").items():
                where = f"{name}: attributes.{kind}"
                tables = self._tables(entries, where)
                read = [self._attribute(entry, f"{where}[{i}]", name) for i, entry in enumerate(tables)]
                attributes[kind] = attributes.get(kind, ()) + tuple(read)
            entries = self._tables(part.get("templates", []), f"{name}: templates")
            templates += [self._template(entry, f"{name}: templates[{i}]", name) for i, entry in enumerate(entries)]
            articles |= self._articles(part.get("articles", {}), f"{name}: articles")
        if not templates:
            raise ListError([*self.problems, f"{path.name}: templates: needs at least one, has none"])
        entries = self._tables(main.get("subjects", []), f"{path.name}: subjects")
        known = {"name", "group"} | {form for pair in templates for t in pair if t for form in t.subject_forms}
        subjects = tuple(self._subject(entry, known, f"{path.name}: subjects[{i}]") for i, entry in enumerate(entries))
        configs = {"qa": ProbeConfig(subjects, tuple(question for question, _ in templates))}
        statements = tuple(statement for _, statement in templates if statement)
        if statements:
            configs["mlm"] = ProbeConfig(subjects, statements)
        return ProbeLists(
            name=texts["name"],
            title=texts["title"],
            version=texts["version"],
            language=texts["language"],
            description=texts["description"],
            edition="bundled" if path.parent.resolve() == BUNDLED_DIR else "custom",
            pairs=cast(PairRule, texts["pairs"]),
            attributes=attributes,
            configs=configs,
            license=self._text(main["license"], f"{path.name}: license") if "license" in main else None,
            limits=self._words(main.get("limits", []), f"{path.name}: limits"),
            sources=self._words(main.get("sources", []), f"{path.name}: sources"),
            articles=articles,
            hints=self._words(main.get("hints", []), f"{path.name}: hints"),
            sums=self.sums,
        )

    def _included(self, main: Mapping[str, Any], path: Path) -> tuple[str, ...]:
        """Names of the files to include: plain, so that nothing outside the two folders is ever opened."""
        names = self._words(main.get("include", []), f"{path.name}: include")
        for name in names:
            if Path(name).name != name or name == path.name or names.count(name) > 1:
                raise ListError([f"{path.name}: include: {name!r} must be another file's plain name, and stand once"])
        return names

    def _load(self, path: Path) -> dict[str, Any]:
        try:
            data = read_bytes(path)
            self.sums[path.name] = hashlib.sha256(data).hexdigest()
            return toml_of(data)
        except OSError as error:
            raise ListError([f"{path}: cannot be read ({error.strerror})"]) from error
        except FileError as error:
            raise ListError([f"{path.name}: {error}"]) from error

    def _keys(self, table: Mapping[str, Any], required: Iterable[str], optional: Iterable[str], where: str) -> None:
        required, known = set(required), {*required, *optional}
        for key in sorted(required - table.keys()):
            self.problems.append(f"{where}: {key} is missing")
        for key in sorted(table.keys() - known):
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
            self.problems.append(f"{where}: {key} is not a key of this table; {hint}")

    def _text(self, value: object, where: str) -> str:
        if isinstance(value, str) and value.strip():
            return value.strip()
        if value is not None:  # a key that is missing is reported by _keys
            self.problems.append(f"{where}: must be text and not empty, not {value!r}")
        return "?"

    def _words(self, value: object, where: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.problems.append(f"{where}: must be a list of texts, not {value!r}")
            return ()
        return tuple(self._text(item, f"{where}[{i}]") for i, item in enumerate(value))

    def _table(self, value: object, where: str) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self.problems.append(f"{where}: must be a table, not {value!r}")
        return {}

    def _tables(self, value: object, where: str) -> list[dict[str, Any]]:
        if isinstance(value, list):
            return [self._table(item, f"{where}[{i}]") for i, item in enumerate(value)]
        self.problems.append(f"{where}: must be a list of tables, not {value!r}")
        return []

    def _articles(self, value: object, where: str) -> dict[str, str]:
        table = self._table(value, where)
        self._keys(table, (), ("a", "an"), where)
        a, an = (self._words(table.get(article, []), f"{where}.{article}") for article in ("a", "an"))
        self.problems += [f"{where}: {word!r} stands under both a and an" for word in set(a) & set(an)]
        return dict.fromkeys(a, "a") | dict.fromkeys(an, "an")

    def _subject(self, entry: dict[str, Any], known: set[str], where: str) -> Subject:
        self._keys(entry, {"name"}, known, where)
        where = f"{where} {entry.get('name', '')!r}"
        group = self._text(entry["group"], f"{where}: group") if "group" in entry else None
        forms = {form: self._text(text, f"{where}: {form}") for form, text in entry.items() if form != "group"}
        return Subject(forms.get("name", "?"), group, forms)

    def _attribute(self, entry: dict[str, Any], where: str, origin: str) -> Attribute:
        self._keys(entry, {"name", "class"}, entry, where)
        where = f"{where} {entry.get('name', '')!r}"
        forms = {}
        for form, pair in entry.items():
            if form not in ("name", "class"):
                texts = self._words(pair, f"{where}: {form}")
                if len(texts) == 2:
                    forms[form] = (texts[0], texts[1])
                else:
                    self.problems.append(f"{where}: {form}: must be [statement, negation], not {pair!r}")
        name = self._text(entry.get("name"), f"{where}: name")
        return Attribute(name, self._text(entry.get("class"), f"{where}: class"), forms, origin)

    def _template(self, entry: dict[str, Any], where: str, origin: str) -> tuple[Template, Template | None]:
        self._keys(entry, _TEMPLATE_KEYS, {"statement"}, where)
        where = f"{where} {entry.get('id', '')!r}"
        texts = {key: self._text(entry.get(key), f"{where}: {key}") for key in _TEMPLATE_KEYS}
        context = self._slots(texts["context"], f"{where}: context", ("subject1", "subject2"))

        def asking(key: str, parts: tuple[str, ...]) -> Template:
            asked = self._slots(self._text(entry.get(key), f"{where}: {key}"), f"{where}: {key}", parts)
            negated = tuple(
                p._replace(negated=True) if isinstance(p, Slot) and p.part == "attribute" else p for p in asked
            )
            return Template(texts["id"], texts["attributes"], context, asked, negated, origin)

        question = asking("question", ("attribute",))
        return question, asking("statement", ("attribute", "mask")) if "statement" in entry else None

    def _slots(self, text: str, where: str, parts: tuple[str, ...]) -> Text:
        """Split `text` into fixed text and slots, of which `parts` may stand in it."""
        pieces: list[str | Slot] = []
        for index, piece in enumerate(_SLOT.split(text)):
            part, _, form = piece.partition(":")
            if index % 2 == 0:
                pieces += [piece] if piece else []
                if re.search(r"[{}]", piece):
                    self.problems.append(f"{where}: {text!r} has a brace that is not part of a slot")
            elif part not in parts:
                allowed = ", ".join(f"{{{name}}}" for name in parts)
                self.problems.append(f"{where}: {{{piece}}} is no slot here; use {allowed}")
            elif part == "attribute" and not form:
                self.problems.append(f"{where}: {{attribute}} needs a form, such as {{attribute:singular}}")
            else:
                pieces.append(Slot(cast(Part, part), form or ("" if part == "mask" else "name")))
        return tuple(pieces)
