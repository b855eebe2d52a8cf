"""Training for comparison, with a BERT of one layer and timm's smallest ResNet."""

from __future__ import annotations

import hashlib
import json
import logging
import resource
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import evaluation.classifiers.train
from builders.aflite import Machine
from builders.errors import BuildError
from builders.features import transformer
from builders.features.transformer import TransformerSettings
from builders.folder import Built
from builders.locks import held
from evaluation.classifiers.blank import write_blank_bert
from evaluation.classifiers.subsets import TrainingRows, training_subset
from evaluation.classifiers.train import (
    Trained,
    TrainingRequest,
    default_name,
    make_settings,
    train_classifier,
    train_seeds,
)
from evaluation.errors import EvaluationError
from tests.builders.features import image_sets
from tests.evaluation.classifiers.training_sets import NAMES, TINY, build, opened

CPU = Machine(device="cpu", workers=0)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("set"))


@pytest.fixture(scope="module")
def data(built: Built) -> TrainingRows:
    return training_subset(opened(built), "full")


@pytest.fixture(scope="module")
def settings(data: TrainingRows, tmp_path_factory: pytest.TempPathFactory) -> TransformerSettings:
    texts = [text for column in data.columns for text in data.rows[column]]
    folder = tmp_path_factory.mktemp("blank") / "tiny"
    write_blank_bert(folder, texts, seed=0, layers=1, width=64, max_length=32)
    return TransformerSettings(**{**TINY, "epochs": 1}, model=str(folder))


