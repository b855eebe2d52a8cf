import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluation.classifiers.difficulty import cross_model_difficulty, locate
from evaluation.classifiers.matching import Rows, match_keys, match_pairs
from evaluation.classifiers.metrics import Rate, difference, group_accuracies, wilson
from evaluation.classifiers.prediction_files import PredictionFile, read_predictions
from evaluation.errors import EvaluationError

NAMES = ("entailment", "neutral", "contradiction")
# Ten rows of a split of twelve, whose rows 3 and 7 have no label. Kept are the last six: the model is right on 2 of
# them, and on 3 of the 4 others.
LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
SAID = [0, 1, 2, 1, 2, 0, 1, 2, 2, 0]
INDEX = [0, 1, 2, 4, 5, 6, 8, 9, 10, 11]
KEPT = np.arange(10) >= 4
MASKS = {"kept": KEPT, "removed": ~KEPT}
ROWS = Rows(
    NAMES,
    np.array(LABELS),
    np.array(INDEX),
    pair_ids=tuple(f"ex{place}" for place in INDEX),
    pairs=tuple((f"A man {place}.", f"He, {place}\u2028of them, sleeps.") for place in INDEX),
)
SHUFFLED = [3, 8, 1, 0, 9, 5, 7, 2, 6, 4]
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def lines(rows: list[object]) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n"


def logits(label: int) -> list[float]:
    return [2.5 if place == label else -0.5 for place in range(3)]


def texts(row: int) -> dict[str, str]:
    return dict(zip(("premise", "hypothesis"), ROWS.pairs[row], strict=True))


FORMS: dict[str, tuple[str, str, str]] = {
    "trainer": (
        "eval_predictions.jsonl",
        lines(
            [
                {
                    **texts(i),
                    "label": LABELS[i],
                    "predicted_label": SAID[i],
                    "predicted_scores": logits(SAID[i]),
                }
                for i in SHUFFLED
            ]
        ),
        "text",
    ),
    "source index and names": (
        "p.jsonl",
        lines(
            [
                {"source_index": INDEX[i], "gold": NAMES[LABELS[i]], "prediction": NAMES[SAID[i]].upper()}
                for i in SHUFFLED
            ]
        ),
        "source_index",
    ),
    "texts of the authors": (
        "p.jsonl",
        lines(
            [
                {
                    "sentence1": f" {ROWS.pairs[i][0]}",
                    "sentence2": ROWS.pairs[i][1],
                    "gold_label": NAMES[LABELS[i]],
                    "label": NAMES[SAID[i]],
                }
                for i in SHUFFLED
            ]
        ),
        "text",
    ),
    "pair id to name": ("p.json", json.dumps({f"ex{INDEX[i]}": NAMES[SAID[i]] for i in SHUFFLED}, indent=1), "pair id"),
    "pair id to number": ("p.json", json.dumps({f"ex{INDEX[i]}": SAID[i] for i in SHUFFLED}), "pair id"),
    "pair id to logits": ("p.json", json.dumps({f"ex{INDEX[i]}": logits(SAID[i]) for i in SHUFFLED}), "pair id"),
    "pair id to object": (
        "p.json",
        json.dumps({f"ex{INDEX[i]}": {"pred": SAID[i], "label": LABELS[i]} for i in SHUFFLED}),
        "pair id",
    ),
    "submission": (
        "hans.txt",
        "pairID,gold_label\n" + "".join(f"ex{INDEX[i]},{NAMES[SAID[i]]}\n" for i in SHUFFLED),
        "pair id",
    ),
    "trainer's text": (
        "predict_results.txt",
        "index\tprediction\n" + "".join(f"{place}\t{NAMES[said]}\n" for place, said in enumerate(SAID)),
        "index",
    ),
    "index in the whole split": (
        "p.tsv",
        "idx\tprediction\n"
        + "".join(f"{place}\t{SAID[INDEX.index(place)] if place in INDEX else 0}\n" for place in range(12)),
        "index",
    ),
    "table of logits": (
        "p.csv",
        "pair_id,logits\n" + "".join(f'ex{INDEX[i]},"{logits(SAID[i])}"\n' for i in SHUFFLED),
        "pair id",
    ),
    "logits a line": ("p.jsonl", lines([logits(said) for said in SAID]), "order"),
    "a list": ("p.json", json.dumps([NAMES[said] for said in SAID]), "order"),
    "objects in order": ("p.json", json.dumps([{"probs": logits(said)} for said in SAID]), "order"),
}


