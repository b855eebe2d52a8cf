import subprocess
import sys

import numpy as np
import pytest

import aflite
from aflite import checkpoint, loop

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


@pytest.mark.parametrize(
    "how", ["truncated", "flipped", "empty", "junk", "npy", "other npz", "other meta", "no record"]
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


def test_import_is_light():
    heavy = "'torch', 'sklearn', 'faiss', 'joblib', 'scipy', 'matplotlib'"
    code = f"import sys, aflite; print([name for name in ({heavy},) if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
