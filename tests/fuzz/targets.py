"""What is damaged: files that a person hands to a command, and the call that the command makes with them."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from builders.folder import sha256
from builders.schema import own_sum
from tests.builders.filtered_sets import NAMES, spec_of, write_source
from tests.builders.filtered_sets import build as build_filtered
from tests.builders.sources.reading import pictures, png, put, shard
from tests.conftest import write_released
from tests.evaluation.classifiers.exact_models import hypothesis_reader
from tests.evaluation.classifiers.ood_files import write_hans
from tests.evaluation.conftest import LISTS, sized, tokenizer_of
from tests.evaluation.report.classified import store_classified
from tests.evaluation.report.stored import store_result
from tests.fuzz.damage import Damage, Rng, any_of, npy, odd_file, parquet, raw, safetensors, tree

CODE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Target:
    """A kind of input: `make` writes good files into a folder, `run` is what a command does with them."""

    make: Callable[[Path], object]
    damage: Damage
    run: Callable[[Path], object]
    trials: int = 15


def _lists(folder: Path) -> None:
    (folder / "few.toml").write_text(LISTS, encoding="utf-8")


def _read_lists(folder: Path) -> None:
    from builders.unqover import example_row
    from unqover_data import list_classes, load_lists, read_toml

    path = folder / "few.toml"
    read_toml(path)
    lists = load_lists(list_classes(str(path))[0], str(path))
    for config in lists.configs:
        example_row(lists, config=config)


def _build_lists(folder: Path) -> None:
    from builders.unqover import build_unqover
    from unqover_data import read_toml

    build_unqover(read_toml(folder / "few.toml"), folder / "out")


def _read_released(folder: Path) -> None:
    from unqover_data import load_lists

    load_lists("nationality", str(folder))


def _toml_of(place: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for path in (CODE / place).glob("*.toml"):
            shutil.copy(path, folder)

    return make


def _each(folder: Path, read: Callable[[str], Any]) -> None:
    for path in sorted(folder.glob("*.toml")):
        read(str(path))


def _read_specs(folder: Path) -> None:
    from builders.reading import spec_text
    from builders.specs import load_spec

    _each(folder, lambda path: spec_text(load_spec(path)))


def _read_plans(folder: Path) -> None:
    from evaluation.classifiers.plans import load_plan

    def read(path: str) -> None:
        plan = load_plan(path)
        for name in plan.models:
            plan.settings(name), plan.blank(name)

    _each(folder, read)


def _ood(folder: Path) -> None:
    shutil.copy(CODE / "evaluation/classifiers/ood/sets/hans.toml", folder)
    write_hans(folder / "data")


def _read_ood(folder: Path) -> None:
    from evaluation.classifiers.ood import load_ood_spec, read_ood, report

    spec = load_ood_spec(str(folder / "hans.toml"))
    rows = read_ood(spec, folder / "data")
    report(spec, rows.rows, np.zeros(len(rows.rows), np.int64))


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
    from builders.aflite import _check_columns
    from builders.sources import read_source

    spec = spec_of("source.filtered=['train']")
    rows = read_source(spec.source, work=folder / "work", path=folder / "source")
    _check_columns(spec, rows)
    for split in rows.splits.values():
        split[:]


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
        split[:]


@functools.cache
def _kept(root: Path) -> tuple[Path, Path]:
    """A filtered folder and a probe set, built once for all targets that only read them."""
    from builders.unqover import build_unqover
    from unqover_data import read_toml

    made = build_filtered(root / "filtered").folder
    _lists(root)
    return made, build_unqover(read_toml(root / "few.toml"), root / "probes").folder


@functools.cache
def _root() -> Path:
    import atexit
    import tempfile

    place = tempfile.mkdtemp(prefix="probesieve-fuzz-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(place)


@functools.cache
def _digits() -> Path:
    """A filtered set of tiny images of ten classes."""
    from builders.aflite import build_aflite
    from builders.specs import load_spec

    root = _root() / "digits"
    put(root / "source", *(f"{digit}/{number}.png" for digit in range(10) for number in range(6)))
    features = np.random.default_rng(3).normal(size=(60, 12)).astype(np.float32)
    for row in range(0, 60, 3):
        features[row, row // 6] += 9
    np.save(root / "features.npy", features)
    spec = load_spec("digits", ["filter.n=40", "filter.m=4", "filter.t=30", "filter.k=5"])
    return build_aflite(spec, root, source=root / "source", features=root / "features.npy").folder


def _filtered() -> Path:
    return _kept(_root())[0]


def _probes() -> Path:
    return _kept(_root())[1]


def _predictions(folder: Path) -> None:
    from evaluation.built_sets import find_built
    from evaluation.classifiers.sets import matching_rows

    rows, _ = matching_rows(find_built(str(_filtered())), "train")
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

    title, found = difficulty_of(sorted(folder.glob("p.*")), str(_filtered()), "train")
    difficulty_text(found, title)


def _humans(folder: Path) -> None:
    from evaluation.classifiers.comparisons import humans_of
    from evaluation.classifiers.text import humans_text

    title, found = humans_of(folder / "votes.jsonl", str(_filtered()), "train")
    humans_text(found, title)


def _results(folder: Path) -> None:
    for number, name in enumerate(("org/one", "org/two")):
        store_result(folder, _probes(), name, bias=0.1, seed=number)


def _classified(folder: Path) -> None:
    place = folder / "results"
    store_classified(place, _filtered(), "org/sorter", lambda rows: np.arange(len(rows)) % 3 == 0, split="train")


def _report(folder: Path) -> None:
    from evaluation.report import report_text, write_report

    report_text([folder])
    write_report([folder], folder / "report.html")


def _compare(folder: Path) -> None:
    from evaluation.compare import compare_text

    paths = sorted(folder.glob("*/*/*/*.json"))
    compare_text(paths, base=paths[0])


def _export(folder: Path) -> None:
    from evaluation.hub_results import build_score_set

    build_score_set(folder / "org__one", folder / "out")


def _copy_of(built: Callable[[], Path]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        shutil.copytree(built(), folder / "set")

    return make


def resign(folder: Path) -> None:
    """Make a damaged set's manifest agree with itself and its files, as anybody can."""
    path = folder / "set/manifest.json"
    with contextlib.suppress(Exception):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        for name, facts in manifest["files"].items():
            with contextlib.suppress(Exception):
                facts["sha256"] = sha256(folder / "set" / name)
        with contextlib.suppress(Exception):
            for splits in manifest["configs"].values():
                for facts in splits.values():
                    facts["rows"] = sum(pq.read_metadata(folder / "set" / name).num_rows for name in facts["files"])
        manifest["sha256"] = own_sum(manifest)
        path.write_text(json.dumps(manifest), encoding="utf-8")


