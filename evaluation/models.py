"""From a model's name to a pinned checkpoint of a known kind.

A name on the Hub becomes a commit sha before anything is loaded; a local folder gets a hash of its content.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from builders.features.model_config import ADAPTER, read_config, without_config
from builders.hub_files import fetch, fetch_transformers, files_of, pin_model
from builders.lookup import close_folder, no_folder_either
from evaluation.errors import EvaluationError
from unqover_data.files import FileError

Kind = Literal["qa", "mlm", "causal", "seq2seq", "text-classifier", "image-classifier"]
Library = Literal["transformers", "timm"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CLASSIFIERS: dict[Kind, str] = {"text-classifier": "text", "image-classifier": "image"}

_HASHED = (".json", ".safetensors", ".bin", ".model", ".txt", ".jinja", ".pt")
_TABLES: dict[Kind, str] = {
    "qa": "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",
    "mlm": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "text-classifier": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "image-classifier": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
}
# Models that read images or sound besides text and write text, by the class that loads them.
_MULTIMODAL = {
    "AutoModelForImageTextToText": "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "AutoModelForMultimodalLM": "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
}
_WEIGHTS = (".safetensors", ".bin")
_ON_HUB = "hf-hub:"


@dataclass(frozen=True)
class ModelRef:
    """A checkpoint that cannot change under us.

    Attributes
    ----------
    name : str
        As the user gave it.
    path : str
        Hub id, or folder.
    sha : str
        Commit on the Hub; of a folder, the first 40 hex digits of the SHA-256 over its files.
    kind : str
        One of `KINDS`.
    local : bool
        Whether `path` is a folder.
    library : str
        ``transformers``, or ``timm`` for image classifiers that timm saved.
    """

    name: str
    path: str
    sha: str
    kind: Kind
    local: bool
    library: Library = "transformers"

    @functools.cached_property
    def folder(self) -> Path:
        """Where its files are, for transformers; fetched if they are on the Hub."""
        return Path(self.path) if self.local else fetch_transformers(self.path, self.sha)

    @property
    def facts(self) -> dict[str, Any]:
        """What a result says of it."""
        return {"name": self.name, "sha": self.sha, "kind": self.kind}


def resolve_model(name: str, revision: str | None = None, *, kind: str | None = None) -> ModelRef:
    """Pin a model to a commit and find out what kind it is; no weights are loaded.

    Parameters
    ----------
    name : str
        Hub id (``org/name``), local folder, or a name with a tag under which timm has weights on the Hub
        (``resnet18.a1_in1k``).
    revision : str, optional
        Branch, tag or sha on the Hub; ``main`` by default.
    kind : str, optional
        One of `KINDS`, instead of what the checkpoint's ``config.json`` says.

    Raises
    ------
    EvaluationError
        If the folder holds no model, or the kind is not known.
    HubError
        If the Hub has no such model or revision, keeps it gated, or cannot be reached.
    """
    chosen = None if kind is None else check_choice("kind", kind, KINDS)
    folder = Path(name).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise EvaluationError(f"revision {revision!r} cannot be had of the local folder {name}: leave it out")
        _check_whole(name, [path.name for path in folder.iterdir()], lambda file: folder / file)
        sha, path, local = _folder_sha(folder), str(folder), True
        config_path = folder / "config.json"
    elif folder.exists():
        raise EvaluationError(f"{name} is a file: pass a model folder or a Hub id such as org/name")
    elif name.count("/") > 1 or name.startswith((".", "/", "~")):
        close = close_folder(name) or ": pass a model folder or a Hub id such as org/name"
        raise EvaluationError(f"there is no folder {name}{close}")
    else:
        path, local = _hub_id(name), False
        with no_folder_either(name):
            sha = pin_model(path, revision)
        _check_whole(name, files_of(path, sha, "model"), lambda file: fetch(path, sha, [file], "model") / file)
        config_path = fetch(path, sha, ["config.json"], "model") / "config.json"
    try:
        config = read_config(config_path)
    except FileError as error:
        raise EvaluationError(f"{name}: config.json {error}; get the model again") from error
    library: Library = "timm" if _is_timm(config) else "transformers"
    return ModelRef(name, path, sha, chosen or find_kind(config, name=name), local, library)


def _check_whole(name: str, files: Iterable[str], get: Callable[[str], Path]) -> None:
    """Refuse an adapter, GGUF files, and what is no model: transformers loads none of them by itself."""
    there = set(files)
    adapter = None
    if ADAPTER in there:
        try:
            adapter = read_config(get(ADAPTER))
        except FileError as error:
            raise EvaluationError(f"{name}: {ADAPTER} {error}; get the model again") from error
    only_gguf = any(file.endswith(".gguf") for file in there) and not any(file.endswith(_WEIGHTS) for file in there)
    if adapter is not None or only_gguf or "config.json" not in there:
        raise EvaluationError(f"{name} {without_config(there, adapter)}")


def _hub_id(name: str) -> str:
    """Give the repository that a name stands for: timm's own names have a tag and no owner."""
    if name.startswith(_ON_HUB):
        return name.removeprefix(_ON_HUB)
    if "/" in name or "." not in name:
        return name
    import timm

    known = name in timm.list_pretrained(f"{name.partition('.')[0]}.*")
    config = timm.models.get_pretrained_cfg(name) if known else None
    return str(config.hf_hub_id) if config is not None and config.hf_hub_id else name


