"""Features of a file beside names of their rows, and sets of one text column."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.aflite import build_aflite
from builders.errors import BuildError
from builders.folder import Built
from tests.builders.features.conftest import make_model
from tests.builders.filtered_sets import SIZES, spec_of, write_features, write_source

__all__ = ["make_model"]

LABELLED = [(split, row) for split, size in SIZES.items() for row in range(size) if row % 20 != 3]
EVERY = [(split, row) for split, size in SIZES.items() for row in range(size)]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("given")
    write_features(root / "labelled.npy", write_source(root / "source"))
    whole = np.zeros((len(EVERY), 8), np.float32)
    whole[[row % 20 != 3 for _, row in EVERY]] = np.load(root / "labelled.npy")
    np.save(root / "all.npy", whole)
    return root


def write_ids(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def build(root: Path, out: Path, file: str = "labelled.npy", *values: str) -> Built:
    return build_aflite(spec_of(*values), out, source=root / "source", features=root / file)


@pytest.mark.parametrize("file", ["labelled", "all"])
def test_ids_in_the_order_of_the_set_are_taken_and_others_refused(given: Path, tmp_path: Path, file: str) -> None:
    cells = {
        "pairID": "{}-{}".format,
        "split": lambda split, _: split,
        "source_index": lambda _, row: row,
        "hypothesis": " {} hypothesis {}".format,
    }
    rows = [[cell(*row) for cell in cells.values()] for row in (LABELLED if file == "labelled" else EVERY)]
    ids = given / f"{file}.ids.csv"
    write_ids(ids, list(cells), rows)
    try:
        assert build(given, tmp_path, f"{file}.npy").fresh
        rows[0], rows[-1] = rows[-1], rows[0]
        for column, name in enumerate(cells):
            write_ids(ids, [name], [[row[column]] for row in rows])
            with pytest.raises(BuildError, match=r"ids\.csv: row 1 has .*, which stands in another row; put"):
                build(given, tmp_path / "other", f"{file}.npy")
        assert not (tmp_path / "other" / "snli-aflite").exists()
    finally:
        ids.unlink()


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (
            ["pairID"],
            [["x"]] * len(LABELLED),
            r"row 1 has pairID 'x' where the set has 'train-0'; put features",
        ),
        (["pairID"], [["train-0"]], r"has 1 rows below its header, and labelled\.npy has 380; make both anew"),
        (["uid"], [["a"]], r"has the column 'uid', which the rows lack; name columns of split, premise, hypothesis"),
        (["label"], [["a"]], r"has the column 'label', which the rows lack"),
        (["pairID", "pairID"], [["a", "a"]], "needs a header that names each of its columns once"),
        ([], [], "needs a header that names each of its columns once"),
        (["pairID", "split"], [["train-0", "train"], ["train-1"]], "row 2 has 1 cells, and the header has 2; mend it"),
    ],
)
def test_a_file_of_ids_that_is_none_of_these_rows(
    given: Path, tmp_path: Path, header: list[str], rows: list[list[str]], message: str
) -> None:
    ids = given / "labelled.ids.csv"
    write_ids(ids, header, rows)
    try:
        with pytest.raises(BuildError, match=message):
            build(given, tmp_path)
    finally:
        ids.unlink()


def test_a_set_of_one_text_column_is_filtered_on_given_features(given: Path, tmp_path: Path) -> None:
    one = build(given, tmp_path / "one", "labelled.npy", 'source.inputs={remark="hypothesis"}')
    assert one.manifest["columns"] == ["remark"]
    counts = one.manifest["counts"]["train"]
    assert counts["filtered"] + counts["removed"] == counts["source"] - counts["unlabelled"] == 285
    assert "remark" in (one.folder / "README.md").read_text(encoding="utf-8")


def test_a_set_of_one_text_column_is_filtered_with_an_encoder(make_model: Any, given: Path, tmp_path: Path) -> None:
    values = [f"encoder.model={make_model('BertModel')}", "encoder.epochs=1", "encoder.max_length=16", "share=0.2"]
    spec = spec_of('source.inputs={remark="hypothesis"}', "encoder.batch_size=40", "encoder.revision=", *values)
    built = build_aflite(spec, tmp_path, source=given / "source")
    counts = built.manifest["counts"]["train"]
    assert counts["warmup"] > 0 < counts["filtered"]
    assert built.manifest["encoder"]["inputs"] == ["remark"]
