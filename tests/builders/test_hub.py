"""Pushing, end to end: the real clients, each in its process, and a Hub on 127.0.0.1."""

from __future__ import annotations

import functools
from pathlib import Path

from builders.folder import MANIFEST
from tests.hub_faults import Fault
from tests.hub_fixtures import (
    CARD,
    NEW,
    OLD,
    REPO,
    STRANGER,
    Make,
    Run,
    contents,
    error,
    load,
    published,
    push,
    resolve,
)
from tests.hub_server import HubServer
from tests.hub_store import Answer, File, refusal


def test_a_version_stays_what_it_was(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    old, new = make_folder("1.0.0", OLD, shards=2), make_folder("1.1.0", NEW)
    first, second = (step["result"] for step in run_steps(push(old), push(new)))
    assert first["created"]
    assert first["tagged"]
    assert first["tag"] == "v1.0.0"
    assert not second["created"]
    assert second["deleted"] == [f"qa/test-0000{i}-of-00002.parquet" for i in (0, 1)]
    assert second["overwritten"] == []
    assert hub.repos[REPO].tags() == {"v1.0.0": first["sha"], "v1.1.0": second["sha"]}
    assert published(hub, "v1.0.0") == contents(old)
    assert published(hub, "v1.1.0") == published(hub, "main") == contents(new)
    assert [path for _, path in hub.writes()].count(f"/api/datasets/{REPO}/commit/main") == 2

    served = [path for how, path in hub.log if how == "GET" and f"/resolve/{second['sha']}/" in path]
    fetched = {path.split(f"/{second['sha']}/")[1] for path in served}
    assert fetched == set(contents(new))

    before = hub.writes()
    outcomes = run_steps(
        push(new),
        push(make_folder("1.0.0", NEW)),
        load("v1.0.0"),
        load("v1.1.0"),
        load(first["sha"]),
        resolve("v1.0.0"),
        {"do": "verify", "repo": REPO, "revision": "v1.1.0", "folder": str(new)},
        {"do": "verify", "repo": REPO, "revision": "v1.0.0", "folder": str(new)},
    )
    again = outcomes[0]["result"]
    assert [again[key] for key in ("published", "tagged", "loaded_back", "added")] == [True, True, True, []]
    assert again["sha"] == second["sha"]
    assert again["summary"].startswith(f"v1.1.0 of {REPO} is published already")
    error(outcomes[1], "v1.0.0 already", "never moved", "higher --version")
    assert hub.writes() == before
    assert [step["result"] for step in outcomes[2:7]] == [OLD, NEW, OLD, first["sha"], second["sha"]]
    error(outcomes[7], "revision v1.0.0", "README.md differs")


def test_a_bad_folder_is_refused_before_any_request(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    edited, missing, extra, unfinished = make_folder(), make_folder(), make_folder(), make_folder()
    (edited / "README.md").write_text(CARD + "edited", encoding="utf-8")
    (missing / "qa" / "test-00000-of-00001.parquet").unlink()
    (extra / "qa" / "notes.txt").write_text("mine", encoding="utf-8")
    (unfinished / MANIFEST).unlink()
    cases = [
        (push(edited), "README.md"),
        (push(missing), "test-00000-of-00001.parquet is missing"),
        (push(extra), "notes.txt"),
        (push(unfinished), MANIFEST),
        (push(make_folder(config="a/b")), "'a/b'"),
        (push(make_folder(split="te-st")), "'te-st'"),
        (push(make_folder(version="1.0")), "'1.0'"),
        (push(make_folder(), repo="unqover-religion"), "ORG/NAME"),
        (push(make_folder(), repo="org/un--qover"), "ORG/NAME"),
        (push(make_folder(), repo="org/unqover/religion"), "ORG/NAME"),
        (resolve("main", repo="-org/x"), "ORG/NAME"),
    ]
    for outcome, (_, part) in zip(run_steps(*(step for step, _ in cases)), cases, strict=True):
        error(outcome, part, kind="BuildError")
    assert hub.log == []


def test_a_dry_run_writes_nothing(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    old, new = make_folder("1.0.0", OLD, shards=2), make_folder("1.1.0", NEW)
    fresh = run_steps(push(old, dry_run=True, private=True))[0]["result"]
    assert hub.writes() == []
    assert not hub.repos
    assert fresh["dry_run"]
    assert fresh["created"]
    assert not fresh["tagged"]
    assert fresh["sha"] is None
    assert set(fresh["added"]) == set(contents(old))
    assert fresh["bytes"] == sum(map(len, contents(old).values()))
    assert "nothing was sent" in fresh["summary"]
    assert "private dataset repository would be created" in fresh["summary"]

    run_steps(push(old))
    before = hub.writes()
    update, done = run_steps(push(new, dry_run=True), push(old, dry_run=True))
    assert set(update["result"]["added"]) == set(contents(new))
    assert len(update["result"]["deleted"]) == 2
    assert "  delete qa/test-00000-of-00002.parquet" in update["result"]["summary"]
    assert done["result"]["published"]
    assert "v1.0.0 of org/unqover-religion is published already" in done["result"]["summary"]
    assert hub.writes() == before


def test_a_pull_request_is_tagged_after_its_merge(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    old, new = make_folder("1.0.0", OLD), make_folder("1.1.0", NEW)
    run_steps(push(old))
    repo = hub.repos[REPO]
    refs = dict(repo.refs)
    opened = run_steps(push(new, token=STRANGER, create_pr=True))[0]["result"]
    assert repo.refs == refs | {"refs/pr/1": opened["sha"]}
    assert not opened["tagged"]
    assert opened["tag"] is None
    assert opened["url"] == opened["pull_request"] == f"{hub.url}/datasets/{REPO}/discussions/1"
    assert "After the merge run the same push without --create-pr" in opened["summary"]
    assert published(hub, "refs/pr/1") == contents(new)

    merged = repo.add("refs/heads/main", repo.commits[opened["sha"]].files, "Merge", repo.resolve("main"))
    before = hub.writes()
    again, done, rows = run_steps(push(new, create_pr=True), push(new), load("v1.1.0"))
    error(again, "holds these files already", "without --create-pr")
    assert done["result"]["continued"]
    assert done["result"]["sha"] == merged
    assert repo.tags()["v1.1.0"] == merged
    assert rows == {"result": NEW}
    assert hub.writes() == [*before, ("POST", f"/api/datasets/{REPO}/tag/{merged}")]


def test_a_push_killed_before_the_tag_is_continued(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    folder = make_folder()
    run_steps({"do": "die at tag"}, push(folder), code=9)
    repo = hub.repos[REPO]
    sha = repo.resolve("main")
    assert repo.tags() == {}
    assert published(hub, "main") == contents(folder)
    before = hub.writes()
    dry, done = run_steps(push(folder, dry_run=True), push(folder))
    assert dry["result"]["continued"]
    assert "only v1.0.0 is missing" in dry["result"]["summary"]
    assert done["result"]["continued"]
    assert done["result"]["tagged"]
    assert repo.tags() == {"v1.0.0": sha}
    assert hub.writes() == [*before, ("POST", f"/api/datasets/{REPO}/tag/{sha}")]


def test_what_comes_back_wrong_is_reported(hub: HubServer, make_folder: Make, run_steps: Run, tmp_path: Path) -> None:
    data, home = "qa/test-00000-of-00001.parquet", tmp_path / "home"
    folder = make_folder()
    verify = {"do": "verify", "repo": REPO, "revision": "v1.0.0", "folder": str(folder)}
    hub.faults = [Fault("GET", f"/{data}$", corrupt=True)]
    error(run_steps(push(folder))[0], "tag v1.0.0", "other bytes", data)

    hub.faults.clear()
    cached, right = run_steps(load("v1.0.0"), verify, home=home)
    assert cached["result"] == OLD
    assert right["result"] == hub.repos[REPO].resolve("v1.0.0")
    hub.faults = [
        Fault("GET", "/README.md$", corrupt=True)
    ]  # the right one is in the cache now and must not be what is compared
    error(run_steps(verify, home=home)[0], "revision v1.0.0", "other bytes", "README.md")

    hub.faults.clear()
    card = (folder / "README.md").read_bytes()

    def lose() -> None:  # the commit that the Hub made lacks a file
        repo = hub.repos["org/lost"]
        del repo.commits[repo.resolve("main")].files[data]

    def alter() -> None:  # it has another file of the same size
        repo = hub.repos["org/altered"]
        repo.commits[repo.resolve("main")].files["README.md"] = File(card.swapcase(), lfs=False)

    hub.once("GET", "/lost/tree/", lose)
    hub.once("GET", "/altered/tree/", alter)
    lost, altered = run_steps(push(folder, repo="org/lost"), push(folder, repo="org/altered"))
    error(lost, "not the folder", f"{data} is missing there", "not tagged")
    error(altered, "not the folder", "README.md differs", "not tagged")
    assert hub.repos["org/lost"].tags() == hub.repos["org/altered"].tags() == {}


def test_races_and_failures_of_the_server(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    repo = hub.create(REPO)
    other = File(b"---\n---\nother", lfs=False)

    def commit() -> None:
        repo.add("refs/heads/main", {"README.md": other}, "meanwhile", repo.resolve("main"))

    def tag() -> None:
        repo.refs["refs/tags/v1.0.0"] = next(iter(repo.commits))

    def create() -> None:
        hub.create("org/race")

    hub.once("GET", "/whoami-v2", lambda: refusal(429))  # proves nothing, so the push goes on
    hub.once("POST", "/commit/", commit)
    hub.once("POST", "/tag/", tag)
    hub.once("POST", "/create", create)
    folder = make_folder()
    stale, lost, created = run_steps(push(folder), push(folder), push(folder, repo="org/race"))
    error(stale, "changed by someone else", "(412)", "push again")
    error(lost, "tag v1.0.0", "set by someone else", "never moved")
    assert repo.tags() == {"v1.0.0": next(iter(repo.commits))}
    error(created, "org/race (409)")

    answers = [
        ("POST", "/preupload/", refusal(404, message="gone"), "answered 404 (gone)"),
        ("POST", "/validate-yaml", Answer(400, {"errors": [{"message": "bad licence"}]}), "bad licence"),
        ("POST", "/commit/", refusal(429), "slow down (429)"),
        ("POST", "/tag/", Answer(200, {}), "no revision 'v2.0.0'"),  # says yes and does nothing
    ]
    for how, part, answer, _ in answers:
        hub.once(how, part, functools.partial(lambda given: given, answer))
    folder = make_folder("2.0.0")
    for outcome, (*_, said) in zip(run_steps(*[push(folder, repo="org/race")] * 4), answers, strict=True):
        error(outcome, said)


def test_content_of_others_is_not_touched(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    theirs = hub.create("org/theirs")
    theirs.add("refs/heads/main", {"train.csv": File(b"a\n1\n", lfs=False)}, "mine", theirs.resolve("main"))
    manifest = hub.create("org/manifest")
    manifest.add("refs/heads/main", {MANIFEST: File(b"[]", lfs=False)}, "mine", manifest.resolve("main"))
    card = hub.create("org/card")
    card.add("refs/heads/main", {"README.md": File(b"from the web", lfs=False)}, "mine", card.resolve("main"))
    ahead = make_folder("1.1.0", NEW)
    run_steps(push(ahead), push(make_folder("0.9.0", name="unqover-gender"), repo="org/gender"))
    repo = hub.repos[REPO]
    before, refs = hub.writes(), dict(repo.refs)
    outcomes = run_steps(
        push(make_folder(), repo="org/theirs"),
        push(make_folder(), repo="org/manifest"),
        push(make_folder(), repo="org/gender"),
        push(make_folder("1.0.0")),
    )
    error(outcomes[0], "org/theirs holds train.csv", "another name")
    error(outcomes[1], "not ours")
    error(outcomes[2], "holds unqover-gender, not unqover-religion")
    error(outcomes[3], "at version 1.1.0", "go back to 1.0.0")
    assert hub.writes() == before
    assert repo.refs == refs

    files = repo.commits[repo.resolve("main")].files
    edited = files | {"README.md": File(b"---\n---\nedited on the web", lfs=False)}
    repo.add("refs/heads/main", edited, "a hand", repo.resolve("main"))
    newer = make_folder("1.2.0", NEW)
    dry, replaced, lone = run_steps(push(newer, dry_run=True), push(newer), push(make_folder(), repo="org/card"))
    assert dry["result"]["summary"].endswith("Edited on the Hub since, would be replaced: README.md")
    assert replaced["result"]["overwritten"] == lone["result"]["overwritten"] == ["README.md"]
    assert repo.files(repo.commits[repo.resolve("main")].parent or "")["README.md"].endswith(b"edited on the web")
    assert published(hub, "v1.0.0", "org/card") == contents(make_folder())

    stray = repo.commits[repo.resolve("main")].files | {"qa/test-stray.parquet": File(b"PAR1", lfs=True)}
    repo.add("refs/heads/main", stray, "a hand", repo.resolve("main"))
    error(
        run_steps(push(make_folder("1.3.0")))[0],
        "holds qa/test-stray.parquet",
        "no version of this dataset brought",
    )
