"""A pretrained text model pinned to what it is: a commit on the Hub, or the content of a local folder."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from builders.errors import BuildError, HubError
from builders.features.model_config import (
    ADAPTER,
    ModelFileError,
    check_fits,
    check_layers,
    read_config,
    without_config,
)
from builders.features.weight_errors import quiet_pickles, weights_line
from builders.folder import sha256
from builders.hub_files import fetch_transformers, files_of, pin_model
from builders.lookup import close_folder, no_folder_either
from unqover_data.errors import one_line
from unqover_data.files import FileError

_DECIDING = {".json", ".safetensors", ".bin", ".pt", ".model", ".txt", ".jinja"}
# Tables that a model fills by itself; all other weights come from a checkpoint or are chance.
_COMPUTED = re.compile(r"position_ids$|token_type_ids$|rotary_emb\.inv_freq$|\.attn\.(masked_)?bias$")
_POOLER = re.compile(r"(^|\.)pooler\.")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that cannot change under us.

    Attributes
    ----------
    name : str
        As it was asked for.
    revision : str
        Commit sha, or ``sha256:`` and a hash over the files of a local folder.
    local : bool
        Whether it is a folder.
    """

    name: str
    revision: str
    local: bool

    @functools.cached_property
    def folder(self) -> Path:
        """Where its files are, fetched if they are on the Hub."""
        return Path(self.name).expanduser() if self.local else fetch_transformers(self.name, self.revision)

    @property
    def source(self) -> dict[str, Any]:
        """The arguments that let ``from_pretrained`` load just this, without a network or code that came with it."""
        return {"pretrained_model_name_or_path": str(self.folder), "trust_remote_code": False, "local_files_only": True}


def find_checkpoint(model: str, revision: str | None = None) -> Checkpoint:
    """Pin a model; no weights are loaded.

    Parameters
    ----------
    model : str
        Local folder, or ORG/NAME on the Hub.
    revision : str, optional
        Branch, tag or commit on the Hub, ``main`` by default.

    Raises
    ------
    BuildError
        If it is neither, if the folder holds no model, or if a revision is asked of a folder.
    HubError
        If the Hub has no such model or revision, keeps it gated, or cannot be reached.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise BuildError(f"revision {revision!r} was asked of {model}, a local folder; leave it out")
        _check_whole(model, [path.name for path in folder.iterdir()])
        try:
            read_config(folder / "config.json")
        except FileError as error:
            raise BuildError(f"model {model}: config.json {error}; get the model again") from error
        return Checkpoint(model, _content(folder), local=True)
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model, re.ASCII) or model.startswith("."):
        raise BuildError(
            f"model must be ORG/NAME on the Hub or a folder that exists, not {model!r}{close_folder(model)}"
        )
    with no_folder_either(model):
        sha = pin_model(model, revision)
    _check_whole(model, files_of(model, sha, "model"))
    return Checkpoint(model, sha, local=False)


def _check_whole(model: str, files: Iterable[str]) -> None:
    there = set(files)
    if ADAPTER in there or "config.json" not in there:
        raise BuildError(f"model {model} {without_config(there)}")


def _content(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in _DECIDING):
        digest.update(f"{path.name} {sha256(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def load_classifier(checkpoint: Checkpoint, names: tuple[str, ...]) -> Any:
    """Load a sequence classifier in float32 whose body is the checkpoint's.

    So is its head if the checkpoint was trained on these classes, numbered alike; any other is replaced by a new one,
    whose weights are drawn from torch's global generator.

    Raises
    ------
    BuildError
        If there is no such class for the model, or weights of its body are missing.
    """
    import transformers

    model, chance = load_weights(
        checkpoint,
        "AutoModelForSequenceClassification",
        num_labels=len(names),
        id2label=dict(enumerate(names)),
        label2id={name: label for label, name in enumerate(names)},
        problem_type="single_label_classification",
        dtype="float32",
    )
    body = f"{model.base_model_prefix}."
    refuse_chance(checkpoint, {key for key in chance if key.startswith(body) and not _POOLER.search(key)})
    had_head = any(not key.startswith(body) and key not in chance for key in model.state_dict())
    if had_head and not _has_classes(checkpoint, names):
        for name, module in model.named_modules():
            if not f"{name}.".startswith(body) and hasattr(module, "reset_parameters"):
                module.reset_parameters()
    return cast(transformers.PreTrainedModel, model)


def _has_classes(checkpoint: Checkpoint, names: tuple[str, ...]) -> bool:
    known = load_config(checkpoint).id2label
    return [str(known[place]).casefold() for place in sorted(known)] == [name.casefold() for name in names]


def load_weights(checkpoint: Checkpoint, auto_class: str, *, dtype: str, **config: Any) -> tuple[Any, set[str]]:
    """Load a model in evaluation mode, and the names of its weights that the checkpoint does not have."""
    import torch
    import transformers
    from packaging.version import Version

    typed = "dtype" if Version(transformers.__version__) >= Version("4.56") else "torch_dtype"
    with quiet(), told(checkpoint):
        check_fits(auto_class, checkpoint.folder, bytes_each=getattr(torch, dtype).itemsize)
        model, info = getattr(transformers, auto_class).from_pretrained(
            **checkpoint.source,
            **{typed: getattr(torch, dtype)},
            **config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
        check_layers(model, info["unexpected_keys"])
    mismatched = {entry if isinstance(entry, str) else entry[0] for entry in info["mismatched_keys"]}
    chance = {key for key in {*info["missing_keys"], *mismatched} if not _COMPUTED.search(key)}
    return model.eval(), chance


def refuse_chance(checkpoint: Checkpoint, chance: Iterable[str]) -> None:
    """Raise `BuildError` if any weights would be random."""
    if keys := sorted(chance):
        more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
        raise BuildError(
            f"model {checkpoint.name} has no weights for {', '.join(keys[:3])}{more}: they would be random; "
            "give a complete checkpoint of this architecture"
        )


def has_pooler(chance: Iterable[str]) -> bool:
    """Whether the weights that are missing leave the pooler alone."""
    return not any(_POOLER.search(key) for key in chance)


def load_config(checkpoint: Checkpoint) -> Any:
    """Load a model's configuration."""
    import transformers

    with quiet(), told(checkpoint):
        return transformers.AutoConfig.from_pretrained(**checkpoint.source)


