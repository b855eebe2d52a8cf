"""What the Hub may refuse, each told in one line: tokens, rights, private, gated, revisions, no answer."""

from __future__ import annotations

from tests.hub_fixtures import (
    NEW,
    OLD,
    READER,
    REPO,
    STRANGER,
    TOKEN,
    WRONG,
    Make,
    Run,
    error,
    load,
    push,
    resolve,
)
from tests.hub_server import HubServer
from tests.hub_store import Answer, refusal


def test_tokens_and_rights(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    folder = make_folder()
    error(run_steps(push(folder, token=None))[0], "no Hugging Face token", "hf auth login", "HF_TOKEN")
    assert hub.log == []
    hub.create("org/theirs")
    hub.create("org/hidden", private=True)
    hub.once("POST", "/api/repos/create", lambda: refusal(500, message=f"cannot store\nBearer {TOKEN}"))
    outcomes = run_steps(
        push(folder, token=WRONG),
        push(folder, token=READER),
        push(folder, repo="org/other"),
        push(folder, token=STRANGER),
        push(folder, token=STRANGER, repo="org/theirs"),
        push(folder, token=STRANGER, repo="org/hidden"),
        resolve("main", token=WRONG, repo="org/theirs"),
    )
    error(outcomes[0], "refused the token (401)")
    error(outcomes[1], "can only read")
    error(outcomes[2], "answered 500", "Bearer ***")
    error(outcomes[3], "no right to create", "(403)", "org")
    error(outcomes[4], "no right to commit to", "(403)")
    error(outcomes[5], "org/hidden", "(403)")
    error(outcomes[6], "refused the token (401)")
    assert set(hub.repos) == {"org/theirs", "org/hidden"}
    assert not [repo for repo in hub.repos.values() if set(repo.files()) != {".gitattributes"} or repo.tags()]

    stored = run_steps({"do": "log in", "token": TOKEN}, push(folder, token=None))[1]["result"]
    assert stored["tagged"]


def test_revisions_that_cannot_be_had(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    run_steps(push(make_folder()))
    repo = hub.repos[REPO]
    hub.create("org/hidden", private=True)
    sha = repo.resolve("main")
    outcomes = run_steps(
        load("v1.0.0"),
        resolve("v1.0.1"),
        resolve("nowhere"),
        resolve("0" * 40),
        resolve(""),
        resolve(sha),
        resolve("main", repo="org/hidden"),
        resolve("main", repo="org/hidden", token=STRANGER),
        resolve("main", repo="org/hidden", token=TOKEN),
        resolve("main", repo="org/none"),
    )
    assert outcomes[0] == {"result": OLD}
    error(outcomes[1], "no revision 'v1.0.1'", "did you mean v1.0.0?")
    error(outcomes[2], "no revision 'nowhere'", "it has v1.0.0, main")
    error(outcomes[3], "no revision")
    error(outcomes[4], "no revision ''")
    assert outcomes[5] == {"result": sha}
    error(outcomes[6], "org/hidden", "private", "hf auth login")
    error(outcomes[7], "org/hidden", "private", "cannot see it")
    assert outcomes[8] == {"result": hub.repos["org/hidden"].resolve("main")}
    error(outcomes[9], "org/none does not exist")

    repo.gated = True
    outcomes = run_steps(resolve("v1.0.0"), resolve("v1.0.0", token=STRANGER), load(sha, token=STRANGER))
    error(outcomes[0], "gated", f"{hub.url}/datasets/{REPO}", "hf auth login")
    error(outcomes[1], "gated", f"{hub.url}/datasets/{REPO}")
    assert "gated dataset" in outcomes[2]["result"]["client_error"]
    repo.readers.add("stranger")
    outcomes = run_steps(resolve("v1.0.0", token=STRANGER), load(sha, token=STRANGER))
    assert outcomes == [{"result": sha}, {"result": OLD}]


def test_private_repositories(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    result = run_steps(push(make_folder(), private=True))[0]["result"]
    assert result["private"]
    assert hub.repos[REPO].private
    assert result["summary"].startswith(f"Pushed v1.0.0 to the private dataset {REPO}")
    stranger, owner, again = run_steps(
        load("v1.0.0", token=STRANGER),
        load("v1.0.0", token=TOKEN),
        push(make_folder("1.1.0", NEW), private=True),
    )
    assert "doesn't exist on the Hub or cannot be accessed" in stranger["result"]["client_error"]
    assert owner == {"result": OLD}
    assert again["result"]["tag"] == "v1.1.0"

    hub.repos[REPO].private = False
    before = hub.writes()
    error(run_steps(push(make_folder("1.2.0"), private=True))[0], "is public", "--private")
    assert hub.writes() == before


def test_an_owner_of_the_token_that_no_hub_names(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    hub.hooks.append(lambda how, path: Answer(200, [1]) if path.endswith("/whoami-v2") else None)
    error(run_steps(push(make_folder()))[0], f"find the owner of the token for {REPO}: {hub.url} answers, but not as a")


def test_no_answer_at_all(hub: HubServer, make_folder: Make, run_steps: Run) -> None:
    nobody = "http://127.0.0.1:9"  # the discard port, where nothing listens
    outcomes = run_steps(push(make_folder()), resolve("main"), endpoint=nobody)
    for outcome in outcomes:
        error(outcome, f"no answer from {nobody}", "HF_ENDPOINT")
