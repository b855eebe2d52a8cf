import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import aflite
from aflite import checkpoint, config, loop

RUN = {"n": 500, "m": 16, "t": 200, "k": 60, "tau": 0.6, "seed": 3}


class Killed(Exception):
    pass


def assert_same(a, b):
    assert np.array_equal(a.predictability, b.predictability, equal_nan=True)
    assert np.array_equal(a.times_scored, b.times_scored)
    assert np.array_equal(a.removed_in_phase, b.removed_in_phase)
    assert a.stop_reason == b.stop_reason
    assert [(r.size, r.bias, r.histogram, r.removed) for r in a.history] == [
        (r.size, r.bias, r.histogram, r.removed) for r in b.history
    ]


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("strategy", ["slicing", "sampling"])
def test_a_killed_run_continues_to_the_same_result(planted, tmp_path, monkeypatch, after, strategy):
    features, labels, _ = planted()
    run = {**RUN, "strategy": strategy}
    whole = aflite.filter_dataset(features, labels, **run)
    assert len(whole.history) > after + 1
    path = tmp_path / "run.npz"
    phase = loop._phase

    def killed(removal, state):
        if len(state.history) == after:
            raise Killed
        phase(removal, state)

    monkeypatch.setattr(loop, "_phase", killed)
    with pytest.raises(Killed):
        aflite.filter_dataset(features, labels, **run, checkpoint=path)
    monkeypatch.setattr(loop, "_phase", phase)
    resumed = aflite.filter_dataset(features, labels, **run, checkpoint=path)
    assert_same(whole, resumed)
    # A finished run is not repeated: no phase may run now.
    monkeypatch.setattr(loop, "_phase", None)
    assert_same(whole, aflite.filter_dataset(features, labels, **run, checkpoint=path))


