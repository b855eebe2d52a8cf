"""A dataset of the Hub at a commit, in the cache of `datasets`."""

from __future__ import annotations

from typing import Any

from builders.errors import HubError
from builders.hub import resolve_revision
from builders.sources.arrange import check_filtered
from builders.sources.declared import check_declared
from builders.sources.raw import RawSource, innermost, listed, one_line
from builders.sources.spec import SourceSpec


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
    check_declared(name, sha)
    builder = _builder(name, spec.config, sha)
    files = {str(split): list(some) for split, some in (builder.config.data_files or {}).items()}
    # Given another revision from its cache, `datasets` only warns.
    if not files or any(f"@{sha}/" not in str(file) for some in files.values() for file in some):
        raise HubError(f"commit {sha[:12]} of {name} could not be had: check the network and run the same again")
    check_filtered(files, spec)
    loaded = _loaded(builder, f"{name} at {sha[:12]}")
    origin = f"{name}, config {spec.config} (Hub)" if spec.config else f"{name} (Hub)"
    return RawSource({split: loaded[split] for split in files}, sha, origin)


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


def _builder(name: str, config: str | None, sha: str) -> Any:
    from datasets import load_dataset_builder

    try:
        return load_dataset_builder(name, config, revision=sha)
    except Exception as error:  # those of `datasets` and of its HTTP libraries have no base in common
        known = _configs(name, sha) if isinstance(error, ValueError) else []
        if known and config not in known:
            wanted = f"has no config {config!r}; it has" if config else "needs a config, one of"
            raise HubError(f"{name} {wanted} {listed(known, 20)}") from error
        raise HubError(f"{name} at {sha[:12]} cannot be loaded: {one_line(error)}") from error


def _configs(name: str, sha: str) -> list[str]:
    from datasets import get_dataset_config_names

    try:
        return [str(config) for config in get_dataset_config_names(name, revision=sha)]
    except Exception:  # the error that led here is told instead
        return []


def _loaded(builder: Any, what: str) -> Any:
    try:
        builder.download_and_prepare()
        return builder.as_dataset()
    except Exception as error:  # as above
        cause = innermost(error)
        raise HubError(f"{what} cannot be loaded: {type(cause).__name__}: {one_line(cause)}") from error