def resign_manifest(folder: Path) -> None:
    """As `resign`, but for a manifest alone that was edited."""
    path = folder / "set/manifest.json"
    with contextlib.suppress(Exception):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        manifest["sha256"] = own_sum(manifest)
        path.write_text(json.dumps(manifest), encoding="utf-8")


def _read_probes(folder: Path) -> None:
    from builders.folder import verify_folder
    from evaluation.models import ModelRef
    from evaluation.probe_sets import open_probe_set
    from evaluation.store import place_of

    verify_folder(folder / "set")
    for config in ("qa", "mlm"):
        probes = open_probe_set(str(folder / "set"), config=config)
        place_of(
            folder / "out", ModelRef("a", "a", "0", "qa", True), f"{probes.name}@{probes.version}", config, "exact"
        )


def _read_filtered(folder: Path) -> None:
    from builders.folder import verify_folder
    from builders.hub import _sums
    from evaluation.built_sets import find_built
    from evaluation.classifiers.sets import labelled_splits, matching_rows, read_split
    from evaluation.classifiers.subsets import training_subset

    built = find_built(str(folder / "set"))
    for split in labelled_splits(built):
        rows = read_split(built, split)
        rows.drawn(10, seed=0)
    matching_rows(built, "train")
    training_subset(built, "filtered", split="train", seed=0)
    _sums(folder / "set", verify_folder(folder / "set"))


def _refilter(folder: Path) -> None:
    from builders.refilter import refilter

    refilter(folder / "set", folder / "out", version="2.0.0", n=170)


def _checkpoint(folder: Path) -> None:
    import torch
    import transformers

    tokenizer = tokenizer_of("wordpiece")
    torch.manual_seed(0)
    config = sized("BertConfig", len(tokenizer))
    transformers.BertForQuestionAnswering(config).save_pretrained(folder / "qa")
    tokenizer.save_pretrained(folder / "qa")
    hypothesis_reader(folder / "classifier")


def _score_checkpoint(folder: Path) -> None:
    _evaluate(folder / "qa", _probes(), folder / "out")


