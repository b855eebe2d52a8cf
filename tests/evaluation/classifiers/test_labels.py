import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from evaluation.classifiers.labels import BY_MAP, BY_NAME, COLLAPSED, check_outputs, match_labels
from evaluation.errors import EvaluationError

NLI = ("entailment", "neutral", "contradiction")
TWO = ("entailment", "non-entailment")
FORMS = (
    ("entailment", "neutral", "contradiction"),
    ("ENTAILMENT", "NEUTRAL", "CONTRADICTION"),
    ("entails", "neutral", "contradicts"),
    ("Entail", " neutral ", "contradict"),
    ("e", "n", "c"),
)
# A row for each class that is the clear decision, and one where entailment leads but neutral and contradiction together
# are more likely. Columns in the order of NLI.
LOGITS = np.log([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6], [0.4, 0.3, 0.3]])


def reordered(order: Sequence[int]) -> np.ndarray:
    return LOGITS[:, list(order)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("wanted", list(itertools.permutations(NLI)))
def test_any_order_of_model_and_dataset_gives_the_same_to_the_last_bit(
    form: tuple[str, ...], order: tuple[int, ...], wanted: tuple[str, ...]
) -> None:
    labels = match_labels({str(i): form[j] for i, j in enumerate(order)}, wanted)
    mapped = labels.of_logits(reordered(order))
    columns = [NLI.index(name) for name in wanted]
    np.testing.assert_allclose(mapped.probabilities, np.exp(LOGITS)[:, columns], rtol=1e-6)
    assert [wanted[place] for place in mapped.predicted] == ["entailment", "neutral", "contradiction", "entailment"]
    straight = match_labels(NLI, wanted).of_logits(LOGITS)
    assert mapped.probabilities.tobytes() == straight.probabilities.tobytes()
    assert mapped.probabilities.dtype == np.float32
    assert mapped.predicted.dtype == np.int64
    assert labels.rule == BY_NAME


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("wanted", [TWO, TWO[::-1], ("not_entailment", "entailment"), ("Entailed", "Not Entailment")])
def test_a_three_way_model_decides_first_and_is_collapsed_then(order: tuple[int, ...], wanted: tuple[str, ...]) -> None:
    labels = match_labels([NLI[j] for j in order], wanted)
    mapped = labels.of_logits(reordered(order))
    yes = 1 if wanted[0].startswith("no") else 0
    np.testing.assert_allclose(mapped.probabilities[:, yes], [0.8, 0.2, 0.3, 0.4], rtol=1e-6)
    np.testing.assert_allclose(mapped.probabilities.sum(axis=1), 1, rtol=1e-6)
    # The last row is entailment to the model, though 0.6 of its belief is elsewhere.
    assert mapped.predicted.tolist() == [yes, 1 - yes, 1 - yes, yes]
    assert labels.rule == COLLAPSED
    straight = match_labels(NLI, wanted).of_logits(LOGITS)
    assert mapped.probabilities.tobytes() == straight.probabilities.tobytes()


@pytest.mark.parametrize("model", list(itertools.permutations(("not_entailment", "ENTAILMENT"))))
@pytest.mark.parametrize("wanted", list(itertools.permutations(TWO)))
def test_two_way_models_meet_two_way_sets(model: tuple[str, str], wanted: tuple[str, str]) -> None:
    logits = np.zeros((1, 2))
    logits[0, model.index("ENTAILMENT")] = 3
    mapped = match_labels(model, wanted).of_logits(logits)
    assert wanted[mapped.predicted[0]] == "entailment"


def test_a_two_way_model_on_a_three_way_set_is_refused_with_the_reason() -> None:
    with pytest.raises(EvaluationError, match=r"two-way model \(entailment, not_entailment\) cannot.*may be neutral"):
        match_labels(["entailment", "not_entailment"], NLI)


@pytest.mark.parametrize(
    "unnamed", [("LABEL_0", "LABEL_1", "LABEL_2"), ("0", "1", "2"), ("entailment", "LABEL_1", "x")]
)
def test_classes_without_names_are_refused(unnamed: tuple[str, ...]) -> None:
    with pytest.raises(EvaluationError, match=r"have no names .* --label-map 0=entailment,1=neutral,2=contradiction"):
        match_labels(unnamed, NLI)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("key", ["LABEL_{}", "{}"])
def test_a_label_map_names_them(order: tuple[int, ...], key: str) -> None:
    text = ",".join(f"{key.format(i)}={FORMS[1][j]}" for i, j in enumerate(order))
    labels = match_labels(["LABEL_0", "LABEL_1", "LABEL_2"], NLI, label_map=text)
    assert labels.target == order
    np.testing.assert_allclose(labels.of_logits(reordered(order)).probabilities, np.exp(LOGITS), rtol=1e-6)
    two = match_labels(["LABEL_0", "LABEL_1", "LABEL_2"], TWO, label_map=text)
    assert two.target == tuple(min(j, 1) for j in order)


def test_a_label_map_overrules_names_and_takes_commas() -> None:
    assert match_labels(NLI, NLI, label_map="entailment=contradiction,1=neutral,2=entailment").target == (2, 1, 0)
    fish = ("tench, Tinca tinca", "goldfish, Carassius auratus")
    assert match_labels(["a", "b"], fish, label_map=f"a={fish[1]},b={fish[0]}").target == (1, 0)
    several = match_labels(["x", "y", "z"], TWO, label_map="x=entailment,y=not_entailment,z=not_entailment")
    assert several.target == (0, 1, 1)


def test_a_result_says_whether_names_or_a_map_decided() -> None:
    text = "0=entailment,1=neutral,2=contradiction"
    assert match_labels(NLI, NLI).rule == BY_NAME
    assert match_labels(NLI, NLI, label_map=text).rule == BY_MAP
    assert match_labels(NLI, TWO, label_map=text).rule == COLLAPSED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0=entailment,1=neutral", "leaves out LABEL_2"),
        ("0=entailment,1=neutral,2=entailment", "entailment to more than one"),
        ("0=entailment,1=neutral,1=contradiction", "class '1' twice"),
        ("0=entailment,1=neutral,3=contradiction", "no class '3'"),
        ("LABEL_0=entailment,LABEL_1=neutral,LABLE_2=contradiction", "did you mean 'LABEL_2'"),
        ("0=entailment,1=neutral,2=contradikshun", "no class 'contradikshun'.*did you mean 'contradiction'"),
        ("0=entailment,1=neutral,2=not_entailment", "no class 'not_entailment'"),
        ("entailment,neutral", "is not CLASS=NAME"),
        ("", "is not CLASS=NAME"),
        ("9" * 5_000 + "=entailment,1=neutral,2=contradiction", "the model has no class '999"),
    ],
)
def test_wrong_label_maps_are_refused(text: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        match_labels(["LABEL_0", "LABEL_1", "LABEL_2"], NLI, label_map=text)


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (("negative", "positive"), NLI),
        (NLI, ("negative", "positive")),
        (("entailment", "contradiction"), NLI),
        (("entailment", "contradiction"), TWO),
        (("cat", "dog"), ("cat", "bird")),
    ],
)
def test_classes_that_do_not_match_are_refused_naming_both_sides(
    model: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    with pytest.raises(EvaluationError, match="do not match") as raised:
        match_labels(model, wanted)
    assert "\n" not in str(raised.value)
    assert all(name in str(raised.value) for name in (*model, *wanted))


def test_two_classes_of_one_meaning_are_refused() -> None:
    with pytest.raises(EvaluationError, match="some of them mean the same"):
        match_labels(["entailment", "neutral", "contradiction", "contradicts"], NLI)


def test_many_classes_are_not_all_written_out() -> None:
    with pytest.raises(EvaluationError, match="c0, c1, c2, c3, c4, c5 and 994 more") as raised:
        match_labels([f"c{i}" for i in range(1000)], ["dog"])
    assert len(str(raised.value)) < 300


def test_indexes_must_count_from_0() -> None:
    assert match_labels({2: "c", 0: "e", 1: "n"}, NLI).target == (0, 1, 2)
    with pytest.raises(EvaluationError, match="number its 3 classes from 0; it has 1, 2, 3"):
        match_labels({1: "e", 2: "n", 3: "c"}, NLI)


def test_image_classes_match_as_written_then_plain_then_by_synonym() -> None:
    model = (
        "Cardigan, Cardigan Welsh corgi",
        "cardigan",
        "projectile, missile",
        "missile",
        "tench, Tinca tinca",
        "jay",
    )
    wanted = ("missile", "cardigan", "Welsh_corgi, Cardigan Welsh Corgi", "Jay", "tench", "projectile")
    assert match_labels(model, wanted).target == (2, 1, 5, 0, 4, 3)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_image_classes_match_in_every_order(order: tuple[int, ...]) -> None:
    model = ("tench, Tinca tinca", "great white shark, white shark", "hen", "tree frog, tree-frog")
    wanted = ("Tree Frog", "hen", "white_shark", "tench, Tinca tinca")
    labels = match_labels([model[j] for j in order], wanted)
    assert [labels.target[order.index(j)] for j in range(4)] == [3, 2, 1, 0]


def test_a_subset_of_the_classes_sees_no_other_logit() -> None:
    labels = match_labels(["dog", "stingray", "goldfinch, Carduelis carduelis", "cat"], ["goldfinch", "stingray"])
    assert labels.target == (-1, 1, 0, -1)
    mapped = labels.of_logits([[9.0, np.log(1.0), np.log(3.0), 9.0]])
    np.testing.assert_allclose(mapped.probabilities, [[0.75, 0.25]], rtol=1e-6)
    assert mapped.predicted.tolist() == [0]
    assert "2 of its 4 classes" in labels.rule
    assert labels.facts["classes"] == [None, "stingray", "goldfinch", None]


def test_names_of_two_classes_go_by_index_only_where_all_else_is_in_place() -> None:
    model = ("hen", "crane", "jay", "kite", "crane")
    assert match_labels(model, ("hen", "crane", "jay", "kite", "crane2")).target == (0, 1, 2, 3, 4)
    for wanted in (
        ("jay", "crane", "hen", "kite", "crane2"),
        ("hen", "crane", "jay", "kite", "wren", "crane2"),
        ("crane", "hen"),
    ):
        with pytest.raises(EvaluationError, match=r"fit the dataset's crane|do not match"):
            match_labels(model, wanted)


def test_a_place_alone_is_no_reason_to_match() -> None:
    with pytest.raises(EvaluationError, match="do not match"):
        match_labels(["crane", "crane"], ["crane", "zebra"])


def test_the_classes_of_imagenet_as_timm_has_them_meet_those_of_the_hub() -> None:
    from timm.data import ImageNetInfo

    info = ImageNetInfo("imagenet-1k")
    model = [info.index_to_description(place) for place in range(1000)]
    hub = [*model]
    assert hub[134] == hub[517] == "crane"
    hub[517] = "crane2"  # as in ILSVRC/imagenet-1k
    assert match_labels(model, hub).target == tuple(range(1000))
    order = np.random.default_rng(0).permutation([place for place in range(1000) if place not in (134, 517)])[:200]
    subset = match_labels(model, [hub[place] for place in order])
    assert [subset.target[place] for place in order] == list(range(200))


def test_a_synonym_of_several_classes_is_refused() -> None:
    with pytest.raises(EvaluationError, match="several of the model's fit the dataset's panther"):
        match_labels(["cougar, panther", "jaguar, panther", "hen"], ["panther", "hen"])


def test_digits_are_names_where_the_dataset_has_them_too() -> None:
    assert match_labels(["1", "0"], ["0", "1"]).target == (1, 0)


def test_ties_go_to_the_datasets_first_class_in_every_order() -> None:
    for order in itertools.permutations(range(3)):
        mapped = match_labels([NLI[j] for j in order], NLI).of_logits(np.ones((1, 3)))
        assert mapped.predicted.tolist() == [0]


def test_no_rows_are_no_error() -> None:
    mapped = match_labels(NLI, NLI).of_logits(np.zeros((0, 3)))
    assert mapped.probabilities.shape == (0, 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 4)), r"shape \(rows, 3\), not \(2, 4\)"),
        (np.zeros(3), r"shape \(rows, 3\)"),
        ([[0.0, 1.0, 2.0], [0.0, np.nan, 1.0]], "1 of 2 rows have logits that are not finite"),
    ],
)
def test_logits_that_cannot_be_are_refused(values: np.ndarray, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        match_labels(NLI, NLI).of_logits(values)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"num_labels": 3},
        {"problem_type": None, "id2label": {"0": "no", "1": "yes"}},
        {"problem_type": "single_label_classification", "id2label": {"0": "no", "1": "yes"}, "num_labels": 2},
        {"id2label": {"0": "no", "1": "YES"}, "label2id": {"yes": 1, "no": "0"}},
        {"id2label": {"0": "no", "1": "yes"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}},  # never filled in
        {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"no": 0, "yes": 1}},
        {"id2label": {"0": "no", "1": "yes"}, "label2id": None},
    ],
)
def test_tables_that_say_one_thing_are_taken(config: dict[str, object]) -> None:
    check_outputs(config, "org/it", of_text=True)


def test_two_of_imagenets_classes_have_one_name() -> None:
    config = {"id2label": {"0": "crane", "1": "crane"}, "label2id": {"crane": 1}}
    check_outputs(config, "org/it", of_text=False)
    with pytest.raises(EvaluationError, match="gives several classes the name 'crane'"):
        check_outputs(config, "org/it", of_text=True)


@pytest.mark.parametrize("backwards", [{"no": 1, "yes": 0}, {"no": 0, "maybe": 1}, {"no": 0, "yes": 7}, {"no": "?"}])
def test_tables_that_contradict_are_refused_but_for_a_label_map(backwards: dict[str, object]) -> None:
    config = {"id2label": {"0": "no", "1": "yes"}, "label2id": backwards}
    with pytest.raises(EvaluationError, match=r"org/it: config.json calls class .* in label2id: mend it, or say"):
        check_outputs(config, "org/it", of_text=True)
    check_outputs(config, "org/it", of_text=True, label_map="0=no,1=yes")
