"""Specs: all read, the paper's values are where they belong, and every value can be changed by its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.errors import BuildError
from builders.features.esim import EsimSettings
from builders.features.transformer import TransformerSettings
from builders.specs import SETS_DIR, list_specs, load_spec
from builders.tables import to_table


def test_every_set_is_listed_and_reads() -> None:
    assert list_specs() == ["digits", "imagenet", "mnli", "planted-nli", "qnli", "snli"]
    for name in list_specs():
        spec = load_spec(name)
        assert spec.name == name
        assert load_spec(f"{name}-aflite") == spec


def test_the_papers_values_are_those_of_the_paper() -> None:
    """Le Bras et al. 2020, as the project's issue quotes them."""
    spec = load_spec("snli")
    chosen = (spec.filter.m, spec.filter.t, spec.filter.k, spec.filter.tau, spec.filter.n, spec.share)
    assert chosen == (64, 50_000, 10_000, 0.75, 92_000, 0.1)
    encoder = to_table(spec.encoder)
    named = ("epochs", "learning_rate", "epsilon", "batch_size")
    assert tuple(encoder[key] for key in named) == (3, 1e-5, 1e-8, 92)
    imagenet = load_spec("imagenet")
    assert (imagenet.filter.n, imagenet.filter.tau, imagenet.share) == (640_000, 0.0, 0.2)
    images = to_table(imagenet.encoder)
    assert (images["model"], images["rand_augment_layers"], images["rand_augment_magnitude"]) == (
        "efficientnet_b7",
        2,
        28,
    )
    assert imagenet.filter.t > spec.filter.t
    assert imagenet.filter.k > spec.filter.k


@pytest.mark.parametrize("name", ["snli", "mnli", "qnli", "imagenet"])
def test_sources_on_the_hub_are_pinned(name: str) -> None:
    source = load_spec(name).source
    assert source.kind == "hub"
    assert source.revision
    assert len(source.revision) == 40


@pytest.mark.parametrize("name", ["mnli", "qnli"])
def test_scaled_values_are_not_said_to_be_the_papers(name: str) -> None:
    for key, _, place in load_spec(name).values():
        if key.startswith("filter."):
            assert place.startswith("chosen here")


def test_any_value_can_be_set_and_is_then_said_to_be() -> None:
    spec = load_spec("snli", ["filter.n=182000", "encoder.model=org/other", "source.filtered=['train']", "share=0.05"])
    assert spec.filter.n == 182_000
    assert spec.encoder == TransformerSettings(model="org/other")
    assert spec.source.filtered == ("train",)
    places = {key: place for key, _, place in spec.values()}
    for key in ("filter.n", "encoder.model", "source.filtered", "share"):
        assert places[key] == "command line"
    assert places["filter.m"] == "Le Bras et al. 2020, SNLI"
    assert places["filter.c"] == "chosen here"


def test_another_kind_of_encoder_starts_from_its_own_defaults() -> None:
    spec = load_spec("snli", ["encoder.vectors=glove.txt", "encoder.kind=esim"])
    assert spec.encoder == EsimSettings(vectors="glove.txt")
    places = {key: place for key, _, place in spec.values()}
    assert places["encoder.vectors"] == places["encoder.kind"] == "command line"
    assert places["encoder.epochs"] == "chosen here"
    assert load_spec("snli", ["encoder.kind=transformer"]).encoder == load_spec("snli").encoder


def test_a_revision_goes_with_what_it_is_of() -> None:
    assert load_spec("snli", ["encoder.model=org/other"]).encoder == TransformerSettings(model="org/other")
    revised = load_spec("snli", ["encoder.revision=v2", "encoder.model=org/other"])
    assert revised.encoder == TransformerSettings(model="org/other", revision="v2")
    same = load_spec("snli", ["encoder.model=FacebookAI/roberta-large"])
    assert same.encoder == load_spec("snli").encoder
    assert load_spec("snli", ["source.id=org/other"]).source.revision is None
    assert load_spec("qnli", ["source.id=org/other"]).source.config is None
    assert load_spec("snli", ["encoder.revision="]).encoder == TransformerSettings()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("filter.n", "must be KEY=VALUE such as filter.tau=0.75, not 'filter.n'"),
        ("filter.sigma=1", "unknown key 'sigma'"),
        ("filter.n=many", r"filter\.n: must be a whole number, not 'many'"),
        ("encoder.kind=bert", "encoder.kind must be one of transformer, esim, timm, not 'bert'"),
        ("encoder.kind=timm", "encoder.kind = 'timm' is not for modality 'text'"),
        ("encoder.kind=[1]", r"encoder.kind must be one of transformer, esim, timm, not \[1\]"),
        ("encoder=esim", "encoder: must be a table, not 'esim'"),
        ("encoder_kind=esim", "unknown key 'encoder_kind'; did you mean 'encoder.kind'"),
        ("seed=-1", r"seed must be from 0 to 2\*\*32 - 1, not -1"),
        ("seed=4294967296", r"seed must be from 0 to 2\*\*32 - 1, not 4294967296"),
        ("name=../snli", r"name must be letters, .*, not '\.\./snli-aflite'"),
        ("source.filtered=[]", "filtered must be one split or more, each once, not none"),
        ("source.filtered=['train', 'train']", "filtered must be .* not train, train"),
        ("share=1.0", "share must be at least 0 and below 1, not 1.0"),
        ("title.a=1", "title is a value, not a table"),
        ("values_from.share=me", "cannot be set"),
        ("modality=sound", "modality must be text or image"),
    ],
)
def test_bad_overrides_are_named(override: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        load_spec("snli", [override])


def test_unknown_sets_get_a_hint() -> None:
    with pytest.raises(BuildError, match=r"no set 'snly' .*did you mean 'snli'\?"):
        load_spec("snly")


def test_a_spec_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text((SETS_DIR / "snli.toml").read_text(encoding="utf-8").replace('"snli"', '"own"', 1), encoding="utf-8")
    assert load_spec(str(own)).folder_name == "own-aflite"
    own.write_text("name = 1 2", encoding="utf-8")
    with pytest.raises(BuildError, match=r"own\.toml is not valid TOML"):
        load_spec(str(own))


def test_values_from_must_name_values(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    text = (SETS_DIR / "snli.toml").read_text(encoding="utf-8")
    own.write_text(text.replace('"filter.m" =', '"filter.mm" ='), encoding="utf-8")
    with pytest.raises(BuildError, match=r"values_from names 'filter\.mm'"):
        load_spec(str(own))
