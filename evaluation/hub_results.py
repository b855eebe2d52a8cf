"""Results as the Hub takes them: entries for a model's ``.eval_results/``, and score sets as dataset folders."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from builders.atomic import write_text
from builders.cards import dataset_info, front_matter
from builders.folder import Manifest, new_folder, write_manifest
from builders.names import as_set_name, check_names, check_set_name, check_version, inside
from builders.owner_words import SECTION
from builders.text import code, markdown
from evaluation.errors import EvaluationError
from evaluation.stored import read_stored


def write_eval_results(results: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write ``FOLDER/.eval_results/SET.yaml`` for a model's repository, with the Hub client's own entries.

    Parameters
    ----------
    results : sequence of mapping
        Results, of sets on the Hub.
    folder : Path
        A checkout of the model's repository, or any folder.

    Raises
    ------
    EvaluationError
        If a set is a local folder, which the Hub cannot know.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries: dict[str, list[Any]] = {}
    for result in results:
        dataset = result["dataset"]
        check_on_hub([dataset["source"]])
        for task, value, notes in _of_classifier(result) if "splits" in result else _of_probes(result):
            entry = EvalResultEntry(
                dataset_id=dataset["source"],
                task_id=task,
                value=round(value, 6),
                dataset_revision=dataset["revision"],
                date=result["finished"],
                notes=notes,
            )
            entries.setdefault(dataset["name"], []).append(entry)
    written = []
    for name, some in entries.items():
        path = inside(folder, ".eval_results", f"{name}.yaml")
        write_text(path, yaml.safe_dump(eval_result_entries_to_yaml(some), sort_keys=False, allow_unicode=True))
        written.append(path)
    return written


def _of_probes(result: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """Task, value and notes of a result on a probe set."""
    settings, mu = result["settings"], result["metrics"]["mu"]
    drawn = f"{result['rows']:,} rows drawn" if settings["sample"] else "all rows"
    ends = "" if mu["low"] is None else f"; corrected {mu['corrected']:.4f} ({mu['low']:.4f} to {mu['high']:.4f})"
    notes = f"bias intensity mu, 0 to 1, lower is better; protocol {settings['protocol']}, {drawn}{ends}"
    yield result["dataset"]["config"], mu["value"], notes


def _of_classifier(result: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """Task, value and notes of each split: of a filtered set accuracy on the kept rows, else the set's main metric."""
    limit = result["settings"]["limit"]
    drawn = "" if limit is None else f"; at most {limit:,} rows, drawn at random"
    for split, summary in result["splits"].items():
        shares = {name: share for name, share in summary["accuracy"].items() if share}
        if summary["report"] is None:
            main = "kept" if "kept" in shares else "full"
            value, what = shares[main]["value"], f"accuracy on {main} rows"
        else:
            metric = summary["report"]["metrics"][0]
            score = summary["report"]["all"][metric]
            value, what = score["value"] if metric == "accuracy" else score, metric
        parts = ", ".join(f"{name} {share['value']:.4f} (n = {share['n']:,})" for name, share in shares.items())
        yield split, value, f"{what}, higher is better; accuracy: {parts}{drawn}"


def check_on_hub(sources: Sequence[str]) -> None:
    """Raise `EvaluationError` if a set is a local folder, as the default ones are."""
    for source in sources:
        if "/" not in source or Path(source).is_dir():
            raise EvaluationError(
                f"--eval-results needs sets on the Hub, and {source} is a folder: push it and pass its ORG/NAME, "
                "or leave out --data"
            )


