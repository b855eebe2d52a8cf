from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.classifiers.ood import list_sets, load_ood_spec
from evaluation.classifiers.ood.spec import SETS_DIR
from evaluation.classifiers.suites import SUITES, suite_specs
from evaluation.errors import EvaluationError

NLI = ("entailment", "neutral", "contradiction")


def test_every_set_is_in_a_suite() -> None:
    assert list_sets() == ["anli", "diagnostics", "hans", "imagenet-a", "stress"]
    assert sorted(name for names in SUITES.values() for name in names) == list_sets()
    assert [spec.name for spec in suite_specs("nli-ood")] == ["hans", "diagnostics", "stress", "anli"]
    assert [spec.modality for spec in suite_specs("imagenet-a")] == ["image"]


def test_labels_of_each_set() -> None:
    assert load_ood_spec("hans").names() == ("entailment", "non-entailment")
    assert {load_ood_spec(name).names() for name in ("anli", "diagnostics", "stress")} == {NLI}
    assert len(load_ood_spec("imagenet-a").names()) == 200


def test_unknown_names_get_close_ones() -> None:
    with pytest.raises(EvaluationError, match=r"no set 'hanns' .*; did you mean 'hans'\?"):
        load_ood_spec("hanns")
    with pytest.raises(EvaluationError, match=r"no suite 'nliood' .*; did you mean 'nli-ood'\?"):
        suite_specs("nliood")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "HANS"', 'titel = "HANS"', r"unknown key 'titel' .*did you mean 'title'"),
        ('title = "HANS"', "", "needs the key 'title'"),
        ('column = "subcase"', 'column = "label"', "a group cannot be called 'label'"),
        ('modality = "text"', 'modality = "sound"', "modality must be one of text, image, not 'sound'"),
        ("by_label = true\n", 'by_label = true\nmetrics = ["f1"]\n', "metrics must be of accuracy, matthews, not 'f1'"),
        ("by_label = true\n", 'by_label = true\nclasses = "imagenet-a"\n', "needs either labels or classes"),
        ("by_label = true\n", 'by_label = true\nwritten = { e = "yes" }\n', "'yes', which is not among labels"),
        ('column = "subcase"', 'column = "subcase"\nmean_of = "half"', "averages over 'half', which is no group"),
        ('column = "subcase"', 'column = "subcase"\nof = ["half"]', "subcase is of 'half', which is no group"),
        ('group = "heuristic"', 'group = "round"', "is of 'round', which is no group"),
        ('hypothesis = "hypothesis"\n', "", "every layout needs hypothesis"),
        ("by_label = true\n", "by_label = [\n", "is not valid TOML"),
        ("by_label = true\n", "by_label = true\nmetrics = []\n", "metrics must be one or more"),
        ('labels = ["entailment", ', 'labels = ["entailment", "entailment", ', "labels must each stand once"),
        ("accuracy = {", "accuracy = { x = nan,", "holds nan; numbers must be finite"),
    ],
)
def test_a_spec_that_does_not_hold_together_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (SETS_DIR / "hans.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(EvaluationError, match=said) as raised:
        load_ood_spec(str(path))
    assert "\n" not in str(raised.value)


def test_a_spec_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (SETS_DIR / "hans.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('name = "hans"', 'name = "mine"'), encoding="utf-8")
    assert load_ood_spec(str(path)).name == "mine"
    with pytest.raises(EvaluationError, match=r"absent\.toml cannot be read"):
        load_ood_spec(str(tmp_path / "absent.toml"))


def test_only_sets_with_splits_have_a_choice_of_them() -> None:
    anli, hans = load_ood_spec("anli"), load_ood_spec("hans")
    assert (anli.split(), anli.split("train"), hans.split()) == ("dev", "train", "")
    with pytest.raises(EvaluationError, match=r"no split of anli 'tset' .*did you mean 'test'"):
        anli.split("tset")
    with pytest.raises(EvaluationError, match="hans has no choice of splits"):
        hans.split("train")
