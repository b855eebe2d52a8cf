"""Loads a pinned checkpoint with the head of its kind, and refuses one whose head is not in it."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from builders.errors import HubError
from builders.features.checkpoints import first_line, loading_line, quiet
from builders.features.model_config import check_fits, check_layers, quantization_of, read_config
from evaluation.errors import EvaluationError
from evaluation.models import CLASSIFIERS, Kind, ModelRef, check_choice, multimodal_class

DTYPES = ("float32", "float16", "bfloat16")

_CLASSES: dict[Kind, tuple[str, str]] = {
    "qa": ("AutoModelForQuestionAnswering", "a question-answering"),
    "mlm": ("AutoModelForMaskedLM", "a masked-LM"),
    "causal": ("AutoModelForCausalLM", "a causal-LM"),
    "seq2seq": ("AutoModelForSeq2SeqLM", "an encoder-decoder"),
    "text-classifier": ("AutoModelForSequenceClassification", "a text-classification"),
    "image-classifier": ("AutoModelForImageClassification", "an image-classification"),
}
# Tables that a model fills by itself.
_COMPUTED = re.compile(r"position_ids$|token_type_ids$|rotary_emb\.inv_freq$|\.attn\.(masked_)?bias$")
_SENTENCE = "Who was it? \u2603 Nobody knows, and nobody asks."
_POOLER = re.compile(r"(^|\.)pooler\.")  # feeds nothing but classifiers


@dataclass(frozen=True)
class Loaded:
    """A model in evaluation mode with its tokenizer.

    Attributes
    ----------
    ref : ModelRef
        Where it came from.
    model, tokenizer
        Of transformers.
    device : str
        Where the model is.
    dtype : str
        One of `DTYPES`, or how its weights are quantised, such as ``4-bit (bitsandbytes)``.
    limit : int or None
        The most tokens that the model takes; None if it has no limit.
    parameters : int
        Their number; of quantised weights, before they were.
    """

    ref: ModelRef
    model: Any
    tokenizer: Any
    device: str
    dtype: str
    limit: int | None
    parameters: int


class Parts(NamedTuple):
    """A model of transformers, what makes its inputs, and what is to be said of its weights; see `Loaded`."""

    model: Any
    maker: Any
    dtype: str
    parameters: int


def load_model(ref: ModelRef, kind: str | None = None, device: str | None = None, dtype: str = "float32") -> Loaded:
    """Load a model with the head of its kind.

    Parameters
    ----------
    ref : ModelRef
        The checkpoint.
    kind : str, optional
        Instead of the kind in `ref`.
    device : str, optional
        As torch names it; by default ``cuda`` where there is one, else ``cpu``.
    dtype : str
        One of `DTYPES`. Softmax is in float32 whatever is chosen.

    Raises
    ------
    EvaluationError
        If weights of the head (or any others that scores depend on) are not in the checkpoint or of another shape,
        or if the checkpoint or its tokenizer cannot be loaded.
    HubError
        If files cannot be fetched.
    """
    chosen: Kind = ref.kind if kind is None else check_choice("kind", kind, _CLASSES)
    device = chosen_device(device)
    model, tokenizer, dtype, parameters = load_parts(ref, chosen, "AutoTokenizer", dtype=dtype, device=device)
    with first_use(ref, chosen):
        special = len(set(tokenizer.all_special_ids))
    if len(tokenizer) <= special:
        raise EvaluationError(f"{ref.name} has no tokenizer files: put the model's tokenizer beside its weights")
    model = moved(model, device)
    with first_use(ref, chosen):
        limit = token_limit(model, tokenizer)
        _fit_types(model, tokenizer)
        _answer(model, tokenizer, limit)
    return Loaded(ref, model, tokenizer, device, dtype, limit, parameters)


def _answer(model: Any, tokenizer: Any, limit: int | None) -> None:
    """Let a model read a sentence with a word that it does not know."""
    import torch

    known = known_tokens(model) or len(tokenizer)  # what a tokenizer has beyond them may never come up
    sentence = [token for token in tokenizer(_SENTENCE)["input_ids"][:limit] if token < known]
    ids = torch.tensor([sentence], device=model.device)
    decoded = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    with torch.inference_mode():
        model(input_ids=ids, **decoded)


def known_tokens(model: Any) -> int | None:
    """Give the number of tokens that a model embeds, None where it has no table of them."""
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)
    except NotImplementedError:
        return None


def _fit_types(model: Any, tokenizer: Any) -> None:
    """Leave token types out where the tokenizer writes more of them than the model has: it never saw the others."""
    types = getattr(model.config, "type_vocab_size", None)
    if types and "token_type_ids" in tokenizer.model_input_names:
        written = tokenizer(_SENTENCE, _SENTENCE).get("token_type_ids") or [0]
        if max(written) >= types:
            tokenizer.model_input_names = [name for name in tokenizer.model_input_names if name != "token_type_ids"]


@contextlib.contextmanager
def first_use(ref: ModelRef, kind: Kind | None = None) -> Iterator[None]:
    """Use a model for the first time: what its files say wrongly, and loading did not see, ends as one line."""
    with quiet(), _told(ref, _CLASSES[kind or ref.kind][1]):
        yield


def load_parts(ref: ModelRef, kind: Kind, auto_class: str, *, dtype: str, device: str) -> Parts:
    """Load a model of transformers, and what makes its inputs.

    It is on the CPU, or on its device already if its weights are quantised, since such cannot be moved; see `moved`.

    Parameters
    ----------
    ref : ModelRef
        The checkpoint.
    kind : str
        Whose head the model is to have.
    auto_class : str
        ``AutoTokenizer`` or ``AutoImageProcessor``.
    dtype : str
        One of `DTYPES`; of a quantised model, of the weights that are not.
    device : str
        Where it is to be used.

    Raises
    ------
    EvaluationError, HubError
        As `load_model`.
    """
    import torch
    import transformers
    from packaging.version import Version

    check_choice("dtype", dtype, DTYPES)
    name, head = _CLASSES[kind]
    typed = "dtype" if Version(transformers.__version__) >= Version("4.56") else "torch_dtype"
    folder, own = str(ref.folder), {"trust_remote_code": False, "local_files_only": True}
    with quiet(), _told(ref, head):
        config = read_config(ref.folder / "config.json")
        name = (multimodal_class(config) if kind == "causal" else None) or name
        if quantized := quantization_of(config):
            logging.getLogger(quantized.method).setLevel(logging.ERROR)  # bitsandbytes speaks at every layer
        parameters = check_fits(name, ref.folder, bytes_each=getattr(torch, dtype).itemsize)
        model, info = getattr(transformers, name).from_pretrained(
            folder,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **{typed: getattr(torch, dtype)},
            **({"device_map": {"": device}} if quantized else {}),
            **own,
        )
        check_layers(model, info["unexpected_keys"])
        maker = getattr(transformers, auto_class).from_pretrained(folder, **own)
    mismatched = {entry if isinstance(entry, str) else entry[0] for entry in info["mismatched_keys"]}
    missing = {key for key in {*info["missing_keys"], *mismatched} if kind in CLASSIFIERS or not _POOLER.search(key)}
    _refuse_missing(ref, f"{head} model ({type(model).__name__})", missing, mismatched)
    if quantized and getattr(model, "is_quantized", False):  # some are widened while they are loaded
        dtype = str(quantized)
    return Parts(model, maker, dtype, parameters)


def chosen_device(device: str | None) -> str:
    """Give the device that was asked for, else ``cuda`` where there is one, else ``cpu``."""
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def moved(model: Any, device: str) -> Any:
    """Give a model on a device, in evaluation mode.

    Raises
    ------
    EvaluationError
        If the device cannot be used.
    """
    if getattr(model, "is_quantized", False):
        return model.eval()
    try:
        return model.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise EvaluationError(f"device {device!r} cannot be used: {first_line(error)}") from error


def _refuse_missing(ref: ModelRef, what: str, missing: set[str], mismatched: set[str]) -> None:
    needed = sorted(key for key in missing if not _COMPUTED.search(key))
    if needed:
        shown = ", ".join(needed[:4]) + (f" and {len(needed) - 4} more" if len(needed) > 4 else "")
        odd = f"weights of other shapes than config.json has for {what}"
        lacks = f"no trained weights for {what}"
        raise EvaluationError(
            f"{ref.name} has {odd if mismatched.issuperset(needed) else lacks}: {shown} would be random; "
            "pass a checkpoint fine-tuned for it, or another --kind"
        )


def token_limit(model: Any, tokenizer: Any) -> int | None:
    """Give the most tokens that positions and tokenizer allow, None without limit."""
    import torch

    limits = []
    for field in ("max_position_embeddings", "n_positions", "max_sequence_length"):
        value = getattr(getattr(model.config, "text_config", None) or model.config, field, None)
        if isinstance(value, int) and value > 0:
            limits.append(value)
            break
    for name, module in model.named_modules():
        is_table = isinstance(module, torch.nn.Embedding) and re.search(
            r"(position_embeddings|embed_positions|wpe)$", name
        )
        if is_table and module.padding_idx is not None:  # positions start behind the padding's
            limits.append(module.num_embeddings - module.padding_idx - 1)
    length = tokenizer.model_max_length
    if isinstance(length, int) and 0 < length < 1_000_000:
        limits.append(length)
    return min(limits, default=None)


@contextlib.contextmanager
def _told(ref: ModelRef, head: str) -> Iterator[None]:
    """Turn what loading raises into one line."""
    try:
        yield
    except HubError:
        raise
    except Exception as error:  # whatever a configuration or a tokenizer of somebody else's may raise
        raise EvaluationError(loading_line(error, ref.name, ref.folder, f"loaded as {head} model")) from None
