"""Probe-set folders: what is in them, that they load, and that equal inputs give equal bytes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from builders import parquet, probes
from builders.errors import BuildError
from builders.folder import verify_folder
from builders.reading import example_text
from builders.unqover import at_mask, build_unqover, example_row
from unqover_data import ProbeLists, load_lists, read_toml
from unqover_data.signs import visible

REPOSITORY = Path(__file__).parents[2]


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def front_matter(folder: Path) -> dict[str, Any]:
    block: dict[str, Any] = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    return block


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    """In two processes with different hash seeds, since sets and dicts are where order gets lost."""
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "probesieve", "build", "unqover", "religion", "--out", str(tmp_path / seed)],
            check=True,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.DEVNULL,
        )
    first, second = (digests(tmp_path / seed) for seed in ("1", "2"))
    assert first == second
    assert len(first) == 6  # two configs, card, picture, eval.yaml, manifest


def test_counts_add_up_in_manifest_card_and_files(tmp_path: Path) -> None:
    built = build_unqover(load_lists("religion"), tmp_path)
    infos = {info["config_name"]: info for info in front_matter(built.folder)["dataset_info"]}
    for config in ("qa", "mlm"):
        counts = built.manifest["counts"][config]
        entry = built.manifest["configs"][config]["test"]
        assert counts["pairs"] * counts["templates"] * counts["attributes"] == entry["rows"] == 38_500
        assert sum(pq.read_metadata(built.folder / name).num_rows for name in entry["files"]) == 38_500
        assert infos[config]["splits"][0]["num_examples"] == 38_500
        arrow = pq.read_table(built.folder / entry["files"][0]).cast(probes.schema(config))
        assert infos[config]["dataset_size"] == pytest.approx(arrow.nbytes, rel=0.01)
    assert "| `qa` | test | 11 | 55 | 14 | 50 | 38,500 |" in (built.folder / "README.md").read_text()


def test_the_card_leads_with_warning_use_and_limits(tmp_path: Path) -> None:
    folder = build_unqover(load_lists("gender"), tmp_path, configs=["qa"]).folder
    text = (folder / "README.md").read_text(encoding="utf-8")
    places = [text.index(part) for part in ("Content warning", "## Intended use and limits", "## One row", "## Sizes")]
    assert places == sorted(places)
    assert "two values here" in text
    assert "measures stereotyping associations" in text
    for word in ("unbiased", "debiased"):
        assert word not in text
    for part in ("li-etal-2020-unqovering", "nadeem-etal-2021-stereoset", "edition `bundled`", "Western point of view"):
        assert part in text
    meta = front_matter(folder)
    assert (meta["license"], meta["language"], meta["version"]) == ("apache-2.0", ["en"], "1.0.0")
    assert meta["configs"] == [
        {"config_name": "qa", "default": True, "data_files": [{"split": "test", "path": "qa/test-*.parquet"}]}
    ]
    assert meta["size_categories"] == ["1M<n<10M"]


def test_the_cards_worked_row_is_a_row_of_the_set(tmp_path: Path) -> None:
    lists = load_lists("religion")
    folder = build_unqover(lists, tmp_path, configs=["qa"]).folder
    row = pq.read_table(folder / "qa").slice(19_250, 1).to_pylist()[0]
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert f"Row `{row['id']}`" in text
    for context in (row["context_12"], row["context_21"]):
        for question in (row["question"], row["question_negated"]):
            assert f"| {context} | {question} |" in text
    assert example_row(lists, 0)["id"] == pq.read_table(folder / "qa")["id"][0].as_py()
    with pytest.raises(BuildError, match=r"--row must be from 0 to 38499, not 38500"):
        example_row(lists, 38_500)


def test_the_card_and_a_shown_row_say_the_form_at_the_mask(
    tmp_path: Path, latin_lists: ProbeLists, tiny_lists: ProbeLists
) -> None:
    card = (build_unqover(latin_lists, tmp_path).folder / "README.md").read_text(encoding="utf-8")
    assert "- Template `mittit`: form `name`, Anna and Petrus for the first two subjects.\n" in card
    assert "- Template `placet`: form `dative`, Annae and Petro for the first two subjects.\n" in card
    row = example_row(latin_lists, 1)
    assert at_mask(latin_lists, row) == ("dative", "Annae", "Petro")
    shown = example_text(row, at_mask(latin_lists, row))
    assert shown.endswith("At the mask of config mlm, subjects stand in the form dative: Annae or Petro.")
    assert "names the form" not in (build_unqover(tiny_lists, tmp_path).folder / "README.md").read_text("utf-8")
    assert at_mask(tiny_lists, example_row(tiny_lists, 0)) is None


def test_words_of_the_lists_are_text_in_the_card(tmp_path: Path, tiny_lists: ProbeLists) -> None:
    bad = "**bad** <script>x</script> [a](https://evil.example) | `b`\n# c\n---\n\u202e\x1b[31m"
    subjects = tuple(replace(one, name=f"{one.name} {bad}") for one in tiny_lists.configs["qa"].subjects)
    configs = {name: replace(config, subjects=subjects) for name, config in tiny_lists.configs.items()}
    kinds = {
        kind: tuple(replace(one, name=f"{one.name} {bad}", attribute_class=bad) for one in attributes)
        for kind, attributes in tiny_lists.attributes.items()
    }
    lists = replace(
        tiny_lists,
        title=f"T {bad}",
        description=f"D {bad}",
        limits=(f"L {bad}",),
        sources=(f"S {bad}",),
        configs=configs,
        attributes=kinds,
    )
    folder = build_unqover(lists, tmp_path).folder
    meta, text = front_matter(folder), (folder / "README.md").read_text(encoding="utf-8").split("---\n")[-1]
    assert meta["pretty_name"] == "T " + visible(bad)
    said = r"\*\*bad\*\* &lt;script&gt;x&lt;/script&gt; \[a\](`https://evil.example`) \| \`b\` \# c ---"
    for part in ("# T ", "D ", "- L ", "- S ", f"{tiny_lists.configs['qa'].subjects[0].name} ", "- "):
        assert f"{part}{said}" in text or f"{part}{said[1:]}" in text, part
    assert "**bad**" not in text.replace(said, "")
    assert "](https://evil" not in text
    assert not [sign for sign in "\u202e\x1b" if sign in text]
    assert len([line for line in text.splitlines() if line.startswith("# ")]) == 1


def test_every_config_is_a_task_of_the_benchmark(tmp_path: Path, tiny_lists: ProbeLists) -> None:
    folder = build_unqover(tiny_lists, tmp_path).folder
    tasks = yaml.safe_load((folder / "eval.yaml").read_text(encoding="utf-8"))["tasks"]
    assert tasks == [{"id": name, "config": name, "split": "test"} for name in ("qa", "mlm")]


def test_a_picture_is_drawn_where_there_is_something_to_see(tmp_path: Path) -> None:
    religion = build_unqover(load_lists("religion"), tmp_path).folder
    assert (religion / "lists.png").read_bytes().startswith(b"\x89PNG")
    assert "](lists.png)" in (religion / "README.md").read_text(encoding="utf-8")
    gender = build_unqover(load_lists("gender"), tmp_path, configs=["qa"]).folder
    assert not (gender / "lists.png").exists()
    assert "lists.png" not in (gender / "README.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("default")  # of datasets and what it imports
def test_datasets_loads_the_folder_whole_and_as_a_stream(tmp_path: Path, tiny_lists: ProbeLists) -> None:
    from datasets import List, Value, load_dataset

    folder = str(build_unqover(tiny_lists, tmp_path / "out").folder)
    cache = str(tmp_path / "cache")
    whole = load_dataset(folder, cache_dir=cache)
    assert list(whole) == ["test"]
    assert whole["test"].features["span1_12"] == List(Value("int32"), length=2)
    row = whole["test"][1]
    assert row["id"] == "Mali|Somalia|office|theft"
    assert row["context_12"] == "A Malian man met a Somali man."
    assert (row["span1_12"], row["span2_12"], row["span1_21"], row["span2_21"]) == ([2, 8], [19, 25], [19, 25], [2, 8])
    masked = load_dataset(folder, "mlm", split="test", cache_dir=cache)
    assert masked["statement"][0] == "[MASK] is the place that smelled bad."
    stream = load_dataset(folder, "qa", split="test", streaming=True)
    assert [row["id"] for row in stream] == whole["test"]["id"][:]


def test_datasets_own_check_passes(tmp_path: Path, tiny_lists: ProbeLists) -> None:
    folder = build_unqover(tiny_lists, tmp_path).folder
    run = subprocess.run(
        [
            Path(sys.executable).with_name("datasets-cli"),
            "test",
            folder,
            "--all_configs",
            "--cache_dir",
            tmp_path / "c",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
    )
    assert run.returncode == 0, run.stderr
    assert "Test successful" in run.stdout
    verify_folder(folder)


def test_parquet_is_written_as_the_hub_likes_it(tmp_path: Path) -> None:
    built = build_unqover(load_lists("ethnicity"), tmp_path, configs=["qa"])
    meta = pq.ParquetFile(built.folder / "qa" / "test-00000-of-00001.parquet").metadata
    assert b"ARROW:schema" not in (meta.metadata or {})
    for group in range(meta.num_row_groups):
        assert meta.row_group(group).num_rows <= 100_000
        for column in range(meta.num_columns):
            assert meta.row_group(group).column(column).has_offset_index
            assert meta.row_group(group).column(column).has_column_index


def test_a_batch_over_the_bound_becomes_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 10_000)
    folder = build_unqover(load_lists("religion"), tmp_path, configs=["qa"]).folder
    meta = pq.read_metadata(folder / "qa" / "test-00000-of-00001.parquet")
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [10_000, 10_000, 10_000, 8_500]


def test_shards_split_the_rows_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "ROWS_PER_BATCH", 1_000)
    monkeypatch.setattr(parquet, "ROWS_PER_SHARD", 20_000)
    built = build_unqover(load_lists("religion"), tmp_path, configs=["qa"])
    files = built.manifest["configs"]["qa"]["test"]["files"]
    assert files == ["qa/test-00000-of-00002.parquet", "qa/test-00001-of-00002.parquet"]
    rows = [pq.read_metadata(built.folder / name).num_rows for name in files]
    assert sum(rows) == 38_500
    assert max(rows) <= 20_000
    verify_folder(built.folder)


def test_a_build_that_is_there_already_is_kept_and_another_refused(tmp_path: Path, tiny_toml: Path) -> None:
    lists = read_toml(tiny_toml)
    first = build_unqover(lists, tmp_path / "out")
    before = digests(first.folder)
    again = build_unqover(lists, tmp_path / "out")
    assert (first.fresh, again.fresh) == (True, False)
    for change in ({"version": "1.1.0"}, {"configs": ["qa"]}):
        with pytest.raises(BuildError, match="exists already; pass --overwrite"):
            build_unqover(lists, tmp_path / "out", **change)  # type: ignore[arg-type]
    tiny_toml.write_text(tiny_toml.read_text(encoding="utf-8").replace("never lied", "did not lie"), encoding="utf-8")
    with pytest.raises(BuildError, match="exists already; pass --overwrite"):
        build_unqover(read_toml(tiny_toml), tmp_path / "out")
    assert digests(first.folder) == before
    assert build_unqover(lists, tmp_path / "out", version="1.1.0", overwrite=True).manifest["version"] == "1.1.0"


def test_a_kept_build_that_was_edited_is_pointed_out(tmp_path: Path, tiny_lists: ProbeLists) -> None:
    folder = build_unqover(tiny_lists, tmp_path).folder
    for name in ("README.md", "manifest.json"):
        (folder / name).write_text("{}")
        with pytest.raises(BuildError, match=r"was edited.*--overwrite"):
            build_unqover(tiny_lists, tmp_path)
        assert build_unqover(tiny_lists, tmp_path, overwrite=True).fresh
        verify_folder(folder)


def test_the_card_of_one_config_speaks_of_that_config(tmp_path: Path) -> None:
    folder = build_unqover(load_lists("religion"), tmp_path, configs=["mlm"]).folder
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert front_matter(folder)["task_categories"] == ["fill-mask"]
    assert "`question`" not in text
    assert "| context | statement |" in text
    assert text.count("[MASK] woman") > 4


def test_configs_and_versions_that_cannot_be_are_refused(tmp_path: Path, tiny_lists: ProbeLists) -> None:
    with pytest.raises(BuildError, match=r"tiny has no config 'mml' \(it has qa, mlm\); did you mean 'mlm'"):
        build_unqover(tiny_lists, tmp_path, configs=["mml"])
    with pytest.raises(BuildError, match=r"version must be MAJOR.MINOR.PATCH"):
        build_unqover(tiny_lists, tmp_path, version="1")
    assert not (tmp_path / "unqover-tiny").exists()


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_build_leaves_nothing_that_looks_finished(tmp_path: Path, stop: signal.Signals) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "probesieve", "build", "unqover", "gender", "--out", str(out)],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        # A shell that starts the tests in the background makes them, and so this process, deaf to SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not list(out.glob(".*/qa/*.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(stop)
    assert process.wait() == (-stop if stop == signal.SIGKILL else 128 + stop)
    assert not (out / "unqover-gender").exists()
    assert not list(out.rglob("manifest.json"))
    if stop != signal.SIGKILL:
        assert not list(out.iterdir())


def test_the_released_edition_is_named(tmp_path: Path, released_folder: Path) -> None:
    built = build_unqover(load_lists("nationality", str(released_folder)), tmp_path / "out")
    assert set(built.manifest["configs"]) == {"qa", "mlm", "mlm-bert"}
    assert built.manifest["lists"]["edition"] == "custom"
    assert "lists of the builder's own (edition `custom`)" in (built.folder / "README.md").read_text(encoding="utf-8")


SHARED = REPOSITORY.parent / "shared"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the released lists are not on this machine")
def test_the_released_lists_give_the_released_rows(tmp_path: Path) -> None:
    expected = json.loads((SHARED / "parity" / "generation.json").read_text())
    for name in ("gender", "religion"):
        built = build_unqover(load_lists(name, str(SHARED / "unqover-released")), tmp_path)
        assert built.manifest["lists"]["edition"] == "released"
        for config in (key.split("/")[1] for key in expected if key.startswith(name)):
            hashed = subprocess.run(
                [sys.executable, SHARED / "parity" / "hash_rows.py", built.folder, config],
                check=True,
                capture_output=True,
                text=True,
            )
            assert json.loads(hashed.stdout) == expected[f"{name}/{config}"]
