from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from builders.errors import HubError
from evaluation.classifiers.ood import OodRows, load_ood_spec, read_ood
from evaluation.errors import EvaluationError
from tests.evaluation.classifiers.ood_files import (
    DIAGNOSTIC_COLUMNS,
    HANS_COLUMNS,
    HEURISTICS,
    SHARED,
    STRESS_FILES,
    hans_row,
    hans_rows,
    write_anli,
    write_hans,
    write_jsonl,
    write_stress,
    write_tsv,
)
from tests.hub_server import HubServer

NLI = ["entailment", "neutral", "contradiction"]


def read_set(name: str, path: Path, **options: Any) -> OodRows:
    return read_ood(load_ood_spec(name), path, **options)


def test_hans_from_the_file_or_a_folder_of_it(tmp_path: Path) -> None:
    path = write_hans(tmp_path / "hans")
    found = read_set("hans", path)
    rows = found.rows
    assert rows.column_names == ["id", "premise", "hypothesis", "label", "source_index", "heuristic", "subcase"]
    assert rows.features["label"] == ClassLabel(names=["entailment", "non-entailment"])
    assert list(rows["id"]) == [f"ex{number}" for number in range(12)]
    assert list(rows["label"]) == [0, 0, 1, 1] * 3
    assert list(rows["source_index"]) == list(range(12))
    assert list(rows["heuristic"]) == [name for name in HEURISTICS for _ in range(4)]
    assert (found.unlabelled, found.origin) == (0, "local files: heuristics_evaluation_set.txt")
    again = read_set("hans", tmp_path)
    assert again.rows.to_list() == rows.to_list()
    path.write_bytes(path.read_bytes().replace(b"A dog ran", b"A cat ran"))
    assert read_set("hans", path).revision != found.revision


def test_hans_as_jsonl(tmp_path: Path) -> None:
    table = read_set("hans", write_hans(tmp_path)).rows.to_list()
    dicts = [dict(zip(HANS_COLUMNS, row, strict=True)) for row in hans_rows()]
    path = write_jsonl(tmp_path / "other" / "heuristics_evaluation_set.jsonl", dicts)
    assert read_set("hans", path).rows.to_list() == table


def test_texts_stay_exactly_as_they_stand(tmp_path: Path) -> None:
    odd = ' "A dog, "" ran\u2028 , NA .  '
    rows = [hans_row(number, "entailment", name, premise=odd) for number, name in enumerate(HEURISTICS)]
    rows[1][6] = "None"
    found = read_set("hans", write_tsv(tmp_path / "heuristics_evaluation_set.txt", HANS_COLUMNS, rows))
    assert list(found.rows["premise"]) == [odd] * 3
    assert list(found.rows["hypothesis"]) == ["A dog moved .", "None", "A dog moved ."]


def test_lines_that_end_as_on_windows(tmp_path: Path) -> None:
    path = write_hans(tmp_path)
    table = read_set("hans", path).rows.to_list()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_set("hans", path).rows.to_list() == table


def test_diagnostics_rows_are_in_every_category_that_tags_them(tmp_path: Path) -> None:
    rows = [
        ("Factivity", "", "Negation;Double Negation", "", "News", "p0", "h0", "entailment"),
        ("", "Restrictivity", "", "", "Papers;ACL", "p1", "h1", "neutral"),
        ("", "Ellipsis/Implicits", "", "World knowledge", "", "p2", "h2", "contradiction"),
    ]
    found = read_set("diagnostics", write_tsv(tmp_path / "diagnostic-full.tsv", DIAGNOSTIC_COLUMNS, rows))
    assert list(found.rows["category"]) == [
        ["lexical_semantics", "logic"],
        ["predicate_argument_structure"],
        ["predicate_argument_structure", "knowledge"],
    ]
    assert list(found.rows["logic"]) == [["Negation", "Double Negation"], [], []]
    assert list(found.rows["domain"]) == [["News"], ["Papers", "ACL"], []]
    assert list(found.rows["label"]) == [0, 1, 2]
    assert list(found.rows["id"]) == ["0", "1", "2"]  # the file numbers none


def test_stress_tests_by_kind(tmp_path: Path) -> None:
    rows = read_set("stress", write_stress(tmp_path)).rows
    assert rows.features["label"].names == NLI
    assert Counter(zip(rows["kind"], rows["test"], rows["half"], strict=True)) == {
        ("competence", "antonymy", "matched"): 1,
        ("competence", "antonymy", "mismatched"): 1,
        ("competence", "numerical_reasoning", None): 1,
        ("distraction", "word_overlap", "matched"): 1,
        ("distraction", "word_overlap", "mismatched"): 1,
        ("distraction", "negation", "matched"): 1,
        ("distraction", "negation", "mismatched"): 1,
        ("distraction", "length_mismatch", "matched"): 1,
        ("distraction", "length_mismatch", "mismatched"): 1,
        ("noise", "spelling_error", "matched"): 1,
        ("noise", "spelling_error", "mismatched"): 1,
    }


