"""ESIM: two BiLSTMs with soft alignment between premise and hypothesis, trained on the warm-up sample.

Chen et al., "Enhanced LSTM for Natural Language Inference" (ACL 2017), sections 3.1 to 3.3, without the tree LSTM.
Features are what the classifier's hidden layer gives after tanh. Text is lower-cased and cut into words, the clitics
``n't``, ``'s``, ``'re`` ..., and single punctuation marks, as GloVe's corpus was.

Words. Without vectors an embedding is learned for every word that the warm-up sample has at least
``minimum_count`` times, and one for all others. With a vector file its vectors stay as they are, so that a word first
met among the rows to encode has its own vector in the same space: it is looked up in the file, which must be there
then. One vector for all words that the file lacks is learned.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from builders.errors import BuildError
from builders.features.encoder import Encoded
from builders.features.esim_state import check_facts, one_thread, resume, save, state
from builders.features.esim_words import FIXED_IDS, Batches, Lookup, tokens
from builders.features.vectors import VectorFile
from builders.progress import progress
from builders.unfinished import read_state, told_when_damaged

if TYPE_CHECKING:
    import torch
    from datasets import Dataset

    from builders.features.esim_model import Esim

CHECKPOINT = "checkpoint.pt"
WEIGHTS = "esim.pt"
ENCODE_BATCH = 256


@dataclass(frozen=True)
class EsimSettings:
    """How an ESIM is trained.

    Attributes
    ----------
    vectors : str, optional
        File of word vectors (GloVe 840B in the paper, section 4); None learns them from the sample.
    dimension : int
        Numbers a word vector: 300 in the paper.
    hidden : int
        Width of each LSTM direction, of the projection and of the features: 300 in the paper.
    dropout : float
        Before every feed-forward layer and on the embeddings: 0.5 in the paper.
    learning_rate : float
        Of Adam: 4e-4 in the paper, with first momentum 0.9 and second 0.999 as here.
    batch_size : int
        32 in the paper.
    epochs : int
        Chosen here; the paper stops by its development set.
    clip : float
        Greatest norm of the gradient. Chosen here.
    max_length : int
        Words of a sentence that are read. Chosen here.
    minimum_count : int
        Rarer words of the sample share one vector when vectors are learned. Chosen here.
    """

    vectors: str | None = None
    dimension: int = 300
    hidden: int = 300
    dropout: float = 0.5
    learning_rate: float = 4e-4
    batch_size: int = 32
    epochs: int = 10
    clip: float = 10.0
    max_length: int = 100
    minimum_count: int = 2

    def __post_init__(self) -> None:
        for name in ("dimension", "hidden", "batch_size", "epochs", "max_length", "minimum_count"):
            if getattr(self, name) < 1:
                raise BuildError(f"{name} of the ESIM encoder must be 1 or more, not {getattr(self, name)}")
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise BuildError(f"{name} of the ESIM encoder must be above 0, not {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise BuildError(f"dropout of the ESIM encoder must be from 0 to below 1, not {self.dropout}")


class EsimRecipe:
    """ESIM as a `builders.features.encoder.Recipe`.

    Parameters
    ----------
    settings : EsimSettings
        Sizes and training.
    inputs : tuple of str
        The two text columns: premise and hypothesis.
    names : tuple of str
        Names of the labels.
    device : str, optional
        A torch device; by default a GPU where there is one.

    Raises
    ------
    BuildError
        If the inputs are not two, if there are fewer than two labels, or if there is no such vector file or device.
    """

    def __init__(
        self, settings: EsimSettings, *, inputs: tuple[str, ...], names: tuple[str, ...], device: str | None = None
    ) -> None:
        if len(inputs) != 2:
            raise BuildError(f"inputs of the ESIM encoder must be two text columns, not {', '.join(inputs) or 'none'}")
        if len(names) < 2:
            raise BuildError(f"names of the labels must be two or more, not {len(names)}")
        self._settings, self._inputs, self._names = settings, inputs, names
        self._device = _device(device)
        path = settings.vectors
        self._vectors = None if path is None else VectorFile(Path(path), dimension=settings.dimension)

    def identity(self) -> Mapping[str, Any]:
        """Everything, as JSON values, that decides the features besides the rows and the seed."""
        settings = dataclasses.asdict(self._settings)
        settings["vectors"] = self._vectors and f"sha256:{self._vectors.sha256}"
        return {
            "encoder": "esim",
            **settings,
            "inputs": list(self._inputs),
            "labels": len(self._names),
            "dtype": "float32",
        }

    def train(self, rows: Dataset, folder: Path, *, seed: int) -> None:
        """Train on the warm-up sample; called again after it was killed, it goes on after the last whole epoch.

        Parameters
        ----------
        rows : datasets.Dataset
            The sample: both inputs and ``label`` (int, from 0).
        folder : Path
            Gets the weights, and a checkpoint after every epoch until then.
        seed : int
            Decides the first weights, the order of the rows and dropout; on a CPU equal seeds give equal weights.

        Raises
        ------
        BuildError
            If there are no rows, a column or label is not as it must be, the training diverges, or `folder` holds
            the training of other settings, rows or another seed.
        """
        import torch

        sentences, labels = _sentences(rows, self._inputs), _labels(rows, self._names)
        facts = {**self.identity(), "seed": seed, "rows": _digest(sentences, labels)}
        if (folder / WEIGHTS).is_file():
            with told_when_damaged(folder / WEIGHTS):
                check_facts(read_state(folder / WEIGHTS)["facts"], facts, folder)
            return
        folder.mkdir(parents=True, exist_ok=True)
        words = self._words(sentences)
        with torch.random.fork_rng(), one_thread():
            torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
            model = self._model(len(words) if self._vectors is None else 0).to(self._device)
            lookup = self._lookup(words)
            batches = Batches(lookup.ids(sentences), labels, self._settings.batch_size, seed)
            self._fit(model, lookup, batches, folder, facts)
        save({"facts": facts, "words": words, "model": model.state_dict()}, folder / WEIGHTS)
        (folder / CHECKPOINT).unlink(missing_ok=True)

    def load(self, folder: Path | None) -> EsimEncoder:
        """Give the encoder that was trained in `folder`.

        Raises
        ------
        BuildError
            If `folder` is None, since no ESIM comes ready-made, or if its training was another or did not end.
        """
        import torch

        if folder is None:
            raise BuildError(
                "the ESIM encoder has no ready-made weights; leave out --no-warmup, or name another encoder"
            )
        if not (folder / WEIGHTS).is_file():
            raise BuildError(f"{folder} holds no {WEIGHTS}: the warm-up training did not end; run it again")
        stored = read_state(folder / WEIGHTS)
        with told_when_damaged(folder / WEIGHTS):
            ran = {name: stored["facts"][name] for name in stored["facts"].keys() - {"seed", "rows"}}
            check_facts(ran, self.identity(), folder)
            words = stored["words"]
            with torch.random.fork_rng():
                model = self._model(len(words) if self._vectors is None else 0).to(self._device)
            model.load_state_dict(stored["model"])
        return EsimEncoder(model.eval(), self._lookup(words), self._inputs)

    def _words(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """Give the words that get an embedding of their own, in order: learned, or those of the sample to look up."""
        counts = Counter(word for side in sentences for text in side for word in tokens(text))
        least = self._settings.minimum_count if self._vectors is None else 1
        return sorted(word for word, count in counts.items() if count >= least)

    def _lookup(self, words: Sequence[str]) -> Lookup:
        s = self._settings
        return Lookup(words, self._vectors, max_length=s.max_length, dimension=s.dimension, device=self._device)

    def _model(self, learned: int) -> Esim:
        from builders.features.esim_model import Esim

        s = self._settings
        return Esim(learned + FIXED_IDS, s.dimension, s.hidden, len(self._names), s.dropout)

    def _fit(self, model: Esim, lookup: Lookup, batches: Batches, folder: Path, facts: Mapping[str, Any]) -> None:
        import torch
        from torch.nn.functional import cross_entropy

        optimiser = torch.optim.Adam(model.parameters(), lr=self._settings.learning_rate)
        done = resume(folder / CHECKPOINT, model, optimiser, facts, self._device)
        model.train()
        steps = ((epoch, batch) for epoch in range(done, self._settings.epochs) for batch in batches.of_epoch(epoch))
        total = self._settings.epochs * len(batches)
        left = len(batches)
        for epoch, (premises, hypotheses, labels) in progress(
            steps, total=total, label="ESIM warm-up", done=done * len(batches)
        ):
            _, logits = model(*lookup.tensors(premises), *lookup.tensors(hypotheses), lookup.fixed)
            loss = cross_entropy(logits, torch.from_numpy(labels).to(self._device))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), self._settings.clip)
            if not torch.isfinite(norm):
                raise BuildError(
                    f"the ESIM warm-up diverged in epoch {epoch + 1}; lower learning_rate"
                    f" ({self._settings.learning_rate})"
                )
            optimiser.step()
            left -= 1
            if not left:
                left = len(batches)
                save(state(model, optimiser, facts, epoch + 1, self._device), folder / CHECKPOINT)


class EsimEncoder:
    """A trained ESIM."""

    def __init__(self, model: Esim, lookup: Lookup, inputs: tuple[str, ...]) -> None:
        self._model, self._lookup, self._inputs = model, lookup, inputs

    @property
    def width(self) -> int:
        """Columns of the features: ``hidden``."""
        return int(self._model.output.in_features)

    def encode(self, rows: Dataset) -> Encoded:
        """Give the features and logits of `rows`, in their order.

        Batches are cut from the rows sorted by length, so they are a function of `rows` alone.

        Raises
        ------
        BuildError
            If an input column is missing or is no text, or if a feature is not finite.
        """
        import torch

        premises, hypotheses = self._lookup.ids(_sentences(rows, self._inputs))
        features = np.zeros((len(rows), self.width), np.float32)
        logits = np.zeros((len(rows), self._model.output.out_features), np.float32)
        order = np.argsort([len(p) * 1000 + len(h) for p, h in zip(premises, hypotheses, strict=True)], kind="stable")
        cuts = [order[i : i + ENCODE_BATCH] for i in range(0, len(order), ENCODE_BATCH)]
        with torch.inference_mode(), one_thread():
            for batch in progress(cuts, total=len(rows), label="ESIM features", step=len):
                sides = ([side[i] for i in batch] for side in (premises, hypotheses))
                tensors = [tensor for side in sides for tensor in self._lookup.tensors(side)]
                made = self._model(*tensors, self._lookup.fixed)
                features[batch], logits[batch] = (array.cpu().numpy() for array in made)
        if not (np.isfinite(features).all() and np.isfinite(logits).all()):
            raise BuildError(
                "the ESIM encoder gave features that are not finite; train it again with a lower learning_rate"
            )
        return Encoded(features, logits)


def _device(name: str | None) -> torch.device:
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BuildError(
            f"device {name!r} cannot be used ({str(error).splitlines()[0]}); name cpu, or leave it out"
        ) from error
    return device


def _sentences(rows: Dataset, inputs: tuple[str, ...]) -> list[list[str]]:
    if not len(rows):
        raise BuildError("the ESIM encoder needs rows, and got none")
    missing = [name for name in inputs if name not in rows.column_names]
    if missing:
        raise BuildError(f"there is no column {missing[0]!r}; the rows have {', '.join(rows.column_names)}")
    columns = [list(rows[name]) for name in inputs]
    for name, column in zip(inputs, columns, strict=True):
        wrong = next((i for i, text in enumerate(column) if not isinstance(text, str)), None)
        if wrong is not None:
            raise BuildError(f"column {name!r} must hold text, but row {wrong} has {column[wrong]!r}")
    return columns


def _labels(rows: Dataset, names: tuple[str, ...]) -> NDArray[np.int64]:
    if "label" not in rows.column_names:
        raise BuildError(f"there is no column 'label'; the rows have {', '.join(rows.column_names)}")
    labels = np.asarray(rows["label"], np.int64)
    wrong = np.flatnonzero((labels < 0) | (labels >= len(names)))
    if len(wrong):
        raise BuildError(f"labels must be from 0 to {len(names) - 1}, but row {wrong[0]} has {labels[wrong[0]]}")
    return labels


def _digest(sentences: list[list[str]], labels: NDArray[np.int64]) -> str:
    return "sha256:" + hashlib.sha256(json.dumps([sentences, labels.tolist()]).encode()).hexdigest()
