"""Checks of what users pass, made once at the public edge."""

import difflib
import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
logger = logging.getLogger(__name__)
_CHUNK_BYTES = 64 * 2**20
# Sums of many squares of larger features leave the range of single precision.
_LARGEST = 1e10


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise ValueError, with the closest match, when `value` is none of the allowed names."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return
    close = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, got {value!r}{hint}")


def integer(name: str, value: object, *, least: int, most: int | None = None, why: str = "") -> int:
    """Return an integer in [least, most], or raise."""
    number = _whole(name, value)
    if number < least or (most is not None and number > most):
        limit = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be {limit}{why}, got {number}")
    return number


def jobs(value: object) -> int | None:
    """Return a number of joblib workers (below 0: counted from all cores down), or None, or raise."""
    number = None if value is None else _whole("n_jobs", value)
    if number == 0:
        raise ValueError("n_jobs must be at least 1, or negative as joblib counts, -1 for all cores; got 0")
    return number


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    return int(value)


def number(name: str, value: object, *, above: float = -np.inf, least: float = -np.inf, most: float = np.inf) -> float:
    """Return a finite float > above, >= least, <= most, or raise."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        result = float(value)
    except OverflowError:
        result = np.inf
    if not (np.isfinite(result) and above < result and least <= result <= most):
        bounds = [
            f"> {above:g}" if above > -np.inf else "",
            f">= {least:g}" if least > -np.inf else "",
            f"<= {most:g}" if most < np.inf else "",
        ]
        raise ValueError(f"{name} must be a number {' and '.join(filter(None, bounds))}, got {result}")
    return result


def features(value: Any, name: str = "features") -> NDArray[np.floating]:
    """Return an (N, d) float array without NaN, infinite or huge values; maps and half precision stay."""
    _unmasked(name, value)
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must have shape (N, d) with N and d at least 1, got shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numbers (float16, float32 or float64), got dtype {array.dtype}")
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    if not array.dtype.isnative:
        # torch reads the machine's own byte order only.
        array = array.astype(array.dtype.newbyteorder("="))
    rows = max(1, _CHUNK_BYTES // array[:1].nbytes)
    bad: list[int] = []
    with np.errstate(over="ignore"):
        for start in range(0, array.shape[0], rows):
            chunk = np.asarray(array[start : start + rows], dtype=np.float32)
            # NaN compares false.
            bad.extend((start + np.flatnonzero(~(np.abs(chunk).max(axis=1) <= _LARGEST))).tolist())
    if bad:
        raise ValueError(
            f"{name} must be finite and at most {_LARGEST:g} in size: {len(bad)} of {array.shape[0]} rows hold NaN or "
            f"infinite values or larger ones, the first is row {bad[0]}; drop, repair or scale them"
        )
    return array


def _unmasked(name: str, value: Any) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array, the mask would be lost; fill the values or drop the rows")


def labels(value: Any, n_rows: int, of: str = "features") -> tuple[NDArray[Any], Ints]:
    """Return the classes, ascending, and the class position of every row (int64); warn of -1 beside other classes."""
    _unmasked("labels", value)
    array = np.asarray(value)
    if array.shape != (n_rows,):
        raise ValueError(f"labels must have shape ({n_rows},), one a row of {of}, got shape {array.shape}")
    if array.dtype.kind not in "iub":
        raise TypeError(f"labels must be integers, got dtype {array.dtype}; map names or floats to integers first")
    classes, codes = np.unique(array, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"labels must have at least 2 classes, all {n_rows} are {classes[0]}")
    if classes[0] == -1 and classes.tolist() != [-1, 1]:
        logger.warning(
            "%d of %d rows have the label -1, which often means that there is none: it is taken as a class; if it is "
            "not one, leave these rows out of features and labels",
            int((codes == 0).sum()),
            n_rows,
        )
    return classes, codes.astype(np.int64)


def groups(value: Any, n_rows: int, t: int) -> Ints | None:
    """Return group numbers 0 .. of every row, or None."""
    if value is None:
        return None
    _unmasked("groups", value)
    array = np.asarray(value)
    if array.shape != (n_rows,):
        raise ValueError(f"groups must have shape ({n_rows},), one a row of features, got shape {array.shape}")
    try:
        names, codes, sizes = np.unique(array, return_inverse=True, return_counts=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(name).__name__ for name in array.tolist()}))
        raise TypeError(f"groups must be all of one kind, such as str or int, got {kinds}; name every group") from error
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"groups must name every row's group, {int(np.isnan(array).sum())} of {n_rows} are NaN")
    if sizes.max() > t:
        name = names.tolist()[sizes.argmax()]
        raise ValueError(f"groups must fit a training part: group {name!r} has {sizes.max()} rows, t is {t}; raise t")
    return codes.astype(np.int64)


def mask(name: str, value: Any, n_rows: int) -> NDArray[np.bool_]:
    """Return a bool array of length `n_rows`, or raise."""
    _unmasked(name, value)
    array = np.asarray(value)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), one a row, got shape {array.shape}")
    if array.dtype.kind != "b":
        raise TypeError(f"{name} must be bool, True for its rows, got dtype {array.dtype}")
    return array


def texts(value: Any) -> list[str]:
    """Return the texts as a list, or raise."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"texts must be a sequence of str, got {type(value).__name__}")
    found = list(value)
    for row, text in enumerate(found):
        if not isinstance(text, str):
            raise TypeError(f"texts must be str, row {row} is {text!r}; fill or drop such rows")
    return found


def class_weight(value: Any, classes: NDArray[Any]) -> str | NDArray[np.float64] | None:
    """Return None, "balanced", or one weight a class in the order of `classes`."""
    if value is None:
        return None
    if isinstance(value, str):
        one_of("class_weight", value, ["balanced"])
        return value
    if not isinstance(value, dict) or set(value) != set(classes.tolist()):
        raise ValueError(
            f"class_weight must be 'balanced' or a dict with a weight for each of the labels "
            f"{classes.tolist()}, got {value!r}"
        )
    weights = [number(f"class_weight[{label}]", value[label], above=0) for label in classes.tolist()]
    return np.array(weights)


def device(value: Any) -> str:
    """Return the name of a torch device that can be used here, or raise."""
    if not isinstance(value, str):
        raise TypeError(f"device must be the name of a torch device such as 'cpu' or 'cuda', got {value!r}")
    if value == "cpu":
        return value
    import torch

    try:
        # Losses are added in double precision, which not every device has.
        torch.zeros(1, dtype=torch.float64, device=value).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"device must be a torch device that this machine has, {value!r} cannot be used ({reason}); give 'cpu'"
        ) from error
    return value
