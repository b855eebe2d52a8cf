"""The store against a plain encoder: resuming, reuse, refusals, and files that came from elsewhere."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from safetensors.numpy import save_file

from builders.errors import BuildError
from builders.features.encoder import Encoded
from builders.features.store import compute_features, read_features

INPUTS = {"model": "org/model", "revision": "0" * 40, "seed": 0}


class Sines:
    """Features are sines of the row's number, logits their first columns."""

    width = 5

    def __init__(self, *, logits: bool = True, bad: int | None = None) -> None:
        self.logits, self.bad, self.encoded = logits, bad, 0

    def encode(self, rows: Dataset) -> Encoded:
        places = np.array(rows["place"])
        self.encoded += places.size
        features = np.sin(places[:, None] * np.arange(1, 6)).astype(np.float32)
        if self.bad in places:
            features[places == self.bad, 2] = np.nan
        return Encoded(features, features[:, :3] if self.logits else None)


def rows_of(n: int) -> Dataset:
    return Dataset.from_dict({"place": list(range(n))})


def expected(n: int) -> np.ndarray:
    return np.sin(np.arange(n)[:, None] * np.arange(1, 6)).astype(np.float32)


def compute(path: Path, encoder: Any = None, n: int = 23, chunk: int = 4, inputs: Any = INPUTS) -> Any:
    return compute_features(encoder or Sines(), rows_of(n), path, inputs=inputs, n_classes=3, chunk=chunk)


def test_features_and_predictions_stand_in_row_order(tmp_path):
    stored = compute(tmp_path)
    assert not stored.reused
    assert isinstance(stored.features, np.memmap)
    np.testing.assert_array_equal(stored.features, expected(23))
    np.testing.assert_array_equal(stored.predictions, expected(23)[:, :3].argmax(1))
    assert stored.predictions.dtype == np.int32
    np.testing.assert_array_equal(np.load(stored.path), expected(23))
    with pytest.raises(ValueError, match="read-only"):
        stored.features[0] = 0


def test_without_logits_there_are_no_predictions(tmp_path):
    assert compute(tmp_path, Sines(logits=False)).predictions is None
    assert compute(tmp_path, Sines(logits=False)).predictions is None


def test_same_inputs_are_reused_and_others_are_not(tmp_path):
    first, encoder = compute(tmp_path), Sines()
    again = compute(tmp_path, encoder)
    assert (again.reused, encoder.encoded, again.path) == (True, 0, first.path)
    for other in ({**INPUTS, "seed": 1}, {**INPUTS, "revision": "1" * 40}, {}):
        encoder = Sines()
        changed = compute(tmp_path, encoder, inputs=other)
        assert (changed.reused, encoder.encoded) == (False, 23)
        assert changed.path != first.path
    assert not compute(tmp_path, n=22).reused
    assert compute(tmp_path).reused  # what lay there stays


def test_features_that_were_cut_off_are_computed_again(tmp_path):
    path = compute(tmp_path).path
    path.write_bytes(path.read_bytes()[:-4])
    again = compute(tmp_path)
    assert not again.reused
    np.testing.assert_array_equal(again.features, expected(23))


def test_a_run_that_failed_goes_on_after_its_last_chunk(tmp_path):
    with pytest.raises(BuildError, match=r"row 13 \(counted from 0\) has a feature that is NaN"):
        compute(tmp_path, Sines(bad=13))
    encoder = Sines()
    stored = compute(tmp_path, encoder)
    assert encoder.encoded == 23 - 12  # three chunks of four were there
    np.testing.assert_array_equal(stored.features, expected(23))
    np.testing.assert_array_equal(stored.predictions, expected(23)[:, :3].argmax(1))
    assert [path.name for path in tmp_path.iterdir()] == [stored.path.parent.name]


KILLED = """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, "TESTS")
    from test_store import Sines, compute

    class Killed(Sines):
        def encode(self, rows):
            if rows[0]["place"] >= int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().encode(rows)

    compute(Path(sys.argv[1]), Killed())
"""


