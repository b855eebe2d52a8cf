"""The paper's encoder of text: a pretrained transformer, fine-tuned on the warm-up sample.

Le Bras et al., "Adversarial Filters of Dataset Biases" (ICML 2020): RoBERTa-large fine-tuned on 10 % of the rows, which
are not used again; features are the representation before the output layer.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.atomic import whole_folder, write_text
from builders.disk import told_when_full
from builders.errors import BuildError
from builders.features.checkpoints import (
    Checkpoint,
    fields_that_differ,
    find_checkpoint,
    has_pooler,
    load_classifier,
    load_config,
    load_tokenizer,
    load_weights,
    quiet,
    refuse_chance,
    told,
)
from builders.features.finetuning import CHECKPOINTS, finetune, schedule
from builders.features.representation import bare_forward, head_forward, mean_forward
from builders.features.sentence import Module, read_modules, sentence_forward
from builders.features.text_encoder import RowTokenizer, TransformerEncoder
from builders.unfinished import read_facts

if TYPE_CHECKING:
    from datasets import Dataset

_logger = logging.getLogger(__name__)
_RUN, _MODEL = "run.json", "model"
_DTYPES = ("auto", "float16", "bfloat16", "float32")
_POOLINGS = ("head", "mean")


@dataclass(frozen=True)
class TransformerSettings:
    """What a spec's ``[warmup]`` table says of a text encoder.

    Attributes
    ----------
    model : str
        ORG/NAME on the Hub or a local folder; RoBERTa-large and BERT-large in the paper.
    revision : str, optional
        Branch, tag or commit on the Hub.
    epochs, learning_rate, epsilon, batch_size
        The paper's: 3 epochs of Adam with learning rate 1e-5 and epsilon 1e-8, batches of 92. Chosen here: the rate
        falls linearly to 0 without warm-up steps, no weight decays, gradients are clipped to norm 1.
    max_length : int
        Most tokens of a row, longer ones are cut; chosen here.
    dtype : str
        ``float32``; ``float16`` (on a GPU) or ``bfloat16`` for features and, as mixed precision, for fine-tuning;
        ``auto`` is float16 on a GPU and float32 elsewhere. Chosen here.
    pooling : str
        ``head``: what the classifier's last linear layer sees, as in the paper. A checkpoint that is taken as it is and
        is no classifier has none: a sentence-transformers folder gives what its ``modules.json`` says, any other its
        pooler's output, or the mean if it has no trained pooler. ``mean``: the mean of the last hidden states over the
        tokens, whatever there is.
    """

    model: str = "FacebookAI/roberta-large"
    revision: str | None = None
    epochs: int = 3
    learning_rate: float = 1e-5
    epsilon: float = 1e-8
    batch_size: int = 92
    max_length: int = 128
    dtype: str = "auto"
    pooling: str = "head"


class TransformerRecipe:
    """Fine-tunes and loads a transformer; no weights are loaded before a method is called.

    Parameters
    ----------
    settings : TransformerSettings
        What to train and how.
    inputs : tuple of str
        The one or two text columns; two are encoded as a pair.
    names : tuple of str
        The label names, in the labels' order.
    device : str, optional
        ``cpu`` or ``cuda``; a GPU where there is one by default.

    Raises
    ------
    BuildError
        If a setting cannot be used.
    """

    def __init__(
        self,
        settings: TransformerSettings,
        *,
        inputs: tuple[str, ...],
        names: tuple[str, ...],
        device: str | None = None,
    ) -> None:
        """Check the settings and choose device and dtype."""
        import torch

        self._settings, self._inputs, self._names = settings, inputs, names
        if device is not None and device not in ("cpu", "cuda"):
            raise BuildError(f"device must be cpu or cuda, not {device!r}; CUDA_VISIBLE_DEVICES chooses among GPUs")
        if device == "cuda" and not torch.cuda.is_available():
            raise BuildError("device cuda was asked for and torch finds no GPU; leave it out, or pass cpu")
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        _check(settings, inputs, names, self._device)
        by_device = "float16" if self._device == "cuda" else "float32"
        self._dtype = by_device if settings.dtype == "auto" else settings.dtype

    @functools.cached_property
    def _checkpoint(self) -> Checkpoint:
        return find_checkpoint(self._settings.model, self._settings.revision)

    @functools.cached_property
    def _modules(self) -> tuple[Module, ...]:
        """What a sentence-transformers folder does with hidden states, where it is asked."""
        return read_modules(self._checkpoint) if self._settings.pooling == "head" else ()

    def identity(self) -> Mapping[str, Any]:
        """Everything that decides the features besides the rows and the seed; a folder counts by its content.

        Raises
        ------
        BuildError, HubError
            As `find_checkpoint`.
        """
        checkpoint = self._checkpoint
        own = {"modules": [asdict(module) for module in self._modules]} if self._modules else {}
        return {
            **asdict(self._settings),
            **own,
            "encoder": "transformer",
            "model": "local folder" if checkpoint.local else checkpoint.name,
            "revision": checkpoint.revision,
            "dtype": self._dtype,
            "inputs": list(self._inputs),
            "names": list(self._names),
        }

    def train(self, rows: Dataset, folder: Path, *, seed: int) -> None:
        """Fine-tune on `rows` and put model and tokenizer into ``folder/model``.

        Parameters
        ----------
        rows : datasets.Dataset
            The warm-up sample, with the inputs and ``label``.
        folder : Path
            Of this run alone; a killed run continues here at its last checkpoint, a finished one is left as it is.
        seed : int
            Decides new weights, order and dropout.

        Raises
        ------
        BuildError
            If there are no rows, if the model has no weights for its body or no tokenizer, or if `folder` holds a run
            of other arguments.
        HubError
            If the Hub cannot be had.
        OSError
            If the disk is full.
        """
        import torch
        import transformers

        if not len(rows):
            raise BuildError("the warm-up sample has no rows; raise its share")
        rows = rows.select_columns([*self._inputs, "label"])
        _claim(folder, {**self.identity(), "seed": seed, "rows": _hash(rows)})
        if (folder / _MODEL).is_dir():
            return
        transformers.set_seed(seed)
        model = load_classifier(self._checkpoint, self._names)
        tokenizer = self._tokenizer(self._checkpoint, model)
        with told(self._checkpoint), torch.inference_mode():  # the first use of the model
            model(**tokenizer.probe("cpu"))
        steps = schedule(
            tokenizer.lengths(rows), batch_size=self._settings.batch_size, epochs=self._settings.epochs, seed=seed
        )

        def collate(places: list[int]) -> dict[str, Any]:
            batch = rows[places]
            return {**tokenizer.tensors(batch, "cpu"), "labels": torch.tensor(batch["label"], dtype=torch.long)}

        finetune(
            model, steps, collate, folder, settings=self._settings, dtype=self._dtype, device=self._device, seed=seed
        )
        with quiet(), whole_folder(folder / _MODEL) as unfinished:
            with told_when_full(unfinished / "model.safetensors"):
                model.save_pretrained(unfinished)
            tokenizer.tokenizer.save_pretrained(unfinished)
        for checkpoint in folder.glob(f"{CHECKPOINTS}*"):
            shutil.rmtree(checkpoint)

    def load(self, folder: Path | None) -> TransformerEncoder:
        """Load the model that was fine-tuned in `folder`, or with None the checkpoint as it is.

        A checkpoint that is a classifier already serves as one, and gives logits if its labels are ours. Any other
        gives what `TransformerSettings.pooling` says of it.

        Raises
        ------
        BuildError
            If there are no weights for it.
        HubError
            If the Hub cannot be had.
        """
        if folder is None:
            return self._load_as_is(self._checkpoint)
        if not (folder / _MODEL).is_dir():
            raise BuildError(f"{folder} holds no fine-tuned model; train it first")
        return self._load_classifier(Checkpoint(str(folder / _MODEL), "", local=True), list(range(len(self._names))))

    def _load_as_is(self, checkpoint: Checkpoint) -> TransformerEncoder:
        config = load_config(checkpoint)
        if any(name.endswith("ForSequenceClassification") for name in config.architectures or ()):
            known = {str(name).casefold(): label for label, name in config.id2label.items()}
            ours = [known.get(name.casefold()) for name in self._names]
            same = len(known) == len(ours) and None not in ours
            return self._load_classifier(checkpoint, [label for label in ours if label is not None] if same else None)
        model, chance = load_weights(checkpoint, "AutoModel", dtype=self._dtype)
        refuse_chance(checkpoint, {key for key in chance if has_pooler([key])})
        head = self._settings.pooling == "head" and not self._modules
        pooled = head and has_pooler(chance)
        if head and not pooled:
            _logger.warning(
                "%s has no trained pooler: features are the mean of its last hidden states, as with pooling = 'mean'",
                checkpoint.name,
            )
        if model.config.is_encoder_decoder:
            model = model.get_encoder()
        tokenizer = self._tokenizer(checkpoint, model)
        model = model.to(self._device)
        with told(checkpoint):  # the first use of the model
            probe = tokenizer.probe(self._device)
            if self._modules:
                forward = sentence_forward(checkpoint, model, self._modules, probe, self._device)
            else:
                forward = bare_forward(model, probe, pooled=pooled)
        return TransformerEncoder(tokenizer, forward, order=None, device=self._device)

    def _load_classifier(self, checkpoint: Checkpoint, order: list[int] | None) -> TransformerEncoder:
        model, chance = load_weights(checkpoint, "AutoModelForSequenceClassification", dtype=self._dtype)
        refuse_chance(checkpoint, chance)
        tokenizer = self._tokenizer(checkpoint, model)
        model = model.to(self._device)
        with told(checkpoint):  # the first use of the model
            probe = tokenizer.probe(self._device)
            forward = mean_forward(model) if self._settings.pooling == "mean" else head_forward(model, probe)
        return TransformerEncoder(tokenizer, forward, order=order, device=self._device)

    def _tokenizer(self, checkpoint: Checkpoint, model: Any) -> RowTokenizer:
        most = self._settings.max_length
        return RowTokenizer(load_tokenizer(checkpoint, model, max_length=most), self._inputs, most)


def _check(settings: TransformerSettings, inputs: tuple[str, ...], names: tuple[str, ...], device: str) -> None:
    for name, least in (("epochs", 1), ("batch_size", 1), ("max_length", 4)):
        if getattr(settings, name) < least:
            raise BuildError(f"{name} must be at least {least}, not {getattr(settings, name)}")
    for name in ("learning_rate", "epsilon"):
        if not 0 < getattr(settings, name) < math.inf:
            raise BuildError(f"{name} must be above 0, not {getattr(settings, name)}")
    for name, known in (("dtype", _DTYPES), ("pooling", _POOLINGS)):
        if getattr(settings, name) not in known:
            raise BuildError(f"{name} must be one of {', '.join(known)}, not {getattr(settings, name)!r}")
    if settings.dtype == "float16" and device == "cpu":
        raise BuildError("dtype float16 needs a GPU; set it to auto, float32 or bfloat16")
    if len(inputs) not in (1, 2):
        raise BuildError(f"a text encoder takes one or two input columns, not {len(inputs)} ({', '.join(inputs)})")
    if len(names) < 2:
        raise BuildError(f"a classifier needs two label names or more, not {len(names)}")


def _claim(folder: Path, run: Mapping[str, Any]) -> None:
    """Write down whose `folder` is, or see that it is this run's; where nothing was trained yet it is anybody's."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _RUN
    if path.is_file() and ((folder / _MODEL).is_dir() or any(folder.glob(f"{CHECKPOINTS}*"))):
        if different := fields_that_differ(read_facts(path), json.loads(json.dumps(run))):
            raise BuildError(f"{folder} holds another fine-tuning ({different}); remove it, or give another folder")
        return
    write_text(path, json.dumps(run, indent=1, sort_keys=True))


def _hash(rows: Dataset) -> str:
    digest = hashlib.sha256()
    for block in rows.iter(1000):
        digest.update(json.dumps(block).encode())
    return f"sha256:{digest.hexdigest()}"
