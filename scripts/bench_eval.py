"""What scoring costs beside the model itself: rows a second against bare forward passes on the same inputs.

A bare pass takes token ids that are there already, in unpadded batches of equal length, and throws its output away:
the least that any evaluation of the same inputs can take. For classifiers of texts (``classifier``) and of images
(``images``) it takes the very batches that scoring makes, and what it is compared with is the whole evaluation of a
filtered folder, from its files to the stored result, with the model loaded; ``--model`` and ``--dataset`` take ones of
your own. Both run in turns, and medians are compared: of wall-clock seconds, and of the process's own CPU seconds,
which count what other cores do meanwhile too (but not processes that decode images).

Example: ``python scripts/bench_eval.py --kind qa --size base --rows 100``
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from builders.aflite import build_aflite
from builders.features.lengths import equal_length_batches
from builders.probes import batches
from builders.progress import switch_off
from builders.specs import load_spec
from evaluation.built_sets import BuiltSet, find_built
from evaluation.classifiers.predict import load_classifier
from evaluation.classifiers.run import ClassifierOptions, evaluate_filtered
from evaluation.classifiers.sets import LabelledRows, read_split
from evaluation.models import ModelRef, resolve_model
from evaluation.run import Engine
from evaluation.scorers import make_scorer
from evaluation.scorers.work import make_work
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
    "classifier": ("BertForSequenceClassification", "BertConfig"),
}
# Architectures of timm, with random weights.
IMAGE_MODELS = {"tiny": "test_resnet", "small": "mobilenetv3_small_100", "base": "resnet50"}

Seconds = tuple[float, float]


def bench(
    rows: Annotated[
        int, typer.Option(help="Probe rows of religion, planted pairs or images; with few, start-up shows.")
    ] = 300,
    kind: Annotated[str, typer.Option(help="qa, mlm, causal, classifier, images, or all.")] = "all",
    size: Annotated[str, typer.Option(help="tiny, small, base, or all.")] = "all",
    repeat: Annotated[int, typer.Option(help="Runs of each; the median is reported.")] = 3,
    batch_size: Annotated[int | None, typer.Option(help="Inputs at once; as the command has it by default.")] = None,
    workers: Annotated[int, typer.Option(help="Processes that decode images.")] = 1,
    threads: Annotated[int, typer.Option(help="Threads of torch; with one, CPU seconds tell most.")] = 1,
    model: Annotated[str | None, typer.Option(help="A classifier of your own, on --dataset.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Its filtered folder.")] = None,
    split: Annotated[str, typer.Option(help="Split of that folder.")] = "validation",
) -> None:
    """Measure what scoring costs."""
    import torch

    torch.set_num_threads(threads)
    every = ((kind, (*KINDS, "images")), (size, SIZES))
    kinds, sizes = (list(known) if one == "all" else [one] for one, known in every)
    print("| kind | size | inputs | tokens an input | scored rows/s | bare pass rows/s | ratio | ratio of CPU time |")
    print("|---|---|---|---|---|---|---|---|")
    switch_off()
    engine = Engine(batch_size=batch_size, decoders=workers)
    if model is not None and dataset is not None:
        bench_classifier(resolve_model(model), find_built(dataset), split, Path(model).name, repeat, engine)
        return
    for one in kinds:
        if one in ("classifier", "images"):
            bench_classifiers(rows, one, sizes, repeat, engine)
        else:
            bench_scorers(rows, one, sizes, repeat, engine)


def bench_classifiers(rows: int, kind: str, sizes: list[str], repeat: int, engine: Engine) -> None:
    """Print rows a second of the whole evaluation of a classifier of every size, beside bare forward passes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = find_built(str(filtered_images(folder, rows) if kind == "images" else filtered_texts(folder, rows)))
        data = read_split(built, "train")
        for size in sizes:
            model = folder / f"{kind}-{size}"
            if kind == "images":
                make_image_model(model, size, data.names)
            else:
                texts = [text for column in data.inputs for text in data.data[column][:]]
                make_model(model, kind, size, texts, id2label=dict(enumerate(data.names)), num_labels=len(data.names))
            bench_classifier(resolve_model(str(model)), built, "train", size, repeat, engine)


def bench_classifier(ref: ModelRef, built: BuiltSet, split: str, name: str, repeat: int, engine: Engine) -> None:
    """Print rows a second of the whole evaluation of a classifier on a split, beside bare forward passes."""
    data = read_split(built, split)
    inputs, forward = classifier_batches(ref, data, engine)
    with tempfile.TemporaryDirectory() as folder:

        def whole() -> None:
            how: Any = {"engine": engine, "out": Path(folder), "splits": [split], "overwrite": True}
            list(evaluate_filtered(ref, built, ClassifierOptions(), **how))

        scored, bare = in_turns(whole, lambda: [forward(one) for one in inputs], repeat)
    images = data.modality == "image"
    tokens = 0 if images else sum(one["attention_mask"].sum().item() for one in inputs) / len(data)
    print_line("images" if images else "classifier", name, len(data), tokens, len(data), scored, bare)


