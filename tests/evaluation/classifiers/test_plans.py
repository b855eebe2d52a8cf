"""Plans of tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.features.images import ImageSettings
from builders.features.transformer import TransformerSettings
from builders.specs import load_spec
from builders.tables import from_table
from evaluation.classifiers.plans import list_plans, load_plan
from evaluation.errors import EvaluationError

PLAN = """\
title = "Hand"
note = "small"
seeds = [0, 1]
[sets.one]
head = "Φ"
folder = "build/one"
[models.bert]
head = "BERT"
[models.pmi]
head = "PMI"
words = "hypothesis"
[[tables]]
number = "3"
title = "In distribution"
kind = "in-distribution"
sets = ["one"]
models = ["bert", "pmi"]
"""
COLUMN = '[[tables.columns]]\nhead = "x"\non = "hans"\npath = ["all", "accuracy"]\n'


def read(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    load_plan(str(tmp_path / "plan.toml"))


def test_the_plans_that_come_with_it_can_be_run() -> None:
    assert list_plans() == ["paper", "small"]
    for name in list_plans():
        plan = load_plan(name)
        specs = {key: load_spec(str(one.build), [*one.values, f"name={key}"]) for key, one in plan.sets.items()}
        assert [spec.folder_name for spec in specs.values()] == [f"{key}-aflite" for key in specs]
        used = {key: specs[key].modality for table in plan.tables for key in table.sets}
        for table in plan.tables:
            kind = ImageSettings if used[table.sets[0]] == "image" else TransformerSettings
            for model in table.models:
                columns = specs[table.sets[0]].source.inputs
                assert {*plan.models[model].inputs, plan.models[model].words} - {None} <= {*columns}
                from_table(kind, plan.settings(model), model)
        unused = plan.sets.keys() - used.keys()
        assert unused <= {column.on for table in plan.tables for column in table.columns}
        assert plan.models.keys() == {model for table in plan.tables for model in table.models}
    numbers = [table.number for table in load_plan("paper").tables]
    assert numbers == ["1", "2", "3", "4", "4", "5", "6"]


def test_the_small_plan_says_that_it_is_small() -> None:
    plan = load_plan("small")
    assert "small" in plan.title
    assert "say nothing of SNLI or ImageNet" in plan.note


def test_the_defaults_are_the_papers() -> None:
    plan = load_plan("paper")
    settings = from_table(TransformerSettings, plan.settings("roberta"), "roberta")
    # Le Bras et al. 2020, NLI experiments: 3 epochs, learning rate 1e-5, Adam's epsilon 1e-8, batches of 92.
    found = (settings.model, settings.epochs, settings.learning_rate, settings.epsilon, settings.batch_size)
    assert found == ("FacebookAI/roberta-large", 3, 1e-5, 1e-8, 92)
    images = from_table(ImageSettings, plan.settings("efficientnet-b7"), "b7")
    found = (images.model, images.image_size, images.rand_augment_layers, images.rand_augment_magnitude)
    assert found == ("efficientnet_b7", 600, 2, 28)


def test_a_model_like_another_has_its_settings() -> None:
    plan = load_plan("small")
    assert plan.settings("hypothesis") == plan.settings("bert")
    assert plan.blank("hypothesis")
    assert not plan.blank("resnet")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = [0, 1]", "seeds = [0, 0]", r"each once, not \[0, 0\]"),
        ("seeds = [0, 1]", "seeds = []", "one or more"),
        ("seeds = [0, 1]", "seeds = [0, 4294967296]", r"from 0 to 2\*\*32 - 1"),
        ('folder = "build/one"', "", "set one needs either a folder or a spec"),
        ('folder = "build/one"', 'folder = "a"\nvalues = ["share=0.1"]', "no spec to build with them"),
        (
            'words = "hypothesis"',
            'words = "hypothesis"\nblank = true',
            "model pmi is words or people and is not trained",
        ),
        (
            'words = "hypothesis"',
            'words = "hypothesis"\nannotators = "dev.jsonl"',
            "model pmi is either words or people",
        ),
        ('head = "BERT"', 'head = "BERT"\nlike = "roberta"', "like 'roberta', which is no model"),
        ('sets = ["one"]', 'sets = ["two"]', r"table 3: there is no set 'two' in the plan \(there are one\)"),
        ('models = ["bert", "pmi"]', "models = []", "table 3 needs a model"),
        ('kind = "in-distribution"', 'kind = "in"', "in-distribution, out-of-distribution, not 'in'"),
        ('kind = "in-distribution"', 'kind = "out-of-distribution"', "which needs columns"),
        ('"pmi"]\n', f'"pmi"]\n{COLUMN}', "columns and tunings are those of a table out of distribution"),
        ('title = "Hand"', 'titel = "Hand"', "did you mean 'title'"),
        ('title = "Hand"', "title = ", "not valid TOML"),
    ],
)
def test_plans_that_could_not_be_run(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PLAN
    with pytest.raises(EvaluationError, match=message):
        read(tmp_path, PLAN.replace(old, new))


def test_columns_name_sets_that_are_there(tmp_path: Path) -> None:
    ood = PLAN.replace("in-distribution", "out-of-distribution")
    with pytest.raises(EvaluationError, match="model pmi is words or people and is scored in distribution only"):
        read(tmp_path, ood + COLUMN)
    with pytest.raises(EvaluationError, match="'hons' is neither a set of the plan nor one of anli, diagnostics"):
        read(tmp_path, ood.replace(', "pmi"', "") + COLUMN.replace("hans", "hons"))
    read(tmp_path, ood.replace(', "pmi"', "") + COLUMN)
    with pytest.raises(EvaluationError, match=r"no plan 'smal' .* did you mean 'small'"):
        load_plan("smal")
    with pytest.raises(EvaluationError, match=r"none\.toml cannot be read: No such file"):
        load_plan("none.toml")
