"""The sets, checkpoints and results that tables are made of, each made where it is not there yet."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from builders.aflite import Machine, build_aflite
from builders.features.transformer import TransformerSettings
from builders.names import as_file_name, inside
from builders.specs import load_spec
from evaluation.built_sets import BuiltSet, find_built
from evaluation.classifiers.blank import write_blank_bert
from evaluation.classifiers.humans import humans_on, read_annotated
from evaluation.classifiers.ood import load_ood_spec
from evaluation.classifiers.plans import Plan
from evaluation.classifiers.plans.spec import Measure, Tuning
from evaluation.classifiers.run import ClassifierOptions, evaluate_classifier, evaluate_ood
from evaluation.classifiers.sets import KEPT, PREDICTED, matching_rows, read_split, subsets_of
from evaluation.classifiers.subsets import (
    SINGLE_MODEL,
    TrainingRows,
    ood_training_rows,
    single_model_masks,
    training_subset,
)
from evaluation.classifiers.train import make_settings, train_classifier
from evaluation.classifiers.words import predict_by_words
from evaluation.errors import EvaluationError
from evaluation.models import resolve_model
from evaluation.results import ClassifierScores
from evaluation.run import Engine


@dataclass(frozen=True)
class Source:
    """Rows to train on, and rows of the same kind to score: a column in distribution, a row out of it.

    Attributes
    ----------
    head : str
        What a table calls it.
    key : str
        A set of the plan.
    subset : str
        One of `evaluation.classifiers.subsets.SUBSETS`.
    """

    head: str
    key: str
    subset: str


class Bench:
    """The sets, checkpoints and results of a plan, made where they are not there.

    Parameters
    ----------
    plan : Plan
        What is wanted.
    out : Path
        Gets ``sets``, ``models`` and ``results``.
    machine : Machine
        Where it runs.
    data : Path, optional
        Folder with the files of the sets out of distribution, which by default come from the Hub, and with those of
        annotators; by default the working directory.
    limit : int, optional
        Most rows to train on and to score, for a first look.
    """

    def __init__(
        self, plan: Plan, out: Path, *, machine: Machine, data: Path | None = None, limit: int | None = None
    ) -> None:
        self.plan, self._out, self._machine, self._data, self._limit = plan, out, machine, data, limit
        self._engine = Engine(device=machine.device, decoders=machine.workers)
        self._options = ClassifierOptions(limit=limit)
        self.built = functools.cache(self._built)
        self.training_rows = functools.cache(self._training_rows)

    def _built(self, key: str) -> BuiltSet:
        """Give a set of the plan, built if it is not there."""
        plan = self.plan.sets[key]
        if plan.folder is not None:
            return find_built(plan.folder)
        spec = load_spec(str(plan.build), [*plan.values, f"name={key}"])
        done = build_aflite(spec, self._out / "sets", machine=self._machine)
        return find_built(str(done.folder))

    def features(self, key: str) -> Path:
        """Give the file of the features that a set was filtered on.

        Raises
        ------
        EvaluationError
            If the plan does not name it, and the set was not built here or several lie in its work folder.
        """
        if (named := self.plan.sets[key].features) is not None:
            return Path(named)
        found = sorted((self._out / "sets" / ".work" / self.built(key).name / "features").glob("*/features.npy"))
        if len(found) != 1:
            raise EvaluationError(f"set {key} has {len(found)} files of features: name one as features in the plan")
        return found[0]

    def _training_rows(self, key: str, subset: str, seed: int) -> TrainingRows:
        """Give the rows of a subset; of all but single-model they are the same for every seed."""
        features = self.features(key) if subset == SINGLE_MODEL else None
        return training_subset(self.built(key), subset, features=features, seed=seed).drawn(self._limit)

    def checkpoint(self, source: Source, model: str, seed: int) -> Path:
        """Give the folder of a trained classifier."""
        rows = self.training_rows(source.key, source.subset, seed if source.subset == SINGLE_MODEL else 0)
        values = dict(self.plan.settings(model))
        if self.plan.blank(model):
            values["model"] = str(self._blank(source.key, seed, values))
        name = [rows.facts["name"], source.subset, *([str(self._limit)] if self._limit else []), model, f"seed{seed}"]
        return self._trained(rows, values, seed, "_".join(name), self._inputs(model))

    def tuned(self, checkpoint: Path, tuning: Tuning, model: str, seed: int) -> Path:
        """Give the folder of a trained classifier that was trained further."""
        rows = ood_training_rows(load_ood_spec(tuning.on), self._data, where=tuning.where).drawn(self._limit)
        name = as_file_name("-".join([checkpoint.name, tuning.on, *tuning.where.values()]))
        return self._trained(
            rows, {**self.plan.settings(model), "model": str(checkpoint)}, seed, name, self._inputs(model)
        )

    def _inputs(self, model: str) -> tuple[str, ...] | None:
        return self.plan.models[model].inputs or None

    def _trained(
        self, rows: TrainingRows, values: Mapping[str, Any], seed: int, name: str, inputs: Sequence[str] | None
    ) -> Path:
        return train_classifier(
            rows,
            self._out / "models",
            settings=make_settings(rows, values),
            seed=seed,
            inputs=inputs,
            name=name,
            machine=self._machine,
        ).folder

    def _blank(self, key: str, seed: int, values: Mapping[str, Any]) -> Path:
        """Give a BERT with random weights and the vocabulary of all rows of a set."""
        rows = self.training_rows(key, "full", 0)
        texts = (text for column in rows.columns for text in rows.rows[column])
        most = values.get("max_length", TransformerSettings.max_length)
        name = "-".join(map(str, [key, *([self._limit] if self._limit else []), most, f"seed{seed}"]))
        return write_blank_bert(inside(self._out / "models" / ".blank", name), texts, seed=seed, max_length=most)

    def accuracies(self, source: Source, model: str, split: str) -> tuple[float, ...]:
        """Give, for each seed, the accuracy on the rows of a split that are of the kind that was trained on.

        Empty for people whose labels are not there.
        """
        plan = self.plan.models[model]
        seeds = self.plan.seeds if plan.trained or source.subset == SINGLE_MODEL else (0,)
        if plan.annotators is not None:
            if not (file := self.labels_of_people(plan.annotators)).is_file():
                return ()
            return tuple(self._by_people(source, file, split, seed) for seed in seeds)
        if plan.words is not None:
            found = ((seed, self._by_words(source, plan.words, split, seed)) for seed in seeds)
        else:
            found = ((seed, self._predictions(source, model, split, seed)) for seed in seeds)
        return tuple(self._share(source, split, seed, predictions) for seed, predictions in found)

    def labels_of_people(self, name: str) -> Path:
        """Give where a file with the labels of several annotators is looked for."""
        return inside(self._data or Path(), *name.split("/"))

    def _by_people(self, source: Source, file: Path, split: str, seed: int) -> float:
        rows, _ = matching_rows(self.built(source.key), split)
        chosen = self._chosen(source, read_split(self.built(source.key), split).facts, split, seed)
        return humans_on(read_annotated(file), rows, {source.head: chosen})[source.head].accuracy.value

    def _predictions(self, source: Source, model: str, split: str, seed: int) -> pa.Table:
        done = self._scored(self.checkpoint(source, model, seed), source.key, split)
        return pq.read_table(done.path.with_suffix(".parquet"))

    def _scored(self, checkpoint: Path, key: str, split: str) -> ClassifierScores:
        results = self._out / "results"
        source = self.built(key).source
        return evaluate_classifier(
            str(checkpoint), source, self._options, engine=self._engine, out=results, splits=[split]
        )

    def _by_words(self, source: Source, column: str, split: str, seed: int) -> pa.Table:
        rows = read_split(self.built(source.key), split).drawn(self._limit, seed=self._options.seed)
        train = self.training_rows(source.key, source.subset, seed if source.subset == SINGLE_MODEL else 0)
        predicted = predict_by_words(train, rows.data[column][:], column=column)
        return rows.facts.append_column(PREDICTED, pa.array(predicted))

    def _chosen(self, source: Source, facts: pa.Table, split: str, seed: int) -> NDArray[np.bool_]:
        """Give which rows are of the kind that was trained on."""
        if source.subset != SINGLE_MODEL:
            return subsets_of(facts)[KEPT if source.subset == "filtered" else source.subset]
        mask = single_model_masks(self.built(source.key), self.features(source.key), seed=seed)[split]
        places = read_split(self.built(source.key), split).facts["source_index"].to_numpy()[mask]
        return np.isin(facts["source_index"].to_numpy(), places)

    def _share(self, source: Source, split: str, seed: int, predictions: pa.Table) -> float:
        chosen = self._chosen(source, predictions, split, seed)
        scored = predictions.filter(pa.array(chosen & predictions[PREDICTED].is_valid().to_numpy()))
        if not len(scored):
            raise EvaluationError(f"{source.key} has no {source.head} to score in split {split}: choose another split")
        return float((scored["label"].to_numpy() == scored[PREDICTED].to_numpy()).mean())

    def measure(self, checkpoint: Path, column: Measure) -> float:
        """Give a number of a checkpoint on another set.

        Raises
        ------
        EvaluationError
            If the result has no such number.
        """
        if column.on in self.plan.sets:
            done = self._scored(checkpoint, column.on, column.path[0])
            return _dig(done.result["splits"], column)
        spec = load_ood_spec(column.on)
        ref = resolve_model(str(checkpoint))
        (done,) = evaluate_ood(
            ref,
            [spec],
            self._options,
            engine=self._engine,
            out=self._out / "results",
            data=self._data,
            split=column.split,
        )
        (summary,) = done.result["splits"].values()
        return _dig(summary["report"], column)


def _dig(result: Any, column: Measure) -> float:
    for key in column.path:
        if not isinstance(result, Mapping) or key not in result:
            there = ", ".join(map(str, result)) if isinstance(result, Mapping) else "no more below"
            raise EvaluationError(f"column {column.head!r}: the result on {column.on} has no {key!r} ({there})")
        result = result[key]
    value = result["value"] if isinstance(result, Mapping) and "value" in result else result
    if not isinstance(value, int | float):
        raise EvaluationError(f"column {column.head!r}: {' / '.join(column.path)} of the result is no number")
    return float(value)
