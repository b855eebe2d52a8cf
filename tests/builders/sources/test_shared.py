"""Real rows as they are distributed, where the folder beside the checkout has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.errors import BuildError
from builders.sources import SourceSpec, read_source
from tests.builders.sources.reading import SHARED, nli

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
QNLI = SourceSpec(
    inputs={"question": "question", "sentence": "sentence"},
    names=("entailment", "not_entailment"),
    filtered=("validation",),
)


def test_snli_in_its_original_format(tmp_path: Path) -> None:
    path = SHARED / "snli" / "annotated.jsonl"
    found = read_source(nli(), work=tmp_path, path=path)
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    train, kept = found.splits["train"], [i for i, row in enumerate(rows) if row["gold_label"] != "-"]
    assert (len(train), found.unlabelled) == (2_527, {"train": 39})
    assert train["source_index"][:] == kept
    assert train["premise"][:] == [rows[i]["sentence1"] for i in kept]
    assert train["hypothesis"][:] == [rows[i]["sentence2"] for i in kept]
    assert train.features["label"].int2str(train["label"][:]) == [rows[i]["gold_label"] for i in kept]
    assert train["annotator_labels"][:] == [rows[i]["annotator_labels"] for i in kept]


@pytest.mark.parametrize(("name", "size"), [("snli/validation", 9_842), ("mnli/validation_matched", 9_815)])
def test_rows_of_the_hub_as_lines(tmp_path: Path, name: str, size: int) -> None:
    path = SHARED / f"{name}.jsonl"
    found = read_source(nli(filtered=(path.stem,)), work=tmp_path, path=path)
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    assert (len(rows), found.unlabelled) == (size, {})
    assert found.splits[path.stem].select_columns(["premise", "hypothesis", "label"]).to_list() == rows


def test_qnli_as_glue_has_it(tmp_path: Path) -> None:
    found = read_source(QNLI, work=tmp_path, path=SHARED / "qnli")
    lines = (SHARED / "qnli" / "dev.tsv").read_bytes().decode().removesuffix("\n").split("\n")[1:]
    validation = found.splits["validation"]
    names = validation.features["label"].names
    whole = [
        "\t".join([row["index"], row["question"], row["sentence"], names[row["label"]]]) for row in validation.to_list()
    ]
    assert whole == lines
    assert (list(found.splits), found.unlabelled) == (["validation"], {"test": 5_463})
    both = SourceSpec(inputs=QNLI.inputs, names=QNLI.names, filtered=("validation", "test"))
    with pytest.raises(BuildError, match="'test' has no labels"):
        read_source(both, work=tmp_path, path=SHARED / "qnli")