def load_tokenizer(checkpoint: Checkpoint, model: Any, *, max_length: int) -> Any:
    """Load the tokenizer, and see that it and `max_length` go with the model.

    Raises
    ------
    BuildError
        If there is none, it cannot pad, has more tokens than the model, or the model takes fewer than `max_length`.
    """
    import transformers

    with quiet(), told(checkpoint):
        tokenizer = transformers.AutoTokenizer.from_pretrained(**checkpoint.source)
        special = len(set(tokenizer.all_special_ids))
        tokenizer("\u2603")  # no word of anybody's, so that what is wrong with unknown words comes out here
    name, embedded = checkpoint.name, model.get_input_embeddings().num_embeddings
    if len(tokenizer) <= special:
        raise BuildError(f"model {name} has no tokenizer files; put the model's tokenizer beside its weights")
    if tokenizer.pad_token_id is None:
        raise BuildError(f"model {name} has no padding token, so rows cannot be batched; give an encoder that has one")
    if len(tokenizer) > embedded:
        raise BuildError(
            f"model {name} embeds {embedded} tokens but its tokenizer has {len(tokenizer)}; give both of one"
        )
    if (limit := _most_tokens(model)) is not None and max_length > limit:
        raise BuildError(f"max_length must be at most {limit}, the tokens that {name} takes, not {max_length}")
    model.config.pad_token_id = tokenizer.pad_token_id  # by which decoders find the last token of a padded row
    return tokenizer


def _most_tokens(model: Any) -> int | None:
    """Length of the model's position table; RoBERTa's kin start behind the padding's place."""
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding) and re.search(r"(position_embeddings|embed_positions|wpe)$", name):
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - reserved
    return None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep off the terminal what transformers logs, its bars and torch's warnings: what matters in it is raised."""
    import transformers

    logging: Any = transformers.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with quiet_pickles():
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextlib.contextmanager
def told(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn what loading raises into one line."""
    try:
        yield
    except (BuildError, HubError):
        raise
    except Exception as error:  # whatever a configuration or a tokenizer of somebody else's may raise
        raise BuildError(f"model {loading_line(error, checkpoint.name, checkpoint.folder, 'used')}") from None


def loading_line(error: Exception, name: str, folder: Path, how: str) -> str:
    """Say in one line what an error means that loading a model, or its first use, raised.

    Parameters
    ----------
    error : Exception
        Of any kind.
    name : str
        What the model is called.
    folder : Path
        Where its files are.
    how : str
        What it "cannot be", where nothing better is known.
    """
    if isinstance(error, ImportError):
        return f"{name} needs a package that is not installed: {first_line(error)}"
    if isinstance(error, ModelFileError):
        return f"{name}: {error}"
    if isinstance(error, FileError):
        return f"{name}: config.json {error}; get the model again"
    if line := weights_line(error, folder.iterdir()):
        return f"{name} has {line}"
    line = first_line(error).replace(str(folder), name)
    if isinstance(error, KeyError) and " " not in line:
        line = f"its files lack {line}, or name it and transformers does not know it"
    elif "trust_remote_code" in str(error):
        line = "it needs code of its own, which is never run; give a model that transformers knows"
    elif "Unrecognized configuration class" in str(error):
        line = "transformers has no such model of its architecture; give another model"
    return f"{name} cannot be {how}: {line}"


def first_line(error: BaseException) -> str:
    """First line of an error that says something, with the next if it only leads to that, cut for a terminal."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return one_line(" ".join(lines[:2] if lines[0].endswith(":") else lines[:1]))


def fields_that_differ(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Name the fields in which two descriptions of a run differ, with both values."""
    return "; ".join(
        f"{key} was {before.get(key)!r} and is {now.get(key)!r}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    )
