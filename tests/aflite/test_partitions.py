import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflite import partitions

SEEDS = st.integers(0, 2**32 - 1)


def layouts(n_rows, n_parts, t, seed, **options):
    for draw in (partitions.blocked, partitions.independent):
        yield draw(n_rows, n_parts, t, seed=np.random.SeedSequence(seed), **options)


@settings(max_examples=60, deadline=None)
@given(n_rows=st.integers(2, 400), n_parts=st.integers(1, 6), share=st.floats(0.01, 0.99), seed=SEEDS)
def test_parts_have_t_distinct_rows(n_rows, n_parts, share, seed):
    t = max(1, int(share * n_rows))
    for layout in layouts(n_rows, n_parts, t, seed):
        trained = layout.trained(n_rows)
        assert trained.shape == (n_parts, n_rows)
        for part in range(n_parts):
            rows = layout.part(part)
            assert rows.size == np.unique(rows).size == t
            assert np.array_equal(np.flatnonzero(trained[part]), np.sort(rows))


@settings(max_examples=40, deadline=None)
@given(n_rows=st.integers(20, 300), size=st.integers(1, 9), share=st.floats(0.2, 0.9), seed=SEEDS)
def test_groups_are_never_split(n_rows, size, share, seed):
    groups = np.random.default_rng(seed).integers(max(1, n_rows // size), size=n_rows)
    t = max(int(share * n_rows), int(np.bincount(groups).max()))
    for layout in layouts(n_rows, 4, t, seed, groups=groups):
        trained = layout.trained(n_rows)
        sizes = trained.sum(1)
        assert sizes.max() <= t
        assert sizes.min() > t - np.bincount(groups).max()
        for group in np.unique(groups):
            inside = trained[:, groups == group]
            assert (inside.all(1) | ~inside.any(1)).all()


@settings(max_examples=40, deadline=None)
@given(n_rows=st.integers(60, 400), share=st.floats(0.2, 0.8), seed=SEEDS)
def test_strata_keep_label_shares(n_rows, share, seed):
    codes = np.random.default_rng(seed).choice(3, p=[0.6, 0.3, 0.1], size=n_rows)
    t = int(share * n_rows)
    blocked, independent = layouts(n_rows, 3, t, seed, codes=codes)
    target = np.bincount(codes, minlength=3) * t / n_rows
    # Largest remainders: each class within one row of its share.
    assert np.abs(independent.class_counts(codes, 3) - target).max() < 1
    # One row a class and block that the part touches, the cut one included.
    touched = -(-t // partitions.block_rows(t)) + 1
    assert np.abs(blocked.class_counts(codes, 3) - target).max() <= touched


@pytest.mark.parametrize("draw", [partitions.blocked, partitions.independent])
def test_every_row_is_drawn_equally_often(draw):
    """2,000 parts of 7 of 30 rows: each row in 2000 * 7/30 = 467 of them, standard deviation 19."""
    counts = np.zeros(30)
    for seed in range(200):
        counts += draw(30, 10, 7, seed=np.random.SeedSequence(seed)).trained(30).sum(0)
    assert counts.sum() == 2000 * 7
    # Parts of one shuffle share blocks, which here are single rows, so draws are as good as independent.
    assert np.abs(counts - 2000 * 7 / 30).max() < 5 * 19


def test_seeds_and_children_differ():
    a, b = (partitions.blocked(100, 4, 40, seed=np.random.SeedSequence(s)).trained(100) for s in (0, 1))
    again = partitions.blocked(100, 4, 40, seed=np.random.SeedSequence(0)).trained(100)
    assert np.array_equal(a, again)
    assert not np.array_equal(a, b)
    assert len(np.unique(a, axis=0)) == 4


def test_block_length_divides_t_where_it_can():
    # t = 6000: t / 12 = 500 divides it. t = 50,000: 500 lies nearest to 512. t = 7: single rows.
    assert [partitions.block_rows(t) for t in (6000, 50_000, 7)] == [500, 500, 1]
    # A prime: nothing divides it, so the target itself, min(512, 7919 // 12 = 659).
    assert partitions.block_rows(7919) == 512