def test_other_misspellings_are_of_no_kind_and_may_be_missing(tmp_path: Path) -> None:
    write_stress(tmp_path)
    row = {"sentence1": "It si.", "sentence2": "It is.", "gold_label": "entailment"}
    write_jsonl(tmp_path / "Spelling_Error" / "multinli_0.9_dev_gram_swap_matched.jsonl", [row])
    last = read_set("stress", tmp_path).rows[-1]
    assert (last["kind"], last["test"], last["half"]) == (None, "spelling_error_swap", "matched")


def test_rows_whose_annotators_disagreed_are_counted_and_left_out(tmp_path: Path) -> None:
    write_stress(tmp_path)
    rows = [{"sentence1": "a", "sentence2": "b", "gold_label": label} for label in ("-", "neutral", "-")]
    write_jsonl(tmp_path / "Negation" / "multinli_0.9_negation_matched.jsonl", rows)
    found = read_set("stress", tmp_path)
    assert (len(found.rows), found.unlabelled) == (11, 2)


def test_anli_by_round_and_split(tmp_path: Path) -> None:
    write_anli(tmp_path / "anli_v1.0")
    write_anli(tmp_path / "anli_v1.0", "train")
    rows = read_set("anli", tmp_path).rows
    assert [(row["id"], row["round"], row["label"]) for row in rows] == [
        ("R1-dev", "R1", 0),
        ("R2-dev", "R2", 1),
        ("R3-dev", "R3", 2),
    ]
    assert rows[0]["premise"] == "It rains."
    assert list(read_set("anli", tmp_path, split="train").rows["id"]) == ["R1-train", "R2-train", "R3-train"]


