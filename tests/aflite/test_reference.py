"""Algorithm 1 once more, as a plain loop over rows that shares only the drawing of parts with the package."""

from functools import partialmethod

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import aflite
from aflite import partitions, solver
from aflite.scoring import phase_seed


class Reference:
    """Algorithm 1; `fit(features, labels)` returns a fitted classifier, `draw(phase, rows, ahead)` the parts."""

    def __init__(self, features, labels, fit, draw):
        self.features = np.asarray(features, dtype=np.float32).astype(np.float64)
        self.labels = [int(label) for label in labels]
        self.fit, self.draw = fit, draw
        # Distance of a prediction from the boundary in units of the logits' spread, the least of all.
        self.margin = np.inf

    def predictions(self, part, rows):
        """Labels that a classifier trained on `part` predicts for `rows`."""
        seen = [self.labels[row] for row in part]
        if len(set(seen)) == 1:
            return [seen[0]] * len(rows)
        model = self.fit(self.features[part], seen)
        if hasattr(model, "decision_function"):
            logits = model.decision_function(self.features[rows])
            if logits.ndim == 1:
                gaps = abs(logits)
            else:
                ordered = np.sort(logits, axis=1)
                gaps = ordered[:, -1] - ordered[:, -2]
            self.margin = min(self.margin, gaps.min() / model.decision_function(self.features[part]).std())
        return model.predict(self.features[rows]).tolist()

    def counts(self, phase, trained_from, targets, ahead):
        """How often each target was predicted rightly and at all, and how many parts lack a class."""
        right, held, incomplete = dict.fromkeys(targets, 0), dict.fromkeys(targets, 0), 0
        for drawn in self.draw(phase, trained_from, ahead):
            part = sorted(int(row) for row in drawn)
            inside = set(part)
            out = [row for row in targets if row not in inside]
            if {self.labels[row] for row in part} != {self.labels[row] for row in trained_from}:
                incomplete += 1
            for row, label in zip(out, self.predictions(part, out) if out else [], strict=True):
                held[row] += 1
                right[row] += label == self.labels[row]
        return right, held, incomplete

    def run(self, *, n, k, tau, phases=None, look_ahead=False):
        """Return score, count and phase of every row, the history and the reason."""
        rows = range(len(self.labels))
        score, times, gone = dict.fromkeys(rows, np.nan), dict.fromkeys(rows, 0), dict.fromkeys(rows, -1)
        history, reason = [], None
        while reason is None:
            phase, left = len(history), [row for row in rows if gone[row] == -1]
            classes = {self.labels[row] for row in left}
            if len(classes) == 1:
                reason = "one_class_left"
                break
            right, held, incomplete = self.counts(phase, left, left, ahead=False)
            known = [row for row in left if held[row] > 0]
            bins = [0] * 20
            for row in left:
                times[row], score[row] = held[row], right[row] / held[row] if held[row] else np.nan
            for row in known:
                bins[min(20 * right[row] // held[row], 19)] += 1
            eligible = [row for row in known if score[row] >= tau]
            only_scores = k == 0 or phase + 1 == phases
            ranked = sorted(eligible, key=lambda row: (-score[row], row))
            candidates = [] if only_scores else ranked[: min(k, len(left) - n)]
            leaving = candidates
            if look_ahead and candidates:
                stay = [row for row in left if row not in candidates]
                again, of, _ = self.counts(phase, stay, candidates, ahead=True)
                leaving = [row for row in candidates if again[row] / of[row] >= tau]
            for row in leaving:
                gone[row] = phase
            history.append(
                {
                    "phase": phase,
                    "size": len(left),
                    "classes": len(classes),
                    "bias": pytest.approx(sum(score[row] for row in known) / max(1, len(known)), abs=1e-12),
                    "histogram": tuple(bins),
                    "eligible": len(eligible),
                    "removed": len(leaving),
                    "held_back": len(candidates) - len(leaving),
                    "never_held_out": len(left) - len(known),
                    "incomplete_parts": incomplete,
                }
            )
            if only_scores:
                reason = "scored_only" if k == 0 or phases == 1 else "phase_limit"
            elif len(left) - len(leaving) == n:
                reason = "reached_n"
            elif len(eligible) < k:
                reason = "few_predictable"
            elif not leaving:
                reason = "look_ahead_held_back_all"
        return [list(values.values()) for values in (score, times, gone)], history, reason


def assert_same(result, expected):
    (score, times, gone), history, reason = expected
    assert np.array_equal(result.predictability, score, equal_nan=True)
    assert result.times_scored.tolist() == times
    assert result.removed_in_phase.tolist() == gone
    assert result.kept.tolist() == [phase == -1 for phase in gone]
    ours = [{name: value for name, value in vars(record).items() if name != "seconds"} for record in result.history]
    assert ours == history
    assert result.stop_reason == reason


def random_case(seed):
    """A small set with arbitrary labels, parameters of the filter, and ways to draw parts."""
    rng = np.random.default_rng(seed)
    n_rows, width, n_classes = int(rng.integers(80, 260)), int(rng.integers(3, 12)), int(rng.integers(2, 6))
    names = rng.permutation([-7, 0, 3, 10**12, -(2**40), 99])[:n_classes]
    codes = rng.integers(n_classes, size=n_rows)
    if seed % 3 == 0:
        # Rare classes that parts lack.
        codes = np.minimum(codes, rng.integers(n_classes, size=n_rows))
    features = rng.normal(size=(n_rows, width))
    features[:, 0] += 3 * codes * (rng.random(n_rows) < 0.7)
    n = int(rng.integers(n_rows // 3, n_rows - 30))
    filtering = {"n": n, "k": int(rng.integers(5, 40)), "tau": float(rng.choice([0, 0.5, 0.6, 0.75, 1.0]))}
    filtering["phases"] = None if rng.random() < 0.7 else int(rng.integers(1, 4))
    filtering["look_ahead"] = bool(rng.random() < 0.3)
    drawing = {"m": int(rng.integers(3, 9)), "t": int(rng.integers(10, min(n, 80))), "seed": seed}
    drawing |= {"partitions": ("blocked", "independent")[seed % 2], "n_batches": int(rng.integers(1, 4))}
    if seed % 5 == 1:
        drawing["stratify"] = True
    elif seed % 5 == 2:
        drawing["groups"] = rng.integers(n_rows // 3, size=n_rows)
    elif seed % 5 == 3 and seed % 2 == 0:
        drawing["block_size"] = 7
    return features.astype(rng.choice([np.float16, np.float32])), names[codes], filtering, drawing


def drawer(labels, *, m, t, seed, partitions: str, n_batches, stratify=False, groups=None, block_size=None):
    """The package's parts, the only thing that the reference takes from it."""
    codes = np.unique(labels, return_inverse=True)[1]

    def draw(phase, rows, ahead):
        pool, sizes = np.array(rows), [len(batch) for batch in np.array_split(np.arange(m), n_batches)]
        options = {"codes": codes[pool] if stratify else None, "groups": None if groups is None else groups[pool]}
        if partitions == "blocked":
            options["block_size"] = block_size
        for size, child in zip(sizes, phase_seed(seed, phase, 0, int(ahead)).spawn(n_batches), strict=True):
            layout = DRAW[partitions](pool.size, size, t, seed=child, **options)
            yield from (pool[mask] for mask in layout.trained(pool.size))

    return draw


DRAW = {"blocked": partitions.blocked, "independent": partitions.independent}


@pytest.mark.parametrize("seed", range(28))
def test_filter_is_the_reference(seed):
    """With neighbours no rounding matters: every array, record and reason is equal."""
    features, labels, filtering, drawing = random_case(seed)
    model = KNeighborsClassifier(3, algorithm="kd_tree")
    reference = Reference(features, labels, model.fit, drawer(labels, **drawing))
    if seed % 4 == 3:
        # As many rows as leave reach tau: not fewer than k, so another phase follows.
        filtering["k"] = reference.run(**filtering | {"phases": 1})[1][0]["eligible"]
    result = aflite.filter_dataset(features, labels, **filtering, **drawing, model=model)
    assert_same(result, reference.run(**filtering))


# Sets none of whose rows comes nearer to a boundary than 2e-4 of the logits' spread, in any part or phase.
@pytest.mark.parametrize(
    ("class_weight", "seed"),
    [(None, seed) for seed in (103, 105, 112, 125, 129)]
    + [("balanced", seed) for seed in (102, 106, 117, 126)]
    + [("given", seed) for seed in (101, 117, 123, 144)],
)
def test_fast_solver_is_the_reference(class_weight, seed, monkeypatch):
    """Converged to 1e-5 of that spread the solver must predict what scikit-learn does."""
    features, labels, filtering, drawing = random_case(seed)
    monkeypatch.setattr(solver.Newton, "solve", partialmethod(solver.Newton.solve, tolerance=1e-5))
    if class_weight == "given":
        class_weight = {label: 0.5 + place for place, label in enumerate(np.unique(labels).tolist())}

    def fit(rows, seen):
        weight = class_weight
        if isinstance(weight, dict):
            weight = {label: weight[label] for label in set(seen)}
        return LogisticRegression(tol=1e-10, max_iter=10_000, class_weight=weight).fit(rows, seen)

    result = aflite.filter_dataset(features, labels, **filtering, **drawing, class_weight=class_weight, threads=1)
    reference = Reference(features, labels, fit, drawer(labels, **drawing))
    expected = reference.run(**filtering)
    assert reference.margin > 2e-4
    assert_same(result, expected)