def _evaluate(model: Path, dataset: Path, out: Path) -> None:
    from evaluation.classifiers.run import ClassifierOptions
    from evaluation.dispatch import Sets, evaluate_any
    from evaluation.run import Engine, Options

    classifies = dataset != _probes()
    options = (Options(), ClassifierOptions(limit=9)) if classifies else (Options(sample="4"), ClassifierOptions())
    sets = Sets(datasets=(str(dataset),), splits=("train",) if classifies else ())
    list(evaluate_any(str(model), sets, *options, engine=Engine(decoders=0), out=out))


def _score_classifier(folder: Path) -> None:
    from builders.features.transformer import TransformerRecipe, TransformerSettings

    name = str(folder / "classifier")
    settings = TransformerSettings(model=name, max_length=16)
    recipe = TransformerRecipe(settings, inputs=("premise", "hypothesis"), names=NAMES)
    recipe.identity()
    recipe.load(None)
    _evaluate(folder / "classifier", _filtered(), folder / "out")


def _image_models(folder: Path) -> None:
    import timm
    import torch
    from timm.models import save_for_hf
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(3)
    names = [str(digit) for digit in range(10)]
    model = timm.create_model("test_resnet", num_classes=10)
    config = {"label_names": names, "num_classes": 10}
    save_for_hf(model, str(folder / "timm"), model_config=config, safe_serialization=True)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    settings = ViTConfig(image_size=8, patch_size=4, id2label=dict(enumerate(names)), num_labels=10, **sizes)
    ViTForImageClassification(settings).save_pretrained(folder / "vit")
    ViTImageProcessor(size={"height": 8, "width": 8}).save_pretrained(folder / "vit")


def _score_images(folder: Path) -> None:
    for name in ("timm", "vit"):
        _evaluate(folder / name, _digits(), folder / "out")


def _timm_encoder(folder: Path) -> None:
    from builders.features.images import ImageRecipe, ImageSettings

    recipe = ImageRecipe(ImageSettings(model=str(folder / "timm")), names=tuple("0123456789"))
    recipe.identity()
    recipe.load(None)


SETTINGS = (
    "filter.n",
    "filter.tau",
    "filter.c",
    "filter.k",
    "share",
    "seed",
    "name",
    "version",
    "encoder.kind",
    "encoder.learning_rate",
    "encoder.model",
    "source.kind",
    "source.inputs.premise",
    "source.filtered",
    "source.names",
    "source",
    "values_from",
    "x" * 99,
    "",
    ".",
    "a.b.c",
)


def _arguments(folder: Path) -> None:
    (folder / "arguments.json").write_text("[]")


def _set_value(rng: Rng, folder: Path) -> str:
    """Choose ``--set KEY=VALUE``."""
    from tests.fuzz.damage import DEEP, NOT_NUMBERS, NUMBERS, TEXTS

    values = [
        *TEXTS,
        *map(str, NUMBERS),
        *NOT_NUMBERS[True],
        *DEEP,
        "[]",
        "{}",
        "[1]",
        "['a', 'a']",
        '""',
        "a.b=1",
        "1 = 2",
    ]
    pick = [
        f"{SETTINGS[rng.integers(len(SETTINGS))]}={values[rng.integers(len(values))]}"
        for _ in range(rng.integers(1, 4))
    ]
    (folder / "arguments.json").write_text(json.dumps(pick))
    return f"--set {[text[:80] for text in pick]}"


def _use_set_values(folder: Path) -> None:
    from builders.reading import spec_text
    from builders.specs import load_spec

    spec_text(load_spec("snli", json.loads((folder / "arguments.json").read_text())))


def _label_map(rng: Rng, folder: Path) -> str:
    from tests.fuzz.damage import TEXTS

    parts = [
        "0",
        "1",
        "2",
        "LABEL_0",
        "entailment",
        "neutral",
        "contradiction",
        "=",
        ",",
        "٣",
        "²",
        "9" * 5_000,
        *TEXTS,
    ]
    text = "".join(parts[rng.integers(len(parts))] for _ in range(rng.integers(1, 12)))
    classes = [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["a", "a"],
        [],
        {"0": "x", "1": 3},
        {"²": "x"},
        {"9" * 5_000: "x"},
        {"a": 1},
    ]
    given = classes[rng.integers(len(classes))]
    (folder / "arguments.json").write_text(json.dumps([text, given]))
    return f"--label-map {text[:200]!r} for {str(given)[:99]}"


