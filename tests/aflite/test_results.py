"""How a run of the filter reads on a terminal and in a notebook."""

import numpy as np
import pytest

from aflite import FilterResult, PhaseRecord, StopReason


@pytest.fixture
def result() -> FilterResult:
    """Three of five rows kept after two phases."""
    counts = {"classes": 2, "histogram": (0,) * 20, "held_back": 0, "never_held_out": 0, "incomplete_parts": 0}
    first = PhaseRecord(phase=0, size=5, bias=0.75, eligible=3, removed=2, seconds=1.25, **counts)
    second = PhaseRecord(phase=1, size=3, bias=0.5, eligible=0, removed=0, seconds=0.5, **counts)
    return FilterResult(
        kept=np.array([True, False, True, False, True]),
        predictability=np.array([0.5, 1.0, 0.5, 1.0, 0.5]),
        times_scored=np.full(5, 4),
        removed_in_phase=np.array([-1, 0, -1, 0, -1]),
        history=(first, second),
        stop_reason=StopReason.FEW_PREDICTABLE,
    )


def test_repr_is_one_line_with_rows_phases_and_reason(result):
    assert repr(result) == (
        "<FilterResult: 3 of 5 rows kept, 2 phases, stopped: few_predictable; "
        "mean predictability 0.7500 in the first phase, 0.5000 in the last>"
    )


def test_a_notebook_shows_a_line_a_phase(result):
    shown = result._repr_html_()
    assert "<p>3 of 5 rows kept, 2 phases, stopped: few_predictable;" in shown
    assert "<tr><td>0</td><td>5</td><td>0.7500</td><td>3</td><td>2</td><td>1.2</td></tr>" in shown
    assert shown.count("<tr>") == 1 + len(result.history)
