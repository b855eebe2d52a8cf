"""Trains the demo's models: a BERT of two small layers, from random weights, on the stories of a probe set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from builders.atomic import whole_folder, write_text
from builders.disk import told_when_full
from builders.features.checkpoints import quiet
from evaluation import store
from evaluation.classifiers.blank import word_tokenizer
from evaluation.demo.card import model_card
from evaluation.demo.inputs import Inputs
from evaluation.demo.stories import OPEN, TOLD, Plant, planted_gammas, write_stories
from evaluation.errors import EvaluationError
from evaluation.probe_sets import open_probe_set

RECORD = "planted.json"
_MOST_TOKENS, _WORDS = 64, 2_000


@dataclass(frozen=True)
class Recipe:
    """Sizes of model and training.

    Attributes
    ----------
    steps : int
        Weight updates; the learning rate rises for a tenth of them and falls to nothing.
    rows, told : int
        Rows a step; of each all open stories, so that no batch prefers an order or a polarity, and `told` told ones.
    width, layers : int
        Of the BERT; `width` is a multiple of 32, the width of a head.
    learning_rate : float
        The highest.
    """

    steps: int = 900
    rows: int = 16
    told: int = 1
    width: int = 64
    layers: int = 2
    learning_rate: float = 3e-3


@dataclass(frozen=True)
class Task:
    """A model to train.

    Attributes
    ----------
    folder : Path
        Where it goes.
    kind : str
        ``qa`` or ``mlm``.
    dataset : Path
        Built folder of the probe set that the stories are made of.
    plants : tuple of Plant
        None for a model without a planted preference.
    seed : int
        Of the stories, the first weights and the order.
    recipe : Recipe
        Sizes.
    """

    folder: Path
    kind: Literal["qa", "mlm"]
    dataset: Path
    plants: tuple[Plant, ...]
    seed: int
    recipe: Recipe = Recipe()


@dataclass(frozen=True)
class DemoModel:
    """A trained model, what its ``planted.json`` says, and whether this call trained it."""

    folder: Path
    record: dict[str, Any]
    fresh: bool


def train_all(tasks: Sequence[Task]) -> list[DemoModel]:
    """Train several models, two at a time where there are two cores."""
    from joblib import Parallel, cpu_count, delayed

    at_once = min(2, cpu_count(), sum(_current(task, _wanted(task)) is None for task in tasks))
    if at_once < 2:
        return [train_demo_model(task) for task in tasks]
    return list(Parallel(n_jobs=at_once)(delayed(train_demo_model)(task) for task in tasks))


def _current(task: Task, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """Give the record of the model that is there, if it was trained from the very same."""
    path = task.folder / RECORD
    record = store.read_json(path) if path.is_file() else {}
    return record if {key: value for key, value in record.items() if key != "learned"} == wanted else None


def train_demo_model(task: Task) -> DemoModel:
    """Train a model, or give the one that is there from the very same; one of other settings is replaced.

    Returns
    -------
    DemoModel
        The folder is there whole or not at all, with ``config.json``, weights and tokenizer, ``planted.json`` and a
        card. Equal tasks give equal weights.

    Raises
    ------
    EvaluationError
        If the folder holds something else, or a plant names what the set has not.
    BuildError
        If the probe set is unfinished or was edited.
    """
    wanted = _wanted(task)
    if (record := _current(task, wanted)) is not None:
        return DemoModel(task.folder, record, fresh=False)
    if task.folder.exists() and not (task.folder / RECORD).is_file():
        raise EvaluationError(
            f"{task.folder} is there and holds no {RECORD}, so it is not ours: choose another --models"
        )
    model, tokenizer, learned = _trained(task)
    record = {**wanted, "learned": learned}
    with quiet(), whole_folder(task.folder, check=lambda: None) as unfinished:
        with told_when_full(unfinished / "model.safetensors"):
            model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        write_text(unfinished / "README.md", model_card(record))
        write_text(unfinished / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return DemoModel(task.folder, record, fresh=True)


def _wanted(task: Task) -> dict[str, Any]:
    """All that decides the weights, as ``planted.json`` says it."""
    probes = open_probe_set(str(task.dataset), config=task.kind)
    gammas = planted_gammas(probes.rows, task.plants, seed=task.seed)
    return {
        "kind": task.kind,
        "planted": [{**asdict(plant), "gamma": gamma} for plant, gamma in zip(task.plants, gammas, strict=True)],
        "dataset": {"name": probes.name, "version": probes.version, "revision": probes.revision},
        "seed": task.seed,
        "recipe": asdict(task.recipe),
        "versions": store.versions(),
    }


def _trained(task: Task) -> tuple[Any, Any, dict[str, float]]:
    """Give model, tokenizer, and the share of told stories that it gets right among rows it was not trained on."""
    import torch

    rows, statements = (open_probe_set(str(task.dataset), config=config).rows for config in (task.kind, "mlm"))
    stories = write_stories(rows, statements, plants=task.plants, seed=task.seed)
    tokenizer = word_tokenizer(dict.fromkeys((*stories.contexts, *stories.asked)), _WORDS, _MOST_TOKENS)
    inputs = Inputs.of(stories, tokenizer, task.kind)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more would not be faster, and sum in another order
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            model = _blank_model(task, len(tokenizer))
            rng = np.random.default_rng(task.seed)
            order = rng.permutation(len(rows))
            kept_back = len(rows) // 10
            _fit(model, inputs, order[kept_back:], task.recipe, rng)
            learned = _told_right(model.eval(), inputs, np.sort(order[:kept_back]))
    finally:
        torch.set_num_threads(threads)
    return model, tokenizer, {"told_stories_right": round(learned, 4)}


def _blank_model(task: Task, words: int) -> Any:
    import transformers

    head: Any = {"qa": transformers.BertForQuestionAnswering, "mlm": transformers.BertForMaskedLM}[task.kind]
    config = transformers.BertConfig(
        vocab_size=words,
        hidden_size=task.recipe.width,
        num_hidden_layers=task.recipe.layers,
        num_attention_heads=task.recipe.width // 32,
        intermediate_size=2 * task.recipe.width,
        max_position_embeddings=_MOST_TOKENS,
        pad_token_id=0,
        initializer_range=0.1,  # wide, so that what depends on several words is found soon
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return head(config)


def _fit(model: Any, inputs: Inputs, rows: NDArray[np.int64], recipe: Recipe, rng: np.random.Generator) -> None:
    """Train on the open stories of all `rows` in turn, and on a draw of their told ones."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=recipe.learning_rate, total_steps=recipe.steps, pct_start=0.1
    )
    rounds = -(-recipe.steps * recipe.rows // len(rows))
    order = np.concatenate([rng.permutation(rows) for _ in range(rounds)])
    for start in range(0, recipe.steps * recipe.rows, recipe.rows):
        some = order[start : start + recipe.rows, None] * (OPEN + TOLD)
        told = rng.permuted(np.tile(np.arange(TOLD), (len(some), 1)), axis=1)[:, : recipe.told]
        batch = np.concatenate([some + np.arange(OPEN), some + OPEN + told], axis=1).reshape(-1)
        first, second, share = inputs.log_likelihoods(model, batch)
        loss: Any = -(share * first + (1 - share) * second).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def _told_right(model: Any, inputs: Inputs, rows: NDArray[np.int64]) -> float:
    import torch

    batch = (rows[:, None] * (OPEN + TOLD) + OPEN + np.arange(TOLD)).reshape(-1)
    with torch.inference_mode():
        first, second, share = inputs.log_likelihoods(model, batch)
    return float(((first > second) == (share > 0.5)).double().mean())
