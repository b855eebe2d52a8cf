"""Fine-tunes a classifier with the Trainer of transformers so that a killed run ends with the same weights."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.atomic import settle, write_text
from builders.errors import BuildError
from builders.features.checkpoints import first_line, quiet
from builders.folder import sha256
from builders.progress import progress
from builders.unfinished import read_facts

if TYPE_CHECKING:
    from builders.features.transformer import TransformerSettings

CHECKPOINTS, _MARKER = "checkpoint-", "complete"
SECONDS_BETWEEN_CHECKPOINTS = 600.0

Collate = Callable[[list[int]], dict[str, Any]]


def schedule(lengths: np.ndarray[Any, Any], *, batch_size: int, epochs: int, seed: int) -> list[list[int]]:
    """Give the rows of every step of every epoch; neighbours in length share a batch.

    Each epoch is a permutation, sorted by length within windows of fifty batches, and its batches are permuted.
    All of it depends on the arguments alone, so a step's rows are known wherever a run goes on.

    Parameters
    ----------
    lengths : ndarray of int, shape (rows,)
        Tokens of each row.
    """
    steps: list[list[int]] = []
    for stream in np.random.SeedSequence(seed).spawn(epochs):
        rng = np.random.default_rng(stream)
        order = rng.permutation(lengths.size)
        window = 50 * batch_size
        batches = []
        for start in range(0, lengths.size, window):
            rows = order[start : start + window]
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            batches += [rows[first : first + batch_size].tolist() for first in range(0, rows.size, batch_size)]
        steps += [batches[place] for place in rng.permutation(len(batches))]
    return steps


def finetune(
    model: Any, steps: list[list[int]], collate: Collate, folder: Path, *, settings: TransformerSettings,
    dtype: str, device: str, seed: int,
) -> None:  # fmt: skip
    """Train `model` in place, from the last complete checkpoint in `folder` if there is one.

    A checkpoint is kept at each epoch's end and after every ten minutes; it holds the state of the optimiser, the
    schedule and all generators, so what follows from it is what followed in the run that wrote it.

    Raises
    ------
    BuildError
        If the package ``accelerate``, which the Trainer needs, is not installed.
    """
    import transformers

    every = len(steps) // settings.epochs
    try:
        with quiet():
            arguments = transformers.TrainingArguments(
                output_dir=str(folder),
                per_device_train_batch_size=settings.batch_size,
                num_train_epochs=1,  # the schedule has all epochs in it
                learning_rate=settings.learning_rate,
                adam_epsilon=settings.epsilon,
                weight_decay=0.0,
                optim="adamw_torch",
                lr_scheduler_type="linear",
                warmup_steps=0,
                bf16=dtype == "bfloat16",
                fp16=dtype == "float16",
                use_cpu=device == "cpu",
                seed=seed,
                save_strategy="no",  # the callback says when
                save_total_limit=2,
                logging_strategy="no",
                disable_tqdm=True,
                report_to=[],
            )
    except ImportError as error:
        raise BuildError(f"fine-tuning needs a package: {first_line(error)}") from None
    with quiet():
        trainer = _trainer(model, arguments, steps, collate, device)
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.add_callback(_callback(folder, every))
        trainer.train(resume_from_checkpoint=_last_complete(folder))


def _trainer(model: Any, arguments: Any, steps: list[list[int]], collate: Collate, device: str) -> Any:
    import torch
    import transformers

    class ScheduledTrainer(transformers.Trainer):
        """Takes batches from a schedule instead of drawing them from a generator that a resumed run lacks."""

        def get_train_dataloader(self) -> Any:
            rows = range(1 + max(map(max, steps)))
            sampler: Any = steps
            return torch.utils.data.DataLoader(
                rows,  # type: ignore[arg-type]
                batch_sampler=sampler,
                collate_fn=collate,
                pin_memory=device != "cpu",
            )

    return ScheduledTrainer(model=model, args=arguments)


def _callback(folder: Path, every: int) -> Any:
    import transformers

    class Checkpoints(transformers.TrainerCallback):
        """Moves the bar, says when to save, and marks what was saved to the end."""

        bar: Iterator[int]
        saved: float

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.saved = time.monotonic()
            rest = range(state.global_step, state.max_steps)
            self.bar = progress(rest, total=state.max_steps, label="fine-tuning", done=state.global_step)
            next(self.bar, None)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            next(self.bar, None)
            due = state.global_step % every == 0 or time.monotonic() - self.saved > SECONDS_BETWEEN_CHECKPOINTS
            control.should_save = due and state.global_step < state.max_steps

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            checkpoint = folder / f"{CHECKPOINTS}{state.global_step}"
            settle(checkpoint)
            write_text(checkpoint / _MARKER, json.dumps({"step": state.global_step, "sums": _sums(checkpoint)}))
            self.saved = time.monotonic()

    return Checkpoints()


def _last_complete(folder: Path) -> str | None:
    """Find the last checkpoint that was saved to the end and is as it was saved, and remove the others."""
    complete = {}
    for checkpoint in folder.glob(f"{CHECKPOINTS}*"):
        try:
            saved = read_facts(checkpoint / _MARKER)
            whole = saved["sums"] == _sums(checkpoint)
        except (BuildError, OSError, KeyError):  # it was killed while it saved, or is damaged
            whole = False
        if whole:
            complete[saved["step"]] = str(checkpoint)
        else:
            shutil.rmtree(checkpoint)
    return complete[max(complete)] if complete else None


def _sums(checkpoint: Path) -> dict[str, str]:
    files = sorted(path for path in checkpoint.iterdir() if path.is_file() and path.name != _MARKER)
    return {path.name: sha256(path) for path in files}