def train(data: TrainingRows, out: Path, settings: Any, **more: Any) -> Trained:
    return train_classifier(data, out, settings=settings, **{"seed": 0, "machine": CPU, **more})


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_a_checkpoint_says_what_it_is(data: TrainingRows, settings: TransformerSettings, tmp_path: Path) -> None:
    done = train(data, tmp_path, settings)
    assert (done.fresh, done.folder.name) == (True, "snli-aflite_full_tiny_seed0")
    assert [path.name for path in tmp_path.iterdir() if path.name != ".work"] == [done.folder.name]
    assert not list((tmp_path / ".work").iterdir())
    config = json.loads((done.folder / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "entailment", "1": "neutral", "2": "contradiction"}
    assert config["input_columns"] == ["premise", "hypothesis"]
    record = json.loads((done.folder / "training.json").read_text())
    # 240 rows whose labels go round.
    assert (record["rows"], record["labels"]) == (240, dict.fromkeys(NAMES, 80))
    assert record["data"]["subset"] == "full"
    assert record["recipe"]["epochs"] == 1
    model, info = transformers.AutoModelForSequenceClassification.from_pretrained(done.folder, output_loading_info=True)
    assert not info["missing_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(done.folder)
    assert model(**tokenizer("a dog", "a cat", return_tensors="pt")).logits.shape == (1, 3)


def test_all_files_of_a_checkpoint_have_the_permissions_of_new_files(
    data: TrainingRows, settings: TransformerSettings, tmp_path: Path
) -> None:
    (tmp_path / "new").touch()
    done = train(data, tmp_path, settings)
    modes = {path.name: path.stat().st_mode for path in done.folder.iterdir()}
    assert set(modes.values()) == {(tmp_path / "new").stat().st_mode}, modes


def test_a_full_disk_is_one_line_and_the_same_again_ends_as_if_it_had_not_been(
    data: TrainingRows, settings: TransformerSettings, tmp_path: Path
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))  # EFBIG where a disk without room has ENOSPC
    try:
        with pytest.raises(BuildError, match=r"no room is left for \S*/model\.safetensors \(") as told:
            train(data, tmp_path / "full", settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(told.value)
    assert [path.name for path in (tmp_path / "full").iterdir()] == [".work"]
    done, whole = train(data, tmp_path / "full", settings), train(data, tmp_path / "whole", settings)
    for path in whole.folder.iterdir():
        assert (done.folder / path.name).read_bytes() == path.read_bytes()


def test_a_second_training_into_one_folder_is_refused_at_once(
    data: TrainingRows, settings: TransformerSettings, tmp_path: Path
) -> None:
    lock = tmp_path / f".{default_name(data, settings, seed=0)}.lock"
    with held(lock, RuntimeError()), pytest.raises(BuildError, match="another run is writing"):
        train(data, tmp_path, settings)
    assert list(tmp_path.iterdir()) == []


def test_equal_seeds_give_equal_checkpoints(data: TrainingRows, settings: TransformerSettings, tmp_path: Path) -> None:
    one, same = (hashes(train(data, tmp_path / name, settings).folder) for name in ("one", "same"))
    assert one == same
    other = hashes(train(data, tmp_path / "one", settings, seed=1).folder)
    assert other["model.safetensors"] != one["model.safetensors"]
    again = train(data, tmp_path / "one", settings)
    assert (again.fresh, hashes(again.folder)) == (False, one)
    with pytest.raises(
        EvaluationError, match=r"was trained otherwise \(recipe.learning_rate was \S+ and is 0.001\): remove"
    ):
        train(data, tmp_path / "one", replace(settings, learning_rate=1e-3))
    retitled = replace(data, facts=data.facts | {"revision": "another title"})
    assert not train(retitled, tmp_path / "one", settings).fresh
    with pytest.raises(EvaluationError, match=r"was trained otherwise \(data.rows was \S+ and is 'others'\)"):
        train(replace(data, facts=data.facts | {"rows": "others"}), tmp_path / "one", settings)
    record = again.folder / "training.json"
    old = json.loads(record.read_text(encoding="utf-8"))
    del old["data"]["rows"]  # as of before
    record.write_text(json.dumps(old), encoding="utf-8")
    assert not train(data, tmp_path / "one", settings).fresh
    with pytest.raises(EvaluationError, match=r"was trained otherwise \(data.revision was"):
        train(retitled, tmp_path / "one", settings)
    (tmp_path / "two" / one_name(data, settings)).mkdir(parents=True)
    with pytest.raises(EvaluationError, match=r"holds no training\.json, so it is not ours"):
        train(data, tmp_path / "two", settings)
    for seed in (-1, 2**32):
        with pytest.raises(EvaluationError, match=rf"from 0 to .*, not {seed}"):
            train(data, tmp_path / "one", settings, seed=seed)


def one_name(data: TrainingRows, settings: TransformerSettings) -> str:
    return default_name(data, settings, seed=0)


def test_a_run_that_was_killed_before_its_end_is_not_trained_again(
    data: TrainingRows, settings: TransformerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hashes(train(data, tmp_path / "whole", settings).folder)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(evaluation.classifiers.train, "_put", stop)
        with pytest.raises(KeyboardInterrupt):
            train(data, tmp_path / "killed", settings)
    assert [path.name for path in (tmp_path / "killed").iterdir()] == [".work"]
    monkeypatch.setattr(transformer, "finetune", stop)
    assert hashes(train(data, tmp_path / "killed", settings).folder) == whole


def test_a_partial_input_model_sees_one_column(
    data: TrainingRows, settings: TransformerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    recipe = transformer.TransformerRecipe.__init__

    def watched(self: Any, *args: Any, **more: Any) -> None:
        seen.append(more["inputs"])
        recipe(self, *args, **more)

    monkeypatch.setattr(transformer.TransformerRecipe, "__init__", watched)
    done = train(data, tmp_path, settings, inputs=["hypothesis"])
    assert (done.folder.name, seen) == ("snli-aflite_full_hypothesis_tiny_seed0", [("hypothesis",)])
    assert json.loads((done.folder / "config.json").read_text())["input_columns"] == ["hypothesis"]
    with pytest.raises(EvaluationError, match="did you mean 'hypothesis'"):
        train(data, tmp_path, settings, inputs=["hypotesis"])


def test_image_models_are_trained_with_timm(tmp_path: Path) -> None:
    import timm

    rows = image_sets.colours(24)
    data = TrainingRows(rows, ("image",), image_sets.NAMES, {"name": "colours", "subset": "full"})
    settings = replace(image_sets.TINY, epochs=1)
    done = train(data, tmp_path, settings)
    assert done.folder.name == "colours_full_test_resnet_seed0"
    config = json.loads((done.folder / "config.json").read_text())
    assert (config["label_names"], config["input_columns"]) == (["red", "green", "blue"], ["image"])
    model = timm.create_model(f"local-dir:{done.folder}", pretrained=True).eval()
    with torch.inference_mode():
        assert model(torch.zeros(1, 3, 16, 16)).shape == (1, 3)
    other = train(data, tmp_path / "same", settings)
    assert hashes(other.folder) == hashes(done.folder)


def test_settings_default_to_the_papers(data: TrainingRows) -> None:
    assert make_settings(data, {"epochs": 1}) == TransformerSettings(epochs=1)
    assert make_settings(replace(data, columns=("image",)), {"epochs": 1}).model == "efficientnet_b7"
    with pytest.raises(BuildError, match=r"training settings: unknown key 'epoch'.* did you mean 'epochs'"):
        make_settings(data, {"epoch": 1})


def test_several_seeds_of_a_request(built: Built, settings: TransformerSettings, tmp_path: Path) -> None:
    values = tuple(f"{name}={value}" for name, value in TINY.items() if name != "epochs")
    request = TrainingRequest(
        str(built.folder), "filtered", limit=30, model=settings.model, values=(*values, "epochs=1")
    )
    done = list(train_seeds(request, tmp_path, seeds=[0, 3], machine=CPU))
    assert [one.folder.name for one in done] == [f"snli-aflite_filtered_30_tiny_seed{seed}" for seed in (0, 3)]
    assert {one.record["rows"] for one in done} == {30}
    for changed, message in (
        ({"data": "anli", "files": tmp_path}, "was not filtered: leave out --subset"),
        ({"where": ("round=R1",)}, "--files and --where are for one of anli"),
        ({"data": "nowhere"}, "neither a built folder nor ORG/NAME"),
        ({"values": ("epochs",)}, "must be KEY=VALUE"),
    ):
        with pytest.raises((EvaluationError, BuildError), match=message):
            list(train_seeds(replace(request, **changed), tmp_path, seeds=[0], machine=CPU))  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match="each seed once, not 0, 0"):
        list(train_seeds(request, tmp_path, seeds=[0, 0], machine=CPU))


def test_a_class_without_rows_is_pointed_out(
    data: TrainingRows, settings: TransformerSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    two = replace(data, rows=data.rows.filter(lambda row: row["label"] != 1))
    with caplog.at_level(logging.WARNING):
        done = train(two, tmp_path, settings)
    assert "has the label neutral" in caplog.text
    assert done.record["labels"] == {"entailment": 80, "neutral": 0, "contradiction": 80}


def test_a_blank_bert_is_a_function_of_texts_and_seed(tmp_path: Path) -> None:
    texts = ["A dog runs.", "Nobody runs in the park!"]
    made = [
        write_blank_bert(tmp_path / name, texts, seed=seed, layers=1, width=64, words=60, max_length=16)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    assert hashes(made[0]) == hashes(made[1])
    assert hashes(made[0])["model.safetensors"] != hashes(made[2])["model.safetensors"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(made[0])
    ids = tokenizer("A dog", "nobody")
    assert tokenizer.convert_ids_to_tokens(ids["input_ids"]) == ["[CLS]", "a", "dog", "[SEP]", "nobody", "[SEP]"]
    assert ids["token_type_ids"] == [0, 0, 0, 0, 1, 1]
    shutil.rmtree(made[1])
    before = torch.get_rng_state()
    write_blank_bert(made[1], texts, seed=0, layers=1, width=64, words=60, max_length=16)
    assert torch.equal(torch.get_rng_state(), before)
