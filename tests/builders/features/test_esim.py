"""ESIM: what it learns, that padding and chunks do not show, and that a killed training ends the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset

from builders.errors import BuildError
from builders.features import esim
from builders.features.esim import EsimRecipe, EsimSettings
from builders.features.esim_model import Esim
from builders.features.esim_words import tokens

SMALL: dict[str, Any] = {"dimension": 8, "hidden": 8, "epochs": 3, "learning_rate": 0.01}
NAMES = ("entailment", "neutral", "contradiction")


def _rows(number: int = 60) -> Dataset:
    """Pairs whose label is 0 when the hypothesis repeats the premise's noun, else 2."""
    nouns = ["dog", "cat", "cow", "hen", "fox"]
    generator = np.random.default_rng(0)
    one, two, labels = [], [], []
    for i in range(number):
        noun, other = generator.permutation(nouns)[:2]
        one.append(f"A {'very ' * int(generator.integers(4))}small {noun} sleeps.")
        two.append(f"The {noun if i % 2 else other} sleeps.")
        labels.append(0 if i % 2 else 2)
    return Dataset.from_dict({"premise": one, "hypothesis": two, "label": labels})


def _recipe(**settings: Any) -> EsimRecipe:
    return EsimRecipe(
        EsimSettings(**{**SMALL, **settings}), inputs=("premise", "hypothesis"), names=NAMES, device="cpu"
    )


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = torch.load(folder / esim.WEIGHTS, weights_only=True)["model"]
    return weights