def _use_label_map(folder: Path) -> None:
    from evaluation.classifiers.labels import match_labels

    text, classes = json.loads((folder / "arguments.json").read_text())
    match_labels(classes, NAMES, label_map=text)


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("eval", "--model", "{model}", "--dataset", "{probes}", "--sample", "4", "--out", "{out}"),
    ("eval", "--model", "{model}", "--dataset", "{probes}", "--seed", "1", "--batch-size", "4", "--out", "{out}"),
    (
        "eval",
        "--model",
        "{model}",
        "--dataset",
        "{probes}",
        "--context-prefix",
        "x",
        "--dtype",
        "float32",
        "--out",
        "{out}",
    ),
    ("eval", "--model", "{model}", "--dataset", "{probes}", "--config", "qa", "--workers", "1", "--out", "{out}"),
    ("eval", "--model", "{sorter}", "--dataset", "{filtered}", "--limit", "9", "--split", "train", "--out", "{out}"),
    ("eval", "--model", "{sorter}", "--dataset", "{filtered}", "--broken-share", "0", "--seed", "3", "--out", "{out}"),
    ("train", "--data", "{filtered}", "--model", "{sorter}", "--limit", "9", "--subset", "random", "--out", "{out}"),
    ("train", "--data", "{filtered}", "--seed", "9", "--inputs", "premise", "--set", "epochs=1", "--out", "{out}"),
    ("difficulty", "{folder}/p.jsonl", "--dataset", "{filtered}", "--split", "train", "--label-map", "0=neutral"),
    ("humans", "{folder}/p.jsonl", "--dataset", "{filtered}", "--split", "train", "--out", "{out}/x.json"),
    ("compare", "{folder}/p.jsonl", "--top", "3", "--base", "x"),
    ("export-scores", "{folder}", "--version", "1.0.0", "--out", "{out}"),
    ("report", "{filtered}", "--title", "x", "--base", "a=b", "--out", "{out}/x.html"),
    ("refilter", "{filtered}", "--n", "170", "--tau", "0.9", "--version", "1.1.0", "--out", "{out}"),
    ("build", "unqover", "religion", "--config", "mlm", "--version", "x", "--lists", "bundled", "--out", "{out}"),
    ("build", "aflite", "snli", "--source", "{folder}", "--filter-splits", "train", "--workers", "1", "--out", "{out}"),
    (
        "build",
        "aflite",
        "planted-nli",
        "--set",
        "source.rows=0",
        "--version",
        "1.0.0",
        "--device",
        "x",
        "--out",
        "{out}",
    ),
    ("show", "unqover-religion", "--row", "3", "--lists", "bundled"),
    ("tables", "--plan", "x.toml", "--limit", "1", "--table", "9", "--out", "{out}"),
    ("push", "{filtered}", "a", "--dry-run"),
    ("validate", "{folder}/p.jsonl"),
)


def _command(rng: Rng, folder: Path) -> str:
    from tests.fuzz.damage import TEXTS

    args = list(COMMANDS[rng.integers(len(COMMANDS))])
    free = [i for i, arg in enumerate(args) if i and not arg.startswith("--") and args[i - 1] not in ("--out", "build")]
    wild = [
        *(text for text in TEXTS if "\0" not in text and text != "\ud800"),
        *(
            "-1",
            "0",
            "nan",
            "inf",
            "1e400",
            str(10**18),
            str(10**30),
            "9" * 5_000,
            "0x10",
            "1_000",
            "\u0663",
            "--",
            "/dev/null",
        ),
        *(
            "{folder}",
            "{model}",
            "{filtered}",
            "{probes}",
            "{sorter}",
            "a/b",
            "a" * 5_000 + "/b",
            "x.toml",
            "~nobody/x",
            "=1",
        ),
    ]
    for place in {free[rng.integers(len(free))] for _ in range(rng.integers(1, 3))}:
        args[place] = wild[rng.integers(len(wild))]
    (folder / "arguments.json").write_text(json.dumps(args))
    return " ".join(arg if len(arg) < 80 else f"{arg[:40]}...({len(arg)})" for arg in args)


def _for_commands(folder: Path) -> None:
    _checkpoint(folder)
    _predictions(folder)


def _run_command(folder: Path) -> None:
    """Run a command in this process; what it prints on stderr must be one line."""
    import signal

    from probesieve.cli import _run, app

    names = {
        "folder": folder,
        "out": folder / "out",
        "model": folder / "qa",
        "sorter": folder / "classifier",
        "filtered": _filtered(),
        "probes": _probes(),
    }
    args = json.loads((folder / "arguments.json").read_text())
    for name, path in names.items():
        args = [arg.replace(f"{{{name}}}", str(path)) for arg in args]
    out, err = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            _run(app, args)
    except SystemExit as end:
        told = err.getvalue().removesuffix("\n")
        plain = all(map(str.isprintable, told.split("\n"))) if args[0] == "validate" else told.isprintable()
        if end.code not in (0, None) and not (end.code in (1, 2) and plain and told):
            raise AssertionError(f"exit {end.code} and on stderr {told[-2000:]!r}") from None
    finally:
        signal.signal(signal.SIGTERM, handler)


