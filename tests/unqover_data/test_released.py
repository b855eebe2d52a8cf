"""Lists in the released text format, and the way they are fetched."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub_faults import Fault
from tests.hub_server import HubServer
from unqover_data import ListError, NotFetchedError, Slot
from unqover_data.released import download, read_released
from unqover_data.released_sums import SUMS


def test_every_form_of_entry_is_read(released_folder: Path) -> None:
    lists = read_released(released_folder, "nationality")
    assert lists.edition == "custom"
    assert [s.name for s in lists.configs["qa"].subjects] == ["Mali", "Somalia", "Ireland"]
    assert lists.configs["qa"].subjects[2].forms == {"name": "Ireland", "dem": "Irish"}
    assert [a.attribute_class for a in lists.attributes["p_act"]] == ["crime", "rude"]
    assert lists.attributes["p_act"][0].name == "were thieves"
    assert lists.attributes["p_act"][0].forms["p_act-single"] == ("was a thief", "was honest")
    move, meet = lists.configs["qa"].templates
    assert (move.kind, meet.kind) == ("l_act", "p_act")
    assert move.asked == ("Which place ", Slot("attribute", "l_act-single"), "?")
    assert move.negated == ("Which place ", Slot("attribute", "l_act-single", negated=True), "?")
    # 3 pairs x (1 place + 2 people attributes); the masked-LM file has only the template of people.
    assert {config: lists.rows(config) for config in lists.configs} == {"qa": 9, "mlm": 6, "mlm-bert": 2}


def test_groups_are_the_clusters_before_the_bar(released_folder: Path) -> None:
    subjects = released_folder / "nouns/subjects"
    (subjects / "female").write_text("[subj]  female | Ann\n[subj] female | Eve")
    (subjects / "male").write_text("[subj]  male | Bob\n[subj] male | Tom")
    (released_folder / "slots/gender_noact").write_text("[subj1] met [subj2].\tWho [p_act]?\tWho [p_act:neg]?")
    (released_folder / "activities/occupation_rev1").write_text("[p_act] was a cook\n\n[p_act:neg] can never be a cook")
    lists = read_released(released_folder, "gender")
    assert [(a.name, b.name) for a, b in lists.subject_pairs("qa")] == [
        ("Ann", "Bob"),
        ("Ann", "Tom"),
        ("Eve", "Bob"),
        ("Eve", "Tom"),
    ]
    assert lists.attributes["p_act"][0].attribute_class is None


def test_template_ids_last_as_long_as_their_words(released_folder: Path) -> None:
    def ids() -> list[str]:
        return [template.id for template in read_released(released_folder, "nationality").configs["qa"].templates]

    before = ids()
    slots = released_folder / "slots/country_noact"
    slots.write_text("[subj1] likes [subj2].\tWho [p_act]?\tWho [p_act:neg]?\n" + slots.read_text())
    assert ids()[1:] == before


FAULTS = [
    (
        "slots/country_noact",
        "\tWho [p_act-single]?",
        "",
        "slots/country_noact: line 3: has 2 columns between tabs, not 3",
    ),
    (
        "slots/country_noact",
        "Who [p_act-single:neg]?",
        "Who [p_act-singel:neg]?",
        "attribute 'were thieves' lacks the form",
    ),
    (
        "slots/country_noact",
        "Who [p_act-single:neg]?",
        "Who [p_act-single]?",
        "negated question: does not ask the negation",
    ),
    (
        "slots/country_noact",
        "Who [p_act-single:neg]?",
        "Who [p_act-single:no]?",
        "line 3: [p_act-single:no] is no slot",
    ),
    (
        "slots/country_noact",
        "Who [p_act-single:neg]?",
        "Who is [subj1]?",
        "has a slot for subject1, which does not belong",
    ),
    (
        "slots/country_noact",
        "Who [p_act-single]?",
        "Who [p_act-single:neg]?",
        "question: asks the negation of the attrib",
    ),
    (
        "slots/country_noact",
        "Who [p_act-single]?",
        "[mask] [p_act-single]?",
        "has a slot for mask, which does not belong",
    ),
    (
        "nouns/subjects/country",
        "[subj] Mali\n",
        "[subj] Mali[subj] Chad\n",
        "line 1: the entry of type [subj] holds another",
    ),
    ("slots/country_noact", "[subj2:dem]", "[subj1:dem]", "needs the slot for subject2 exactly once, has it 0 times"),
    ("slots/country_noact", "Who [p_act-single]?\t", "Who?\t", "line 3: the question needs one attribute slot"),
    ("activities/biased_country", "[p_act:neg] rude| were quiet\n", "", "[p_act:neg] has 1 entries, [p_act] has 2"),
    ("activities/biased_country", "| was smelly", "|", "line 4: the entry of type [l_act-single] is empty"),
    ("activities/biased_country", "[l_act] dirty", "l_act dirty", "line 2: expected '[type] text'"),
    (
        "nouns/subjects/country",
        "[subj:dem] Somali\n",
        "",
        "nouns/subjects/country: [subj:dem] has 2 entries, [subj] has 3",
    ),
    ("nouns/subjects/country", "[subj] Mali\n", "[subj] Ireland\n", "subjects: name: 'Ireland' stands 2 times"),
]


@pytest.mark.parametrize(("file", "good", "bad", "message"), FAULTS)
def test_a_fault_is_named_by_file_and_line_or_entry(
    released_folder: Path, file: str, good: str, bad: str, message: str
) -> None:
    path = released_folder / file
    assert good in path.read_text()
    path.write_text(path.read_text().replace(good, bad, 1))
    with pytest.raises(ListError) as caught:
        read_released(released_folder, "nationality")
    assert any(message in problem for problem in caught.value.problems), caught.value.problems


def test_a_missing_file_and_an_unknown_class_are_named(released_folder: Path) -> None:
    with pytest.raises(ListError, match=r"slots/religion_noact.*cannot be read|biased_religion: cannot be read"):
        read_released(released_folder, "religion")
    with pytest.raises(ListError, match="has no class 'age'"):
        read_released(released_folder, "age")
    with pytest.raises(ListError, match="is not in the released layout: it has no folder slots"):
        read_released(released_folder / "nouns", "religion")


def test_lists_that_differ_from_the_released_do_not_claim_to_be_them(released_folder: Path) -> None:
    lists = read_released(released_folder, "nationality")
    assert (lists.edition, lists.license, lists.limits, lists.sources) == ("custom", None, (), ())
    assert "released lists" not in lists.title


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """Serves one file and keeps the paths that were asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[subj] Ann\n")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}", asked
        httpd.shutdown()


