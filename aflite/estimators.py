"""The classifiers that are trained part by part: our own choices, and copies of what was given."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ClassWeight = str | NDArray[np.float64] | None
NEIGHBOURS = 5


class NearestNeighbours:
    """Vote of the k nearest training rows (Euclidean, exact, FAISS); the nearest breaks ties."""

    def __init__(self, k: int = NEIGHBOURS) -> None:
        """Set the number of neighbours."""
        self.k = k

    def fit(self, features: NDArray[np.float32], codes: NDArray[np.int64]) -> "NearestNeighbours":
        """Index the training rows, float32 of shape (t, d)."""
        import faiss

        self._index = faiss.IndexFlatL2(features.shape[1])
        self._index.add(np.ascontiguousarray(features))
        self._codes = codes
        return self

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.int64]:
        """Class of each row, int64 of shape (n,)."""
        k = min(self.k, self._codes.size)
        _, index = self._index.search(np.ascontiguousarray(features), k)
        votes = self._codes[index]
        # The extra halves sum to less than one vote, and the nearest row's outweighs all the others'.
        worth = 1 + 0.5 ** np.arange(1, k + 1)
        totals = np.stack([((votes == code) * worth).sum(1) for code in range(self._codes.max() + 1)])
        nearest: NDArray[np.int64] = totals.argmax(0)
        return nearest


@dataclass(frozen=True)
class Named:
    """Makes a new classifier of one of our own families, for a random state."""

    name: str
    c: float
    class_weight: ClassWeight

    def __call__(self, state: int) -> Any:
        """Give an unfitted classifier."""
        given = self.class_weight
        weight = dict(enumerate(given.tolist())) if isinstance(given, np.ndarray) else given
        if self.name == "svm":
            from sklearn.svm import LinearSVC

            return LinearSVC(C=self.c, class_weight=weight, random_state=state)
        if self.name == "ridge":
            from sklearn.linear_model import RidgeClassifier

            return RidgeClassifier(alpha=1 / self.c, class_weight=weight)
        if self.name == "mlp":
            from sklearn.neural_network import MLPClassifier

            return MLPClassifier((64,), learning_rate_init=0.01, max_iter=100, random_state=state)
        return NearestNeighbours()


@dataclass(frozen=True)
class Cloned:
    """Makes a copy of a scikit-learn classifier whose unset random states are drawn from a random state."""

    prototype: Any

    def __call__(self, state: int) -> Any:
        """Give an unfitted classifier."""
        from sklearn.base import clone

        model = clone(self.prototype)
        params = model.get_params(deep=True)
        unset = sorted(name for name, value in params.items() if _is_state(name) and value is None)
        if unset:
            drawn = np.random.SeedSequence(state).generate_state(len(unset)).tolist()
            model.set_params(**dict(zip(unset, drawn, strict=True)))
        return model


def _is_state(name: str) -> bool:
    return name == "random_state" or name.endswith("__random_state")


def check_classifier(model: Any) -> None:
    """Raise for what cannot be cloned to a classifier whose every fit the seed fixes."""
    if isinstance(model, type):
        raise TypeError(f"model must be a classifier, not its class; give {model.__name__}(...)")
    lacks = [name for name in ("fit", "predict", "get_params", "set_params") if not hasattr(model, name)]
    if lacks:
        raise TypeError(
            f"model must be a name or a classifier with fit and predict that scikit-learn can clone, "
            f"got {model!r} without {', '.join(lacks)}; derive it from sklearn.base.BaseEstimator"
        )
    for name, value in model.get_params(deep=True).items():
        if isinstance(value, np.random.RandomState | np.random.Generator):
            raise ValueError(
                f"model must have None or an integer as {name}, got a {type(value).__name__}, whose state equal "
                "seeds do not fix; None is set from seed"
            )
