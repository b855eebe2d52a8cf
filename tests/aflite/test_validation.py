import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import aflite
from aflite import validation

SMALL = {"n": 400, "m": 24, "t": 200, "k": 100, "tau": 0.8, "seed": 1}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n": 1200}, ValueError, r"n must be between 1 and 1199 .*1200 rows.*got 1200"),
        ({"n": 0}, ValueError, "n must be between 1 and 1199"),
        ({"t": 400}, ValueError, r"t must be between 1 and 399 .*n = 400.*got 400"),
        ({"m": 0}, ValueError, "m must be at least 1, got 0"),
        ({"k": -1}, ValueError, "k must be at least 0, got -1"),
        ({"tau": 1.5}, ValueError, "tau must be a number >= 0 and <= 1, got 1.5"),
        ({"seed": 0.5}, TypeError, "seed must be an integer, got 0.5"),
        ({"model": "logistics"}, ValueError, "did you mean 'logistic'"),
        ({"strategy": "slice"}, ValueError, "strategy must be one of 'slicing'"),
        ({"strategy": "greedy"}, ValueError, "k must be 1 with strategy='greedy'.*got 100"),
        ({"partitions": "block"}, ValueError, "did you mean 'blocked'"),
        ({"class_weight": "even"}, ValueError, "class_weight must be one of 'balanced'"),
        ({"class_weight": {0: 1.0}}, ValueError, r"each of the labels \[0, 1, 2\]"),
        ({"class_weight": "balanced", "model": "knn"}, ValueError, "None for model 'knn'"),
        ({"groups": [1, 2]}, ValueError, r"groups must have shape \(1200,\)"),
        ({"groups": np.zeros(1200, int)}, ValueError, "group 0 has 1200 rows, t is 200"),
        ({"groups": np.arange(1200), "stratify": True}, ValueError, "exclude each other"),
        ({"groups": np.array(["a", None] * 600, object)}, TypeError, "all of one kind.*got NoneType, str"),
        ({"groups": np.arange(1200), "partitions": print}, ValueError, "groups has no effect on parts from a function"),
        ({"stratify": True, "partitions": print}, ValueError, "stratify has no effect on parts from a function"),
        ({"block_size": 9, "partitions": print}, ValueError, "block_size is for blocked.*9 with a function"),
        ({"block_size": 9, "partitions": "independent"}, ValueError, "block_size is for blocked.*with 'independent'"),
        ({"block_size": 201, "partitions": "blocked"}, ValueError, "block_size must be at most t = 200.*got 201"),
        ({"groups": np.repeat([1.0, np.nan], 600), "t": 390}, ValueError, "groups must name.*600 of 1200 are NaN"),
        ({"partitions": lambda *_: [np.arange(8).reshape(2, 4)] * 24}, ValueError, "arrays with one axis"),
        ({"partitions": lambda *_: {key: [1, 2] for key in range(24)}}, ValueError, "arrays with one axis"),
        ({"partitions": lambda *_: None}, ValueError, "must return 24 index arrays, returned None"),
        ({"device": "gpu"}, ValueError, "device must be a torch device.*'gpu' cannot be used"),
        ({"device": "meta"}, ValueError, "'meta' cannot be used"),
        ({"device": 0}, TypeError, "device must be the name of a torch device"),
        ({"model": DummyClassifier}, TypeError, r"not its class; give DummyClassifier\("),
        ({"model": 3}, TypeError, "model must be a name or a classifier"),
        ({"model": np.arange(3)}, TypeError, "model must be a name or a classifier"),
        ({"model": "rigde", "class_weight": "balanced"}, ValueError, "did you mean 'ridge'"),
        ({"c": 0}, ValueError, "c must be a number > 0, got 0"),
        ({"c": 10**400}, ValueError, "c must be a number > 0, got inf"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be at least 1, or negative.*got 0"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer, got 1.5"),
        ({"on_phase": 3}, TypeError, "on_phase must be a function of a PhaseRecord, got 3"),
        ({"checkpoint": 3}, TypeError, "checkpoint must be a path, got 3"),
        ({"strategy": ["slicing"]}, ValueError, r"strategy must be one of .*got \['slicing'\]"),
    ],
)
def test_errors_name_argument_and_number(planted, change, error, message):
    features, labels, _ = planted()
    with pytest.raises(error, match=message):
        aflite.filter_dataset(features, labels, **{**SMALL, **change})


@pytest.mark.parametrize(
    "change",
    [{"c": 1e300}, {"c": 1e17}, {"c": 1e-11}, {"class_weight": {0: 1e300, 1: 1, 2: 1}}],
)
def test_c_that_single_precision_cannot_hold_is_refused(planted, change):
    """It gave scores without a meaning: infinite sums, or steps of no effect."""
    features, labels, _ = planted(noise=5)
    with pytest.raises(ValueError, match=r"c must fit the features .* t = 200 rows .* at least 1e-10 .* at most"):
        aflite.filter_dataset(features, labels, **SMALL, **change)


def test_errors_of_the_arrays(planted):
    features, labels, _ = planted()
    broken = features.copy()
    broken[[5, 9], 2] = [np.nan, np.inf]
    with pytest.raises(ValueError, match=r"2 of 1200 rows hold NaN or infinite .*, the first is row 5"):
        aflite.filter_dataset(broken, labels, **SMALL)
    wide = features.astype(float)
    for huge in (2e10, 1e300):
        with pytest.raises(ValueError, match=r"at most 1e\+10 in size: 1 of 1200 rows .* the first is row 7;"):
            aflite.filter_dataset(np.where(np.arange(1200)[:, None] == 7, huge, wide), labels, **SMALL)
    with pytest.raises(ValueError, match=r"labels must have shape \(1200,\).*got shape \(1199,\)"):
        aflite.filter_dataset(features, labels[1:], **SMALL)
    with pytest.raises(ValueError, match="at least 2 classes, all 1200 are 4"):
        aflite.filter_dataset(features, np.full(1200, 4), **SMALL)
    with pytest.raises(TypeError, match="labels must be integers, got dtype float64"):
        aflite.filter_dataset(features, labels.astype(float), **SMALL)
    with pytest.raises(ValueError, match=r"shape \(N, d\).*got shape \(1200,\)"):
        aflite.filter_dataset(features[:, 0], labels, **SMALL)
    masked = np.ma.masked_array(labels, mask=labels == 1)
    for change in ({"features": np.ma.masked_array(features)}, {"labels": masked}, {"groups": masked}):
        with pytest.raises(TypeError, match=f"{next(iter(change))} must not be a masked array"):
            aflite.filter_dataset(**{"features": features, "labels": labels, **SMALL, **change})


def test_minus_one_beside_other_classes_is_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    for known in ([0, 1, 2, 0], [1, -1, 1, -1], [-2, -1, 0, 1]):
        validation.labels(known, 4)
    assert not caplog.records
    validation.labels([0, -1, 1, -1], 4)
    validation.labels([0, -1], 2)
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "2 of 4 rows have the label -1",
        "1 of 2 rows have the label -1",
    ]
