"""Image classifiers of timm and transformers: the same decisions as the model alone, and images that are broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.aflite import build_aflite
from builders.errors import BuildError
from builders.folder import Built, read_manifest, write_manifest
from builders.specs import load_spec
from evaluation.classifiers import scoring
from evaluation.classifiers.run import ClassifierOptions, evaluate_classifier
from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.run import Engine
from tests.builders.features.image_sets import NAMES, colours, recipe

CPU = Engine(device="cpu", decoders=0)
PLAIN = ClassifierOptions()
ROWS = 90
CLASSES = ("blue", "green", "red")  # of the folder, in order of name


@pytest.fixture(scope="module", autouse=True)
def _load_anew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        yield
    scoring.loaded.cache_clear()


def in_class_order() -> datasets.Dataset:
    """Rows in the order of the folder's classes."""
    rows = colours(ROWS, seed=4)
    order = sorted(range(ROWS), key=lambda row: (NAMES[rows[row]["label"]], row))
    return rows.select(order)


def build_colours(root: Path) -> Built:
    """Filter images in class folders, with features that give two of three away."""
    images = in_class_order()
    raw = images.cast_column("image", datasets.Image(decode=False))
    for number, row in enumerate(raw):
        path = root / "source" / NAMES[row["label"]] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(row["image"]["bytes"])
    labels = [CLASSES.index(NAMES[label]) for label in images["label"][:]]
    features = np.random.default_rng(1).normal(size=(ROWS, 6)).astype(np.float32)
    for row in range(ROWS):
        if row % 3:
            features[row, labels[row]] += 8
    np.save(root / "features.npy", features)
    spec = load_spec("digits", ["filter.n=40", "filter.m=8", "filter.t=20", "filter.k=10"])
    return build_aflite(spec, root / "out", source=root / "source", features=root / "features.npy")


