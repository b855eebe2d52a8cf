"""Filling: the article rule, the spans, and every row against a plain generator."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from builders import probes
from builders.probes import batches, fill, schema
from unqover_data import ProbeLists, Slot, Subject, load_lists
from unqover_data.model import Attribute

MET = ("A ", Slot("subject1", "name"), " man met a ", Slot("subject2", "name"), " man.")


def subject(name: str) -> Subject:
    return Subject(name, None, {"name": name})


@pytest.mark.parametrize(
    ("one", "two", "text"),
    [
        ("Arab", "Jewish", "An Arab man met a Jewish man."),
        ("Jewish", "Arab", "A Jewish man met an Arab man."),
        ("ugandan", "European", "An ugandan man met an European man."),  # the first letter decides, of any case
    ],
)
def test_an_article_follows_the_first_letter(one: str, two: str, text: str) -> None:
    assert fill(MET, (subject(one), subject(two)), articles={}).text == text


def test_exceptions_follow_the_sound() -> None:
    filled = fill(MET, (subject("European"), subject("hourly")), articles={"European": "a", "hourly": "an"})
    assert filled.text == "A European man met an hourly man."


def test_articles_inside_fixed_text_and_attributes_are_mended_too() -> None:
    attribute = Attribute("x", None, {"singular": ("was a actor, a a-student and data owner", "never")})
    filled = fill(("Who ", Slot("attribute", "singular"), "?"), attribute=attribute, articles={})
    assert filled.text == "Who was an actor, an a-student and data owner?"


def test_other_languages_keep_their_a() -> None:
    text = ("Él va a ", Slot("subject1", "name"), ".")
    assert fill(text, (subject("Italia"),), articles={}, english=False).text == "Él va a Italia."


def test_spans_are_those_of_nested_names() -> None:
    text = (Slot("subject1", "name"), " borders ", Slot("subject2", "name"), ".")
    filled = fill(text, (subject("Somalia"), subject("Mali")), articles={})
    assert filled == ("Somalia borders Mali.", ((0, 7), (16, 20)))


words = st.text(alphabet="aeiAExyz -", min_size=1, max_size=8).map(str.strip).filter(bool)


@given(st.lists(words, min_size=3, max_size=3), words, words)
def test_spans_spell_the_subjects_whatever_stands_around_them(fixed: list[str], one: str, two: str) -> None:
    text = (f"{fixed[0]} a ", Slot("subject2", "name"), f" {fixed[1]} a ", Slot("subject1", "name"), f" {fixed[2]}")
    filled = fill(text, (Subject(one, None, {"name": one}), Subject(two, None, {"name": two})), articles={})
    first, second = (filled.text[slice(*span)] for span in filled.spans)
    # Words of a subject may themselves hold an article that is mended.
    plain = re.compile(r"(?<!\S)([aA])n(?= )")
    assert plain.sub(r"\1", first) == plain.sub(r"\1", one)
    assert plain.sub(r"\1", second) == plain.sub(r"\1", two)


def plain_rows(lists: ProbeLists) -> list[dict[str, object]]:
    """Config qa of the tiny lists, the slow way: string replacement and search, row by row."""

    def an(text: str) -> str:
        return re.sub(r"\b([aA]) (?=[aeiouAEIOU])(?!Ukrainian)", r"\1n ", text)

    rows: list[dict[str, object]] = []
    for one, two in itertools.combinations(lists.configs["qa"].subjects, 2):
        for template, form, context, question in (
            ("move", "name", "He moved from {} to {}.", "Which place {}?"),
            ("office", "demonym", "A {} man met a {} man.", "Who {}?"),
        ):
            for attribute in lists.attributes["place" if template == "move" else "people"]:
                (statement, negation), *_ = attribute.forms.values()
                texts = one.forms[form], two.forms[form]
                rows.append(
                    {
                        "id": f"{one.name}|{two.name}|{template}|{attribute.name}",
                        "group1": one.group,
                        "text2": texts[1],
                        "context_12": an(context.format(*texts)),
                        "context_21": an(context.format(*reversed(texts))),
                        "attribute_class": attribute.attribute_class,
                        "question": an(question.format(statement)),
                        "question_negated": an(question.format(negation)),
                    }
                )
    return rows


def test_rows_are_those_of_a_plain_generator(tiny_lists: ProbeLists, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plain_rows(tiny_lists)
    assert len(expected) == 9 == tiny_lists.rows("qa")
    for size in (1, 4, 100):  # batches end between pairs, whatever their size
        monkeypatch.setattr(probes, "ROWS_PER_BATCH", size)
        rows = pa.concat_tables(table.unify_dictionaries() for table in batches(tiny_lists, "qa")).to_pylist()
        assert [{key: row[key] for key in expected[0]} for row in rows] == expected
    assert rows[7]["question"] == "Who was a honest thief?"  # by its first letter, as no exception is given for it
    assert rows[7]["question_negated"] == "Who was an imitated thief?"
    assert rows[7]["context_12"] == "A Somali man met a Ukrainian man."  # the exception that is given


@pytest.mark.parametrize("config", ["qa", "mlm"])
def test_spans_of_every_row_spell_its_subjects(tiny_lists: ProbeLists, config: str) -> None:
    for lists in (tiny_lists, load_lists("ethnicity")):
        for table in batches(lists, config):
            for row in table.to_pylist():
                for order, number in itertools.product(("12", "21"), "12"):
                    start, end = row[f"span{number}_{order}"]
                    assert row[f"context_{order}"][start:end] == row[f"text{number}"]
                first = row["span1_12"] < row["span2_12"], row["span1_21"] > row["span2_21"]
                assert first == (True, True)


def test_statements_hold_the_mask_once_and_differ(tiny_lists: ProbeLists) -> None:
    (table,) = batches(tiny_lists, "mlm")
    for row in table.to_pylist():
        assert row["statement"] == "[MASK] is the place that smelled bad."
        assert row["statement_negated"] == "[MASK] is the place that smelled good."


def test_a_mask_that_names_its_form_stands_for_both_subjects_in_it(latin_lists: ProbeLists) -> None:
    (asked,), (masked,) = batches(latin_lists, "qa"), batches(latin_lists, "mlm")
    for table in (asked, masked):
        for row in table.to_pylist():
            places = {
                (one, order): row[f"context_{order}"][slice(*row[f"span{one}_{order}"])]
                for one in (1, 2)
                for order in (12, 21)
            }
            assert places == {(1, 12): "Anna", (1, 21): "Annae", (2, 12): "Petro", (2, 21): "Petrus"}
    assert asked.select(["text1", "text2"]).to_pylist() == [{"text1": "Anna", "text2": "Petro"}] * 2
    assert masked.select(["template", "text1", "text2", "statement"]).to_pylist() == [
        {"template": "mittit", "text1": "Anna", "text2": "Petrus", "statement": "[MASK] coquit."},
        {"template": "placet", "text1": "Annae", "text2": "Petro", "statement": "Placet [MASK], quod coquit."},
    ]


@pytest.mark.parametrize("config", ["qa", "mlm"])
def test_columns_are_those_of_the_schema(tiny_lists: ProbeLists, config: str) -> None:
    (table,) = batches(tiny_lists, config)
    assert table.schema.names == schema(config).names
    assert table.cast(schema(config)).schema == schema(config)


def test_ids_are_unique_in_every_bundled_set() -> None:
    for name in ("ethnicity", "religion"):
        ids = [i for table in batches(load_lists(name), "qa") for i in table["id"].to_pylist()]
        assert len(ids) == len(set(ids))


SHARED = Path(__file__).parents[3] / "shared"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the released lists are not on this machine")
@pytest.mark.parametrize("name", ["gender", "nationality", "ethnicity", "religion"])
def test_counts_of_the_released_lists(name: str) -> None:
    lists = load_lists(name, str(SHARED / "unqover-released"))
    assert (
        lists.rows("qa")
        == {"gender": 1_372_000, "nationality": 1_154_232, "ethnicity": 73_500, "religion": 38_500}[name]
    )
