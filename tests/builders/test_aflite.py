"""Builds of the small sets from end to end, and builds that are killed in every stage."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from builders.aflite import Machine, build_aflite
from builders.errors import BuildError
from builders.folder import Built, verify_folder
from builders.specs import load_spec
from builders.workspace import Workspace
from evaluation.classifiers.blank import write_blank_bert
from tests.builders.filtered_sets import spec_of, write_source

REPOSITORY = Path(__file__).parents[2]
SMALL = [
    "source.rows=1500",
    "share=0.2",
    "encoder.dimension=24",
    "encoder.hidden=24",
    "encoder.epochs=2",
    "filter.n=400",
    "filter.m=16",
    "filter.t=200",
    "filter.k=100",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A small planted set that was built without a break."""
    return build_aflite(load_spec("planted-nli", SMALL), tmp_path_factory.mktemp("whole"))


def parquet_sums(built: Built) -> dict[str, str]:
    return {name: entry["sha256"] for name, entry in built.manifest["files"].items() if name.endswith(".parquet")}


def tree(folder: Path) -> dict[str, bytes]:
    """Content of every file, by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


KILLED = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
import builders.aflite
from builders.specs import load_spec

module, name, before = sys.argv[1:4]
module = import_module(module)
original = getattr(module, name)

def fatal(*args, **kwargs):
    if before == "after":
        original(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(module, name, fatal)
builders.aflite.build_aflite(load_spec("planted-nli", OVERRIDES), Path(sys.argv[4]))
"""


@pytest.mark.parametrize(
    ("module", "name", "when", "reused"),
    [
        ("builders.aflite", "read_source", "after", []),
        ("builders.features.esim", "save", "after", []),
        ("builders.aflite", "_train", "after", ["warm-up"]),
        ("builders.aflite", "compute_features", "after", ["features", "warm-up"]),
        ("aflite.loop", "_phase", "after", ["features", "warm-up"]),
        ("builders.aflite", "_filter", "after", ["features", "warm-up"]),
        ("builders.filtered_folder", "write_parts", "after", ["features", "warm-up"]),
        ("builders.filtered_folder", "write_manifest", "before", ["features", "warm-up"]),
    ],
)
def test_a_build_that_was_killed_goes_on_to_the_same_rows(
    whole: Built, tmp_path: Path, module: str, name: str, when: str, reused: list[str]
) -> None:
    code = KILLED.replace("OVERRIDES", repr(SMALL))
    done = subprocess.run(
        [sys.executable, "-c", code, module, name, when, str(tmp_path)], cwd=REPOSITORY, check=False, timeout=300
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "planted-nli-aflite").exists()
    again = build_aflite(load_spec("planted-nli", SMALL), tmp_path)
    assert again.fresh
    assert again.reused == tuple(reused)
    assert tree(again.folder) == tree(whole.folder)
    verify_folder(again.folder)


def test_stages_are_used_again_as_far_as_nothing_changed(whole: Built, tmp_path: Path) -> None:
    work = tmp_path / "work"
    first = build_aflite(load_spec("planted-nli", SMALL), tmp_path / "a", work=work)
    assert first.reused == ()
    cut = build_aflite(load_spec("planted-nli", [*SMALL, "filter.tau=0.9"]), tmp_path / "b", work=work)
    assert cut.reused == ("features", "warm-up")
    other = build_aflite(load_spec("planted-nli", [*SMALL, "encoder.epochs=1"]), tmp_path / "c", work=work)
    assert other.reused == ()
    assert parquet_sums(other) != parquet_sums(first) == parquet_sums(whole)
    rows = build_aflite(load_spec("planted-nli", [*SMALL, "source.seed=5"]), tmp_path / "d", work=work)
    assert rows.reused == ()


def test_warmup_rows_are_a_config_of_their_own_and_never_scored(whole: Built) -> None:
    counts = whole.manifest["counts"]["train"]
    assert counts["warmup"] == 300
    assert counts["source"] == 1500 == counts["warmup"] + counts["removed"] + counts["filtered"]
    table = pq.read_table(whole.folder / "warmup")
    assert table["predictability"].null_count == 300
    assert set(table["times_scored"].to_pylist()) == {0}
    assert not any(table["in_random_subset"].to_pylist())
    card = (whole.folder / "README.md").read_text(encoding="utf-8")
    assert "The encoder was trained on the warm-up sample" in card
    for artifact, of in whole.manifest["filter"]["breakdown"].items():
        assert f"| {artifact} | {of['scored']:,} | {of['kept']:,} | {of['removed']:,} |" in card