@pytest.fixture(scope="module")
def images() -> datasets.Dataset:
    return in_class_order()


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_colours(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def timm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timm") / "colours"
    recipe(rand_augment_layers=0, epochs=6).train(colours(60), folder, seed=0)
    return folder


@pytest.fixture(scope="module")
def transformers_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    folder = tmp_path_factory.mktemp("vit") / "vit"
    names = ("green", "red", "blue")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(3)
    config = ViTConfig(
        image_size=8, patch_size=4, id2label=dict(enumerate(names)), initializer_range=0.5, num_labels=3, **sizes
    )
    ViTForImageClassification(config).save_pretrained(folder)
    ViTImageProcessor(size={"height": 8, "width": 8}).save_pretrained(folder)
    return folder


def decisions(done: Any) -> list[str]:
    return [CLASSES[place] for place in pq.read_table(done.path.with_suffix(".parquet"))["predicted"].to_pylist()]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_timm_model_decides_as_it_does_on_its_own(
    filtered: Built, timm_model: Path, images: datasets.Dataset, tmp_path: Path, workers: int
) -> None:
    engine = replace(CPU, decoders=workers, batch_size=16)
    done = evaluate_classifier(str(timm_model), str(filtered.folder), PLAIN, engine=engine, out=tmp_path)
    logits = recipe(rand_augment_layers=0, epochs=6).load(timm_model).encode(images).logits
    assert logits is not None
    expected = [NAMES[place] for place in logits.argmax(axis=1)]
    assert decisions(done) == expected
    right = np.array(expected) == [NAMES[label] for label in images["label"][:]]
    accuracy = done.result["splits"]["train"]["accuracy"]
    assert accuracy["full"]["value"] == pytest.approx(right.mean())
    kept = [part == "filtered" for part in pq.read_table(done.path.with_suffix(".parquet"))["part"].to_pylist()]
    assert accuracy["kept"]["value"] == pytest.approx(right[kept].mean())
    assert right.mean() > 0.8  # a guess is right in a third
    assert done.result["model"]["kind"] == "image-classifier"
    assert done.result["inputs"]["crop_pct"] == 1.0


def test_a_model_of_transformers_decides_as_it_does_on_its_own(
    filtered: Built, transformers_model: Path, images: datasets.Dataset, tmp_path: Path
) -> None:
    import torch
    from transformers import AutoImageProcessor, AutoModelForImageClassification

    done = evaluate_classifier(str(transformers_model), str(filtered.folder), PLAIN, engine=CPU, out=tmp_path)
    model = AutoModelForImageClassification.from_pretrained(transformers_model).eval()
    processor = AutoImageProcessor.from_pretrained(transformers_model)
    with torch.inference_mode():
        given = [
            model(**processor(images=one.convert("RGB"), return_tensors="pt")).logits for one in images["image"][:]
        ]
    expected = [model.config.id2label[int(logits.argmax())] for logits in given]
    assert decisions(done) == expected
    assert len(set(expected)) > 1


def damaged(built: Built, folder: Path, rows: list[int]) -> Path:
    """Copy a folder with images that nothing can decode, its manifest as if it had been built so."""
    shutil.copytree(built.folder, folder)
    for config in ("filtered", "removed"):
        for name in built.manifest["configs"][config]["train"]["files"]:
            table = pq.read_table(folder / name)
            cells = table["image"].to_pylist()
            for place, index in enumerate(table["source_index"].to_pylist()):
                if index in rows:
                    cells[place] = {"bytes": b"no image", "path": cells[place]["path"]}
            column = table.schema.get_field_index("image")
            pq.write_table(
                table.set_column(column, "image", pa.array(cells, table.schema.field("image").type)), folder / name
            )
    facts = {key: value for key, value in read_manifest(folder).items() if key not in ("files", "versions", "sha256")}
    (folder / "manifest.json").unlink()
    write_manifest(folder, facts)
    return folder


def test_broken_images_are_counted_named_and_left_out(
    filtered: Built, timm_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = damaged(filtered, tmp_path / "damaged", [5, 40])
    how: Any = {"engine": replace(CPU, batch_size=8)}
    whole = evaluate_classifier(str(timm_model), str(filtered.folder), PLAIN, out=tmp_path / "a", **how)
    options = replace(PLAIN, broken_share=0.03)
    done = evaluate_classifier(str(timm_model), str(folder), options, out=tmp_path / "b", **how)
    summary = done.result["splits"]["train"]
    assert (summary["rows"], summary["accuracy"]["full"]["n"], summary["broken"]["rows"]) == (88, 88, 2)
    assert [one["source_index"] for one in summary["broken"]["first"]] == [5, 40]
    assert "read (UnidentifiedImageError: cannot identify image file);" in summary["broken"]["first"][0]["why"]
    assert "2 images of digits-aflite, split train, could not be read" in caplog.text
    tables = [pq.read_table(one.path.with_suffix(".parquet")).to_pylist() for one in (whole, done)]
    for place, (before, after) in enumerate(zip(*tables, strict=True)):
        assert after["predicted"] == (None if place in (5, 40) else before["predicted"])


def test_too_many_broken_images_end_the_run_with_one_line(filtered: Built, timm_model: Path, tmp_path: Path) -> None:
    folder = damaged(filtered, tmp_path / "damaged", [5, 40, 41])
    with pytest.raises(EvaluationError, match=r"3 of 90 images of digits-aflite, split train, are broken") as caught:
        evaluate_classifier(str(timm_model), str(folder), PLAIN, engine=CPU, out=tmp_path / "results")
    assert "row 5 (source_index" in str(caught.value)
    assert "also rows 40, 41" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "results").rglob("train.exact.*"))
    asked: Any = {"engine": CPU, "out": tmp_path / "results"}
    with pytest.raises(EvaluationError, match="3 of 90 images"):  # also when nothing is left to score
        evaluate_classifier(str(timm_model), str(folder), PLAIN, **asked)
    done = evaluate_classifier(str(timm_model), str(folder), replace(PLAIN, broken_share=0.04), **asked)
    assert done.result["splits"]["train"]["broken"]["rows"] == 3
    with pytest.raises(EvaluationError, match="3 of 90 images"):  # also where the result is there
        evaluate_classifier(str(timm_model), str(folder), PLAIN, **asked)


def test_texts_and_images_do_not_go_together(
    filtered: Built, planted: Built, timm_model: Path, reader: Path, tmp_path: Path
) -> None:
    with pytest.raises(EvaluationError, match=r"classifies texts and digits-aflite holds images: pass"):
        evaluate_classifier(str(reader), str(filtered.folder), PLAIN, engine=CPU, out=tmp_path)
    with pytest.raises(EvaluationError, match=r"classifies images and snli-aflite holds texts: pass"):
        evaluate_classifier(str(timm_model), str(planted.folder), PLAIN, engine=CPU, out=tmp_path)


