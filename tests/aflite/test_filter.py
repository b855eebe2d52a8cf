"""Truth tests of the filter: sets whose answer is known, and the defects that other implementations have."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import aflite

SMALL = {"n": 400, "m": 24, "t": 200, "k": 100, "tau": 0.8, "seed": 1}


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts one class, whatever it sees."""

    def __init__(self, answer=1):
        self.answer = answer

    def fit(self, features, codes):
        self.classes_ = np.unique(codes)
        return self

    def predict(self, features):
        return np.full(len(features), self.answer)


class Lookup(ClassifierMixin, BaseEstimator):
    """Predicts 1 where the feature of the row exceeds the number of the row it was trained on."""

    def fit(self, features, codes):
        self.classes_ = np.unique(codes)
        self.seen = features[:, 0].min()
        return self

    def predict(self, features):
        return (features[:, 1] > self.seen).astype(int)


def overlap(result, easy):
    removed = ~result.kept
    return (removed & easy).sum() / removed.sum(), (removed & easy).sum() / easy.sum()


@pytest.mark.parametrize("partitions", ["blocked", "independent"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_planted_easy_rows_are_removed(planted, partitions, n_classes):
    features, labels, easy = planted(n_rows=1500, n_classes=n_classes)
    result = aflite.filter_dataset(
        features, labels, n=int((~easy).sum()), m=32, t=300, k=100, tau=0.9, seed=0, partitions=partitions
    )
    precision, recall = overlap(result, easy)
    assert precision > 0.95
    assert recall > 0.95


@pytest.mark.parametrize("model", ["svm", "ridge", "knn", "mlp", LogisticRegression(max_iter=500)])
def test_every_family_finds_the_planted_rows(planted, model):
    features, labels, easy = planted(n_rows=900)
    result = aflite.filter_dataset(
        features, labels, n=int((~easy).sum()), m=24, t=200, k=150, tau=0.9, seed=0, model=model
    )
    precision, recall = overlap(result, easy)
    assert precision > 0.95
    assert recall > 0.9


def test_scores_equal_those_of_a_loop_over_scikit_learn(planted):
    """The oracle fits and counts row by row with the same parts."""
    features, labels, _ = planted(n_rows=300)
    parts = [np.random.default_rng(j).permutation(300)[:80] for j in range(10)]
    result = aflite.filter_dataset(
        features, labels, n=200, m=10, t=80, k=0, tau=0.5, seed=0, partitions=lambda pool, m, t, rng: parts
    )
    right, held = np.zeros(300), np.zeros(300)
    for part in parts:
        model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(features[part].astype(np.float64), labels[part])
        for row in set(range(300)) - set(part.tolist()):
            held[row] += 1
            right[row] += model.predict(features[row : row + 1].astype(np.float64))[0] == labels[row]
    assert np.array_equal(result.times_scored, held)
    # A row within rounding of a boundary may fall either way: at most one of the ten predictions of three
    # rows.
    differ = np.abs(result.predictability * held - right)
    assert differ.max() <= 1
    assert differ.sum() <= 3


def test_permuted_rows_with_permuted_parts_give_the_permuted_result(planted):
    """A slice that takes every row at 1.0 has no ties to break by row order, so two phases must agree."""
    features, labels, _ = planted(n_rows=500)
    order = np.random.default_rng(3).permutation(500)
    place = np.argsort(order)
    run = {"n": 150, "m": 16, "t": 120, "tau": 1, "seed": 0, "phases": 3}

    def parts(rows_left, m, t):
        """Draw from the original numbers of the rows left."""
        rng = np.random.default_rng(rows_left.size)
        return [rng.permutation(np.sort(rows_left))[:t] for _ in range(m)]

    def plain(pool, m, t, rng):
        return parts(pool, m, t)

    def moved(pool, m, t, rng):
        return [place[part] for part in parts(order[pool], m, t)]

    scored = aflite.filter_dataset(features, labels, **run | {"phases": 1}, k=0, partitions=plain)
    k = int((scored.predictability == 1).sum())
    a = aflite.filter_dataset(features, labels, **run, k=k, partitions=plain)
    b = aflite.filter_dataset(features[order], labels[order], **run, k=k, partitions=moved)
    assert a.history[0].removed == k > 50
    assert len(a.history) == 2
    assert a.history[1].size == 500 - k
    assert np.array_equal(a.predictability[order], b.predictability, equal_nan=True)
    assert np.array_equal(a.times_scored[order], b.times_scored)
    assert np.array_equal(a.removed_in_phase[order] == 0, b.removed_in_phase == 0)
    assert np.array_equal(a.removed_in_phase[order], b.removed_in_phase)


@pytest.mark.parametrize("partitions", ["blocked", "independent"])
def test_equal_seeds_give_equal_rows_with_one_and_two_threads(planted, partitions):
    features, labels, _ = planted(n_rows=2000)
    run = {**SMALL, "n": 900, "partitions": partitions}
    one = aflite.filter_dataset(features, labels, **run, threads=1)
    two = aflite.filter_dataset(features, labels, **run, threads=2)
    again = aflite.filter_dataset(features, labels, **{**run, "seed": 2}, threads=2)
    assert np.array_equal(one.predictability, two.predictability, equal_nan=True)
    assert np.array_equal(one.removed_in_phase, two.removed_in_phase)
    assert not np.array_equal(one.predictability, again.predictability, equal_nan=True)


def test_partitions_differ_within_a_phase_and_between_phases(planted):
    """Were one partition drawn m times, a row would be held out never or always."""
    features, labels, _ = planted(n_rows=600)
    result = aflite.filter_dataset(features, labels, n=400, m=20, t=200, k=0, tau=0, seed=0)
    assert len(np.unique(result.times_scored)) > 5
    first = aflite.filter_dataset(features, labels, n=500, m=20, t=200, k=1, tau=0, seed=0, phases=1)
    second = aflite.filter_dataset(features, labels, n=500, m=20, t=200, k=1, tau=0, seed=0, phases=2)
    assert (first.times_scored != second.times_scored).mean() > 0.5


def test_equal_rows_with_other_labels_keep_their_own_scores():
    """Four copies of a point, three labelled 0 and one 1: who finds rows by value credits wrong ones."""
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 100)
    features = np.where(labels[:, None] == 0, -3.0, 3.0) + rng.normal(size=(200, 2))
    features[:4], labels[:4] = [-3.0, -3.0], [0, 0, 1, 0]
    result = aflite.filter_dataset(features, labels, n=150, m=20, t=60, k=0, tau=0.9, seed=0)
    assert result.predictability[[0, 1, 3]].tolist() == [1, 1, 1]
    assert result.predictability[2] == 0


def test_rates_are_compared_not_counts():
    """Row 0 is right 2 times of 2 (1.0), row 1 is right 4 times of 5 (0.8): row 0 goes first."""
    features = np.array([[0, 9], [1, 2.5], [2, -9], [3, -9], [4, -9], [5, -9]], dtype=np.float32)
    labels = np.array([1, 1, 1, 1, 0, 1])
    # Lookup predicts 1 where feature 1 exceeds the smallest row number it trained on: row 0 always (9), row 1
    # (2.5) when that number is 0 or 2, the others (-9) never, so the 1-labelled among them score 0.
    parts = [[0, 4], [0, 4], [0, 4], [2, 4], [3, 4], [0, 1, 4]]
    result = aflite.filter_dataset(
        features, labels, n=5, m=6, t=3, k=1, tau=0.5, seed=0, model=Lookup(),
        partitions=lambda pool, m, t, rng: [np.array(part) for part in parts],
    )  # fmt: skip
    assert result.times_scored[:2].tolist() == [2, 5]
    assert result.predictability[:2].tolist() == [1.0, 0.8]
    assert np.flatnonzero(~result.kept).tolist() == [0]


def test_a_row_never_held_out_has_no_score_and_stays():
    labels = np.tile([0, 1], 10)
    features = np.arange(20.0)[:, None]
    parts = np.arange(10)
    result = aflite.filter_dataset(
        features, labels, n=11, m=4, t=10, k=20, tau=0, seed=0, partitions=lambda pool, m, t, rng: [parts] * m
    )
    assert np.isnan(result.predictability[:10]).all()
    assert (result.times_scored[:10] == 0).all()
    assert result.kept[:10].all()
    assert result.history[0].never_held_out == 10


def test_ties_leave_in_row_order_and_never_below_n():
    """Class 1 is always predicted: its 30 rows score 1.0; 7 leave a phase, 50 - 7 * 3 = 29, then 4 more."""
    labels = np.array([0] * 20 + [1] * 30)
    features = np.random.default_rng(0).normal(size=(50, 2))
    result = aflite.filter_dataset(features, labels, n=25, m=8, t=10, k=7, tau=1, seed=0, model=Constant(1))
    assert np.flatnonzero(~result.kept).tolist() == list(range(20, 45))
    assert result.removed_in_phase[20:45].tolist() == [0] * 7 + [1] * 7 + [2] * 7 + [3] * 4
    assert result.kept.sum() == 25
    assert result.stop_reason == "reached_n"
    assert [record.removed for record in result.history] == [7, 7, 7, 4]


def test_stop_when_one_class_is_left():
    labels = np.array([0] * 20 + [1] * 30)
    features = np.random.default_rng(0).normal(size=(50, 2))
    result = aflite.filter_dataset(features, labels, n=5, m=16, t=4, k=15, tau=0.6, seed=0, model=Constant(1))
    assert result.stop_reason == "one_class_left"
    assert result.kept.tolist() == [True] * 20 + [False] * 30


def test_stop_when_fewer_than_k_are_predictable(planted):
    features, labels, _ = planted(n_rows=800, share=0.3)
    result = aflite.filter_dataset(features, labels, n=210, m=24, t=200, k=150, tau=0.95, seed=0)
    assert result.stop_reason == "few_predictable"
    # The last slice, shorter than k, leaves too (Algorithm 1 breaks after the removal).
    assert 0 < result.history[-1].removed < 150


def test_a_class_absent_from_parts_is_counted_and_harmless(planted):
    features, labels, _ = planted(n_rows=600)
    labels = labels.copy()
    labels[labels == 2] = 0
    labels[:3] = 7
    result = aflite.filter_dataset(features, labels, n=400, m=24, t=100, k=50, tau=0.9, seed=0)
    assert result.history[0].incomplete_parts > 0
    # Parts without label 7 cannot predict it.
    assert np.nan_to_num(result.predictability[:3]).max() < 0.5


def test_scoring_only(planted):
    features, labels, _ = planted()
    for scored in ({"k": 0}, {"phases": 1}):
        result = aflite.filter_dataset(features, labels, **{**SMALL, **scored})
        assert result.kept.all()
        assert result.stop_reason == "scored_only"
        assert len(result.history) == 1


def test_records_add_up(planted):
    features, labels, _ = planted()
    result = aflite.filter_dataset(features, labels, **SMALL)
    assert sum(record.removed for record in result.history) + result.kept.sum() == labels.size
    assert np.array_equal(result.kept, result.removed_in_phase == -1)
    for phase, record in enumerate(result.history):
        assert record.phase == phase
        assert record.removed == (result.removed_in_phase == phase).sum()
        assert sum(record.histogram) == record.size - record.never_held_out
    last = result.history[-1]
    scores = result.predictability[(result.removed_in_phase == -1) | (result.removed_in_phase == last.phase)]
    assert last.bias == pytest.approx(np.nanmean(scores))
    assert (result.predictability[~result.kept] >= SMALL["tau"]).all()


@pytest.mark.parametrize("kind", ["float16", "float64", "memmap", ">f2", ">f4", ">f8", "longdouble"])
def test_kinds_of_feature_arrays(planted, tmp_path, kind):
    features, labels, _ = planted()
    features = features.astype(np.float16)
    expected = aflite.filter_dataset(features.astype(np.float32), labels, **SMALL)
    if kind == "memmap":
        np.save(tmp_path / "features.npy", features)
        features = np.load(tmp_path / "features.npy", mmap_mode="r")
    else:
        features = features.astype(kind)
    result = aflite.filter_dataset(features, labels, **SMALL)
    assert np.array_equal(result.removed_in_phase, expected.removed_in_phase)


def test_labels_are_any_integers(planted):
    features, labels, _ = planted()
    plain = aflite.filter_dataset(features, labels, **SMALL)
    odd = aflite.filter_dataset(features, np.array([-5, 0, 10**12])[labels], **SMALL)
    assert np.array_equal(plain.removed_in_phase, odd.removed_in_phase)


def test_batches_and_processes_give_the_serial_result(planted):
    features, labels, _ = planted()
    serial = aflite.filter_dataset(features, labels, **SMALL, n_batches=3)
    spread = aflite.filter_dataset(features, labels, **SMALL, n_batches=3, n_jobs=2)
    assert np.array_equal(serial.predictability, spread.predictability, equal_nan=True)
    assert np.array_equal(serial.removed_in_phase, spread.removed_in_phase)


@pytest.mark.parametrize("partitions", ["blocked", "independent"])
def test_groups_stay_on_one_side(planted, partitions):
    """Rows that are trained on together are held out together, so their counts are equal."""
    features, labels, _ = planted()
    groups = np.arange(labels.size) // 4
    result = aflite.filter_dataset(features, labels, **{**SMALL, "k": 0}, groups=groups, partitions=partitions)
    counts = result.times_scored.reshape(-1, 4)
    assert (counts == counts[:, :1]).all()
    assert len(np.unique(counts)) > 3


@pytest.mark.parametrize("model", ["logistic", "svm", "ridge"])
def test_weights_raise_a_rare_label(model):
    """Label 9, a tenth of the rows, overlaps label 4: with a weight its rows are predicted more often."""
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(900) % 10 == 0, 9, 4)
    features = rng.normal(size=(900, 5)) + (labels == 9)[:, None] * 0.7
    run = {"n": 500, "m": 12, "t": 300, "k": 0, "tau": 0.5, "seed": 0, "model": model}
    plain, balanced, given = (
        aflite.filter_dataset(features, labels, **run, class_weight=weight).predictability[labels == 9].mean()
        for weight in (None, "balanced", {4: 1.0, 9: 9.0})
    )
    assert plain + 0.15 < balanced
    # "balanced" weighs by the inverse share of the labels, 1 : 9 here but for chance in the parts.
    assert given == pytest.approx(balanced, abs=0.05)