WITH_GOLD = ("trainer", "source index and names", "texts of the authors", "pair id to object")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_counts(form: str, write: Write) -> None:
    name, text, how = FORMS[form]
    found = cross_model_difficulty(read_predictions(write(name, text), NAMES), ROWS, MASKS)
    assert (found.matched_by, found.matched, found.rows) == (how, 10, 10)
    assert (found.full.value, found.full.n) == (0.5, 10)
    assert (found.kept.value, found.kept.n) == (pytest.approx(2 / 6), 6)
    assert (found.removed.value, found.removed.n) == (3 / 4, 4)
    kept, removed = Rate(2 / 6, *wilson(2 / 6, 6), 6), Rate(3 / 4, *wilson(3 / 4, 4), 4)
    assert found.drop == difference(removed, kept)
    assert found.drop.value == pytest.approx(3 / 4 - 1 / 3)
    assert found.gold_differs == (0 if form in WITH_GOLD else None)
    assert found.unused == (2 if form == "index in the whole split" else 0)
    assert found.to_json()["kept"]["n"] == 6


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", ["labels", "logits"])
def test_arrays_are_in_row_order(whole: bool, kind: str, tmp_path: Path) -> None:
    said = np.array([SAID[INDEX.index(place)] if place in INDEX else 0 for place in range(12)] if whole else SAID)
    np.save(tmp_path / "p.npy", said if kind == "labels" else np.array([logits(one) for one in said], dtype=np.float32))
    order = np.random.default_rng(0).permutation(10)  # the rows of a filtered set are not in source order
    rows = Rows(NAMES, ROWS.labels[order], ROWS.source_index[order])
    found = cross_model_difficulty(
        read_predictions(tmp_path / "p.npy", NAMES), rows, {"kept": KEPT[order], "removed": ~KEPT[order]}
    )
    assert (found.matched_by, found.kept.value, found.removed.value) == ("order", pytest.approx(2 / 6), 3 / 4)
    assert found.unused == (2 if whole else 0)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("form", ["number", "label", "logits"])
def test_a_label_map_says_what_numbers_mean(order: tuple[int, ...], form: str, write: Write) -> None:
    own = [order.index(said) for said in SAID]  # the model's own number of each decision
    shown = {"number": own, "label": [f"LABEL_{one}" for one in own], "logits": [logits(one) for one in own]}[form]
    text = lines([{"pairID": f"ex{place}", "pred": one} for place, one in zip(INDEX, shown, strict=True)])
    label_map = ",".join(f"{place}={NAMES[one]}" for place, one in enumerate(order))
    file = read_predictions(write("p.jsonl", text), NAMES, label_map=label_map)
    assert file.predicted.tolist() == SAID


def test_gold_labels_may_count_as_the_dataset_or_as_the_model(write: Write) -> None:
    label_map = "0=contradiction,1=neutral,2=entailment"
    for gold in (LABELS, [2 - label for label in LABELS]):
        rows = [{"pairID": f"ex{p}", "label": g, "pred": 2 - s} for p, g, s in zip(INDEX, gold, SAID, strict=True)]
        file = read_predictions(write("p.jsonl", lines(rows)), NAMES, label_map=label_map)
        found = cross_model_difficulty(file, ROWS, MASKS)
        assert (found.gold_differs, found.full.value) == (0, 0.5)


def test_gold_labels_that_differ_are_refused(write: Write) -> None:
    rows = [{"pairID": f"ex{p}", "label": 2 - g, "pred": s} for p, g, s in zip(INDEX, LABELS, SAID, strict=True)]
    with pytest.raises(EvaluationError, match=r"other gold labels than the dataset in 7 of 10 rows.*--label-map"):
        cross_model_difficulty(read_predictions(write("p.jsonl", lines(rows)), NAMES), ROWS, MASKS)