def test_other_classes_are_named(filtered: Built, tmp_path: Path) -> None:
    other = tmp_path / "other"
    small = recipe(rand_augment_layers=0, epochs=1)
    small.names = ("red", "green", "yellow")
    small.train(colours(6), other, seed=0)
    with pytest.raises(EvaluationError, match=r"the dataset has blue, green, red; the model has red, green, yellow"):
        evaluate_classifier(str(other), str(filtered.folder), PLAIN, engine=CPU, out=tmp_path / "results")


def test_a_model_without_its_output_layer_is_refused(filtered: Built, timm_model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    headless = tmp_path / "headless"
    shutil.copytree(timm_model, headless)
    state = load_file(headless / "model.safetensors")
    save_file(
        {name: value for name, value in state.items() if not name.startswith("fc.")}, headless / "model.safetensors"
    )
    with pytest.raises(EvaluationError, match="has no trained classifier, only features"):
        evaluate_classifier(str(headless), str(filtered.folder), PLAIN, engine=CPU, out=tmp_path / "results")
    (headless / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(BuildError, match="has damaged weights"):
        evaluate_classifier(str(headless), str(filtered.folder), PLAIN, engine=CPU, out=tmp_path / "results")


def test_a_model_of_grey_images_is_refused(filtered: Built, tmp_path: Path) -> None:
    import timm
    from timm.models import save_for_hf

    model = timm.create_model("test_resnet", num_classes=3, in_chans=1)
    config = {"pretrained_cfg": {"input_size": [1, 16, 16]}, "label_names": list(NAMES)}
    args = {"in_chans": 1}
    save_for_hf(model, str(tmp_path / "grey"), model_config=config, model_args=args, safe_serialization=True)
    with pytest.raises(EvaluationError, match="takes images of 1 channels, and images are read as RGB"):
        evaluate_classifier(str(tmp_path / "grey"), str(filtered.folder), PLAIN, engine=CPU, out=tmp_path / "results")


def test_on_imagenet_a_only_its_classes_compete(tmp_path: Path) -> None:
    """Of a model of 1,000 classes the decision is the largest logit among the 200."""
    import timm
    import torch
    from timm.models import save_for_hf

    from evaluation.classifiers.ood import imagenet_a_classes, imagenet_a_columns, load_ood_spec
    from evaluation.classifiers.predict import load_classifier
    from evaluation.classifiers.run import evaluate_ood
    from evaluation.classifiers.sets import read_ood_rows

    names = imagenet_a_classes()
    raw = colours(len(names), seed=2).cast_column("image", datasets.Image(decode=False))
    for name, row in zip(names, raw, strict=True):
        (tmp_path / "imagenet-a" / name).mkdir(parents=True)
        (tmp_path / "imagenet-a" / name / "0.png").write_bytes(row["image"]["bytes"])
    torch.manual_seed(5)
    model = timm.create_model("test_resnet", num_classes=1000)
    config = {"pretrained_cfg": {"input_size": [3, 32, 32]}}
    save_for_hf(model, str(tmp_path / "model"), model_config=config, safe_serialization=True)
    ref, spec = resolve_model(str(tmp_path / "model")), load_ood_spec("imagenet-a")
    how: Any = {"engine": CPU, "data": tmp_path / "imagenet-a"}
    (done,) = evaluate_ood(ref, [spec], PLAIN, out=tmp_path / "results", **how)
    rows, _ = read_ood_rows(spec, tmp_path / "imagenet-a")
    loaded = load_classifier(ref, dtype="float32", device="cpu", batch_size=64, workers=0)
    logits = np.concatenate([given.logits for given in loaded.outputs(rows)])[:, imagenet_a_columns(1000)]
    stored = pq.read_table(done.path.with_suffix(".parquet"))
    assert stored["predicted"].to_pylist() == logits.argmax(axis=1).tolist()
    assert done.result["labels"]["rule"].startswith("the model's logits of the dataset's 200 of its 1000 classes")
    with pytest.raises(EvaluationError, match="--label-map means nothing on imagenet-a"):
        next(evaluate_ood(ref, [spec], replace(PLAIN, label_map="0=a"), out=tmp_path / "other", **how))


def test_what_timm_saved_is_known_by_its_config(timm_model: Path, transformers_model: Path) -> None:
    assert (resolve_model(str(timm_model)).kind, resolve_model(str(timm_model)).library) == ("image-classifier", "timm")
    assert resolve_model(str(transformers_model)).library == "transformers"
    assert json.loads((timm_model / "config.json").read_text(encoding="utf-8"))["label_names"] == list(NAMES)
