import numpy as np
import pytest


@pytest.fixture
def planted():
    """Return a maker of sets whose easy rows are known: (features, labels, easy).

    Easy rows lie 6 out on their class's axis, hard rows at 0 on all class axes. The other
    columns are noise for both: what a classifier makes of them depends on the rows that it trained on, so
    over many small parts it is right on a hard row about as often as chance.
    """

    def make(n_rows=1200, n_classes=3, noise=60, share=0.5, seed=0):
        rng = np.random.default_rng(seed)
        labels = rng.integers(n_classes, size=n_rows)
        easy = rng.random(n_rows) < share
        signal = np.zeros((n_rows, n_classes))
        signal[np.flatnonzero(easy), labels[easy]] = 6
        signal[easy] += rng.normal(size=(easy.sum(), n_classes)) / 2
        features = np.hstack([signal, rng.normal(size=(n_rows, noise))]).astype(np.float32)
        return features, labels, easy

    return make
