"""Samples: size, balance over subjects, attributes, templates and partners, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.probes import batches
from evaluation.errors import EvaluationError
from evaluation.sampling import sample_rows, sample_size
from evaluation.scores import PROBE_COLUMNS
from tests.evaluation.scored import make_rows, tables
from unqover_data import load_lists


def probe(**sizes: object) -> pa.Table:
    return tables(make_rows(lambda *_: 0.5, **sizes))[0]  # type: ignore[arg-type]


def counts(table: pa.Table, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many sampled rows each subject has for each attribute, and each attribute has in all."""
    taken = table.take(rows).to_pylist()
    subjects = sorted({*table["subject1"].to_pylist(), *table["subject2"].to_pylist()})
    attributes = sorted(set(table["attribute"].to_pylist()))
    pairs = np.zeros((len(subjects), len(attributes)), dtype=int)
    for row in taken:
        for name in (row["subject1"], row["subject2"]):
            pairs[subjects.index(name), attributes.index(row["attribute"])] += 1
    return pairs, pairs.sum(axis=0) // 2


@settings(deadline=None, max_examples=40)
@given(st.integers(3, 8), st.integers(1, 4), st.integers(1, 4), st.floats(0, 1), st.integers(0, 100))
def test_a_sample_is_as_even_as_can_be(subjects: int, templates: int, attributes: int, share: float, seed: int) -> None:
    table = probe(
        subjects=[f"s{i}" for i in range(subjects)],
        templates=[f"t{i}" for i in range(templates)],
        attributes=[f"a{i}" for i in range(attributes)],
    )
    size = max(1, round(share * len(table)))
    rows = sample_rows(table, size, seed=seed)
    assert len(set(rows.tolist())) == len(rows) == size
    assert (np.diff(rows) > 0).all()
    pairs, of_attribute = counts(table, rows)
    assert np.ptp(of_attribute) <= 1
    assert np.ptp(pairs, axis=0).max() <= 2  # 2 where the two that lag behind have no row left between them
    assert np.mean(np.ptp(pairs, axis=0) <= 1) >= 0.5 or attributes < 3


@pytest.mark.parametrize("sample", [0.02, 0.1, 5_000])
def test_religion_is_balanced_to_one(sample: float) -> None:
    table = pa.concat_tables(batch.select(list(PROBE_COLUMNS)) for batch in batches(load_lists("religion"), "qa"))
    rows = sample_rows(table, sample, seed=0)
    assert len(rows) == (round(sample * 38_500) if sample < 1 else sample)
    pairs, of_attribute = counts(table, rows)
    assert pairs.shape == (11, 50)
    assert np.ptp(of_attribute) <= 1
    assert np.ptp(pairs, axis=0).max() <= 1  # within an attribute
    assert np.ptp(pairs) <= 2
    templates = np.unique(table.take(rows)["template"].to_pylist(), return_counts=True)[1]
    assert len(templates) == 14
    assert templates.max() <= 1.25 * templates.min()


def test_pairs_between_groups_are_balanced_on_each_side() -> None:
    """Four east, three west: every row takes one of each, so an eastern subject gets three for four western ones."""
    rows = make_rows(lambda *_: 0.5, subjects="ABCDEFG", templates=("t0", "t1", "t2"))
    table = tables([row for row in rows if row["group1"] != row["group2"]])[0]
    pairs, of_attribute = counts(table, sample_rows(table, 0.5, seed=0))
    assert of_attribute.tolist() == [18, 18]  # half of 4 * 3 * 3 rows
    assert np.ptp(pairs[::2], axis=0).max() <= 1
    assert np.ptp(pairs[1::2], axis=0).max() <= 1


def test_an_attribute_with_few_rows_gives_all_it_has() -> None:
    rows = make_rows(lambda *_: 0.5, subjects="ABCD", templates=("t0", "t1", "t2"))
    table = tables([row for row in rows if row["attribute"] == "a" or row["template"] == "t0"])[0]
    of_attribute = counts(table, sample_rows(table, 20, seed=0))[1]
    assert of_attribute.tolist() == [14, 6]  # b has one template: 6 rows; the rest is a's


def test_equal_seeds_give_equal_samples() -> None:
    table = probe(subjects="ABCDEF")
    assert sample_rows(table, 0.3, seed=4).tolist() == sample_rows(table, 0.3, seed=4).tolist()
    assert sample_rows(table, 0.3, seed=4).tolist() != sample_rows(table, 0.3, seed=5).tolist()
    assert sample_rows(table, len(table), seed=0).tolist() == list(range(len(table)))


def test_every_row_is_drawn_about_as_often() -> None:
    table = probe(subjects="ABCDE")
    drawn = np.zeros(len(table))
    for seed in range(300):
        drawn[sample_rows(table, 0.25, seed=seed)] += 1
    # 75 expected, with a standard deviation of at most sqrt(300 * 0.25 * 0.75) = 7.5 each.
    assert np.abs(drawn - 75).max() < 4 * 7.5


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ("0.0001", "0.0001 of 12 rows leaves zero rows; ask for more"),
        ("0", "must be a share below 1 or a whole number of rows, not 0"),
        ("-3", "must be a share below 1 or a whole"),
        ("2.5", "must be a share below 1 or a whole"),
        ("nan", "must be a share below 1 or a whole"),
        ("13", "13 is more than the 12 rows there are; leave --sample out"),
        ("few", "must be a share such as 0.02 or a count such as 20000, not 'few'"),
        ("inf", "must be a share below 1 or a whole"),
    ],
)
def test_samples_that_cannot_be_are_refused(sample: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        sample_rows(probe(), sample, seed=0)


def test_one_means_one_row_as_a_count_and_all_rows_as_a_share() -> None:
    assert [sample_size(sample, 12) for sample in (1, "1", 1.0, "1.0")] == [1, 1, 12, 12]
    with pytest.raises(EvaluationError, match="the probe rows lack the column 'template'"):
        sample_rows(probe().drop_columns("template"), 2, seed=0)