def filtered_texts(folder: Path, rows: int) -> Path:
    """Build a filtered folder of planted pairs."""
    np.save(folder / "features.npy", np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32))
    settings = [f"source.rows={rows}", f"filter.n={rows // 2}", "filter.m=2", f"filter.t={rows // 4}"]
    spec = load_spec("planted-nli", [*settings, f"filter.k={rows // 4}"])
    return build_aflite(spec, folder / "built", features=folder / "features.npy").folder


def filtered_images(folder: Path, rows: int) -> Path:
    """Build a filtered folder of JPEGs of noise, 500 by 375 pixels as those of ImageNet often are."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for row in range(rows):
        path = folder / "source" / str(row % 2) / f"{row}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (47, 63, 3), dtype=np.uint8)).resize((500, 375)).save(path, quality=90)
    np.save(folder / "features.npy", rng.normal(size=(rows, 2)).astype(np.float32))
    settings = [f"filter.n={rows // 2}", "filter.m=2", f"filter.t={rows // 4}", f"filter.k={rows // 4}"]
    spec = load_spec("digits", settings)
    where = {"source": folder / "source", "features": folder / "features.npy"}
    return build_aflite(spec, folder / "built", **where).folder


def make_image_model(folder: Path, size: str, names: tuple[str, ...]) -> None:
    """Write a timm model of random weights."""
    import timm

    model = timm.create_model(IMAGE_MODELS[size], num_classes=len(names))
    config = {"label_names": list(names)}
    timm.models.save_for_hf(model, str(folder), model_config=config, safe_serialization=True)


def classifier_batches(ref: ModelRef, data: LabelledRows, engine: Engine) -> tuple[list[Any], Callable[[Any], Any]]:
    """Give the batches that scoring makes, and the forward pass."""
    import torch

    how: Any = {"device": engine.device, "batch_size": engine.batch_size, "workers": engine.decoders}
    model: Any = load_classifier(ref, dtype="float32", **how)
    if data.modality == "text":
        encoder = model.encoder(data)
        batches = (batch for block in encoder.batches(data.data) for _, batch in block)
        given = [{name: part.to(model.model.device) for name, part in batch.items()} for batch in batches]

        def forward(batch: Any) -> None:
            with torch.inference_mode():
                model.model(**batch)

        return given, forward
    return [pixels for _, pixels, _ in model.batches(data)], model.forward


def bench_scorers(rows: int, kind: str, sizes: list[str], repeat: int, engine: Engine) -> None:
    """Print rows a second of a scorer of every size, beside bare forward passes."""
    table = probe_rows("mlm" if kind == "mlm" else "qa", rows)
    probes = probe_rows("qa", 2_000)
    texts = [text for name in ("context_12", "question", "question_negated") for text in probes[name].to_pylist()]
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            make_model(Path(folder), kind, size, texts)
            scorer: Any = make_scorer(resolve_model(folder), batch_size=engine.inputs_at_once)
            inputs = bare_inputs(scorer, kind, table)
            scored, bare = in_turns(lambda: scorer.score(table), lambda: bare_pass(scorer, inputs), repeat)  # noqa: B023
            count = sum(len(one["input_ids"]) for one in inputs)
            tokens = sum(one["input_ids"].numel() for one in inputs) / count
            print_line(kind, size, count, tokens, table.num_rows, scored, bare)


def print_line(kind: str, size: str, inputs: int, tokens: float, rows: int, scored: Seconds, bare: Seconds) -> None:
    """Print the line of one model."""
    ratios = " | ".join(f"{b / s:.2f}" for b, s in zip(bare, scored, strict=True))
    speeds = f"{rows / scored[0]:,.1f} | {rows / bare[0]:,.1f} | {ratios}"
    print(f"| {kind} | {size} | {inputs:,} | {tokens:.1f} | {speeds} |", flush=True)


def probe_rows(config: str, rows: int) -> pa.Table:
    """Rows of religion from the start, as a shard of a run has them."""
    tables = batches(load_lists("religion"), config)
    return next(iter(tables)).slice(0, rows).unify_dictionaries()


def make_model(folder: Path, kind: str, size: str, texts: list[str], **more: Any) -> None:
    """Write a model of random weights with a WordPiece vocabulary of the size that BERT has."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=4_000, special_tokens=special))
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )
    model_class, config_class = KINDS[kind]
    config = getattr(transformers, config_class)(vocab_size=30_522, pad_token_id=0, **SIZES[size], **more)
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
        answers = [scorer._prompts.answer(prompt, text).ids for text, _ in work.texts]
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


def in_turns(one: Callable[[], Any], other: Callable[[], Any], repeat: int) -> tuple[Seconds, Seconds]:
    """Median wall-clock and CPU seconds of two functions, run alternately so that a busy machine is busy for both."""
    taken: tuple[list[Seconds], list[Seconds]] = ([], [])
    one(), other()
    for _ in range(repeat):
        for function, seconds in zip((one, other), taken, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            function()
            finish_on_gpu()
            seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    first, second = ([statistics.median(column) for column in zip(*seconds, strict=True)] for seconds in taken)
    return (first[0], first[1]), (second[0], second[1])


def finish_on_gpu() -> None:
    """Wait for what was only handed to a GPU."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


run(bench)
