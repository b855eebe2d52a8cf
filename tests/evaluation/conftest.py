"""Tiny models and tokenizers of every family, made on the spot, and a few probe rows to score."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders.probes import batches
from unqover_data import read_toml

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

LISTS = """\
name = "few"
title = "Few probes"
version = "1.0.0"
language = "en"
description = "Four names."
pairs = "between-groups"
hints = []

subjects = [
  { name = "Ann", group = "female" },
  { name = "Mary Lou", group = "female" },
  { name = "Bob", group = "male" },
  { name = "Zebedee", group = "male" },
]

[[templates]]
id = "letter"
attributes = "job"
context = "{subject1} sent a letter to {subject2}."
question = "Who {attribute:singular}?"
statement = "{mask} {attribute:singular}."

[[templates]]
id = "swing"
attributes = "job"
context = "The child by the door is called {subject1}, and {subject2} stood there."
question = "Which one {attribute:singular}?"
statement = "The child {mask} {attribute:singular}."

[attributes]
job = [
  { name = "cook", class = "work", singular = ["was a cook", "was never a cook"] },
  { name = "liar", class = "talk", singular = ["lied", "told no lie at all"] },
]
"""
CORPUS = [
    "Ann sent a letter to Bob. Mary Lou sent a letter to Bob. She was a cook. He lied.",
    "The child by the door is called Ann, and Bob stood there. Which one was never a cook?",
    "Who lied? Who told no lie at all? The child told no lie at all.",
    "Question: Who was a cook? Answer: Ann. Mary Lou. Bob. she he She He",
] * 4
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """Sixteen rows of each config; Zebedee is in no vocabulary."""
    path = tmp_path_factory.mktemp("lists") / "few.toml"
    path.write_text(LISTS, encoding="utf-8")
    lists = read_toml(path)
    return {name: pa.concat_tables(batches(lists, name)) for name in ("qa", "mlm")}


def tokenizer_of(family: str, side: str = "right") -> Any:
    """Train a tokenizer of a family on the corpus."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    size = 150
    plain = family in ("wordpiece", "bytes-plain-mask")
    special = [*SPECIAL[:4], AddedToken("[MASK]", lstrip=not plain, special=True)]
    if family == "wordpiece":
        backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        backend.normalizer = normalizers.BertNormalizer(lowercase=True)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special)
    elif family.startswith("bytes"):
        backend = Tokenizer(models.BPE())
        parts: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
        if family == "bytes-split":  # its trimmed offsets lose the first letter of every word
            parts = [pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=True)]
        backend.pre_tokenizer = pre_tokenizers.Sequence(parts)
        backend.decoder = decoders.ByteLevel()
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=letters)
    else:
        backend = Tokenizer(models.Unigram())
        metaspace = pre_tokenizers.Metaspace()
        split = pre_tokenizers.WhitespaceSplit()
        pieces = {
            "metaspace": [metaspace],
            "split-metaspace": [split, metaspace],
            "metaspace-split": [metaspace, split],
        }
        backend.pre_tokenizer = pre_tokenizers.Sequence(pieces[family])
        backend.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="[UNK]")
    backend.train_from_iterator(CORPUS, trainer)
    ids = {token: backend.token_to_id(token) for token in SPECIAL}
    post: list[Any] = [
        processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
        )
    ]
    if family.startswith("bytes"):
        post.insert(0, processors.ByteLevel(trim_offsets=family != "bytes-untrimmed"))
    backend.post_processor = processors.Sequence(post)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        padding_side=side,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token=special[4],
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def sized(config_class: str, vocabulary: int, **more: Any) -> Any:
    """Give a configuration of a very small model; None leaves a size out."""
    import transformers

    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 96,
        "vocab_size": vocabulary,
        "pad_token_id": 0,
        "initializer_range": 0.4,
    }
    return getattr(transformers, config_class)(**{k: v for k, v in {**sizes, **more}.items() if v is not None})


@pytest.fixture(scope="session")
def make_tokenizer() -> Callable[[str], Any]:
    """Give `tokenizer_of`."""
    return tokenizer_of


MakeModel = Callable[..., Path]


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """Make a folder with a tiny model of random weights, once for the same request."""
    made: dict[Any, Path] = {}

    def make(
        model_class: str, config_class: str, family: str = "wordpiece", *, side: str = "right", **more: Any
    ) -> Path:
        import torch
        import transformers

        key = (model_class, config_class, family, side, repr(more))
        if key not in made:
            tokenizer = transformers.ByT5Tokenizer() if family == "byt5" else tokenizer_of(family, side)
            torch.manual_seed(7)
            config = sized(config_class, len(tokenizer), **more)
            folder = tmp_path_factory.mktemp("model")
            getattr(transformers, model_class)(config).eval().save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            made[key] = folder
        return made[key]

    return make


@pytest.fixture(autouse=True, scope="session")
def _small_and_quiet() -> None:
    import torch

    torch.set_num_threads(1)  # more only get into each other's way on models of this size
    logging.getLogger("transformers").setLevel(logging.ERROR)
