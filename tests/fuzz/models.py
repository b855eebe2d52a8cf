"""Checkpoints, as encoders and as models to score."""

from __future__ import annotations

from pathlib import Path

from tests.builders.filtered_sets import NAMES
from tests.evaluation.classifiers.exact_models import hypothesis_reader
from tests.evaluation.conftest import sized, tokenizer_of
from tests.fuzz.built import digits, filtered, probes
from tests.fuzz.damage import any_of, odd_file, raw, tree
from tests.fuzz.target import Target


def checkpoint(folder: Path) -> None:
    import torch
    import transformers

    tokenizer = tokenizer_of("wordpiece")
    torch.manual_seed(0)
    config = sized("BertConfig", len(tokenizer))
    transformers.BertForQuestionAnswering(config).save_pretrained(folder / "qa")
    tokenizer.save_pretrained(folder / "qa")
    hypothesis_reader(folder / "classifier")


def _score_checkpoint(folder: Path) -> None:
    evaluate(folder / "qa", probes(), folder / "out")


def evaluate(model: Path, dataset: Path, out: Path) -> None:
    from evaluation.classifiers.run import ClassifierOptions
    from evaluation.dispatch import Sets, evaluate_any
    from evaluation.run import Engine, Options

    classifies = dataset != probes()
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
    evaluate(folder / "classifier", filtered(), folder / "out")


def _train_classifier(folder: Path) -> None:
    from datasets import ClassLabel, Dataset, Features, Value

    from builders.features.transformer import TransformerRecipe, TransformerSettings

    kinds = Features(
        {"premise": Value("string"), "hypothesis": Value("string"), "label": ClassLabel(names=list(NAMES))}
    )
    rows = Dataset.from_dict({"premise": ["a"] * 4, "hypothesis": ["b"] * 4, "label": [0, 1, 2, 0]}, features=kinds)
    settings = TransformerSettings(model=str(folder / "classifier"), max_length=16, epochs=1)
    TransformerRecipe(settings, inputs=("premise", "hypothesis"), names=NAMES).train(rows, folder / "work", seed=0)


def image_models(folder: Path) -> None:
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
        evaluate(folder / name, digits(), folder / "out")


def _timm_encoder(folder: Path) -> None:
    from builders.features.images import ImageRecipe, ImageSettings

    recipe = ImageRecipe(ImageSettings(model=str(folder / "timm")), names=tuple("0123456789"))
    recipe.identity()
    recipe.load(None)
    recipe.new_model()


TARGETS = {
    "checkpoints": Target(
        checkpoint,
        any_of(
            tree("qa/*config.json"), tree("qa/config.json"), tree("qa/tokenizer.json"), raw("qa/*"), odd_file("qa/*")
        ),
        _score_checkpoint,
        20,
    ),
    "classifiers": Target(
        checkpoint,
        any_of(
            tree("classifier/*config.json"),
            tree("classifier/config.json"),
            tree("classifier/tok*.json"),
            raw("classifier/*"),
        ),
        _score_classifier,
        12,
    ),
    "trained-classifiers": Target(
        checkpoint, any_of(tree("classifier/*config.json"), tree("classifier/config.json")), _train_classifier, 4
    ),
    "image-classifiers": Target(
        image_models,
        any_of(tree("*/*config.json"), tree("*/config.json"), raw("*/*"), odd_file("*/*")),
        _score_images,
        8,
    ),
    "image-encoders": Target(image_models, any_of(tree("timm/config.json"), raw("timm/*")), _timm_encoder, 8),
}
