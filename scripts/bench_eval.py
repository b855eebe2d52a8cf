"""What scoring costs beside the model itself: rows a second against bare forward passes on the same inputs.

A bare pass takes token ids that are there already, in unpadded batches of equal length, and throws its output away:
the least that any evaluation of the same inputs can take. Both run in turns, and medians are compared: of wall-clock
seconds, and of the process's own CPU seconds, which other work on the machine disturbs less. Example:
``python scripts/bench_eval.py --kind qa --size base --rows 100``
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from builders.probes import batches
from evaluation.models import resolve_model
from evaluation.scorers import make_scorer
from evaluation.scorers.work import equal_length_batches, make_work
from probesieve.cli import run
from unqover_data import load_lists

# Sizes of public models, with random weights: time does not depend on what the weights are.
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512},
    "small": {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048},
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
}
KINDS: dict[str, tuple[str, str]] = {
    "qa": ("BertForQuestionAnswering", "BertConfig"),
    "mlm": ("BertForMaskedLM", "BertConfig"),
    "causal": ("LlamaForCausalLM", "LlamaConfig"),
}


def bench(
    rows: Annotated[int, typer.Option(help="Probe rows of religion to score.")] = 300,
    kind: Annotated[str, typer.Option(help="qa, mlm, causal, or all.")] = "all",
    size: Annotated[str, typer.Option(help="tiny, small, base, or all.")] = "all",
    repeat: Annotated[int, typer.Option(help="Runs of each; the median is reported.")] = 3,
    batch_size: Annotated[int, typer.Option(help="Inputs at once.")] = 64,
    threads: Annotated[int, typer.Option(help="Threads of torch; with one, CPU seconds tell most.")] = 1,
) -> None:
    """Measure what scoring costs."""
    import torch

    torch.set_num_threads(threads)
    kinds, sizes = (list(known) if one == "all" else [one] for one, known in ((kind, KINDS), (size, SIZES)))
    bench_scorers(rows, kinds, sizes, repeat, batch_size)


def bench_scorers(rows: int, kinds: list[str], sizes: list[str], repeat: int, batch_size: int) -> None:
    """Print rows a second of every kind and size, beside bare forward passes."""
    print("| kind | size | inputs | tokens an input | scored rows/s | bare pass rows/s | ratio | ratio of CPU time |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in kinds:
        table = probe_rows("mlm" if kind == "mlm" else "qa", rows)
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                make_model(Path(folder), kind, size)
                bench_scorer(kind, size, make_scorer(resolve_model(folder), batch_size=batch_size), table, repeat)


def bench_scorer(kind: str, size: str, scorer: Any, table: pa.Table, repeat: int) -> None:
    """Print the line of one model."""
    inputs = bare_inputs(scorer, kind, table)
    scored, bare = in_turns(lambda: scorer.score(table), lambda: bare_pass(scorer, inputs), repeat)
    count = sum(len(one["input_ids"]) for one in inputs)
    tokens = sum(one["input_ids"].numel() for one in inputs) / count
    ratios = " | ".join(f"{b / s:.2f}" for b, s in zip(bare, scored, strict=True))
    speeds = f"{table.num_rows / scored[0]:,.1f} | {table.num_rows / bare[0]:,.1f} | {ratios}"
    print(f"| {kind} | {size} | {count:,} | {tokens:.1f} | {speeds} |", flush=True)


def probe_rows(config: str, rows: int) -> pa.Table:
    """Rows of religion from the start, as a shard of a run has them."""
    tables = batches(load_lists("religion"), config)
    return next(iter(tables)).slice(0, rows).unify_dictionaries()


def make_model(folder: Path, kind: str, size: str) -> None:
    """Write a model of random weights with a WordPiece vocabulary of the size that BERT has."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    table = probe_rows("qa", 2_000)
    texts = [text for name in ("context_12", "question", "question_negated") for text in table[name].to_pylist()]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=4_000, special_tokens=special))
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )
    model_class, config_class = KINDS[kind]
    config = getattr(transformers, config_class)(vocab_size=30_522, pad_token_id=0, **SIZES[size])
    getattr(transformers, model_class)(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def bare_inputs(scorer: Any, kind: str, table: pa.Table) -> list[dict[str, Any]]:
    """Give the batches that the model is to be run on: every distinct input, with its subject for a causal LM."""
    import torch

    asked, by = ("statement" if kind == "mlm" else "question"), ("span" if kind == "qa" else "text")
    work = make_work(table, asked, by=by)
    if kind == "causal":
        encoded = scorer._prompts.encode(work)
        prompt = scorer._prompts.text(work.contexts[0], work.asked[0])
        answers = [scorer._prompts.answer(prompt, text) for text, _ in work.texts]
        ids = [encoded.ids(index) + answers[subject] for index, subject in work.readings.tolist()]
    else:
        encoded = scorer._encode(work)
        ids = [encoded.ids(index) for index in range(len(work.inputs))]
    lengths = torch.tensor([len(one) for one in ids]).numpy()
    given = []
    for batch in equal_length_batches(lengths, scorer._settings.batch_size):
        tokens = torch.tensor([ids[i] for i in batch])
        given.append({"input_ids": tokens, "attention_mask": torch.ones_like(tokens)})
    return given


def bare_pass(scorer: Any, inputs: list[dict[str, Any]]) -> None:
    """Run the model and nothing else."""
    import torch

    with torch.inference_mode():
        for one in inputs:
            scorer._loaded.model(**one)


Seconds = tuple[float, float]


def in_turns(one: Callable[[], Any], other: Callable[[], Any], repeat: int) -> tuple[Seconds, Seconds]:
    """Median wall-clock and CPU seconds of two functions, run alternately so that a busy machine is busy for both."""
    taken: tuple[list[Seconds], list[Seconds]] = ([], [])
    one(), other()
    for _ in range(repeat):
        for function, seconds in zip((one, other), taken, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            function()
            seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    first, second = ([statistics.median(column) for column in zip(*seconds, strict=True)] for seconds in taken)
    return (first[0], first[1]), (second[0], second[1])


run(bench)