def _nothing(folder: Path) -> None:
    """Write nothing."""


TARGETS: dict[str, Target] = {
    "lists": Target(_lists, any_of(tree("*.toml"), tree("*.toml"), raw("*.toml"), odd_file("*.toml")), _read_lists, 40),
    "probe sets built": Target(_lists, tree("*.toml"), _build_lists, 8),
    "released lists": Target(write_released, any_of(raw("*/*"), raw("*/*/*"), odd_file("*/*")), _read_released, 40),
    "filtered specs": Target(
        _toml_of("builders/sets"),
        any_of(tree("*.toml"), tree("*.toml"), raw("*.toml"), odd_file("*.toml")),
        _read_specs,
        40,
    ),
    "--set": Target(_arguments, _set_value, _use_set_values, 60),
    "plans": Target(_toml_of("evaluation/classifiers/plans"), any_of(tree("*.toml"), raw("*.toml")), _read_plans, 40),
    "sets out of distribution": Target(_ood, any_of(tree("*.toml"), raw("*.toml"), raw("data/*")), _read_ood, 30),
    "--label-map": Target(_arguments, _label_map, _use_label_map, 60),
    "checkpoints": Target(
        _checkpoint,
        any_of(
            tree("qa/*config.json"), tree("qa/config.json"), tree("qa/tokenizer.json"), raw("qa/*"), odd_file("qa/*")
        ),
        _score_checkpoint,
        20,
    ),
    "classifiers": Target(
        _checkpoint,
        any_of(
            tree("classifier/*config.json"),
            tree("classifier/config.json"),
            tree("classifier/tok*.json"),
            raw("classifier/*"),
        ),
        _score_classifier,
        12,
    ),
    "image classifiers": Target(
        _image_models,
        any_of(tree("*/*config.json"), tree("*/config.json"), raw("*/*"), odd_file("*/*")),
        _score_images,
        8,
    ),
    "image encoders": Target(_image_models, any_of(tree("timm/config.json"), raw("timm/*")), _timm_encoder, 8),
    "commands": Target(_for_commands, _command, _run_command, 30),
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
    "image folders": Target(_image_rows, any_of(raw("source/*/*"), odd_file("source/*/*")), _read_images, 8),
    "image tables": Target(_image_table, any_of(parquet("source/*"), raw("source/*")), _read_images, 10),
    "shards": Target(_shards, any_of(raw("source/*")), _read_images, 10),
    "difficulty": Target(
        _predictions, any_of(tree("p.json*"), raw("p.*"), parquet("p.parquet"), odd_file("p.*")), _difficulty, 20
    ),
    "humans": Target(_predictions, any_of(tree("votes.jsonl"), raw("votes.jsonl")), _humans, 15),
    "report of probe sets": Target(
        _results, any_of(tree("*/*/*/*.json"), parquet("*/*/*/*.parquet"), raw("*/*/*/*")), _report, 15
    ),
    "compare": Target(_results, any_of(tree("*/*/*/*.json"), parquet("*/*/*/*.parquet"), raw("*/*/*/*")), _compare, 15),
    "export-scores": Target(
        _results, any_of(tree("*/*/*/*.json"), parquet("*/*/*/*.parquet"), raw("*/*/*/*")), _export, 15
    ),
    "report of classifiers": Target(
        _classified, any_of(tree("*/*/*/*/*.json"), parquet("*/*/*/*/*.parquet"), raw("*/*/*/*/*")), _report, 15
    ),
    "report of a filtered set": Target(
        _copy_of(_filtered),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign), raw("set/*")),
        _report,
        12,
    ),
    "probe sets": Target(
        _copy_of(_probes),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign), raw("set/*")),
        _read_probes,
        20,
    ),
    "filtered sets": Target(
        _copy_of(_filtered),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign), raw("set/*")),
        _read_filtered,
        15,
    ),
    "refilter": Target(
        _copy_of(_filtered),
        any_of(tree("set/manifest.json", then=resign_manifest), parquet("set/*/*.parquet", then=resign)),
        _refilter,
        6,
    ),
}
