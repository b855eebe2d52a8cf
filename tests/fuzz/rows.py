"""Features, sources of rows, and predictions of other models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from tests.builders.filtered_sets import NAMES, spec_of, write_source
from tests.builders.sources.reading import pictures, png, put, shard
from tests.fuzz.built import filtered
from tests.fuzz.damage import any_of, npy, odd_file, parquet, raw, safetensors, tree
from tests.fuzz.target import Target


def _features(folder: Path) -> None:
    features = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
    np.save(folder / "f.npy", features)
    save_file({"features": features, "other": features}, folder / "f.safetensors")


def _read_features(folder: Path) -> None:
    from builders.features.store import read_features

    for path in sorted(folder.glob("f.*")):
        np.array(read_features(path, n_rows={"rows": 40}, work=folder).features)


def _rows_as(*suffixes: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        write_source(folder / "source", sizes={"train": 30})
        path = folder / "source/train.jsonl"
        rows = pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])
        path.unlink()
        for suffix in suffixes:
            place = path.with_suffix(suffix)
            if suffix == ".parquet":
                pq.write_table(rows, place)
            elif suffix == ".jsonl":
                place.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
            else:
                rows.drop_columns(["votes"]).to_pandas().to_csv(
                    place, index=False, sep="\t" if suffix == ".tsv" else ","
                )

    return make


def _read_rows(folder: Path) -> None:
    from builders.sources import read_source

    spec = spec_of("source.filtered=['train']")
    rows = read_source(spec.source, work=folder / "work", path=folder / "source")
    for split in rows.splits.values():
        split[:]


def _build_of_rows(folder: Path) -> None:
    from builders.aflite import build_aflite
    from builders.sources import read_source

    spec = spec_of("source.filtered=['train']", "filter.n=12", "filter.m=2", "filter.t=10", "filter.k=2")
    rows = read_source(spec.source, work=folder / "work", path=folder / "source")
    count = sum(label >= 0 for label in rows.splits["train"]["label"][:])
    np.save(folder / "features.npy", np.random.default_rng(1).normal(size=(count, 4)).astype(np.float32))
    build_aflite(spec, folder / "out", source=folder / "source", features=folder / "features.npy")


def _image_rows(folder: Path) -> None:
    put(folder / "source", *(f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(4)))


def _image_table(folder: Path) -> None:
    (folder / "source").mkdir()
    rows = [{"image": {"bytes": png(number), "path": f"{number}.png"}, "label": number % 2} for number in range(8)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "source/train.parquet")


def _shards(folder: Path) -> None:
    samples = [{"png": png(number), "cls": number % 2, "json": {"a": 1}} for number in range(6)]
    shard(folder / "source/train-0.tar", *samples)


def _read_images(folder: Path) -> None:
    from builders.sources import read_source

    rows = read_source(pictures(names=("cat", "dog")), work=folder / "work", path=folder / "source")
    for split in rows.splits.values():
        split.with_format("arrow")[:]  # as stored: pictures are decoded, and refused, by encoders


def predictions(folder: Path) -> None:
    from evaluation.built_sets import find_built
    from evaluation.classifiers.sets import matching_rows

    rows, _ = matching_rows(find_built(str(filtered())), "train")
    said = [
        {"index": int(i), "label": int(y), "prediction": NAMES[y]}
        for i, y in zip(rows.source_index, rows.labels, strict=True)
    ]
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    (folder / "p.json").write_text(json.dumps(said))
    columns = {key: [row[key] for row in said] for key in said[0]}
    (folder / "p.csv").write_text(
        "\n".join(",".join(map(str, row)) for row in [columns, *zip(*columns.values(), strict=True)])
    )
    pq.write_table(pa.table(columns), folder / "p.parquet")
    votes = [
        {
            "gold_label": NAMES[y],
            "annotator_labels": [NAMES[y]] * 3,
            "pairID": f"train-{i}",
            "sentence1": "a",
            "sentence2": "b",
        }
        for i, y in zip(rows.source_index, rows.labels, strict=True)
    ]
    (folder / "votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in votes))


def _difficulty(folder: Path) -> None:
    from evaluation.classifiers.comparisons import difficulty_of
    from evaluation.classifiers.text import difficulty_text

    title, found = difficulty_of(sorted(folder.glob("p.*")), str(filtered()), "train")
    difficulty_text(found, title)


def _humans(folder: Path) -> None:
    from evaluation.classifiers.comparisons import humans_of
    from evaluation.classifiers.text import humans_text

    title, found = humans_of(folder / "votes.jsonl", str(filtered()), "train")
    humans_text(found, title)


TARGETS = {
    "features": Target(
        _features, any_of(npy("*.npy"), npy("*.npy"), safetensors("*.safetensors"), raw("*")), _read_features, 40
    ),
    "JSONL": Target(
        _rows_as(".jsonl"), any_of(tree("source/*"), raw("source/*"), odd_file("source/*")), _read_rows, 15
    ),
    "CSV": Target(_rows_as(".csv"), any_of(raw("source/*"), odd_file("source/*")), _read_rows, 10),
    "TSV": Target(_rows_as(".tsv"), raw("source/*"), _read_rows, 8),
    "Parquet": Target(
        _rows_as(".parquet"), any_of(parquet("source/*"), parquet("source/*"), raw("source/*")), _read_rows, 15
    ),
    "sets-built-of-Parquet": Target(_rows_as(".parquet"), parquet("source/*"), _build_of_rows, 5),
    "image-folders": Target(_image_rows, any_of(raw("source/*/*"), odd_file("source/*/*")), _read_images, 8),
    "image-tables": Target(_image_table, any_of(parquet("source/*"), raw("source/*")), _read_images, 10),
    "shards": Target(_shards, any_of(raw("source/*")), _read_images, 10),
    "difficulty": Target(
        predictions, any_of(tree("p.json*"), raw("p.*"), parquet("p.parquet"), odd_file("p.*")), _difficulty, 20
    ),
    "humans": Target(predictions, any_of(tree("votes.jsonl"), raw("votes.jsonl")), _humans, 15),
}