def test_downloads_are_checked_and_fetched_once(tmp_path: Path, server: tuple[str, list[str]]) -> None:
    url, asked = server
    sums = {"nouns/subjects/female": hashlib.sha256(b"[subj] Ann\n").hexdigest()}
    folder = download(cache=tmp_path / "cache", base_url=url, sums=sums)
    assert (folder / "nouns/subjects/female").read_bytes() == b"[subj] Ann\n"
    download(cache=tmp_path / "cache", base_url=url, sums=sums)
    assert asked == ["/nouns/subjects/female"]
    (folder / "nouns/subjects/female").write_text("edited")
    download(cache=tmp_path / "cache", base_url=url, sums=sums)
    assert (folder / "nouns/subjects/female").read_bytes() == b"[subj] Ann\n"


def test_a_file_that_is_not_the_pinned_one_is_refused_and_not_kept(
    tmp_path: Path, server: tuple[str, list[str]]
) -> None:
    with pytest.raises(ListError, match=r"a/b has SHA-256 [0-9a-f]{64}, not the pinned 0000; not used"):
        download(cache=tmp_path / "cache", base_url=server[0], sums={"a/b": "0000"})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("fault", "times", "said"),
    [
        ({"status": 404}, 1, "HTTP Error 404"),
        ({"status": 403}, 1, "HTTP Error 403"),
        ({"status": 429, "retry_after": "3"}, 4, "HTTP Error 429"),
        ({"status": 429, "retry_after": "86400"}, 1, "HTTP Error 429"),
        ({"status": 503}, 4, "HTTP Error 503"),
        ({"cut": 0.5}, 4, "IncompleteRead"),
        ({"cut": -1}, 4, "closed connection without response"),
        ({"html": True}, 1, "has SHA-256"),
    ],
    ids=str,
)
def test_a_fault_of_the_server_is_one_line_after_a_few_tries(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any], times: int, said: str
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("unqover_data.released.time.sleep", lambda seconds: slept.append(seconds) if seconds else None)
    file, cache = tmp_path / "lists" / "a", tmp_path / "cache"
    file.parent.mkdir()
    file.write_bytes(b"[subj] Ann\n")
    base_url = f"{hub.url}/datasets/org/lists/resolve/{hub.publish('org/lists', file.parent)}"
    sums = {"a": hashlib.sha256(b"[subj] Ann\n").hexdigest()}
    hub.faults.append(Fault("GET", "/a$", **fault))
    with pytest.raises(NotFetchedError, match=said) as caught:
        download(cache=cache, base_url=base_url, sums=sums)
    assert "\n" not in str(caught.value)
    assert len(hub.faults[0].seen) == times
    assert not list(cache.rglob("a"))
    assert slept == ([3, 3, 3] if fault.get("retry_after") == "3" else [1, 2, 4])[: times - 1]
    hub.faults.clear()
    assert (download(cache=cache, base_url=base_url, sums=sums) / "a").is_file()


def test_without_a_network_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ListError, match=r"cannot fetch http://127.0.0.1:9/.*check the network, or pass a folder"):
        download(cache=tmp_path, base_url="http://127.0.0.1:9", sums={"a": "0"})


def test_offline_nothing_is_asked(
    server: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = server
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(NotFetchedError, match=r"HF_HUB_OFFLINE is set and a/b was not fetched before; run the same"):
        download(cache=tmp_path, base_url=url, sums={"a/b": "0000"})
    assert asked == []


SHARED = Path(__file__).parents[3] / "shared" / "unqover-released"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the released lists are not on this machine")
def test_the_pinned_sums_are_those_of_the_released_files() -> None:
    for path, expected in SUMS.items():
        assert hashlib.sha256((SHARED / "word_lists" / path).read_bytes()).hexdigest() == expected
    for name in ("gender", "nationality", "ethnicity", "religion"):
        assert read_released(SHARED, name).edition == "released"