def build_score_set(
    results: Path, out: Path, *, version: str = "1.0.0", overwrite: bool = False
) -> tuple[Path, Manifest]:
    """Make the per-row scores of one model a dataset folder that ``probesieve push`` takes.

    Parameters
    ----------
    results : Path
        The folder of one model at one commit, ``RESULTS/<org__model>/<sha>``.
    out : Path
        Where the folder ``scores-<model>`` goes.

    Raises
    ------
    EvaluationError
        If there is no result below `results`, one is damaged, or they are of several models.
    BuildError
        If the version cannot be, or a folder is in the way.
    """
    check_version(version)
    stored = sorted(path for path in results.rglob("*.json") if path.with_suffix(".parquet").is_file())
    contents = {path: _public(content) for path in stored if "metrics" in (content := read_stored(path))}
    models = {path.parents[2].name for path in contents}
    if len(models) != 1:
        what = (
            f"holds results of {', '.join(sorted(models))}; pass the folder of one"
            if models
            else "holds no results on probe sets"
        )
        raise EvaluationError(f"{results} {what}")
    (model,) = models
    first = next(iter(contents.values()))
    configs = {_config_of(result): {"test": _split(result)} for result in contents.values()}
    if len(configs) < len(contents):
        raise EvaluationError(f"{results} holds two results on one version of a set; pass the folder of one commit")
    check_names(configs)
    check_set_name(name := as_set_name(f"scores-{model}"))
    target = inside(out, name)
    facts = {
        "name": name,
        "title": f"Probe-set scores of {first['model']['name']}",
        "version": version,
        "builder": "scores",
        "license": None,
        "language": "en",
        "tasks": [],
        "tags": ["bias", "evaluation", "unqover", "probesieve"],
        "model": first["model"],
        "results": {_config_of(result): {key: result[key] for key in _KEPT} for result in contents.values()},
        "default_config": next(iter(configs)),
        "configs": configs,
    }
    with new_folder(target, overwrite=overwrite) as partial:
        infos = []
        for path, result in contents.items():
            config = _config_of(result)
            (partial / config).mkdir()
            shutil.copyfile(path.with_suffix(".parquet"), partial / configs[config]["test"]["files"][0])
            table = pq.read_table(path.with_suffix(".parquet"))
            size = {"rows": len(table), "bytes": table.nbytes, "download": path.with_suffix(".parquet").stat().st_size}
            infos.append(dataset_info(config, table.schema, {"test": size}))
        write_text(partial / "README.md", f"{front_matter(facts, infos)}\n{_card(contents.values())}")
        return target, write_manifest(partial, facts)


def _public(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result without the folders of this machine, where its model and set may lie."""
    model, dataset = result["model"], result["dataset"]
    return {
        **result,
        "model": {**model, "name": _without_folders(model["name"])},
        "dataset": {**dataset, "source": _without_folders(dataset["source"])},
    }


def _without_folders(name: str) -> str:
    """The name of a folder without where it lies; an id on the Hub as it is."""
    on_hub = name.count("/") <= 1 and not name.startswith((".", "/", "~")) and not Path(name).is_dir()
    return name if on_hub else Path(name).name


_KEPT = ("dataset", "settings", "metrics", "rows", "versions")


def _config_of(result: Mapping[str, Any]) -> str:
    """Of a set and its version, so that results on several versions lie side by side; a config's name takes no dots."""
    dataset = result["dataset"]
    parts = (dataset["name"], dataset["version"], dataset["config"], result["settings"]["protocol"])
    return "-".join(parts).replace(".", "_")


def _split(result: Mapping[str, Any]) -> dict[str, Any]:
    return {"rows": result["rows"], "files": [f"{_config_of(result)}/test-00000-of-00001.parquet"]}


def _card(results: Any) -> str:
    """Say what the columns are, and of which model, sets and settings."""
    lines = ["| config | rows | μ | set | set revision |", "|---|---|---|---|---|"]
    for result in results:
        dataset = result["dataset"]
        lines.append(
            f"| {code(_config_of(result), cell=True)} | {result['rows']:,} | {result['metrics']['mu']['value']:.4f} "
            f"| {markdown(dataset['name'])} {dataset['version']} | {code(dataset['revision'], cell=True)} |"
        )
    name, sha = result["model"]["name"], result["model"]["sha"]
    return f"""\
# Probe-set scores of {markdown(name)}

> These numbers **measure stereotyping associations** of one model on the names, templates and statements of the sets
> below. They certify nothing: other words and tasks may show other associations.

Model {code(name)} at {code(sha)}. Each row has the `id` of a row of its set and S of both subjects, in both orders
(`12`: subject 1 first), for the attribute and (`_negated`) its negation: probabilities from 0 to 1.

{chr(10).join(lines)}
{SECTION}"""