@pytest.mark.parametrize("place", [0, 12])
def test_a_killed_run_ends_with_the_same_bytes(tmp_path, place):
    code = textwrap.dedent(KILLED).replace("TESTS", str(Path(__file__).parent))
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "killed"), str(place)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert all(path.name.startswith(".") for path in (tmp_path / "killed").iterdir())  # nothing that looks finished
    encoder = Sines()
    continued, whole = compute(tmp_path / "killed", encoder), compute(tmp_path / "whole")
    assert encoder.encoded == 23 - place
    for name in ("features.npy", "predictions.npy", "facts.json"):
        assert (continued.path.parent / name).read_bytes() == (whole.path.parent / name).read_bytes()


FULL = """
    import resource, sys
    from pathlib import Path
    sys.path.insert(0, "TESTS")
    from test_store import Sines, compute

    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    try:
        compute(Path(sys.argv[1]))
    except OSError as error:
        print(error.errno, error)
"""


def test_a_disk_without_the_space_says_so_before_anything_is_encoded(tmp_path):
    """The 23 x 5 floats and the header take 588 bytes; a limit of 300 stands in for a full disk."""
    code = textwrap.dedent(FULL).replace("TESTS", str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "full")], check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith(f"{errno.EFBIG} [Errno {errno.EFBIG}] File too large: ")
    assert "features.npy" in done.stdout
    assert not list((tmp_path / "full").iterdir())


def test_space_is_written_where_it_cannot_be_reserved(tmp_path, monkeypatch):
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr("os.posix_fallocate", refuse)
    np.testing.assert_array_equal(compute(tmp_path).features, expected(23))


def test_what_cannot_be_stored_is_refused(tmp_path):
    with pytest.raises(BuildError, match="no rows"):
        compute(tmp_path, n=0)
    with pytest.raises(BuildError, match="3 classes apart, the rows have 4"):
        compute_features(Sines(), rows_of(5), tmp_path, inputs={}, n_classes=4)


ROWS = {"all rows": 30, "rows without the warm-up": 27}


@pytest.fixture
def array():
    return np.random.default_rng(0).normal(size=(27, 4))


@pytest.mark.parametrize("dtype", ["<f2", "<f4"])
def test_given_features_are_mapped(tmp_path, array, dtype):
    array = array.astype(dtype)
    np.save(tmp_path / "a.npy", array)
    save_file({"features": array, "ids": np.arange(27)}, tmp_path / "a.safetensors")
    save_file({"embeddings": array}, tmp_path / "b.safetensors")
    for name in ("a.npy", "a.safetensors", "b.safetensors"):
        given = read_features(tmp_path / name, n_rows=ROWS)
        assert given.rows == "rows without the warm-up"
        assert isinstance(given.features, np.memmap)
        assert given.features.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(given.features, array)


def test_what_is_not_stored_row_by_row_in_single_precision_is_copied(tmp_path, array, monkeypatch):
    monkeypatch.setattr("builders.features.store._SCANNED_BYTES", 8 * 4 * 5)  # blocks of five rows
    np.save(tmp_path / "double.npy", array)
    np.save(tmp_path / "columns.npy", np.asfortranarray(array.astype(np.float32)))
    np.save(tmp_path / "big.npy", array.astype(">f4"))
    save_file({"features": array}, tmp_path / "double.safetensors")
    work = tmp_path / "work"
    work.mkdir()
    for name in ("double.npy", "columns.npy", "big.npy", "double.safetensors"):
        features = read_features(tmp_path / name, n_rows=ROWS, work=work).features
        assert (features.dtype, features.flags.c_contiguous) == (np.float32, True)
        np.testing.assert_array_equal(features, array.astype(np.float32))
    assert not list(work.iterdir())