def test_the_planted_set_loses_its_planted_rows_and_keeps_the_clean(tmp_path: Path) -> None:
    """The set as `make demo` builds it; the bounds are those that its spec was accepted by."""
    built = build_aflite(load_spec("planted-nli"), tmp_path)
    rows = built.manifest["filter"]["breakdown"]
    planted = [rows["cue"], rows["length"]]
    lost = sum(of["removed"] for of in planted) / sum(of["scored"] for of in planted)
    kept = rows["none"]["kept"] / rows["none"]["scored"]
    assert lost > 0.9
    assert kept > 0.7


def test_digits_from_end_to_end(tmp_path: Path) -> None:
    from datasets import load_dataset

    short = ["encoder.epochs=4", "filter.n=900", "filter.k=100", "filter.m=16"]
    built = build_aflite(load_spec("digits", short), tmp_path)
    verify_folder(built.folder)
    kept = load_dataset(str(built.folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(kept) == 900
    assert kept[0]["image"].size == (8, 8)
    assert kept.features["label"].names == list("0123456789")
    assert (built.folder / "examples.png").is_file()
    assert "![Images with their labels, most predictable" in (built.folder / "README.md").read_text(encoding="utf-8")
    subsets = built.manifest["filter"]["subsets"]
    assert subsets["removed"]["accuracy"] > subsets["random"]["accuracy"] > subsets["kept"]["accuracy"]
    assert subsets["removed"]["bias"] > subsets["random"]["bias"] > subsets["kept"]["bias"]


@pytest.mark.parametrize("override", ["filter.n=1200", "filter.t=400", "filter.tau=1.5", "filter.groups=nothing"])
def test_what_the_filter_would_refuse_is_told_before_the_warmup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    def trained(*args: object, **options: object) -> None:
        raise AssertionError("the warm-up began")

    monkeypatch.setattr("builders.aflite._train", trained)
    with pytest.raises(BuildError, match="filter"):
        build_aflite(load_spec("planted-nli", [*SMALL, override]), tmp_path)


def test_two_builds_do_not_work_in_one_folder(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from builders.workspace import Workspace\n"
    code += "with Workspace(Path(sys.argv[1])).held(): print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path / "work")]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BuildError, match="another build works in"):
            build_aflite(load_spec("planted-nli", SMALL), tmp_path, work=tmp_path / "work")
        other.kill()
    with Workspace(tmp_path / "work").held():
        pass


def test_esim_without_a_warmup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no ready-made weights"):
        build_aflite(load_spec("planted-nli", [*SMALL, "share=0.0"]), tmp_path)


def test_an_encoder_in_a_pickle_with_code_is_refused_and_nothing_is_built(tmp_path: Path) -> None:
    encoder = write_blank_bert(tmp_path / "encoder", ["a", "b"], seed=0, layers=1, width=64, max_length=32)
    weights = load_file(encoder / "model.safetensors")
    (encoder / "model.safetensors").unlink()
    torch.save({**weights, "hook": json.dumps}, encoder / "pytorch_model.bin")
    write_source(tmp_path / "source")
    for share in (0.0, 0.2):
        spec = spec_of(f"encoder.model={encoder}", "encoder.max_length=32", "encoder.pooling=mean", f"share={share}")
        with pytest.raises(BuildError, match=r"a pickle that holds more than tensors \(json.dumps\): it is refused"):
            build_aflite(spec, tmp_path / "out", source=tmp_path / "source", machine=Machine(device="cpu", workers=0))
    assert list((tmp_path / "out").rglob("manifest.json")) == []


def test_a_share_that_leaves_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"share = 0\.0001 of 1500 rows leaves no warm-up sample"):
        build_aflite(load_spec("planted-nli", [*SMALL, "share=0.0001"]), tmp_path)


def test_nothing_in_the_folder_names_the_machine(whole: Built) -> None:
    for path in whole.folder.rglob("*"):
        if path.is_file():
            assert str(whole.folder.parent).encode() not in path.read_bytes(), path.name
    assert json.dumps(whole.manifest).count(str(Path.home())) == 0 or str(Path.home()) == "/"


def test_times_lie_in_the_log_of_the_work_folder(whole: Built) -> None:
    (entry,) = map(
        json.loads, (whole.folder.parent / ".work" / whole.folder.name / "log.jsonl").read_text().split("\n")[:-1]
    )
    assert entry["sha256"] == whole.manifest["sha256"]
    assert list(entry["seconds"]) == ["source", "warm-up", "features", "filter", "report", "folder"]
