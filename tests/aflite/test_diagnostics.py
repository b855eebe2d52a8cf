import numpy as np
import pytest

import aflite
from aflite import diagnostics
from aflite.results import histogram


def test_label_shares():
    shares = diagnostics.label_shares([3, 3, 3, 5, 5, 9], [True, False, False, True, True, True])
    assert shares.labels.tolist() == [3, 5, 9]
    assert shares.before == pytest.approx([3 / 6, 2 / 6, 1 / 6])
    assert shares.kept == pytest.approx([1 / 4, 2 / 4, 1 / 4])
    assert shares.removed == pytest.approx([1, 0, 0])
    assert np.isnan(diagnostics.label_shares([1, 2], [True, True]).removed).all()


def test_errors():
    with pytest.raises(ValueError, match=r"kept must have shape \(3,\), one a row, got shape \(2,\)"):
        diagnostics.label_shares([1, 2, 1], [True, False])
    with pytest.raises(ValueError, match=r"labels must have shape \(N,\), got shape \(1, 2\)"):
        diagnostics.label_shares([[1, 2]], [True, False])
    with pytest.raises(TypeError, match="kept must be bool"):
        diagnostics.label_shares([1, 2, 1], [0, 2, 1])


def test_score_distribution():
    kept = np.array([True, True, True, False, False])
    scores = np.array([0.0, 0.5, np.nan, 1.0, 0.9])
    phases = np.where(kept, -1, 0)
    result = aflite.FilterResult(kept, scores, np.ones(5, int), phases, (), aflite.StopReason.REACHED_N)
    stays, leaves = diagnostics.score_distribution(result)
    assert (stays.count, stays.unscored, stays.mean) == (2, 1, 0.25)
    # Bins are 0.05 wide: 0.0 in the first, 0.5 in the eleventh; 0.9 in the nineteenth, 1.0 in the last.
    assert np.flatnonzero(stays.histogram).tolist() == [0, 10]
    assert np.flatnonzero(leaves.histogram).tolist() == [18, 19]
    assert leaves.quantiles == pytest.approx([0.9, 0.925, 0.95, 0.975, 1.0])


def test_scores_on_an_edge_are_in_the_bin_that_begins_there():
    """3 of 20 begins bin 3, 6 of 20 bin 6, and so on; edges in steps of 0.05 are above 3/20, 6/20, 7/20 ..."""
    for held in (20, 40, 60):
        scores = np.arange(held + 1) / held
        per_bin = held // 20
        assert histogram(scores).tolist() == [per_bin] * 19 + [per_bin + 1]
    assert histogram(np.array([np.nan])).sum() == 0