def _vectors(path: Path, words: str, dimension: int = 8) -> Path:
    generator = np.random.default_rng(0)
    lines = (f"{word} {' '.join(map(str, generator.normal(size=dimension).round(3)))}" for word in words.split())
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("esim") / "trained"
    _recipe().train(_rows(), folder, seed=0)
    return folder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't go, Ann!", ["do", "n't", "go", ",", "ann", "!"]),
        ("They’re Ann's; can't", ["they", "'re", "ann", "'s", ";", "ca", "n't"]),
        ("Zoë's 3.5 %", ["zoë", "'s", "3", ".", "5", "%"]),
        (" \n", []),
    ],
)
def test_text_is_cut_into_words_clitics_and_marks(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_it_learns_a_relation_that_neither_sentence_shows_alone(tmp_path: Path) -> None:
    recipe = _recipe(hidden=24, dimension=16, epochs=6, dropout=0.0)
    recipe.train(_rows(400), tmp_path / "x", seed=0)
    new = _rows(460).select(range(400, 460))
    logits = recipe.load(tmp_path / "x").encode(new).logits
    assert logits is not None
    assert (logits.argmax(1) == np.array(new["label"])).mean() > 0.9


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    model = Esim(20, 6, 5, 3, 0.5).eval()
    short, long = torch.tensor([[3, 4, 5]]), torch.tensor([[6, 7, 8, 9, 10, 11]])
    padded = torch.cat([short, torch.zeros(1, 3, dtype=torch.int64)], dim=1)
    three, six = torch.tensor([3]), torch.tensor([6])
    alone = [model(short, three, short.flip(1), three, None), model(long, six, short, three, None)]
    ones, twos = torch.cat([padded, long]), torch.cat([short.flip(1), short])
    twos = torch.cat([twos, torch.zeros(2, 2, dtype=torch.int64)], dim=1)
    together = model(ones, torch.tensor([3, 6]), twos, torch.tensor([3, 3]), None)
    for which in (0, 1):
        expected = torch.cat([made[which] for made in alone])
        torch.testing.assert_close(together[which], expected, rtol=1e-5, atol=1e-6)


def test_features_are_what_the_output_layer_reads(trained: Path) -> None:
    encoder = _recipe().load(trained)
    made = encoder.encode(_rows())
    weights = _weights(trained)
    assert encoder.width == 8
    assert made.features.shape == (60, 8)
    assert made.features.dtype == np.float32
    assert np.abs(made.features).max() < 1
    assert made.logits is not None
    expected = made.features @ weights["output.weight"].numpy().T + weights["output.bias"].numpy()
    np.testing.assert_allclose(made.logits, expected, rtol=1e-5, atol=1e-5)


def test_features_follow_the_rows_in_any_chunks(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, rows = _recipe().load(trained), _rows()
    whole = encoder.encode(rows).features
    np.testing.assert_array_equal(encoder.encode(rows).features, whole)
    monkeypatch.setattr(esim, "ENCODE_BATCH", 7)
    chunks = [encoder.encode(rows.select(range(i, i + 20))).features for i in (0, 20, 40)]
    np.testing.assert_allclose(np.concatenate(chunks), whole, rtol=1e-5, atol=1e-6)
    backwards = encoder.encode(rows.select(range(59, -1, -1))).features
    np.testing.assert_allclose(backwards[::-1], whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_killed_training_ends_with_the_same_weights(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    saved = []

    def killed(content: dict[str, Any], path: Path) -> None:
        kept(content, path)
        saved.append(path.name)
        if len(saved) == epoch:
            raise KeyboardInterrupt

    kept = esim.save
    monkeypatch.setattr(esim, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        _recipe().train(_rows(), tmp_path / "x", seed=0)
    monkeypatch.setattr(esim, "save", kept)
    with pytest.raises(BuildError, match=r"holds no esim.pt: the warm-up training did not end"):
        _recipe().load(tmp_path / "x")
    assert saved == [esim.CHECKPOINT] * epoch
    torch.rand(3)
    _recipe().train(_rows(), tmp_path / "x", seed=0)
    assert [path.name for path in (tmp_path / "x").iterdir()] == [esim.WEIGHTS]
    for name, weight in _weights(trained).items():
        assert torch.equal(weight, _weights(tmp_path / "x")[name]), name


def test_training_leaves_the_callers_random_state_and_threads_alone(tmp_path: Path) -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    _recipe(epochs=1).train(_rows(), tmp_path / "x", seed=0)
    _recipe(epochs=1).load(tmp_path / "x").encode(_rows())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_another_seed_gives_other_weights(trained: Path, tmp_path: Path) -> None:
    _recipe().train(_rows(), tmp_path / "x", seed=1)
    assert not torch.equal(_weights(tmp_path / "x")["output.weight"], _weights(trained)["output.weight"])


def test_a_finished_training_is_kept_and_another_refused(trained: Path) -> None:
    stamp = (trained / esim.WEIGHTS).stat().st_mtime_ns
    _recipe().train(_rows(), trained, seed=0)
    assert (trained / esim.WEIGHTS).stat().st_mtime_ns == stamp
    with pytest.raises(BuildError, match="trained with seed = 0, not 1; train in another folder"):
        _recipe().train(_rows(), trained, seed=1)
    with pytest.raises(BuildError, match="trained with rows = 'sha256:"):
        _recipe().train(_rows(59), trained, seed=0)
    with pytest.raises(BuildError, match="trained with epochs = 3, not 4"):
        _recipe(epochs=4).load(trained)


def test_words_met_later_have_the_vectors_of_the_file(tmp_path: Path) -> None:
    path = _vectors(tmp_path / "vectors.txt", "a the dog cat sleeps . small very dogs")
    path.write_text(path.read_text() + "hound" + path.read_text().splitlines()[2].removeprefix("dog") + "\n")
    recipe = _recipe(vectors=str(path))
    recipe.train(_rows(), tmp_path / "x", seed=0)
    assert _weights(tmp_path / "x")["learned.weight"].shape == (2, 8)
    encoder = recipe.load(tmp_path / "x")

    def features(noun: str) -> Any:
        row = {"premise": [f"A {noun} sleeps."], "hypothesis": [f"The {noun} sleeps."]}
        return encoder.encode(Dataset.from_dict(row)).features

    np.testing.assert_array_equal(features("hound"), features("dog"))
    np.testing.assert_array_equal(features("zebra"), features("gnu"))
    assert not np.allclose(features("zebra"), features("dog"))
    assert not np.allclose(features("dogs"), features("zebra"))


def test_without_vectors_rare_and_new_words_share_one(trained: Path) -> None:
    encoder = _recipe().load(trained)
    rows = {"premise": ["A zebra sleeps.", "A gnu sleeps."], "hypothesis": ["", "  "]}
    one, two = encoder.encode(Dataset.from_dict(rows)).features
    np.testing.assert_array_equal(one, two)


def test_identity_names_all_settings_and_the_content_of_the_vector_file(tmp_path: Path) -> None:
    one, same, other = (
        _recipe(vectors=str(_vectors(tmp_path / name, words))).identity()
        for name, words in (("one.txt", "a b"), ("two.txt", "a b"), ("three.txt", "a c"))
    )
    assert one == same != other
    assert str(one["vectors"]).startswith("sha256:")
    assert _recipe().identity() != _recipe(max_length=5).identity()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, "hidden of the ESIM encoder must be 1 or more, not 0"),
        ({"learning_rate": 0.0}, "learning_rate of the ESIM encoder must be above 0, not 0.0"),
        ({"dropout": 1.0}, "dropout of the ESIM encoder must be from 0 to below 1, not 1.0"),
        ({"vectors": "absent.txt"}, r"vectors: absent.txt is no file"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BuildError, match=message):
        _recipe(**settings)


def test_wrong_recipes_are_refused() -> None:
    with pytest.raises(BuildError, match="inputs of the ESIM encoder must be two text columns, not image"):
        EsimRecipe(EsimSettings(), inputs=("image",), names=NAMES)
    with pytest.raises(BuildError, match="names of the labels must be two or more, not 1"):
        EsimRecipe(EsimSettings(), inputs=("a", "b"), names=("x",))
    with pytest.raises(BuildError, match="device 'abacus' cannot be used"):
        EsimRecipe(EsimSettings(), inputs=("a", "b"), names=NAMES, device="abacus")
    with pytest.raises(BuildError, match="the ESIM encoder has no ready-made weights; leave out --no-warmup"):
        _recipe().load(None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.select([]), "needs rows, and got none"),
        (
            lambda rows: rows.rename_column("premise", "text"),
            "no column 'premise'; the rows have text, hypothesis, label",
        ),
        (lambda rows: rows.remove_columns("label"), "no column 'label'; the rows have premise, hypothesis"),
        (lambda rows: rows.map(lambda row: {"label": row["label"] + 1}), "labels must be from 0 to 2, but row 0 has 3"),
        (lambda rows: rows.map(lambda _, i: {"premise": None if i == 4 else "x"}, with_indices=True), "row 4 has None"),
    ],
)
def test_wrong_rows_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        _recipe().train(change(_rows()), tmp_path / "x", seed=0)
    assert not (tmp_path / "x").exists()


def test_a_diverging_training_and_features_that_are_not_finite_are_refused(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} 3e38 -3e38 3e38 -3e38 3e38 -3e38 3e38 -3e38\n" for word in ("a", "the", "dog")))
    with pytest.raises(BuildError, match=r"warm-up diverged in epoch 1; lower learning_rate"):
        _recipe(vectors=str(path)).train(_rows(), tmp_path / "x", seed=0)
    stored = torch.load(trained / esim.WEIGHTS, weights_only=True)
    stored["model"]["hidden.bias"][0] = torch.nan
    (tmp_path / "y").mkdir()
    torch.save(stored, tmp_path / "y" / esim.WEIGHTS)
    with pytest.raises(BuildError, match="gave features that are not finite"):
        _recipe().load(tmp_path / "y").encode(_rows())
    (tmp_path / "y" / esim.WEIGHTS).write_bytes(b"half")
    with pytest.raises(BuildError, match=r"esim.pt is damaged: remove it and run the same command again"):
        _recipe().load(tmp_path / "y")