def test_one_folder_may_hold_every_set(tmp_path: Path) -> None:
    write_hans(tmp_path / "hans")
    write_anli(tmp_path / "anli_v1.0")
    write_stress(tmp_path / "StressTests")
    assert [len(read_set(name, tmp_path).rows) for name in ("hans", "anli", "stress")] == [12, 3, 11]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: text.replace("sentence1\tsentence2", "premise\tsentence2"),
            r"no column 'sentence1' \(its columns:",
        ),
        (lambda text: text.split("\n")[0] + "\n", "has no rows"),
        (lambda text: "", "has no rows"),
        (lambda text: text.replace("subsequence", "constituent"), "no row of heuristic subsequence"),
        (
            lambda text: text.replace("\nnon-entailment", "\nnot-entailment", 1),
            r"line 4: label 'not-entailment' is none of entailment, non-entailment; did you mean 'non-entailment'",
        ),
        (lambda text: text.replace("\tt1", "", 1), "line 2: 10 fields, but the header has 11"),
    ],
)
def test_a_hans_file_that_is_not_one(tmp_path: Path, change: Any, said: str) -> None:
    path = write_hans(tmp_path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(EvaluationError, match=said) as raised:
        read_set("hans", path)
    assert "\n" not in str(raised.value)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    write_anli(tmp_path)
    (tmp_path / "R2" / "dev.jsonl").unlink()
    with pytest.raises(EvaluationError, match=r"it has no R2/dev\.jsonl or dev_r2\.jsonl; get the files from https"):
        read_set("anli", tmp_path)
    with pytest.raises(EvaluationError, match=r"no multinli_0\.9_antonym_matched\.jsonl, .* and 7 more;"):
        read_set("stress", tmp_path)
    with pytest.raises(EvaluationError, match=r"no diagnostic-full\.tsv; get the files from https"):
        read_set("diagnostics", tmp_path)
    with pytest.raises(EvaluationError, match=r"there is no .*absent"):
        read_set("hans", tmp_path / "absent")
    with pytest.raises(EvaluationError, match="Adversarial NLI is more than one file"):
        read_set("anli", tmp_path / "R1" / "dev.jsonl")
    assert sum(map(len, STRESS_FILES.values())) == 4 + 7  # four are named


def test_two_copies_are_not_chosen_between(tmp_path: Path) -> None:
    write_anli(tmp_path / "anli_v0.1")
    write_anli(tmp_path / "anli_v1.0")
    with pytest.raises(EvaluationError, match=r"has anli_v0.1/R1/dev.jsonl and anli_v1.0/R1/dev.jsonl"):
        read_set("anli", tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2, is not valid JSON"),
        ("[1]", "line 2, must be a JSON object, not list"),
        (
            '{"uid": "a", "context": "b", "hypothesis": null, "label": "e"}',
            "line 2: 'hypothesis' must be a text, not None",
        ),
        ('{"uid": "a", "context": "b", "hypothesis": "c", "label": "x"}', "line 2: label 'x' is none of entailment"),
        ('{"uid": "a", "context": "b", "hypothesis": "c", "label": 3}', "line 2: label 3 is none of entailment"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    write_anli(tmp_path)
    path = tmp_path / "R1" / "dev.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + line, encoding="utf-8")
    with pytest.raises(EvaluationError, match=said):
        read_set("anli", tmp_path)


def on_hub(hub: HubServer, folder: Path, repo_id: str, revision: str) -> str:
    """Let the Hub hold `folder` at a revision, which may be a commit, and give the sha."""
    sha = hub.publish(repo_id, folder)
    repo = hub.repos[repo_id]
    if len(revision) == 40:
        repo.commits[revision] = repo.commits[sha]
        return revision
    repo.refs[revision] = sha
    return sha


def test_anli_from_the_hub_at_its_pin(tmp_path: Path, hub_here: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # The order of the names is not the spec's: numbers mean what the file says.
    texts = {name: Value("string") for name in ("uid", "premise", "hypothesis", "reason")}
    features = Features({**texts, "label": ClassLabel(names=["contradiction", "entailment", "neutral"])})
    for number in (1, 2, 3):
        row = {"uid": f"u{number}", "premise": "p", "hypothesis": "h", "reason": "", "label": number - 1}
        path = tmp_path / "anli" / "plain_text" / f"dev_r{number}-00000-of-00001.parquet"
        path.parent.mkdir(exist_ok=True, parents=True)
        Dataset.from_list([row], features=features).to_parquet(path)
    (tmp_path / "anli" / "plain_text" / "train_r1-00000-of-00001.parquet").write_bytes(b"large")
    spec = load_ood_spec("anli")
    assert spec.hub is not None
    on_hub(hub_here, tmp_path / "anli", "facebook/anli", spec.hub.revision)
    found = read_ood(spec)
    assert not [path for _, path in hub_here.log if "train_r1" in path]
    assert found.revision == spec.hub.revision == "8e4813d81f46d313dac7892e1c28076917cfcdf9"
    assert [(row["id"], row["round"], row["label"]) for row in found.rows] == [
        ("u1", "R1", 2),
        ("u2", "R2", 0),
        ("u3", "R3", 1),
    ]
    with pytest.raises(EvaluationError, match=r"has no plain_text/test_r1-\*\.parquet, no .*: pass the folder"):
        read_ood(spec, split="test")
    asked = len(hub_here.log)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert read_ood(spec).rows[:] == found.rows[:]
    assert len(hub_here.log) == asked


def test_hans_from_the_hub_at_a_branch(tmp_path: Path, hub_here: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"premise": "p", "hypothesis": "h", "label": label, "heuristic": name, "subcase": "s"}
        for name in HEURISTICS
        for label in (0, 1)
    ]
    path = tmp_path / "hans" / "plain_text" / "validation" / "0000.parquet"
    path.parent.mkdir(parents=True)
    Dataset.from_list(rows).to_parquet(path)
    sha = on_hub(hub_here, tmp_path / "hans", "jhu-cogsci/hans", "refs/convert/parquet")
    found = read_ood(load_ood_spec("hans"))
    assert found.revision == sha
    assert list(found.rows["label"]) == [0, 1] * 3  # numbers without names are those of the spec
    assert read_ood(load_ood_spec("hans"), revision=sha).revision == sha
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert read_ood(load_ood_spec("hans")).revision == sha


def test_what_the_hub_does_not_have(tmp_path: Path, hub_here: HubServer) -> None:
    with pytest.raises(EvaluationError, match=r"Stress tests is not on the Hub: get it from https"):
        read_ood(load_ood_spec("stress"))
    with pytest.raises(EvaluationError, match="has no revision 'main': leave it out"):
        read_set("hans", write_hans(tmp_path), revision="main")
    with pytest.raises(HubError, match="facebook/anli does not exist on http"):
        read_ood(load_ood_spec("anli"))


def test_the_shared_copies_are_read_whole() -> None:
    if not (SHARED / "hans").is_dir():
        pytest.skip("needs the shared copies of HANS and ANLI")
    hans = read_set("hans", SHARED / "hans").rows
    assert Counter(zip(hans["heuristic"], hans["label"], strict=True)) == {
        (name, label): 500 for name in HEURISTICS for label in (0, 1)
    }
    assert Counter(read_set("anli", SHARED / "anli").rows["round"]) == {"R1": 1000, "R2": 1000, "R3": 1198}