@pytest.mark.parametrize("partitions", ["blocked", "independent"])
def test_stratified_parts_never_lack_a_class(planted, partitions):
    """24 rows of 1,200 have a third label: a part of 100 has two, by chance one part in eight has none."""
    features, labels, _ = planted(n_classes=2)
    labels = labels.copy()
    labels[:24] = 2
    run = {**SMALL, "k": 0, "partitions": partitions, "t": 100}
    run |= {"block_size": 100} if partitions == "blocked" else {}
    assert aflite.filter_dataset(features, labels, **run).history[0].incomplete_parts > 0
    assert aflite.filter_dataset(features, labels, **run, stratify=True).history[0].incomplete_parts == 0


def test_every_phase_is_told_also_those_of_a_checkpoint(planted, tmp_path):
    features, labels, _ = planted()
    told, again = [], []
    run = {
        "n": features.shape[0] - 90,
        "m": 8,
        "t": 100,
        "k": 30,
        "tau": 0.5,
        "seed": 0,
        "checkpoint": tmp_path / "c.npz",
    }
    result = aflite.filter_dataset(features, labels, **run, on_phase=told.append)
    aflite.filter_dataset(features, labels, **run, on_phase=again.append)
    assert len(told) > 1
    assert tuple(told) == tuple(again) == result.history
