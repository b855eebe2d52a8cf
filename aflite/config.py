"""What fixes the result of a run, as JSON values that a checkpoint is compared by."""

import hashlib
import importlib.metadata
import json
from typing import Any

import numpy as np

from aflite.checkpoint import fingerprint
from aflite.estimators import ClassWeight
from aflite.loop import Removal


def run_config(removal: Removal, model: Any, c: float, class_weight: ClassWeight) -> dict[str, Any]:
    """Parameters and hashes of the inputs; `class_weight` is in the order of the classes.

    Raises
    ------
    ValueError
        A function is among the parameters: a checkpoint cannot tell whether it is still the same.
    """
    scorer, data = removal.scorer, removal.scorer.data
    return {
        "version": _version(),
        "n": removal.n,
        "m": scorer.m,
        "t": scorer.t,
        "k": removal.k,
        "tau": removal.tau,
        "seed": scorer.seed,
        "model": model if isinstance(model, str) else _hashed(model),
        "c": c,
        "class_weight": class_weight.tolist() if isinstance(class_weight, np.ndarray) else class_weight,
        "strategy": removal.strategy,
        "temperature": removal.temperature,
        "look_ahead": removal.look_ahead,
        "partitions": described("partitions", scorer.partitions),
        "block_size": scorer.block_size,
        "stratify": scorer.stratify,
        "phases": removal.phases,
        "n_batches": scorer.n_batches,
        "device": scorer.device.partition(":")[0],
        "features": fingerprint(data.features),
        "labels": fingerprint(data.codes),
        "groups": None if scorer.groups is None else fingerprint(scorer.groups),
    }


def _version() -> str:
    try:
        return importlib.metadata.version("probesieve")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _hashed(model: Any) -> str:
    text = json.dumps(described("model", model))
    return f"{type(model).__name__} {hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def described(name: str, value: Any) -> Any:
    """JSON values that are equal for equal parameters, without addresses or abbreviations.

    An estimator is its class and, one level after the other, all its parameters.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return described(name, value.item())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return ["array", fingerprint(value)]
    if isinstance(value, list | tuple | np.ndarray):
        return [described(f"{name}[{place}]", item) for place, item in enumerate(value)]
    if isinstance(value, dict):
        return sorted(([repr(key), described(f"{name}[{key!r}]", item)] for key, item in value.items()), key=_key)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "get_params"):
        params = value.get_params(deep=False)
        return [described(name, type(value)), {key: described(f"{name}.{key}", params[key]) for key in sorted(params)}]
    if callable(value) or not hasattr(value, "__dict__"):
        raise ValueError(
            f"checkpoint cannot be used with {name} = {value!r}: whether it is the same when the run continues "
            "cannot be told; run without checkpoint, or give a name, number, array or estimator"
        )
    return [described(name, type(value)), described(name, vars(value))]


def _key(pair: list[Any]) -> str:
    return str(pair[0])
