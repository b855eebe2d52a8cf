"""A text classifier whose every decision is known, and small filtered sets to score it on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from builders.aflite import build_aflite
from builders.folder import Built
from builders.planted import LABELS, cue_words, planted_rows
from builders.specs import load_spec

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SIZES = {"train": 360, "validation": 150}
_CATEGORIES, _TYPE = 4, 4  # dimensions 0 to 3: the cue of which label, or of none; 4: in the hypothesis
_HIDDEN = 12


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


def decide(hypothesis: str, otherwise: str = "neutral") -> str:
    """What the model says, in plain code: the label whose cue word the hypothesis has."""
    cues = {word: label for label, words in cue_words().items() for word in words}
    found = [cues[word] for word in words_of(hypothesis) if word in cues]
    return found[0] if found else otherwise


def save_tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [word for of_label in cue_words().values() for word in of_label]
    vocabulary = {token: place for place, token in enumerate([*SPECIAL, *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )
    tokenizer.save_pretrained(folder)
    return len(vocabulary)


def hypothesis_reader(folder: Path, names: Sequence[str] = LABELS, *, otherwise: str = "neutral") -> Path:
    """Write a BERT that looks for cue words in the hypothesis alone and says `otherwise` where there is none.

    Every token is ones and minus ones in two blocks of six dimensions, so that all have one norm and layer
    normalisation only scales them. The only head looks at tokens of type 1 and brings their mean to the first token,
    where the output layer reads how much of it is the cue of each label. `names` is the order of the model's outputs.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    folder.mkdir(parents=True, exist_ok=True)
    size = save_tokenizer(folder)
    config = BertConfig(
        vocab_size=size,
        hidden_size=_HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        max_position_embeddings=128,
        pad_token_id=0,
        num_labels=len(names),
        id2label=dict(enumerate(names)),
        label2id={name: place for place, name in enumerate(names)},
    )
    model = BertForSequenceClassification(config)
    half = _HIDDEN // 2
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        embeddings, layer = model.bert.embeddings, model.bert.encoder.layer[0]
        labels = [label for label, words in cue_words().items() for _ in words]
        for token in range(size):
            category = LABELS.index(labels[token - len(SPECIAL)]) if token >= len(SPECIAL) else _CATEGORIES - 1
            embeddings.word_embeddings.weight[token, [category, half + category]] = torch.tensor([1.0, -1.0])
        for kind in (0, 1):
            place = _TYPE + kind
            embeddings.token_type_embeddings.weight[kind, [place, half + place]] = torch.tensor([1.0, -1.0])
        attention = layer.attention.self
        attention.query.bias[0] = 1.0
        attention.key.weight[0, _TYPE + 1] = 200.0
        for linear in (attention.value, layer.attention.output.dense, model.bert.pooler.dense):
            linear.weight.copy_(torch.eye(_HIDDEN))
        for place, name in enumerate(names):
            if name in LABELS:
                model.classifier.weight[place, LABELS.index(name)] = 1000.0
            model.classifier.bias[place] = 1.0 if name == otherwise else 0.0
    model.eval().save_pretrained(folder)
    return folder


def write_planted(folder: Path, sizes: dict[str, int] | None = None) -> list[dict[str, Any]]:
    """Write planted rows as SNLI's splits, each tenth without a label and a test split without any."""
    folder.mkdir(parents=True, exist_ok=True)
    labelled = []
    for number, (split, size) in enumerate((sizes or SIZES).items()):
        rows = [dict(row) for row in planted_rows(size, seed=number)]
        for place, row in enumerate(rows):
            row["pairID"] = f"{split}-{place}"
            if place % 10 == 7:
                row["label"] = -1
        labelled += [row | {"split": split} for row in rows if row["label"] >= 0]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    unlabelled = [dict(row) | {"label": -1, "pairID": f"test-{i}"} for i, row in enumerate(planted_rows(20, seed=9))]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in unlabelled), encoding="utf-8")
    return labelled


def build_planted(root: Path) -> Built:
    """Filter planted rows with features that give the rows with a cue away."""
    rows = write_planted(root / "source")
    features = np.random.default_rng(11).normal(size=(len(rows), 8)).astype(np.float32)
    for place, row in enumerate(rows):
        if row["artifact"] == "cue":
            features[place, row["label"]] += 8
    np.save(root / "features.npy", features)
    settings = ["filter.n=200", "filter.m=8", "filter.t=80", "filter.k=30", "breakdown=artifact"]
    spec = load_spec("snli", [*settings, 'source.filtered=["train","validation"]', 'source.unlabelled=["test"]'])
    return build_aflite(spec, root / "out", source=root / "source", features=root / "features.npy")