def bad_value(array: np.ndarray, value: float) -> np.ndarray:
    array = array.copy()
    array[19, 3] = array[25, 0] = value
    return array


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda a: a[:26], r"has 26 rows, required are 30 \(all rows\) or 27 \(rows without the warm-up\)"),
        (lambda a: bad_value(a, np.nan).astype(np.float32), r"row 19 \(counted from 0\)"),
        (lambda a: bad_value(a, np.inf).astype(np.float16), r"row 19 \(counted from 0\)"),
        (lambda a: bad_value(a, 1e300), r"row 19 \(counted from 0\)"),
        (lambda a: a[:, 0], r"two dimensions"),
        (lambda a: a[:, :0], r"none empty"),
        (lambda a: a.astype(np.int32), r"not int32"),
        (lambda a: a.astype(complex), r"not complex128"),
    ],
)
def test_given_features_that_do_not_fit_are_refused(tmp_path, array, made, says):
    np.save(tmp_path / "a.npy", made(array))
    with pytest.raises(BuildError, match=says):
        read_features(tmp_path / "a.npy", n_rows=ROWS)


def header(shape: str, descr: str = "'<f4'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(64)


@pytest.mark.parametrize(
    "content",
    [
        header("(-3, 2)"),
        header("(-3, -2)"),
        header("(99999999999, 99999999999)"),
        header("(3, 99999999999999999999999)"),
        header("(3, 1000000)"),
        header("(True, 2)"),
        header("(3, 2)", "'|O'"),
        header("(3, 2)", "'x': ("),
        b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"-" * 8999 + b"\n",
        b"PK\x03\x04",
        b"",
    ],
)
def test_headers_that_lie_are_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(BuildError, match=r"a\.npy cannot be mapped as \.npy") as raised:
        read_features(tmp_path / "a.npy", n_rows=ROWS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("descr", ["f()", "[" * 500, "'<zz" + "z" * 500 + "'"])
def test_a_damaged_header_is_not_repeated(tmp_path, descr):
    (tmp_path / "a.npy").write_bytes(header("(3, 2)", descr))
    with pytest.raises(BuildError, match="its header is damaged: write it anew") as raised:
        read_features(tmp_path / "a.npy", n_rows=ROWS)
    assert not [word for word in ("ast", "malformed", "[[", "zz") if word in str(raised.value)]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"features": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 240]}}', "[" * 9000]
)
def test_headers_of_safetensors_that_lie_are_refused(tmp_path, text):
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text.encode() + bytes(24))
    with pytest.raises(BuildError, match="cannot be read as"):
        read_features(tmp_path / "a.safetensors", n_rows=ROWS)


def test_files_that_are_no_features_are_refused(tmp_path, array):
    def says(name: str, what: str) -> None:
        with pytest.raises(BuildError, match=what) as raised:
            read_features(tmp_path / name, n_rows=ROWS)
        assert "\n" not in str(raised.value)

    says("none.npy", "is no file")
    (tmp_path / "a.csv").write_text("1,2\n")
    says("a.csv", "must end in .npy or .safetensors, not '.csv'")
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    says("objects.npy", "cannot be mapped")
    with (tmp_path / "zip.npy").open("wb") as file:
        np.savez(file, features=array)
    says("zip.npy", "cannot be mapped")
    np.save(tmp_path / "cut.npy", array)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-8])
    says("cut.npy", "cannot be mapped")
    (tmp_path / "none.safetensors").write_bytes(b"")
    says("none.safetensors", "cannot be read")
    save_file({"a": array, "b": array}, tmp_path / "two.safetensors")
    says("two.safetensors", "holds a, b: call one tensor 'features'")
    save_file({"features": array.astype(np.int64)}, tmp_path / "ints.safetensors")
    says("ints.safetensors", "F16, F32 or F64, not I64")
    save_file({"features": array[:, :0]}, tmp_path / "empty.safetensors")
    says("empty.safetensors", "none empty")


def test_facts_say_what_the_features_were_made_of(tmp_path):
    facts = json.loads((compute(tmp_path).path.parent / "facts.json").read_text(encoding="utf-8"))
    assert facts["inputs"] == INPUTS
    assert (facts["rows"], facts["width"], facts["done"]) == (23, 5, 23)