def test_a_few_corrected_gold_labels_are_counted_and_unknown_ones_are_not(write: Write) -> None:
    labels = np.arange(60) % 3
    rows = [{"source_index": i, "gold_label": int(g), "pred": int(g)} for i, g in enumerate(labels)]
    rows[5]["gold_label"], rows[6]["gold_label"] = 0, "-"  # row 5 is of class 2
    file = read_predictions(write("p.jsonl", lines(rows)), NAMES)
    kept = np.arange(60) < 30
    found = cross_model_difficulty(file, Rows(NAMES, labels, np.arange(60)), {"kept": kept, "removed": ~kept})
    assert (found.gold_differs, found.full.value) == (1, 1.0)


def test_a_wrong_order_is_pointed_out(write: Write) -> None:
    labels = np.arange(60) % 3
    rows = [{"source_index": i, "pred": int((g + 1) % 3)} for i, g in enumerate(labels)]
    kept = np.arange(60) < 30
    file = read_predictions(write("p.jsonl", lines(rows)), NAMES)
    found = cross_model_difficulty(file, Rows(NAMES, labels, np.arange(60)), {"kept": kept, "removed": ~kept})
    assert found.label_order is not None
    assert "neutral for entailment" in found.label_order


def test_three_way_predictions_on_hans(write: Write) -> None:
    text = "pairID,gold_label\nex0,entailment\nex1,neutral\nex2,contradiction\nex3,entailment\n"
    assert read_predictions(write("p.csv", text), ("entailment", "non-entailment")).predicted.tolist() == [0, 1, 1, 0]
    scores = json.dumps([[0.4, 0.3, 0.3], [0.2, 0.5, 0.3]])
    path = write("p.json", scores)
    with pytest.raises(EvaluationError, match="scores of 3 classes, the dataset has 2"):
        read_predictions(path, ("entailment", "non-entailment"))
    label_map = "0=entailment,1=neutral,2=contradiction"
    assert read_predictions(path, ("entailment", "non-entailment"), label_map=label_map).predicted.tolist() == [0, 1]


def test_hans_by_heuristic_from_a_prediction_file(write: Write) -> None:
    # By label and heuristic: entailed lexical_overlap 2 of 2, subsequence 1 of 2; non-entailed lexical_overlap 1 of 3
    # (neutral is right, twice entailment is not), subsequence 0 of 1.
    labels = np.array([0, 1, 0, 1, 1, 0, 0, 1])
    heuristics = ["lexical_overlap"] * 5 + ["subsequence"] * 3
    yes = "entailment"
    said = [yes, "neutral", yes, yes, yes, "contradiction", yes, yes]
    text = "pairID,gold_label\n" + "".join(f"ex{place},{said[place]}\n" for place in (7, 2, 5, 0, 3, 6, 1, 4))
    names = ("entailment", "non-entailment")
    rows = Rows(names, labels, np.arange(8), pair_ids=tuple(f"ex{place}" for place in range(8)))
    file = read_predictions(write("preds.txt", text), names)
    places, how = locate(file, rows)
    predicted = file.predicted[places]
    entailed, others = (
        {
            name: (found.value, found.n)
            for name, found in group_accuracies(labels[of], predicted[of], np.array(heuristics)[of]).items()
        }
        for of in (labels == 0, labels == 1)
    )
    assert how == "pair id"
    assert entailed == {"lexical_overlap": (1.0, 2), "subsequence": (0.5, 2)}
    assert others == {"lexical_overlap": (pytest.approx(1 / 3), 3), "subsequence": (0.0, 1)}


def test_rows_without_prediction_are_left_out_and_counted(write: Write) -> None:
    rows = [{"pairID": f"ex{place}", "pred": said} for place, said in zip(INDEX[2:6], SAID[2:6], strict=True)]
    rows.append({"pairID": "ex99", "pred": 0})
    file = read_predictions(write("p.jsonl", lines(rows)), NAMES)
    found = cross_model_difficulty(file, ROWS, MASKS)
    assert (found.in_file, found.rows, found.matched, found.unused) == (5, 10, 4, 1)
    # Rows 2 and 3 are removed (right, wrong), 4 and 5 are kept (both wrong).
    assert (found.removed.value, found.kept.value, found.kept.n) == (0.5, 0.0, 2)
    with pytest.raises(EvaluationError, match=r"^kept in p\.jsonl has no rows to score"):
        cross_model_difficulty(file, ROWS, {"kept": np.arange(10) > 7, "removed": ~KEPT})


