"""Reads lists in the text format of the released UnQover code (allenai/unqover, Apache-2.0), and fetches them.

Slots stand in ``slots/`` as ``context <tab> question <tab> negated question``, attributes in ``activities/`` as
``[p_act-single:neg] class | text``, subjects in ``nouns/subjects/`` as ``[subj:dem] cluster | words``. Entries of
one type are aligned by their order.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast

from unqover_data.checks import check_lists
from unqover_data.files import FileError, read_bytes
from unqover_data.model import (
    Attribute,
    ListError,
    NotFetchedError,
    PairRule,
    ProbeConfig,
    ProbeLists,
    Slot,
    Subject,
    Template,
    Text,
)
from unqover_data.released_sums import COMMIT, SUMS

BASE_URL = f"https://raw.githubusercontent.com/allenai/unqover/{COMMIT}/word_lists"
_TRIES = 4
_YES = ("1", "ON", "YES", "TRUE")  # as the Hub's client reads HF_HUB_OFFLINE
_LONGEST_PAUSE = 60.0  # seconds

_SLOT = re.compile(r"\[([^\[\]]+)\]")
_ENTRY = re.compile(r"\[([^\[\]]+)\]\s*(.*)")


@dataclass(frozen=True)
class _Files:
    slots: str
    activities: str
    subjects: tuple[str, ...]
    pairs: PairRule
    title: str


CLASSES: Mapping[str, _Files] = {
    "gender": _Files("gender_noact", "occupation_rev1", ("female", "male"), "between-groups", "names, occupations"),
    "nationality": _Files("country_noact", "biased_country", ("country",), "all", "countries, negative statements"),
    "ethnicity": _Files("ethnicity_noact", "biased_ethnicity", ("ethnicity",), "all", "negative statements"),
    "religion": _Files("religion_noact", "biased_religion", ("religion",), "all", "negative statements"),
}
_VOCABULARIES = ("bert", "roberta")


def read_released(folder: Path, name: str) -> ProbeLists:
    """Read and check one class from a folder in the released layout.

    Parameters
    ----------
    folder : Path
        Holds ``slots/``, ``activities/`` and ``nouns/``, itself or in ``word_lists/``.
    name : str
        One of `CLASSES`.

    Raises
    ------
    ListError
        With every problem found, each naming file, entry and field.
    """
    if name not in CLASSES:
        raise ListError([f"{folder}: the released layout has no class {name!r}; it has {', '.join(CLASSES)}"])
    root = folder / "word_lists" if (folder / "word_lists").is_dir() else folder
    for part in ("slots", "activities", "nouns/subjects"):
        if not (root / part).is_dir():
            raise ListError([f"{folder} is not in the released layout: it has no folder {part}"])
    files, reader = CLASSES[name], _Reader(root)
    attributes = reader.attributes(f"activities/{files.activities}")
    configs = {}
    for config, slots, ending in _configs(files.slots):
        subject_files = [f"nouns/subjects/{stem}{ending}" for stem in files.subjects]
        if config == "qa" or all((root / path).is_file() for path in [f"slots/{slots}", *subject_files]):
            subjects = tuple(subject for path in subject_files for subject in reader.subjects(path))
            configs[config] = ProbeConfig(subjects, reader.templates(f"slots/{slots}"))
    unchanged = all(SUMS.get(path) == sha for path, sha in reader.sums.items())
    lists = ProbeLists(
        name=name,
        title=f"UnQover {name} probes, {'released' if unchanged else 'custom'} lists: {files.title}",
        version="1.0.0",
        language="en",
        description=f"The {name} probes of the UnQover paper, made from "
        + ("the word lists that its authors released." if unchanged else "lists in the format its authors released."),
        edition="released" if unchanged else "custom",
        pairs=files.pairs,
        attributes=attributes,
        configs=configs,
        license="apache-2.0" if unchanged else None,
        limits=("The lists are the paper's, unchanged, in the selection and wording of its authors.",) * unchanged,
        sources=(f"Word lists of allenai/unqover at commit {COMMIT} (Apache-2.0).",) * unchanged,
        sums=reader.sums,
    )
    problems = check_lists(lists, f"{folder}: {name}")
    if problems:
        raise ListError(problems)
    return lists


def _configs(slots: str) -> list[tuple[str, str, str]]:
    """Give (config, slots file, ending of the subject files) for every config."""
    vocabularies = [(f"mlm-{vocabulary}", f"{slots}_lm", f"_{vocabulary}") for vocabulary in _VOCABULARIES]
    return [("qa", slots, ""), ("mlm", f"{slots}_lm", ""), *vocabularies]


def download(*, cache: Path | None = None, base_url: str = BASE_URL, sums: Mapping[str, str] = SUMS) -> Path:
    """Fetch the released lists once, check each file against its SHA-256, and give their folder.

    Parameters
    ----------
    cache : Path, optional
        Where they are kept; by default ``probesieve`` in the user's cache folder.
    base_url, sums
        Where the files lie, and SHA-256 by relative path.

    Raises
    ------
    NotFetchedError
        If there is no network, if HF_HUB_OFFLINE is set and a file is not there, or if one is not what was pinned.
    """
    if cache is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "probesieve"
    folder = cache / f"unqover-{COMMIT[:12]}"
    for path, expected in sums.items():
        target = folder / path
        if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == expected:
            continue
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in _YES:
            raise NotFetchedError(
                [
                    f"--lists released: HF_HUB_OFFLINE is set and {path} was not fetched before; run the same command "
                    "once with HF_HUB_OFFLINE=0, or pass a folder"
                ]
            )
        try:
            data = _get(f"{base_url}/{path}")
        except (OSError, http.client.HTTPException) as error:
            reason = error if isinstance(error, urllib.error.HTTPError) else getattr(error, "reason", error)
            message = (
                f"--lists released: cannot fetch {base_url}/{path} ({reason}); check the network, or pass a folder"
            )
            raise NotFetchedError([message]) from error
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            raise NotFetchedError(
                [f"--lists released: {path} has SHA-256 {found}, not the pinned {expected}; not used"]
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=target.parent) as beside:
            whole = Path(beside) / target.name
            whole.write_bytes(data)  # with the permissions of new files, which a temporary file has not
            whole.replace(target)
    return folder


def _get(url: str) -> bytes:
    """Fetch a file, again a few times where the server is busy or breaks off."""
    for attempt in range(_TRIES):
        pause = 2.0**attempt
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return cast(bytes, answer.read())
        except (urllib.error.HTTPError, http.client.IncompleteRead, http.client.RemoteDisconnected) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                asked = error.headers.get("Retry-After", "")
                pause = float(asked) if asked.isascii() and asked.isdigit() else pause
                if error.code not in (429, 500, 502, 503, 504) or pause > _LONGEST_PAUSE:
                    raise
            if attempt == _TRIES - 1:
                raise
        time.sleep(pause)
    raise AssertionError  # the last try returns or raises


class _Entry(NamedTuple):
    cluster: str | None
    text: str


class _Reader:
    """Reads the files below one folder and keeps the SHA-256 of each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sums: dict[str, str] = {}

    def _lines(self, path: str) -> list[tuple[int, str]]:
        try:
            data = read_bytes(self.root / path)
        except OSError as error:
            raise ListError([f"{self.root / path}: cannot be read ({error.strerror})"]) from error
        except FileError as error:
            raise ListError([f"{path}: {error}"]) from error
        self.sums[path] = hashlib.sha256(data).hexdigest()
        try:
            lines = data.decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise ListError([f"{path}: is not UTF-8 ({error})"]) from error
        return [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]

    def _entries(self, path: str) -> dict[str, list[_Entry]]:
        """Entries of a word list by type, in order."""
        entries: dict[str, list[_Entry]] = {}
        for number, line in self._lines(path):
            match = _ENTRY.fullmatch(line.strip())
            if not match:
                raise ListError([f"{path}: line {number}: expected '[type] text', not {line.strip()!r}"])
            cluster, bar, text = match[2].partition("|")
            if not bar:
                cluster, text = "", match[2]
            if not text.strip() or re.search(r"[\[\]]", text):
                what = "holds another [type]" if text.strip() else "is empty"
                raise ListError([f"{path}: line {number}: the entry of type [{match[1]}] {what}"])
            entries.setdefault(match[1], []).append(_Entry(cluster.strip() or None, text.strip()))
        return entries

    def subjects(self, path: str) -> list[Subject]:
        """Subjects of one file; ``[subj:dem]`` entries are the demonyms, in the same order."""
        entries = self._entries(path)
        names = entries.get("subj", [])
        forms = {kind.removeprefix("subj:"): words for kind, words in entries.items() if kind != "subj"}
        for form, words in forms.items():
            if len(words) != len(names):
                raise ListError([f"{path}: [subj:{form}] has {len(words)} entries, [subj] has {len(names)}"])
        return [
            Subject(name.text, name.cluster, {"name": name.text, **{f: w[i].text for f, w in forms.items()}})
            for i, name in enumerate(names)
        ]

    def attributes(self, path: str) -> dict[str, tuple[Attribute, ...]]:
        """Attributes by kind (``p_act``, ``l_act``), with a form for each type that the file has of that kind."""
        entries = self._entries(path)
        positive = {kind: words for kind, words in entries.items() if not kind.endswith(":neg")}
        kinds = dict.fromkeys(kind.removesuffix("-single") for kind in positive)
        attributes = {}
        for kind in kinds:
            forms = {form: words for form, words in positive.items() if form.removesuffix("-single") == kind}
            canonical = next(iter(forms.values()))
            for form, words in forms.items():
                for type_, listed in ((form, words), (f"{form}:neg", entries.get(f"{form}:neg", []))):
                    if len(listed) != len(canonical):
                        raise ListError([f"{path}: [{type_}] has {len(listed)} entries, [{kind}] has {len(canonical)}"])
            attributes[kind] = tuple(
                Attribute(
                    entry.text,
                    entry.cluster,
                    {form: (words[i].text, entries[f"{form}:neg"][i].text) for form, words in forms.items()},
                    path,
                )
                for i, entry in enumerate(canonical)
            )
        return attributes

    def templates(self, path: str) -> tuple[Template, ...]:
        """Templates of a slots file; their ids are made of the words and a hash, so they last as long as the words."""
        templates = []
        for number, line in self._lines(path):
            columns = line.split("\t")
            if len(columns) != 3:
                raise ListError([f"{path}: line {number}: has {len(columns)} columns between tabs, not 3"])
            where = f"{path}: line {number}"
            context, asked, negated = (_slots(column.strip(), where) for column in columns)
            kinds = {slot.form.removesuffix("-single") for slot in asked if isinstance(slot, Slot) and slot.form}
            if len(kinds) != 1:
                raise ListError([f"{where}: the question needs one attribute slot, as [p_act]"])
            templates.append(Template(_template_id(line), kinds.pop(), context, asked, negated, path))
        return tuple(templates)


def _slots(text: str, where: str) -> Text:
    pieces: list[str | Slot] = []
    for index, piece in enumerate(_SLOT.split(text)):
        if index % 2 == 0:
            pieces += [piece] if piece else []
            continue
        part, *rest = piece.split(":")
        if part in ("subj1", "subj2"):
            subject = cast(Literal["subject1", "subject2"], f"subject{part[-1]}")
            pieces.append(Slot(subject, rest[0] if rest else "name"))
        elif part.lower() == "mask":
            pieces.append(Slot("mask"))
        elif rest in ([], ["neg"]):
            pieces.append(Slot("attribute", part, negated=bool(rest)))
        else:
            raise ListError([f"{where}: [{piece}] is no slot; an attribute's is [p_act] or [p_act:neg]"])
    return tuple(pieces)


def _template_id(line: str) -> str:
    words = re.findall(r"[a-z]+", _SLOT.sub(" ", line.split("\t")[0]).lower())
    return "-".join([*words[:6], hashlib.sha256(line.strip().encode()).hexdigest()[:4]])
