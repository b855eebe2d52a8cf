"""The commands that score models, and what goes with scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from probesieve.options import Progress
from probesieve.output import say


def evaluate(
    model: Annotated[str, typer.Option(help="Hub id or local folder.")],
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Built folder or ORG/NAME, or hans, diagnostics, stress, anli, imagenet-a; may be repeated. "
            "By default the four probe sets in ./build."
        ),
    ] = None,
    suite: Annotated[str | None, typer.Option(help="nli-ood or imagenet-a; classifiers.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of sets out of distribution, as distributed.")
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="May be repeated; by default all that have labels. Classifiers.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or sha of the model.")] = None,
    dataset_revision: Annotated[str | None, typer.Option(help="Branch, tag or sha of a dataset on the Hub.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="qa, mlm, causal, seq2seq, text-classifier or image-classifier, against the checkpoint."),
    ] = None,
    config: Annotated[str | None, typer.Option(help="By default mlm for masked LMs, else qa. Probe sets.")] = None,
    protocol: Annotated[str, typer.Option(help="exact, or paper: what the released code did. Probe sets.")] = "exact",
    sample: Annotated[
        str | None, typer.Option(help="A share (0.02) or a number (20000) of rows, balanced. Probe sets.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Rows of each split, at random. Classifiers.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample and the intervals.")] = 0,
    label_map: Annotated[
        str | None, typer.Option(help="What the model's classes mean: 0=entailment,1=neutral,2=contradiction.")
    ] = None,
    broken_share: Annotated[float, typer.Option(help="Share of images that may be broken.")] = 0.01,
    prompt: Annotated[str | None, typer.Option(help="With {context} and {question}; causal and seq2seq.")] = None,
    chat: Annotated[
        bool | None, typer.Option("--chat/--no-chat", help="Use the chat template; by default where there is one.")
    ] = None,
    joint: Annotated[bool, typer.Option("--joint", help="Product of token probabilities, not geometric mean.")] = False,
    pronouns: Annotated[
        bool | None, typer.Option("--pronouns/--no-pronouns", help="Pool she and he; masked LMs.")
    ] = None,
    context_prefix: Annotated[str | None, typer.Option(help="newsqa, or a text before every context.")] = None,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    device: Annotated[str | None, typer.Option(help="cuda where there is one, else cpu.")] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Inputs at once at most; changes no score. By default 64, or by length for text classifiers."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Shards at once (1), or processes that decode images (all cores but one).")
    ] = None,
    backend: Annotated[str, typer.Option(help="loky, ray or dask.")] = "loky",
    out: Annotated[Path, typer.Option(help="Results folder.")] = Path("results"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results of other settings.")] = False,
    eval_results: Annotated[
        Path | None, typer.Option(help="Also write .eval_results/*.yaml for the model's repository there.")
    ] = None,
    progress: Progress = True,
) -> None:
    """Score a model on probe sets, or a classifier on filtered sets and out of distribution.

    Example: probesieve eval --model MODEL --dataset build/unqover-religion --sample 2000

    Example: probesieve eval --model MODEL --dataset build/planted-nli-aflite
    """
    from builders.progress import switch_off
    from evaluation.classifiers.run import ClassifierOptions
    from evaluation.dispatch import Sets, evaluate_any, on_disk
    from evaluation.hub_results import check_on_hub, write_eval_results
    from evaluation.run import Engine, Options

    if not progress:
        switch_off()
    if eval_results:
        check_on_hub([str(data)] if data else on_disk(dataset or (), suite))
    options = Options(
        protocol=protocol,
        sample=sample,
        seed=seed,
        dtype=dtype,
        context_prefix=context_prefix,
        prompt=prompt,
        chat=chat,
        joint=joint,
        pronouns=pronouns,
    )
    of_classifier = ClassifierOptions(
        limit=limit, seed=seed, dtype=dtype, label_map=label_map, broken_share=broken_share
    )
    sets = Sets(tuple(dataset or ()), suite, data, tuple(split or ()), config, dataset_revision)
    at_once = 1 if workers is None else workers
    engine = Engine(device=device, batch_size=batch_size, workers=at_once, decoders=workers, backend=backend)
    how: dict[str, Any] = {"engine": engine, "out": out, "overwrite": overwrite, "revision": revision, "kind": kind}
    results = []
    for done in evaluate_any(model, sets, options, of_classifier, **how):
        results.append(done.result)
        say(f"{done}\n\n{'Stored' if done.fresh else 'Was there'}: {done.path}\n")
    if eval_results:
        say("\n".join(f"Written: {path}" for path in write_eval_results(results, eval_results)))


def difficulty(
    predictions: Annotated[
        list[Path], typer.Argument(metavar="PREDICTIONS...", help="Files of other models' predictions.")
    ],
    dataset: Annotated[str, typer.Option(help="A filtered folder, its ORG/NAME, or hans, diagnostics, stress, anli.")],
    split: Annotated[str | None, typer.Option(help="Which split the predictions are of.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of a set out of distribution, as distributed.")
    ] = None,
    label_map: Annotated[
        str | None, typer.Option(help="What numbers in the files mean: 0=contradiction,1=neutral,2=entailment.")
    ] = None,
    dataset_revision: Annotated[str | None, typer.Option(help="Branch, tag or sha of a dataset on the Hub.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Also write all numbers there.")] = None,
) -> None:
    """See whether rows that a filter kept are hard for other models, or score predictions out of distribution.

    Example: probesieve difficulty predictions.jsonl --dataset build/snli-aflite --split validation

    Example: probesieve difficulty preds.txt --dataset hans --data hans
    """
    from evaluation.classifiers.comparisons import difficulty_of
    from evaluation.classifiers.text import difficulty_text
    from evaluation.store import write_json

    how: dict[str, Any] = {"label_map": label_map, "revision": dataset_revision, "data": data}
    title, found = difficulty_of(predictions, dataset, split, **how)
    say(difficulty_text(found, title))
    if out:
        write_json(out, {"rows": title, "predictions": [one.to_json() for one in found]})
        say(f"\nStored: {out}")


def humans(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="Rows with the labels of several annotators.")],
    dataset: Annotated[str | None, typer.Option(help="A filtered folder, or its ORG/NAME.")] = None,
    split: Annotated[str | None, typer.Option(help="Which split the rows are of.")] = None,
    dataset_revision: Annotated[str | None, typer.Option(help="Branch, tag or sha of a dataset on the Hub.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Also write all numbers there.")] = None,
) -> None:
    """Give human accuracy, one annotator left out at a time, on all rows and on those that a filter kept and removed.

    Example: probesieve humans snli_1.0_dev.jsonl --dataset build/snli-aflite --split validation
    """
    from evaluation.classifiers.comparisons import humans_of
    from evaluation.classifiers.text import humans_text
    from evaluation.store import write_json

    title, found = humans_of(file, dataset, split, revision=dataset_revision)
    say(humans_text(found, title))
    if out:
        write_json(out, {"rows": title, "subsets": {name: one.to_json() for name, one in found.items()}})
        say(f"\nStored: {out}")


def compare(
    results: Annotated[list[Path], typer.Argument(metavar="RESULT.json...", help="Stored results on one set.")],
    base: Annotated[Path | None, typer.Option(help="Result of the language model that the others come from.")] = None,
    top: Annotated[int, typer.Option(help="Pairs to show for each model.", min=1)] = 10,
) -> None:
    """Set models side by side: ranks of subjects, strongest pairs, shared attributes, shift from a base model.

    Example: probesieve compare results/*/*/unqover-religion@1.0.0/qa.exact.json
    """
    from evaluation.compare import compare_text

    say(compare_text(results, base=base, top=top))


def export_scores(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="RESULTS/<org__model>/<sha> of one model.")],
    out: Annotated[Path, typer.Option(help="Folder that gets the dataset folder.")] = Path("build"),
    version: Annotated[str, typer.Option(help="MAJOR.MINOR.PATCH.")] = "1.0.0",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a folder that is there.")] = False,
) -> None:
    """Make the per-row scores of a model a dataset folder, to push with `probesieve push`.

    Example: probesieve export-scores results/org__model/SHA
    """
    from evaluation.hub_results import build_score_set

    folder, manifest = build_score_set(results, out, version=version, overwrite=overwrite)
    say(f"Built {folder} with {len(manifest['configs'])} configs; push it with: probesieve push {folder} ORG/NAME")
