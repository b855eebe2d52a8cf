"""Tiny text models with a vocabulary of a few sentences, and rows to encode."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders.features.image_sets import colours, recipe

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

NAMES = ("entailment", "neutral", "contradiction")
WORDS = [
    "a",
    "the",
    "dog",
    "cat",
    "child",
    "runs",
    "sleeps",
    "eats",
    "in",
    "on",
    "park",
    "house",
    "not",
    "never",
    "old",
    "small",
    "red",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}

MakeModel = Callable[..., Path]


def make_tokenizer(side: str = "right") -> Any:
    """Give a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: place for place, token in enumerate([*SPECIAL, *WORDS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        padding_side=side,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """Make a folder with a tiny model of random weights, once for the same request."""
    made: dict[Any, Path] = {}

    def make(model_class: str, *, side: str = "right", **more: Any) -> Path:
        import torch
        import transformers

        key = (model_class, side, repr(more))
        if key not in made:
            tokenizer, cls = make_tokenizer(side), getattr(transformers, model_class)
            sizes = {**SIZES, "vocab_size": len(tokenizer), "pad_token_id": 0, **more}
            if "Roberta" not in model_class:
                sizes["type_vocab_size"] = 2
            else:
                tokenizer.model_input_names = ["input_ids", "attention_mask"]
            if "FNet" in model_class:
                tokenizer.model_input_names = ["input_ids", "token_type_ids"]
            torch.manual_seed(7)
            folder = tmp_path_factory.mktemp("model")
            cls(cls.config_class(**{k: v for k, v in sizes.items() if v is not None})).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            made[key] = folder
        return made[key]

    return make


def sentences(rows: int, seed: int = 0) -> dict[str, list[Any]]:
    """Pairs of random sentences whose label is told by words of the hypothesis."""
    import numpy as np

    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    cue = [["red"], ["small", "old"], ["not", "never"]]

    def words(most: int) -> list[str]:
        return rng.choice(WORDS[:12], rng.integers(2, most)).tolist()

    return {
        "premise": [" ".join(words(14)) for _ in labels],
        "hypothesis": [" ".join([*words(6), *cue[label]]) for label in labels],
        "label": labels.tolist(),
    }


@pytest.fixture(scope="session")
def make_rows() -> Callable[..., Any]:
    """Give labelled pairs as a dataset."""

    def make(rows: int, seed: int = 0) -> Any:
        from datasets import ClassLabel, Dataset, Features, Value

        text = Value("string")
        features = Features({"premise": text, "hypothesis": text, "label": ClassLabel(names=list(NAMES))})
        return Dataset.from_dict(sentences(rows, seed), features=features)

    return make


@pytest.fixture(autouse=True, scope="session")
def _small_and_quiet() -> None:
    import torch

    torch.set_num_threads(1)  # more only get into each other's way on models of this size
    logging.getLogger("transformers").setLevel(logging.ERROR)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """On shared cores more threads wait for each other most of the time."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def trained_on_colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe(workers=2).train(colours(30), folder, seed=1)
    return folder
