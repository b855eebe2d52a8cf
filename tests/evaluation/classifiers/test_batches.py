"""Text classifiers say the same of a row whatever is beside it in its batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.classifiers.predict import load_classifier
from evaluation.classifiers.sets import LabelledRows
from evaluation.models import resolve_model
from tests.builders.features.conftest import SIZES, make_tokenizer, sentences

NAMES = ("entailment", "neutral", "contradiction")
_FUNNEL = {"block_sizes": [1, 2], "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 24, "num_decoder_layers": 1}
# Layers that mix padding with text, or count it; and decoders, which look for the padding to find the last token.
MODELS: dict[str, dict[str, Any]] = {
    "FNet": {},
    "Funnel": {**_FUNNEL, "initializer_range": 0.5, "num_hidden_layers": None},
    "ConvBert": {"embedding_size": 16, "conv_kernel_size": 3},
    "Canine": {"type_vocab_size": 2, "max_position_embeddings": 512, "num_hash_buckets": 512},
    "GPT2": {"pad_token_id": 5, "bos_token_id": None, "eos_token_id": None, "max_position_embeddings": 64},
    "Bert": {},
}


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Any:
    def made(family: str, **more: Any) -> Path:
        import torch
        import transformers

        folder = tmp_path_factory.mktemp(family)
        tokenizer: Any = transformers.CanineTokenizer() if family == "Canine" else make_tokenizer()
        if family != "Canine":
            tokenizer.model_input_names = {
                "FNet": ["input_ids", "token_type_ids"],
                "GPT2": ["input_ids", "attention_mask"],
            }.get(family, ["input_ids", "token_type_ids", "attention_mask"])
        model_class = getattr(transformers, f"{family}ForSequenceClassification")
        labels = {"id2label": dict(enumerate(NAMES)), "label2id": {name: i for i, name in enumerate(NAMES)}}
        sizes = {**SIZES, "vocab_size": len(tokenizer), "pad_token_id": 0, "num_labels": 3, "type_vocab_size": 2}
        given = {**sizes, **labels, **MODELS[family], **more}
        config = model_class.config_class(**{name: value for name, value in given.items() if value is not None})
        torch.manual_seed(5)
        model_class(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return made


def rows_of(count: int) -> LabelledRows:
    from datasets import Dataset

    given = sentences(count, seed=3)
    facts = pa.table({"source_index": range(count), "label": given["label"]})
    return LabelledRows("few", "test", NAMES, ("premise", "hypothesis"), Dataset.from_dict(given), facts)


def logits_of(folder: Path, rows: LabelledRows, batch_size: int | None) -> np.ndarray:
    model = load_classifier(
        resolve_model(str(folder)), dtype="float32", device="cpu", batch_size=batch_size, workers=None
    )
    return np.concatenate([one.logits for one in model.outputs(rows)])


@pytest.mark.parametrize("family", MODELS)
def test_the_size_of_batches_changes_no_score(make: Any, family: str) -> None:
    folder, rows = make(family), rows_of(40)
    alone = logits_of(folder, rows, 1)
    assert np.ptp(alone, axis=0).max() > 0.01  # rows differ
    for size in (7, 32, None):
        many = logits_of(folder, rows, size)
        np.testing.assert_allclose(many, alone, atol=1e-6, rtol=0)
        np.testing.assert_array_equal(many.argmax(1), alone.argmax(1))
