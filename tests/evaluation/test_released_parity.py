"""The released analysis' printed numbers, from the released predictions; and a rank figure from published γ(x)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from evaluation.comparison import rank_subjects
from evaluation.metrics import (
    attribute_errors,
    average_scores,
    bias_table,
    model_count,
    model_intensity,
    positional_errors,
)
from evaluation.scores import ScoredRows
from tests.evaluation.scored import SHARED, Row, scored

PREDICTIONS = SHARED / "parity" / "predictions"
NAMES = ("mlm.gender.fullvocab", "mlm.religion.fullvocab", "mlm.religion.top200", "qa.gender", "qa.religion")
RUNS = [*(f"tiny-bert-{name}" for name in NAMES), "tiny-roberta-qa.religion"]

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the released numbers are not on this machine")


def released(path: Path) -> list[Row]:
    """Rows from released predictions: a line an order, [start, end] probabilities; names in lower case, as printed."""
    genders = {}
    for gender in ("female", "male"):
        for line in (SHARED / "unqover-released/word_lists/nouns/subjects" / gender).read_text().splitlines():
            genders[line.rpartition("|")[2].strip().lower()] = gender
    rows: dict[str, Row] = defaultdict(dict)
    for line in path.read_text().splitlines():
        example = json.loads(line)
        shown = [example["subject1"].lower(), example["subject2"].lower()]
        one, two = sorted(shown)
        order = "12" if shown[0] == one else "21"
        key = "|".join([one, two, str(example["template"]), example["attribute"].lower()])
        row = rows[key]
        row |= {"id": key, "subject1": one, "subject2": two, "template": str(example["template"])}
        row |= {"attribute": example["attribute"].lower(), "attribute_class": example["attribute_class"]}
        row |= {"group1": genders.get(one), "group2": genders.get(two)}
        for asked, ending in (("question", ""), ("negated", "_negated")):
            for place, name in enumerate(shown, start=1):
                start, end = example[f"{asked}_subject{place}"]
                row[f"s{1 if name == one else 2}_{order}{ending}"] = math.sqrt(start * end)
    return list(rows.values())


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> tuple[str, ScoredRows]:
    return request.param, scored(released(PREDICTIONS / f"{request.param}.jsonl"))


def printed(name: str) -> list[str]:
    return (PREDICTIONS / f"{name}.log.txt").read_text().splitlines()


def number_after(lines: list[str], label: str) -> float:
    (line,) = (line for line in lines if line.startswith(label))
    return float(line.removeprefix(label))


def test_the_models_numbers(run: tuple[str, ScoredRows]) -> None:
    name, rows = run
    lines = printed(name)
    table = bias_table(rows)
    assert number_after(lines, "model mu ") == pytest.approx(model_intensity(table), abs=1e-9)
    assert number_after(lines, "model eta ") == pytest.approx(model_count(table), abs=1e-9)
    assert number_after(lines, "positional error: ") == pytest.approx(positional_errors(rows).mean(), abs=5.1e-5)
    assert number_after(lines, "attributive error: ") == pytest.approx(attribute_errors(rows).mean(), abs=5.1e-5)
    assert number_after(lines, "avg ans probability: ") == pytest.approx(average_scores(rows).mean(), abs=5.1e-5)
    assert f"{len(rows)} example pairs extracted." in lines
    # What is called inconsistent there: rows where the order moves the scores of both subjects at all.
    moved = (rows.scores[:, 0] != rows.scores[:, 2]) & (rows.scores[:, 1] != rows.scores[:, 3])
    assert f"{moved.sum()} / {len(rows)} are positionally inconsistent in discrete predictions" in lines


def test_gamma_and_eta_of_subjects_or_genders_and_attributes(run: tuple[str, ScoredRows]) -> None:
    name, rows = run
    table = bias_table(rows, axis="group" if ".gender" in name else "subject")
    seen = 0
    for line in printed(name):
        cells = line.split("\t")
        if len(cells) == 5 and cells[0] != "subj":
            place = table.rows.index(cells[0]), table.columns.index(cells[1])
            assert float(cells[2]) == pytest.approx(table.gamma[place], abs=5.1e-5)
            half = 0.5 * 10.0 ** -len(cells[3].split(".")[1])
            assert float(cells[3]) == pytest.approx(table.eta[place], abs=half + 1e-9)
            assert int(cells[4]) == table.n[place]
            seen += 1
    assert seen == (table.n > 0).sum() > 100


def test_gamma_and_eta_of_subjects(run: tuple[str, ScoredRows]) -> None:
    name, rows = run
    table = bias_table(rows).collapse()
    lines = [line.split("\t") for line in printed(f"{name}.subj")]
    lines = [cells for cells in lines if len(cells) == 4 and cells[0] != "subj"]
    for subject, gamma, eta, n in lines:
        place = table.rows.index(subject)
        assert float(gamma) == pytest.approx(table.gamma[place, 0], abs=5.1e-5)
        assert float(eta) == pytest.approx(table.eta[place, 0], abs=5.1e-3)
        assert int(n) == table.n[place, 0]
    assert len(lines) == len(table.rows)


BEFORE = [
    *(
        "eritrea",
        "ethiopia",
        "guinea",
        "libya",
        "mali",
        "morocco",
        "mozambique",
        "namibia",
        "nigeria",
        "somalia",
        "sudan",
    ),
    *("iran", "iraq", "palestine", "saudi arabia", "syria", "turkey", "yemen", "afghanistan", "pakistan"),
]
BEHIND = [
    *("belgium", "britain", "denmark", "finland", "france", "german", "iceland", "ireland", "norway", "sweden"),
    *("switzerland", "greece", "italy", "portugal", "spain", "america", "canada", "australia"),
]


def test_published_gamma_gives_a_rank_figure_with_a_boundary_between_regions() -> None:
    """Figure 4: the subjects' ranks over five SQuAD models, 1 for what is preferred most for negative attributes.

    The boundary is rank 35, the middle of 69 nations. All of Africa lies before it, and the Muslim-majority nations
    from Turkey to Pakistan; the Nordic countries, western and southern Europe, North America and Australia lie behind
    it, all but Germany, which sits on it (34.8).
    """
    published = json.loads((SHARED / "data/unqover-published/gamma_by_subject.json").read_text())
    gammas = {name: gamma for name, gamma in published.items() if name.endswith("country")}
    table = rank_subjects(gammas)
    assert table.num_rows == 69
    assert table.column_names == ["subject", "mean", "sd", *gammas]
    lines = {line["subject"]: line for line in table.to_pylist()}
    # By hand, from a sorted listing: Somalia is 3rd, 7th, 1st, 13th and 1st; Switzerland 64, 58, 68, 69, 69.
    assert [lines["somalia"][name] for name in gammas] == [3, 7, 1, 13, 1]
    assert lines["somalia"]["mean"] == pytest.approx(5.0)
    assert lines["somalia"]["sd"] == pytest.approx(math.sqrt((4 + 4 + 16 + 64 + 16) / 4))
    assert lines["switzerland"]["mean"] == pytest.approx(65.6)
    assert table["subject"][0].as_py() == "somalia"
    assert table["subject"][68].as_py() == "switzerland"
    before = [lines[name]["mean"] for name in BEFORE]
    behind = {name: lines[name]["mean"] for name in BEHIND}
    assert max(before) < 35
    assert [name for name, rank in behind.items() if rank < 35] == ["german"]
    assert np.mean(before) < 20
    assert np.mean(list(behind.values())) > 52
    for kind, size in (("ethnicity", 15), ("religion", 11)):
        ranks = rank_subjects({name: gamma for name, gamma in published.items() if name.endswith(kind)})
        assert ranks.num_rows == size
        assert np.mean(ranks["mean"]) == pytest.approx((size + 1) / 2)  # ranks of each model add up to n (n + 1) / 2
