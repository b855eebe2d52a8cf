"""A dataset of the Hub at a commit, in the cache of `datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from builders.embedded import holds_media
from builders.errors import HubError
from builders.hub import resolve_revision
from builders.hub_errors import Asked, ask, missing_offline, offline
from builders.hub_files import fetch, note, noted
from builders.prepared import prepare, whole_builder
from builders.sources.arrange import check_filtered
from builders.sources.declared import check_declared
from builders.sources.raw import RawSource, innermost, listed
from builders.sources.spec import IMAGE, SourceSpec
from unqover_data.errors import one_line

if TYPE_CHECKING:
    from datasets import Dataset


def read_hub(spec: SourceSpec) -> RawSource:
    """Load every split of a dataset at the commit that the spec's revision means now.

    Raises
    ------
    BuildError
        If a split that is to be filtered is not there; nothing is downloaded then.
    HubError
        If the repository, revision or config is not there or not open to this token, or the download fails.
    """
    name = str(spec.id)
    sha = _resolve(name, spec)
    asked = Asked("load", name, "dataset", sha)
    if offline():
        loaded, files = _as_prepared(asked, spec)
        splits = list(loaded)
        check_filtered(splits, spec)
        folder = fetch(name, sha, files, "dataset")
    else:
        check_declared(name, sha)
        builder = _builder(asked, spec.config)
        splits, files = _files(builder, sha)
        if not files:
            raise HubError(f"commit {sha[:12]} of {name} could not be had: check the network and run the same again")
        check_filtered(splits, spec)
        folder = fetch(name, sha, files, "dataset")
        loaded = _loaded(builder, f"{name} at {sha[:12]}")
        files = files if any(map(_paths, loaded.values())) else []
        made = {"config_name": builder.config.name, "version": str(builder.config.version), "images": files}
        note(asked, sha, _prepared(spec), made)
    origin = f"{name}, config {spec.config} (Hub)" if spec.config else f"{name} (Hub)"
    own = {str(folder / file) for file in files}
    of_files = all(own.issuperset(_paths(rows)) for rows in loaded.values())
    return RawSource({split: loaded[split] for split in splits}, sha, origin, of_files=of_files)


def _files(builder: Any, sha: str) -> tuple[list[str], list[str]]:
    """Return a dataset's splits and its files; no files if any is of another commit, of which `datasets` only warns."""
    data = {str(split): [str(file) for file in some] for split, some in (builder.config.data_files or {}).items()}
    parts = [file.partition(f"@{sha}/") for some in data.values() for file in some]
    return list(data), [path for _, _, path in parts] if all(path for _, _, path in parts) else []


def _paths(rows: Dataset) -> set[str | None]:
    """Where the images lie that have no bytes in their rows."""
    if IMAGE not in rows.column_names or not holds_media(rows.data.schema.field(IMAGE).type):
        return set()
    images = rows.data.column(IMAGE)
    lacking = pc.and_(images.is_valid(), pc.struct_field(images, "bytes").is_null())
    return set(pc.struct_field(images, "path").filter(lacking).to_pylist())


def _prepared(spec: SourceSpec) -> str:
    return f"prepared-{spec.config or ''}"


def _as_prepared(asked: Asked, spec: SourceSpec) -> tuple[Any, list[str]]:
    """Return what `datasets` made of the commit in an earlier run, and the files that it reads images of."""
    from datasets.packaged_modules.cache.cache import Cache

    sha, name = str(asked.revision), asked.repo
    made = noted(asked, sha, _prepared(spec))
    if not isinstance(made, dict):
        raise HubError(missing_offline(asked))
    files = made.pop("images", [])
    what = {"repo_id": name, "dataset_name": name.split("/")[-1], "hash": sha, **made}
    builder = whole_builder(lambda: Cache(**what), name)
    if not Path(builder.cache_dir, "dataset_info.json").is_file():
        raise HubError(missing_offline(asked))
    return _loaded(builder, f"{name} at {sha[:12]}"), files


def _resolve(name: str, spec: SourceSpec) -> str:
    from huggingface_hub.errors import GatedRepoError

    try:
        return resolve_revision(name, spec.revision or "main")
    except HubError as error:
        if spec.page and isinstance(error.__context__, GatedRepoError):
            raise HubError(
                f"{name} is gated: accept its terms at {spec.page}, log in with `hf auth login` or set HF_TOKEN, "
                f"then run the same command again"
            ) from error
        raise


def _builder(asked: Asked, config: str | None) -> Any:
    from datasets import load_dataset_builder

    def built() -> Any:
        try:
            return whole_builder(lambda: load_dataset_builder(asked.repo, config, revision=asked.revision), asked.repo)
        except ValueError as error:
            known = _configs(asked.repo, str(asked.revision))
            if known and config not in known:
                wanted = f"has no config {config!r}; it has" if config else "needs a config, one of"
                raise HubError(f"{asked.repo} {wanted} {listed(known, 20)}") from error
            raise

    return ask(built, asked)


def _configs(name: str, sha: str) -> list[str]:
    from datasets import get_dataset_config_names

    try:
        return [str(config) for config in get_dataset_config_names(name, revision=sha)]
    except Exception:  # the error that led here is told instead
        return []


def _loaded(builder: Any, what: str) -> Any:
    try:
        return prepare(builder)
    except Exception as error:  # as above
        cause = innermost(error)
        raise HubError(f"{what} cannot be loaded: {type(cause).__name__}: {one_line(cause)}") from error