def _is_timm(config: dict[str, Any]) -> bool:
    return isinstance(config.get("architecture"), str) and "architectures" not in config


def find_kind(config: Any, *, name: str = "the model") -> Kind:
    """Tell the kind of a model from the ``architectures`` of its configuration.

    Parameters
    ----------
    config : mapping or PretrainedConfig
        The configuration.
    name : str
        What to call the model in an error.

    Raises
    ------
    EvaluationError
        If the architecture is of no kind, or of several.

    Examples
    --------
    >>> find_kind({"architectures": ["BertForMaskedLM"]})
    'mlm'
    """
    config = config if isinstance(config, dict) else config.to_dict()
    architectures = config.get("architectures") or []
    hint = f"pass --kind ({', '.join(KINDS)}) if you know that it can do one"
    if _is_timm(config):
        return "image-classifier"
    if not architectures:
        raise EvaluationError(f"{name} names no architecture in its config.json; {hint}")
    kinds = {kind for architecture in architectures for kind in _kinds_of(architecture)}
    if "seq2seq" in kinds:  # BART and its kin fill masks and write answers with one head
        kinds = {"seq2seq"} if config.get("is_encoder_decoder") else {"causal"} if multimodal_class(config) else set()
    written = ", ".join(architectures)
    if not kinds:
        raise EvaluationError(f"{name} is of architecture {written}, which has no head that can be scored; {hint}")
    if len(kinds) > 1:
        raise EvaluationError(f"{name} is of architecture {written}, which can be {' or '.join(sorted(kinds))}; {hint}")
    return kinds.pop()


def _kinds_of(architecture: str) -> Iterator[Kind]:
    """Kinds by transformers' own tables, or by the ending for an architecture that is not in them."""
    from transformers.models.auto import modeling_auto

    known = [kind for kind, table in _TABLES.items() if architecture in _names(getattr(modeling_auto, table))]
    if architecture.endswith("ForPreTraining"):
        known = ["mlm"]
    endings: dict[str, Kind] = {
        "ForQuestionAnswering": "qa",
        "ForMaskedLM": "mlm",
        "ForCausalLM": "causal",
        "LMHeadModel": "causal",
        "ForConditionalGeneration": "seq2seq",
        "ForSequenceClassification": "text-classifier",
        "ForImageClassification": "image-classifier",
    }
    yield from known or [kind for ending, kind in endings.items() if architecture.endswith(ending)]


def multimodal_class(config: Mapping[str, Any]) -> str | None:
    """Give the class of transformers that loads a causal LM which reads images or sound as well, None for others.

    It is scored on text alone. What transformers has among its causal LMs too, such as Gemma 3, is loaded as those.
    """
    from transformers.models.auto import modeling_auto

    architectures = set(config.get("architectures") or ())
    if not isinstance(config.get("text_config"), dict) or config.get("is_encoder_decoder"):
        return None
    if architectures & _names(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        return None
    tables = {name: getattr(modeling_auto, table, {}) for name, table in _MULTIMODAL.items()}
    return next((name for name, table in tables.items() if architectures & _names(table)), None)


def _names(table: Mapping[str, str | tuple[str, ...]]) -> set[str]:
    return {name for names in table.values() for name in ([names] if isinstance(names, str) else names)}


def check_choice(what: str, given: str, known: Iterable[str]) -> Any:
    """Give `given` if it is one of `known`, else raise an `EvaluationError` with the closest.

    Examples
    --------
    >>> check_choice("protocol", "exakt", ("exact", "paper"))
    Traceback (most recent call last):
    evaluation.errors.EvaluationError: there is no protocol 'exakt' (known: exact, paper); did you mean 'exact'?
    """
    if given in (options := tuple(known)):
        return given
    close = difflib.get_close_matches(str(given), options, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise EvaluationError(f"there is no {what} {given!r} (known: {', '.join(options)}){hint}")


def _folder_sha(folder: Path) -> str:
    """Hash names and contents of a model folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in _HASHED):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.name}\0{content}\n".encode())
    return digest.hexdigest()[:40]