def test_quotes_in_tables_with_tabs_are_text(write: Write) -> None:
    table = 'index\tquestion\tsentence\tprediction\n0\t"Who?\t"He" did.\t1\n1\tWhat?\t"It.\t0\n'
    file = read_predictions(write("p.tsv", table), ("entailment", "not_entailment"))
    assert file.pairs == (('"Who?', '"He" did.'), ("What?", '"It.'))
    assert file.predicted.tolist() == [1, 0]
    quoted = 'premise,hypothesis,pred\n"A, b","He said ""no"".",2\n'
    assert read_predictions(write("p.csv", quoted), NAMES).pairs == (("A, b", 'He said "no".'),)


def test_fields_that_only_some_rows_have_do_no_harm(write: Write) -> None:
    rows = [{"pairID": "a", "pred": 1}, {"pairID": "b", "pred": 2, "comment": "hard"}]
    assert read_predictions(write("p.jsonl", lines(rows)), NAMES).predicted.tolist() == [1, 2]


def test_equal_texts_go_in_order() -> None:
    known = [("a", "b"), ("c", "d"), (" a", "b ")]
    wanted = [("a", "b"), ("a", "b"), ("a", "b"), ("x", "y"), ("c", "d")]
    assert match_pairs(wanted, known).tolist() == [0, 2, 2, -1, 1]


def test_keys_match_once() -> None:
    assert match_keys([3, 1, 9], [1, 2, 3], what="index").tolist() == [2, 0, -1]
    with pytest.raises(EvaluationError, match="index 2 is there twice"):
        match_keys([1], [2, 1, 2], what="index")


def test_rows_of_a_filtered_table() -> None:
    table = pa.table({"premise": ["a", "b"], "hypothesis": ["c", "d"], "label": [2, 0], "source_index": [5, 3]})
    rows = Rows.from_table(table, NAMES, ("premise", "hypothesis"))
    assert (rows.labels.tolist(), rows.source_index.tolist(), rows.pair_ids) == ([2, 0], [5, 3], None)
    assert rows.pairs == (("a", "c"), ("b", "d"))
    hans = Rows.from_table(
        pa.table({"label": [1, 0], "pairID": ["ex0", "ex1"], "image": [b"", b""]}), ("a", "b"), ["image"]
    )
    assert (hans.pair_ids, hans.pairs, hans.source_index.tolist()) == (("ex0", "ex1"), None, [0, 1])


def test_a_known_size_of_the_source_counts(tmp_path: Path) -> None:
    rows = Rows(NAMES, np.array([0, 1]), np.array([1, 2]), source_rows=5)
    assert locate(PredictionFile("p", np.arange(5) % 3), rows)[0].tolist() == [1, 2]
    with pytest.raises(EvaluationError, match="has 3 predictions, where the split has 2 or 5 rows"):
        locate(PredictionFile("p", np.arange(3)), rows)


def test_rows_that_are_not_there_are_refused() -> None:
    bare = Rows(NAMES, ROWS.labels, ROWS.source_index)
    said = np.zeros(1, dtype=np.int64)
    with pytest.raises(
        EvaluationError,
        match=r"^p is not of these 10 rows: by pair id 0 found \(the file has 'ex99', the split 'ex0'\); by",
    ):
        locate(PredictionFile("p", said, pair_ids=("ex99",), pairs=(("a", "b"),)), ROWS)
    with pytest.raises(EvaluationError, match="this dataset has no such ids or texts to compare: add"):
        locate(PredictionFile("p", said, pair_ids=("ex0",)), bare)
    with pytest.raises(EvaluationError, match="this dataset has no such ids or texts to compare: add"):
        locate(PredictionFile("p", said, indexes=("ex0",)), bare)
    with pytest.raises(EvaluationError, match="source_index 4 is there twice"):
        locate(PredictionFile("p", np.zeros(2, dtype=np.int64), source_index=(4, 4)), bare)


