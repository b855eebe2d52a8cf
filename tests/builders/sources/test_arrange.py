"""Columns by the spec or a known layout, splits and their roles, and what is left out."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Image, Value

from builders.errors import BuildError
from builders.sources import SourceSpec, read_source
from tests.builders.sources.reading import NAMES, nli, pictures, png, put, refused, shard

ROW = {"premise": "a", "hypothesis": "b", "label": 0}
SNLI = {
    "annotator_labels": ["neutral"],
    "captionID": "1.jpg#2",
    "gold_label": "neutral",
    "pairID": "1.jpg#2r1n",
    "sentence1": "Two dogs run.",
    "sentence1_parse": "(ROOT)",
    "sentence2": "Dogs are pets.",
}


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rows_without_a_label_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [{**ROW, "premise": str(i), "label": label} for i, label in enumerate([0, -1, "-", None, "", "neutral", 2])]
    lines(tmp_path / "train.jsonl", *rows)
    lines(tmp_path / "dev.jsonl", ROW)
    lines(tmp_path / "test.jsonl", {**ROW, "label": -1}, {**ROW, "label": -1})
    found = read_source(nli(), work=tmp_path / "w", path=tmp_path)
    assert list(found.splits) == ["train", "validation"]
    train = found.splits["train"]
    assert (train["premise"][:], train["label"][:], train["source_index"][:]) == (["0", "5", "6"], [0, 1, 2], [0, 5, 6])
    assert found.unlabelled == {"train": 4, "test": 2}
    assert train.features["label"].names == list(NAMES)
    assert train.features["source_index"] == Value("int64")
    assert train._indices is None
    assert train.cache_files
    assert found.splits["validation"].features == train.features


def test_a_split_without_a_label_column_and_one_that_the_spec_calls_unlabelled(tmp_path: Path) -> None:
    lines(tmp_path / "train.jsonl", ROW)
    lines(tmp_path / "test.jsonl", {"premise": "a", "hypothesis": "b"})
    lines(tmp_path / "dev.jsonl", {**ROW, "label": "hidden"})
    found = read_source(nli(unlabelled=("validation",)), work=tmp_path / "w", path=tmp_path)
    assert (list(found.splits), found.unlabelled) == (["train"], {"validation": 1, "test": 1})
    refused(nli(filtered=("train", "test")), tmp_path, "'hidden'", "validation")
    filtered = nli(filtered=("train", "test"), unlabelled=("validation",))
    refused(filtered, tmp_path, "'test' has no labels", "cannot be scored or filtered", "--filter-splits")
    refused(nli(filtered=("validation",), unlabelled=("validation",)), tmp_path, "'validation' has no labels")
    refused(nli(filtered=("dev",)), tmp_path, "no split 'dev'", "train, validation, test", "--filter-splits")


def test_a_source_that_has_no_label_at_all(tmp_path: Path) -> None:
    path = lines(tmp_path / "train.jsonl", {**ROW, "label": -1})
    refused(nli(filtered=()), path, "no row", "'label'")
    refused(nli(), path, "'train' has no labels")
    refused(nli(filtered=(), unlabelled=("train",), names=()), path, "every split", "train")


def test_the_layouts_in_which_sets_are_distributed(tmp_path: Path) -> None:
    snli = lines(tmp_path / "snli_1.0_train.jsonl", SNLI, {**SNLI, "gold_label": "-"})
    found = read_source(nli(), work=tmp_path / "w", path=snli)
    train = found.splits["train"]
    assert train.column_names == [
        *("premise", "hypothesis", "label", "source_index"),
        *("annotator_labels", "captionID", "pairID", "sentence1_parse"),
    ]
    assert (train[0]["premise"], train[0]["label"], found.unlabelled) == ("Two dogs run.", 1, {"train": 1})
    assert found.origin == "local files: snli_1.0_train.jsonl, columns sentence1, sentence2, gold_label"

    (tmp_path / "mnli").mkdir()
    for name in ("dev_matched", "dev_mismatched"):
        (tmp_path / "mnli" / f"{name}.tsv").write_text(
            'index\tsentence1\tsentence2\tlabel1\tgold_label\n0\t"a\tb\tneutral\tcontradiction\n', encoding="utf-8"
        )
    (tmp_path / "mnli" / "test_matched.tsv").write_text("index\tsentence1\tsentence2\n0\ta\tb\n", encoding="utf-8")
    spec = nli(filtered=("validation_matched", "validation_mismatched"))
    found = read_source(spec, work=tmp_path / "w", path=tmp_path / "mnli")
    assert list(found.splits) == ["validation_matched", "validation_mismatched"]
    assert found.unlabelled == {"test_matched": 1}
    row = found.splits["validation_matched"][0]
    assert (row["premise"], row["label"], row["label1"], row["index"]) == ('"a', 2, "neutral", "0")

    inputs = {"question": "text1", "sentence": "text2"}  # as some copy on the Hub has it
    qnli = SourceSpec(inputs=inputs, label="answer", names=("entailment", "not_entailment"))
    (tmp_path / "train.tsv").write_text("index\tquestion\tsentence\tlabel\n0\ta\tb\tnot_entailment\n", encoding="utf-8")
    assert read_source(qnli, work=tmp_path / "w", path=tmp_path / "train.tsv").splits["train"][:] == {
        "question": ["a"],
        "sentence": ["b"],
        "label": [1],
        "source_index": [0],
        "index": ["0"],
    }


def test_the_columns_of_the_spec_count_before_a_layout(tmp_path: Path) -> None:
    path = lines(tmp_path / "train.jsonl", {**SNLI, "x": "first", "y": "second", "z": "neutral"})
    spec = nli(inputs={"premise": "y", "hypothesis": "x"}, label="z")
    found = read_source(spec, work=tmp_path / "w", path=path).splits["train"]
    assert (found[0]["premise"], found[0]["hypothesis"], found[0]["sentence1"]) == ("second", "first", "Two dogs run.")


def test_columns_may_swap_names(tmp_path: Path) -> None:
    path = lines(tmp_path / "train.jsonl", ROW)
    spec = nli(inputs={"premise": "hypothesis", "hypothesis": "premise"})
    found = read_source(spec, work=tmp_path / "w", path=path).splits["train"]
    assert (found[0]["premise"], found[0]["hypothesis"]) == ("b", "a")


@pytest.mark.parametrize(
    ("row", "fields", "parts"),
    [
        ({"text": "a", "label": 0}, {}, ("no column 'premise' and no column 'hypothesis'", "text, label")),
        ({"premise": "a", "hypothesis": "b"}, {}, ("no column 'label'", "premise, hypothesis")),
        (ROW, {"label": "gold"}, ("no column 'gold'", "premise, hypothesis, label")),
        (ROW, {"inputs": {"premise": "prem", "hypothesis": "hypothesis"}}, ("no column 'prem'",)),
        ({**ROW, "source_index": 1}, {}, ("'source_index'", "rename")),
        ({**ROW, "predictability": 1}, {}, ("'predictability'",)),
        ({**ROW, "times_scored": 1}, {}, ("'times_scored'",)),
        ({**ROW, "removed_in_phase": 1}, {}, ("'removed_in_phase'",)),
        ({**ROW, "in_random_subset": 1}, {}, ("'in_random_subset'",)),
        ({**SNLI, "premise": "x"}, {}, ("no column 'hypothesis'", "sentence1")),
        ({**SNLI, "label": 1}, {}, ("'label' besides 'gold_label'",)),
        ({**ROW, "premise": 5}, {}, ("'premise'", "holds int64", "must be text")),
        ({**ROW, "premise": None}, {}, ("'premise'", "null in row 0")),
        ({**ROW, "label": "maybe"}, {}, ("'maybe'", "row 0", "train")),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    tmp_path: Path, row: dict[str, Any], fields: dict[str, Any], parts: tuple[str, ...]
) -> None:
    refused(nli(**fields), lines(tmp_path / "train.jsonl", row), *parts)


def test_a_missing_text_matters_only_where_there_is_a_label(tmp_path: Path) -> None:
    path = lines(tmp_path / "train.jsonl", ROW, {**ROW, "premise": None, "label": -1})
    assert len(read_source(nli(), work=tmp_path / "w", path=path).splits["train"]) == 1
    path = lines(tmp_path / "dev.jsonl", *[ROW] * 10_001, {**ROW, "hypothesis": None})
    refused(nli(filtered=("validation",)), path, "'hypothesis'", "validation", "row 10001")


@pytest.mark.parametrize("bytes_only", [True, False])
def test_images_in_a_table(tmp_path: Path, bytes_only: bool) -> None:
    image: Any = b"\x89PNG" if bytes_only else {"bytes": b"\x89PNG", "path": "a.png"}
    table = pa.table({"img": [image, image, image], "fine": [1, -1, 0], "id": ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "train.parquet")
    spec = SourceSpec(inputs={"image": "img"}, label="fine", names=("cat", "dog"))
    found = read_source(spec, work=tmp_path / "w", path=tmp_path / "train.parquet")
    train = found.splits["train"]
    assert train.column_names == ["image", "label", "source_index", "id"]
    assert train.features["image"] == Image()
    rows = train.cast_column("image", Image(decode=False))[:]
    assert [one["bytes"] for one in rows["image"]] == [b"\x89PNG"] * 2
    assert (rows["label"], rows["source_index"], rows["id"]) == ([1, 0], [0, 2], ["x", "z"])
    assert found.unlabelled == {"train": 1}
    pq.write_table(table.set_column(0, "img", pa.array(["a.png"] * 3)), tmp_path / "train.parquet")
    refused(spec, tmp_path / "train.parquet", "'img'", "holds string", "images")


def test_large_text_becomes_text(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({**{k: pa.array([v], pa.large_string()) for k, v in ROW.items() if k != "label"}, "label": [0]}),
        tmp_path / "train.parquet",
    )
    train = read_source(nli(), work=tmp_path / "w", path=tmp_path / "train.parquet").splits["train"]
    assert train.features["premise"] == Value("string")
    assert train[0] == {**ROW, "source_index": 0}


def test_what_was_read_is_named_without_where_it_lies(tmp_path: Path) -> None:
    revisions = []
    for place, rows in (("a", [ROW]), ("b", [ROW]), ("c", [{**ROW, "label": 1}])):
        (tmp_path / place).mkdir()
        lines(tmp_path / place / "train.jsonl", *rows)
        lines(tmp_path / place / "dev.jsonl", ROW)
        found = read_source(nli(), work=tmp_path / "w", path=tmp_path / place)
        assert found.origin == "local files: train.jsonl, dev.jsonl"
        revisions.append(found.revision)
    assert revisions[0] == revisions[1] != revisions[2]
    assert revisions[0].startswith("sha256:")
    assert len(revisions[0]) == 7 + 64
    (tmp_path / "a" / "dev.jsonl").rename(tmp_path / "a" / "test.jsonl")
    assert read_source(nli(), work=tmp_path / "w", path=tmp_path / "a").revision not in revisions


def test_a_second_run_reads_what_the_first_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lines(tmp_path / "train.jsonl", ROW, {**ROW, "label": -1})
    first = read_source(nli(), work=tmp_path / "w", path=path)
    with monkeypatch.context() as patch:
        patch.setattr("builders.sources.tables.write_arrow", lambda *args: pytest.fail("written again"))
        patch.setattr("builders.sources.arrange.write_arrow", lambda *args: pytest.fail("written again"))
        again = read_source(nli(), work=tmp_path / "w", path=path)
    assert again.splits["train"][:] == first.splits["train"][:]
    other = read_source(nli(names=(*NAMES[1:], NAMES[0])), work=tmp_path / "w", path=path).splits["train"]
    assert other.features["label"].names[0] == "neutral"


def test_a_killed_run_leaves_nothing_that_looks_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = lines(tmp_path / "train.jsonl", ROW), tmp_path / "w"
    monkeypatch.setattr("shutil.rmtree", lambda *args, **options: None)  # a killed process cleans nothing up
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            read_source(nli(), work=work, path=path)
    left = [entry.name for entry in work.iterdir()]
    assert left
    assert all(name.startswith(".") for name in left)
    monkeypatch.undo()
    assert len(read_source(nli(), work=work, path=path).splits["train"]) == 1
    assert not [entry for entry in work.iterdir() if entry.name.startswith(".")]


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    path = lines(tmp_path / "train.jsonl", {**ROW, "premise": "x" * 1_000_000})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # to the process, a disk of that size
    try:
        with pytest.raises(BuildError, match=r"no room is left for .* free some space"):
            read_source(nli(), work=tmp_path / "w", path=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "w").iterdir())


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"kind": "hubs"}, ("'hubs'", "did you mean hub?")),
        ({"kind": "nowhere"}, ("one of hub, files",)),
        ({"inputs": {"one": "a", "two": "b", "three": "c"}}, ("one or two text columns or 'image' alone", "three")),
        ({"inputs": {"image": "x", "hypothesis": "y"}}, ("'image' alone",)),
        ({"inputs": {"premise": "a", "label": "b"}}, ("cannot be called 'label'",)),
        ({"inputs": {"premise": "a", "source_index": "b"}}, ("cannot be called 'source_index'",)),
        ({"inputs": {"premise": "a", "hypothesis": "a"}}, ("each name a column",)),
        ({"label": "premise"}, ("each name a column",)),
        ({"names": ("a", "a")}, ("each once", "a, a")),
        ({"names": ("a",)}, ("two or more",)),
        ({"kind": "planted"}, ("rows", "1 or more")),
        ({"kind": "planted", "rows": 30, "validation": 0}, ("validation must be 1 or more", "not 0")),
        ({"kind": "hub", "validation": 5}, ("of a generated source", "'hub'")),
    ],
)
def test_a_spec_that_no_source_could_satisfy(fields: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(BuildError) as caught:
        nli(**fields)
    assert not [part for part in parts if part not in str(caught.value)], str(caught.value)


def test_a_place_that_holds_nothing_of_use(tmp_path: Path) -> None:
    refused(nli(), tmp_path / "nowhere", "does not exist", "--source")
    refused(nli(), tmp_path, "holds nothing that can be read", ".jsonl")
    refused(nli(kind="files"), None, "'files'", "--source")
    refused(nli(), None, "'hub'", "id")
    (tmp_path / "train.jpg").touch()
    refused(nli(), tmp_path / "train.jpg", "one image")
    refused(nli(), tmp_path, "holds images", "premise and hypothesis")
    path = lines(tmp_path / "train.jsonl", ROW)
    assert len(read_source(nli(kind="files", id=str(path)), work=tmp_path / "w").splits["train"]) == 1


def test_of_images_the_kind_is_seen_by_looking_unless_the_spec_says_it(tmp_path: Path) -> None:
    root = put(tmp_path / "set", "a/1.png", "b/1.png")
    lines(root / "notes.jsonl", ROW)
    assert len(read_source(pictures(), work=tmp_path / "w", path=root).splits["train"]) == 2
    shard(root / "train.tar", *({"png": png(0), "cls": label} for label in (0, 1, 0)))
    assert len(read_source(pictures(), work=tmp_path / "w", path=root).splits["train"]) == 3
    assert len(read_source(pictures(kind="images", id=str(root)), work=tmp_path / "w").splits["train"]) == 2
    assert len(read_source(nli(), work=tmp_path / "w", path=root).splits["train"]) == 1
    (root / "train.tar").unlink()
    with pytest.raises(BuildError, match="nothing that can be read as webdataset"):
        read_source(pictures(kind="webdataset", id=str(root)), work=tmp_path / "w")
