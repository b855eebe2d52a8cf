"""Filtered folders: nothing is lost, everything adds up, it loads, and equal inputs give equal bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from builders.aflite import build_aflite
from builders.errors import BuildError
from builders.filtered import FILTERED, WARMUP, Outcome, draw_baseline
from builders.filtered_cards import cell
from builders.folder import Built, verify_folder
from builders.owner_words import SECTION
from tests.builders.filtered_sets import NAMES, SIZES, build, spec_of, write_features, write_source


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("filtered"))


def load(folder: Path, config: str, cache: Path) -> dict[str, list[dict[str, object]]]:
    from datasets import load_dataset

    loaded = load_dataset(str(folder), config, cache_dir=str(cache))
    return {split: list(rows) for split, rows in loaded.items()}


def test_every_labelled_row_is_there_once_and_as_it_was(built: Built, tmp_path: Path) -> None:
    seen: dict[str, dict[int, dict[str, object]]] = {split: {} for split in SIZES}
    for config in built.manifest["configs"]:
        for split, rows in load(built.folder, config, tmp_path).items():
            for row in rows:
                assert row["source_index"] not in seen[split]
                seen[split][int(str(row["source_index"]))] = row
    for split in SIZES:
        lines = (built.folder.parents[1] / "source" / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        source = {number: json.loads(line) for number, line in enumerate(lines)}
        labelled = {number: row for number, row in source.items() if row["label"] >= 0}
        assert seen[split].keys() == labelled.keys()
        for number, row in labelled.items():
            assert {name: seen[split][number][name] for name in row} == row


def test_counts_add_up(built: Built) -> None:
    counts = built.manifest["counts"]
    assert {split: of["source"] for split, of in counts.items()} == SIZES
    for split, of in counts.items():
        assert of["source"] == of["unlabelled"] + of["warmup"] + of["removed"] + of["filtered"]
        assert of["unlabelled"] == len(range(3, SIZES[split], 20))
        for config in ("filtered", "removed"):
            assert built.manifest["configs"][config].get(split, {"rows": 0})["rows"] == of[config]
    phases = built.manifest["filter"]["phases"]
    assert sum(phase["removed"] for phase in phases) == sum(of["removed"] for of in counts.values())
    for config, labels in built.manifest["labels"].items():
        assert sum(labels.values()) == sum(of[config] for of in counts.values())
    verify_folder(built.folder)


def test_scores_say_what_happened(built: Built, tmp_path: Path) -> None:
    kept = [row for rows in load(built.folder, "filtered", tmp_path).values() for row in rows]
    removed = [row for rows in load(built.folder, "removed", tmp_path).values() for row in rows]
    assert all(row["removed_in_phase"] is None for row in kept)
    phases = [row["removed_in_phase"] for row in removed]
    for phase in built.manifest["filter"]["phases"]:
        assert phases.count(phase["phase"]) == phase["removed"]
    assert min(float(str(row["predictability"])) for row in removed) >= 0.75
    subset = [row for row in kept + removed if row["in_random_subset"]]
    assert len(subset) == len(kept)


def test_easy_rows_leave(built: Built, tmp_path: Path) -> None:
    labels = write_source(tmp_path / "source")
    easy = write_features(tmp_path / "features.npy", labels)
    sizes = built.manifest["labels"]
    removed = sum(sizes["removed"].values())
    assert removed == labels.size - 150
    places = {}
    for split in SIZES:
        lines = (tmp_path / "source" / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        labelled = [number for number, line in enumerate(lines) if json.loads(line)["label"] >= 0]
        places |= {(split, number): len(places) + i for i, number in enumerate(labelled)}
    left = [
        places[split, int(str(row["source_index"]))]
        for split, rows in load(built.folder, "removed", tmp_path).items()
        for row in rows
    ]
    assert easy[left].mean() > 0.95


def test_equally_predictable_rows_leave_all_splits_alike(tmp_path: Path) -> None:
    """All 380 rows are easy, so nearly all score 1.0, and which of them leave is up to the order alone."""
    done = build(tmp_path, "filter.n=190", easy_share=1.0)
    counts = done.manifest["counts"]
    shares = {split: of["removed"] / (of["removed"] + of["filtered"]) for split, of in counts.items()}
    # Half of the rows leave; the standard deviation of the share of 38 rows of a random order is 0.08.
    assert all(abs(share - 0.5) < 0.25 for share in shares.values()), shares


def test_the_folder_passes_the_checks_of_datasets(built: Built, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "datasets.commands.datasets_cli", "test", str(built.folder), "--all_configs"]
    done = subprocess.run([*command, "--cache_dir", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_rebuilt_rows_are_the_same_bytes(built: Built, tmp_path: Path) -> None:
    again = build(tmp_path)
    sums = {name: entry["sha256"] for name, entry in built.manifest["files"].items() if name.endswith(".parquet")}
    assert sums == {
        name: entry["sha256"] for name, entry in again.manifest["files"].items() if name.endswith(".parquet")
    }
    assert not build_again(again).fresh


def build_again(done: Built, *overrides: str, out: Path | None = None) -> Built:
    root = done.folder.parents[1]
    inputs = {"source": root / "source", "features": root / "features.npy"}
    return build_aflite(spec_of(*overrides), out or root / "out", **inputs)


def test_other_inputs_do_not_pass_for_the_same(built: Built) -> None:
    with pytest.raises(BuildError, match="exists already; pass --overwrite"):
        build_again(built, "seed=1")
    with pytest.raises(BuildError, match="exists already; pass --overwrite"):
        build_again(built, "breakdown=label")
    with pytest.raises(BuildError, match="exists already; pass --overwrite"):
        build_again(built, "source.config=other")


def test_a_folder_in_the_way_is_told_before_the_work(built: Built) -> None:
    work = built.folder.parents[1] / "out" / ".work"
    before = sorted(work.rglob("*.npz"))
    with pytest.raises(BuildError, match="exists already"):
        build_again(built, "filter.tau=0.8")
    assert before
    assert sorted(work.rglob("*.npz")) == before


def test_splits_that_are_not_filtered_are_kept_whole(tmp_path: Path) -> None:
    labels = write_source(tmp_path / "source")
    train = labels[: SIZES["train"] - len(range(3, SIZES["train"], 20))]
    write_features(tmp_path / "features.npy", train)
    done = build_aflite(
        spec_of('source.filtered=["train"]', "filter.n=120"),
        tmp_path / "out",
        source=tmp_path / "source",
        features=tmp_path / "features.npy",
    )
    counts = done.manifest["counts"]
    assert counts["validation"]["removed"] == counts["test"]["removed"] == 0
    assert counts["validation"]["filtered"] == SIZES["validation"] - counts["validation"]["unlabelled"]
    assert "validation" not in done.manifest["configs"]["removed"]
    rows = load(done.folder, "filtered", tmp_path / "cache")["validation"]
    assert {row["predictability"] for row in rows} == {None}
    assert {row["times_scored"] for row in rows} == {0}
    assert all(row["in_random_subset"] for row in rows)
    labels_of = done.manifest["labels"]
    assert sum(labels_of["filtered"].values()) == counts["train"]["filtered"]
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert "Not filtered, but kept whole and without scores: `validation`, `test`." in card


def test_the_code_of_the_card_loads(built: Built, tmp_path: Path) -> None:
    """Also where the first split of the kept rows has no removed ones, or nothing was removed."""
    labels = write_source(tmp_path / "source")
    size = SIZES["train"] - len(range(3, SIZES["train"], 20))
    write_features(tmp_path / "features.npy", labels[size : size + 57])
    options = {"source": tmp_path / "source", "features": tmp_path / "features.npy"}
    overrides = ['source.filtered=["validation"]', "filter.n=20", "filter.t=10", "filter.k=5"]
    later = build_aflite(spec_of(*overrides), tmp_path / "later", **options)
    scored = build_aflite(spec_of(*overrides, "filter.k=0"), tmp_path / "scored", **options)
    assert run_code_of_card(built) == {"kept", "removed", "scored", "baseline"}
    assert run_code_of_card(later) == {"kept", "removed", "scored", "baseline"}
    assert run_code_of_card(scored) == {"kept"}


def run_code_of_card(done: Built) -> set[str]:
    """Run it with the folder for the repository, and give the variables that it has made."""
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    code = card.split("```python\n")[1].split("```")[0]
    code = code.replace(f"ORG/{done.manifest['name']}", str(done.folder)).replace(', revision="v1.0.0"', "")
    made: dict[str, object] = {}
    exec(code, made)
    return {name for name, value in made.items() if type(value).__name__ == "Dataset"}


def test_features_of_unlabelled_rows_are_passed_over(built: Built, tmp_path: Path) -> None:
    """A file with a row for every row of the source gives the same scores as one without the unlabelled."""
    labels = write_source(tmp_path / "source")
    write_features(tmp_path / "labelled.npy", labels)
    features = np.load(tmp_path / "labelled.npy")
    without = np.concatenate([np.arange(size) % 20 == 3 for size in SIZES.values()])
    whole = np.full((without.size, features.shape[1]), 50, np.float32)
    whole[~without] = features
    np.save(tmp_path / "all.npy", whole)
    done = build_aflite(spec_of(), tmp_path / "out", source=tmp_path / "source", features=tmp_path / "all.npy")
    sums = {name: entry["sha256"] for name, entry in done.manifest["files"].items() if name.endswith(".parquet")}
    assert sums == {name: built.manifest["files"][name]["sha256"] for name in sums}


def test_features_of_unlabelled_rows_are_passed_over_in_a_split_alone(tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    np.save(tmp_path / "all.npy", np.random.default_rng(0).normal(size=(SIZES["train"], 4)).astype(np.float32))
    done = build_aflite(
        spec_of('source.filtered=["train"]', "filter.n=120"),
        tmp_path / "out",
        source=tmp_path / "source",
        features=tmp_path / "all.npy",
    )
    assert done.manifest["counts"]["train"]["unlabelled"] == len(range(3, SIZES["train"], 20))


def test_card_shows_markup_of_rows_as_text(built: Built) -> None:
    card = (built.folder / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---\n")[1])
    assert [config["config_name"] for config in front["configs"]] == ["filtered", "removed"]
    assert "\\| \\*not\\* &lt;b&gt;bold&lt;/b&gt;" in card
    assert "| *not*" not in card
    assert all(f"| {name} |" in card for name in NAMES)


def test_card_shows_words_of_the_spec_as_text(tmp_path: Path) -> None:
    bad = "*b* <i>x</i> [a](https://evil.example) | `b`\u202e"
    changed = [f"{key}={json.dumps(bad)}" for key in ("title", "description", "citation")]
    done = build(tmp_path, *changed, f"limits={json.dumps([bad])}", 'citation="```\\n# mine"')
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    said = r"\*b\* &lt;i&gt;x&lt;/i&gt; \[a\](`https://evil.example`) \| \`b\`\[U+202E\]"
    assert [part for part in (f"# {said}", f"\n\n{said} The filter", f"- {said}") if part not in card] == []
    assert "````bibtex\n" in card
    assert card.endswith(f"```\n# mine\n````\n{SECTION}")
    assert "\u202e" not in card


def test_cell_cuts_long_texts() -> None:
    assert cell("a\nb  `c`") == "a b \\`c\\`"
    assert len(cell("x" * 1000)) == 301


def test_baseline_has_the_size_of_the_kept_rows_and_no_warmup_rows() -> None:
    part = np.array([FILTERED] * 4 + [1] * 5 + [WARMUP] * 3 + [FILTERED] * 2 + [1] * 6, np.int8)
    size = part.size
    outcome = Outcome(part, np.zeros(size), np.ones(size, np.int32), np.full(size, -1, np.int32), np.zeros(size, bool))
    bounds = {"train": slice(0, 12), "test": slice(12, 20)}
    draw_baseline(outcome, bounds, 0)
    assert outcome.in_random_subset[:12].sum() == 4
    assert outcome.in_random_subset[12:].sum() == 2
    assert not outcome.in_random_subset[part == WARMUP].any()
    few = outcome.in_random_subset.copy()
    part[4:6] = FILTERED
    draw_baseline(outcome, bounds, 0)
    assert outcome.in_random_subset[:12].sum() == 6
    assert (outcome.in_random_subset & few).sum() == few.sum()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("filter.n=400", "filter: n must be .* 379"),
        ("filter.t=200", "filter: t must be .* n = 150"),
        ("filter.tau=2", "filter: tau must"),
        ("filter.model=tree", "filter: model must be one of"),
        ("filter.groups=genre", r"filter\.groups: there is no column 'genre' \(there are premise, "),
        ("breakdown=genre", r"breakdown: there is no column 'genre'"),
        ("breakdown=pairID", r"breakdown: column 'pairID' has 380 values, more than the 100"),
        ("breakdown=votes", r"breakdown: column 'votes' holds list<.*name one that holds text or numbers"),
        ("filter.groups=votes", r"filter\.groups: column 'votes' holds list"),
        ('source.filtered=["dev"]', "'dev'"),
        ("version=v1", "MAJOR.MINOR.PATCH"),
    ],
)
def test_bad_values_are_named(built: Built, tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        build_again(built, override, out=tmp_path)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_columns_that_are_null_inside_are_kept(tmp_path: Path, suffix: str) -> None:
    nested = {"struct": {"a": None, "b": 1}, "deep": {"a": {"z": None}}, "list": [None], "both": [{"a": None, "b": 2}]}
    write_features(tmp_path / "features.npy", write_source(tmp_path / "source"))
    for path in (tmp_path / "source").iterdir():
        rows = [{**json.loads(line), **nested} for line in path.read_text().splitlines()]
        path.write_text("\n".join(map(json.dumps, rows)))
        if suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(suffix))
            path.unlink()
    places = {"source": tmp_path / "source", "features": tmp_path / "features.npy"}
    built = build_aflite(spec_of(), tmp_path / "out", **places)
    for split in load(built.folder, "filtered", tmp_path / "cache").values():
        assert all({name: row[name] for name in nested} == nested for row in split)