TWELVE = Rows(NAMES, ROWS.labels, ROWS.source_index, pairs=ROWS.pairs, source_rows=12)


def numbered(field: str, numbers: list[int]) -> str:
    return lines([{field: number, "pred": place % 3} for place, number in enumerate(numbers)])


@pytest.mark.parametrize("field", ["index", "source_index"])
@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (list(range(1, 13)), "goes from 1 to 12, but rows are counted from 0"),
        (list(range(1, 11)), "goes from 1 to 10, but rows are counted from 0"),
        ([3, 4, 12], "goes from 3 to 12, but the rows of the split are 0 to 11"),
        ([0, 1, 10**15], "goes from 0 to 1,000,000,000,000,000, but"),
    ],
)
def test_numbers_that_do_not_count_from_0_are_refused(
    field: str, numbers: list[int], message: str, write: Write
) -> None:
    file = read_predictions(write("p.jsonl", numbered(field, numbers)), NAMES)
    with pytest.raises(EvaluationError, match=rf"^p\.jsonl: {field} {message}"):
        locate(file, TWELVE)


def test_an_index_of_the_labelled_rows_may_be_their_place_in_the_source(write: Write) -> None:
    file = read_predictions(write("p.jsonl", numbered("index", INDEX)), NAMES)
    assert locate(file, TWELVE)[0].tolist() == list(range(10))
    first_and_last_unlabelled = Rows(NAMES, ROWS.labels, np.arange(1, 11), source_rows=12)
    file = read_predictions(write("p.jsonl", numbered("index", list(range(1, 11)))), NAMES)
    assert locate(file, first_and_last_unlabelled)[0].tolist() == list(range(10))


def test_predictions_for_the_same_texts_that_differ_are_refused(write: Write) -> None:
    rows = [{**texts(i), "pred": 1} for i in (0, 1, 0)]
    assert locate(read_predictions(write("p.jsonl", lines(rows)), NAMES), ROWS)[0][:2].tolist() == [0, 1]
    rows[2]["pred"] = 2
    with pytest.raises(EvaluationError, match=r"rows 1, 3 have the same texts.*in 1 of its rows"):
        locate(read_predictions(write("p.jsonl", lines(rows)), NAMES), ROWS)
    pairs = (ROWS.pairs[0], ROWS.pairs[1], ROWS.pairs[0])
    both = Rows(NAMES, np.zeros(3, np.int64), np.arange(3), pairs=pairs)
    assert locate(read_predictions(write("p.jsonl", lines(rows)), NAMES), both)[0].tolist() == [0, 1, 2]


def test_pair_ids_that_name_two_rows_name_none(write: Write) -> None:
    rows = Rows(NAMES, np.array([0, 1]), np.array([0, 1]), pair_ids=("a", "a"), pairs=ROWS.pairs[:2])
    file = read_predictions(
        write("p.jsonl", lines([{**texts(i), "pairID": f"a{i}", "pred": i} for i in (1, 0)])), NAMES
    )
    assert (locate(file, rows)[0].tolist(), locate(file, rows)[1]) == ([1, 0], "text")


def test_classes_that_are_called_as_numbers_are_found_by_name(write: Write) -> None:
    path = write("p.jsonl", lines([{"index": place, "pred": said} for place, said in enumerate([1, "1", 3])]))
    assert read_predictions(path, ("1", "2", "3")).predicted.tolist() == [0, 0, 2]


def test_fields_that_agree_may_stand_beside_each_other(write: Write) -> None:
    rows = [{"idx": "3", "id": 3, "pred": 1, "predicted_label": "neutral", "label": 1, "gold_label": "neutral"}]
    file = read_predictions(write("p.jsonl", lines(rows)), NAMES)
    assert (file.indexes, file.predicted.tolist(), [gold.tolist() for gold in file.gold]) == (("3",), [1], [[1]])
    names = [{"pairID": "a", "predicted_label": "neutral", "logits": [3, 1, 0]}]  # logits may be in the model's order
    assert read_predictions(write("p.jsonl", lines(names)), NAMES).predicted.tolist() == [1]