KILLED_PROCESS = """
import os, signal, sys
import numpy as np
import aflite
from aflite import loop

phase = loop._phase

def fatal(removal, state):
    if len(state.history) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    phase(removal, state)

loop._phase = fatal
data = np.load(sys.argv[1])
run = RUN
aflite.filter_dataset(data["features"], data["labels"], **run, checkpoint=sys.argv[2])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_a_process_killed_between_phases_continues_to_the_same_result(planted, tmp_path):
    features, labels, _ = planted()
    np.savez(tmp_path / "data.npz", features=features, labels=labels)
    path = tmp_path / "run.npz"
    code = KILLED_PROCESS.replace("RUN", repr(RUN))
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "data.npz"), str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(checkpoint_history(path)) == 2
    whole = aflite.filter_dataset(features, labels, **RUN)
    assert len(whole.history) > 3
    assert_same(whole, aflite.filter_dataset(features, labels, **RUN, checkpoint=path))


def test_the_start_of_the_next_phase_is_kept(planted, tmp_path):
    """Without the mean solution of the phase before a run would go on, but not to the same bits."""
    features, labels, _ = planted()
    path = tmp_path / "run.npz"
    aflite.filter_dataset(features, labels, **RUN, phases=2, checkpoint=path)
    with np.load(path) as stored:
        weights, intercepts, meta = stored["weights"], stored["intercepts"], json.loads(str(stored["meta"]))
    assert (weights.shape, intercepts.shape) == ((3, features.shape[1]), (3,))
    assert np.abs(weights).max() > 0
    last = loop.State.loaded(loop.Store(path, meta["config"])).last
    assert np.array_equal(last.weights, weights)
    assert np.array_equal(last.intercepts, intercepts)


def checkpoint_history(path):
    with np.load(path) as stored:
        return json.loads(str(stored["meta"]))["record"]["history"]


def test_a_changed_parameter_or_input_is_refused_by_name(planted, tmp_path):
    features, labels, _ = planted()
    path = tmp_path / "run.npz"
    aflite.filter_dataset(features, labels, **RUN, phases=1, checkpoint=path)
    with pytest.raises(aflite.CheckpointMismatchError, match=r"k was 60 and is now 61; give the same"):
        aflite.filter_dataset(features, labels, **{**RUN, "k": 61}, phases=1, checkpoint=path)
    other = features.copy()
    other[7, 3] += 1
    with pytest.raises(aflite.CheckpointMismatchError, match="features was"):
        aflite.filter_dataset(other, labels, **RUN, phases=1, checkpoint=path)
    with pytest.raises(aflite.CheckpointMismatchError, match="seed was 3 and is now 4; phases was 1"):
        aflite.filter_dataset(features, labels, **{**RUN, "seed": 4}, checkpoint=path)
    # What cannot change the result may differ.
    aflite.filter_dataset(features, labels, **RUN, phases=1, checkpoint=path, threads=1, n_jobs=1)


def test_numpy_numbers_are_taken_as_python_numbers(planted, tmp_path):
    features, labels, _ = planted()
    path = tmp_path / "run.npz"
    run = {**RUN, "tau": 0.5, "phases": 2, "n_batches": 2, "block_size": 20, "partitions": "blocked"}
    given = {name: np.int64(value) if isinstance(value, int) else value for name, value in run.items()}
    given |= {
        "tau": np.float32(0.5),
        "c": np.float32(1),
        "temperature": np.float32(0.25),
        "look_ahead": np.bool_(False),
    }
    first = aflite.filter_dataset(features, labels, **given, checkpoint=path)
    assert_same(first, aflite.filter_dataset(features, labels, **run, temperature=0.25, checkpoint=path))


CHANGES = {
    "n": {"n": 501},
    "m": {"m": 17},
    "t": {"t": 201},
    "k": {"k": 61},
    "tau": {"tau": 0.7},
    "seed": {"seed": 4},
    "model": {"model": "ridge"},
    "c": {"c": 2.0},
    "class_weight": {"class_weight": "balanced"},
    "strategy": {"strategy": "sampling"},
    "temperature": {"temperature": 0.1},
    "look_ahead": {"look_ahead": True},
    "partitions": {"partitions": "independent"},
    "block_size": {"block_size": 7},
    "stratify": {"stratify": True},
    "phases": {"phases": 2},
    "n_batches": {"n_batches": 2},
    "device": {"device": "other"},
    "version": {},
    "features": {},
    "labels": {},
    "groups": {"groups": np.arange(1200) // 2},
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Inputs and the file of a run of one phase."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(1200, 5)).astype(np.float32), np.arange(1200) % 3
    path = tmp_path_factory.mktemp("stored") / "run.npz"
    aflite.filter_dataset(features, labels, **RUN, phases=1, checkpoint=path)
    return features, labels, path


@pytest.mark.parametrize("name", CHANGES)
def test_each_part_of_the_configuration_is_compared(stored, monkeypatch, name):
    features, labels, path = stored
    if name == "features":
        features = features + 1
    if name == "labels":
        labels = labels[::-1]
    if name == "version":
        monkeypatch.setattr(config, "_version", lambda: "0.0")
    if name == "device":
        # No second device here: the name alone is compared.
        monkeypatch.setattr(aflite.filter.validation, "device", lambda value: value, raising=False)
    monkeypatch.setattr(loop, "_phase", None)
    with pytest.raises(aflite.CheckpointMismatchError, match=rf"another run: {name} was [^;]* and is now [^;]*; give"):
        aflite.filter_dataset(features, labels, **{**RUN, "phases": 1, **CHANGES[name]}, checkpoint=path)


def test_every_part_of_the_configuration_is_tested(stored):
    with np.load(stored[2]) as file:
        assert set(json.loads(str(file["meta"]))["config"]) == set(CHANGES)


def test_functions_are_refused_with_a_checkpoint(planted, tmp_path):
    features, labels, _ = planted()
    for change in (
        {"partitions": lambda pool, m, t, rng: [pool[:t]] * m},
        {"model": make_pipeline(FunctionTransformer(lambda rows: rows), DummyClassifier())},
    ):
        with pytest.raises(ValueError, match=r"checkpoint cannot be used with (partitions|model.*\.func) = "):
            aflite.filter_dataset(features, labels, **RUN, **change, checkpoint=tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


def test_estimators_are_compared_by_all_their_parameters():
    """repr shows neither defaults nor the middle of a long array."""
    long = np.zeros(5000)
    other = long.copy()
    other[2500] = 1
    priors = [DummyClassifier(strategy="constant", constant=array) for array in (long, other)]
    assert config._hashed(priors[0]) != config._hashed(priors[1])
    assert config._hashed(priors[0]) == config._hashed(DummyClassifier(strategy="constant", constant=long.copy()))
    deep = [make_pipeline(StandardScaler(), LogisticRegression(C=c)) for c in (1.0, 1.0, 2.0)]
    assert config._hashed(deep[0]) == config._hashed(deep[1]) != config._hashed(deep[2])
    weights = [LogisticRegression(class_weight=weight) for weight in ({0: 1, 1: 2}, {1: 2, 0: 1}, {0: 2, 1: 1})]
    assert config._hashed(weights[0]) == config._hashed(weights[1]) != config._hashed(weights[2])


def test_the_order_of_class_weights_does_not_matter(planted, tmp_path):
    features, labels, _ = planted()
    run = {**RUN, "phases": 1, "checkpoint": tmp_path / "run.npz"}
    aflite.filter_dataset(features, labels, **run, class_weight={0: 1, 1: 2, 2: 3})
    aflite.filter_dataset(features, labels, **run, class_weight={2: 3, 1: 2.0, 0: 1})
    with pytest.raises(aflite.CheckpointMismatchError, match="class_weight was"):
        aflite.filter_dataset(features, labels, **run, class_weight={2: 1, 1: 2, 0: 3})


def test_a_configuration_that_cannot_be_stored_fails_before_any_phase(tmp_path):
    with pytest.raises(TypeError, match="not JSON serializable"):
        checkpoint.load(tmp_path / "absent.npz", {"k": object()})


def test_a_failed_write_leaves_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    checkpoint.save(path, {"k": 1}, {"history": []}, {"rows": np.arange(3)})

    def broken(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save(path, {"k": 1}, {"history": [1]}, {"rows": np.arange(4)})
    record, arrays = checkpoint.load(path, {"k": 1})
    assert record == {"history": []}
    assert arrays["rows"].tolist() == [0, 1, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.npz"]


def spoil(path, how):
    whole = path.read_bytes()
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "flipped":
        path.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "junk":
        path.write_bytes(b"no archive at all" * 9)
    elif how == "npy":
        with path.open("wb") as file:
            np.save(file, np.arange(3))
    elif how == "other npz":
        np.savez(path, rows=np.arange(3))
    elif how == "other meta":
        np.savez(path, meta=np.array('["a"]'))
    elif how == "no record":
        np.savez(path, meta=np.array('{"format": 1, "config": {}}'))
    elif how == "other config":
        np.savez(path, meta=np.array('{"format": 1, "config": ["k"], "record": {}}'))
    elif how == "deep meta":
        np.savez(path, meta=np.array("[" * 100_000 + "]" * 100_000))


@pytest.mark.parametrize(
    "how",
    [
        *("truncated", "flipped", "empty", "junk", "npy"),
        *("other npz", "other meta", "no record", "other config", "deep meta"),
    ],
)
def test_a_file_that_is_no_checkpoint_is_named_with_the_remedy(tmp_path, how):
    path = tmp_path / "state.npz"
    checkpoint.save(path, {"k": 1}, {"history": []}, {"rows": np.arange(300)})
    spoil(path, how)
    with pytest.raises(ValueError, match=r"checkpoint: .*state\.npz is damaged or no checkpoint.*delete it"):
        checkpoint.load(path, {"k": 1})


def test_folders_are_checked_before_any_phase(planted, tmp_path, monkeypatch):
    features, labels, _ = planted()
    monkeypatch.setattr(loop, "_phase", None)
    with pytest.raises(ValueError, match=r"folder that exists, .*absent does not; make it"):
        aflite.filter_dataset(features, labels, **RUN, checkpoint=tmp_path / "absent" / "run.npz")
    with pytest.raises(ValueError, match=r"must be a file, .* is a folder"):
        aflite.filter_dataset(features, labels, **RUN, checkpoint=tmp_path)


def test_two_writers_do_not_share_a_temporary_name(tmp_path, monkeypatch):
    """Two threads of a process write the same checkpoint: the second starts while the first is writing."""
    path, seen = tmp_path / "state.npz", []
    savez = np.savez

    def nested(file, **arrays):
        seen.append(file.name)
        if len(seen) == 1:
            checkpoint.save(path, {"k": 2}, {}, {"rows": np.arange(2)})
        savez(file, **arrays)

    monkeypatch.setattr(np, "savez", nested)
    checkpoint.save(path, {"k": 1}, {}, {"rows": np.arange(1)})
    assert len(set(seen)) == 2
    assert checkpoint.load(path, {"k": 1})[1]["rows"].tolist() == [0]


def test_fingerprint_sees_values_shape_and_type():
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    prints = {
        checkpoint.fingerprint(other)
        for other in (array, array.reshape(3, 4), array.astype(np.float16), array + 1, array[::-1])
    }
    assert len(prints) == 5
    assert checkpoint.fingerprint(np.asfortranarray(array)) == checkpoint.fingerprint(array)
    # A parameter of a model may be an array without axes.
    assert checkpoint.fingerprint(np.array(1.0)) != checkpoint.fingerprint(np.array(2.0))


def test_import_is_light():
    heavy = "'torch', 'sklearn', 'faiss', 'joblib', 'scipy', 'matplotlib'"
    code = "import sys, aflite; aflite.optimum.search, aflite.neighbors.duplicates, aflite.baselines.lowest\n"
    code += f"aflite.diagnostics.label_shares; print([name for name in ({heavy},) if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
