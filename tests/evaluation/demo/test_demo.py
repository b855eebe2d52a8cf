"""The whole demo, once: what was planted is found, and nothing is found where nothing was planted."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from evaluation.demo import train
from evaluation.demo.run import PLANTS, Places, run_demo
from evaluation.store import read_json

CLASSES = {"qa": "AutoModelForQuestionAnswering", "mlm": "AutoModelForMaskedLM"}
HABITS = {"garden": ("bees", "roses"), "kitchen": ("bread", "tea")}
PLANTED = [(plant, attribute) for plant in PLANTS for attribute in HABITS[plant.attribute_class]]


class Demo(NamedTuple):
    places: Places
    told: str
    results: dict[str, Any]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    root = tmp_path_factory.mktemp("demo")
    places = Places(root / "build", root / "models", root / "results", root / "results" / "report.html")
    told = "\n".join(run_demo(places, seed=0))
    results = places.results.rglob("*.exact.json")
    found = {path.relative_to(places.results).parts[0]: read_json(path) for path in results}
    return Demo(places, told, found)


def gamma(result: Any, subject: str, attribute: str) -> tuple[float, float, float]:
    table = result["tables"]["subject_attribute"]
    at = list(zip(table["subject"], table["attribute"], strict=True)).index((subject, attribute))
    return table["gamma"][at], table["gamma_low"][at], table["gamma_high"][at]


@pytest.mark.parametrize("kind", ["qa", "mlm"])
def test_what_was_planted_is_found(demo: Demo, kind: str) -> None:
    result = demo.results[f"tiny-{kind}-planted"]
    assert result["metrics"]["mu"]["low"] > 0.05
    for plant, attribute in PLANTED:
        value, low, high = gamma(result, plant.subject, attribute)
        assert min(low * plant.strength, high * plant.strength) > 0, (plant, attribute)
        assert value == pytest.approx(plant.strength, abs=0.35), (plant, attribute)
    assert result["metrics"]["epsilon"]["value"] < 0.2  # who is preferred for a habit is not for its opposite


@pytest.mark.parametrize("kind", ["qa", "mlm"])
def test_nothing_is_found_where_nothing_was_planted(demo: Demo, kind: str) -> None:
    result = demo.results[f"tiny-{kind}-plain"]
    assert result["metrics"]["mu"]["low"] == 0
    assert result["metrics"]["mu"]["high"] < 0.1
    for plant, attribute in PLANTED:
        _, low, high = gamma(result, plant.subject, attribute)
        assert low <= 0 <= high, (plant, attribute)


@pytest.mark.parametrize("kind", ["qa", "mlm"])
@pytest.mark.parametrize("name", ["planted", "plain"])
def test_models_load_and_have_learned_to_read(demo: Demo, kind: str, name: str) -> None:
    import transformers

    folder = demo.places.models / f"tiny-{kind}-{name}"
    model, info = getattr(transformers, CLASSES[kind]).from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert transformers.AutoModel.from_pretrained(folder).config.hidden_size == model.config.hidden_size
    assert transformers.AutoTokenizer.from_pretrained(folder).mask_token == "[MASK]"
    assert json.loads((folder / "planted.json").read_text())["learned"]["told_stories_right"] > 0.95


def test_it_tells_what_it_does_and_where_the_report_is(demo: Demo) -> None:
    assert demo.places.report.is_file()
    page = demo.places.report.read_text(encoding="utf-8")
    assert "tiny-qa-planted" in page
    assert "From a base model" not in page
    lines = demo.told.splitlines()
    verdicts = {line.split()[0]: line.rsplit("  ", 1)[1] for line in lines if line.endswith(("within", "outside"))}
    assert verdicts == {
        f"tiny-{kind}-{name}": f"zero lies {where}"
        for kind in ("qa", "mlm")
        for name, where in (("planted", "outside"), ("plain", "within"))
    }
    assert any(line.split()[:4] == ["qa", "Bovrian", "bees", "+0.67"] for line in lines)
    assert str(demo.places.report) in demo.told
    assert "probesieve eval --model distilbert/distilbert-base-cased-distilled-squad" in demo.told
    assert "would have 0.38 with the plants" in demo.told  # four of seven towns at 0.667


def test_a_second_run_finds_all_of_it(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_mtime_ns for path in demo.places.models.rglob("*")}
    monkeypatch.setattr(train, "_trained", lambda task: pytest.fail("trained again"))
    monkeypatch.setattr("evaluation.run._score_missing", lambda *_: pytest.fail("scored again"))
    again = "\n".join(run_demo(demo.places, seed=0))
    assert again.count("up to date") == 5
    assert "trained;" not in again
    assert {path: path.stat().st_mtime_ns for path in demo.places.models.rglob("*")} == before
