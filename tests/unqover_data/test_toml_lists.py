"""Our TOML lists: the bundled sizes, and every fault named by file, entry and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from unqover_data import BUNDLED, ListError, ProbeLists, list_classes, load_lists, read_toml

# Subjects, templates and rows as in the paper's table of the four sets (#Ex), worked out by hand:
# gender 70 x 70 pairs x 4 templates x 70; nationality 69 x 68 / 2 pairs x (3 x 14 + 3 x 50 + 6 x 50);
# ethnicity 15 x 14 / 2 x 14 x 50; religion 11 x 10 / 2 x 14 x 50.
SIZES = {
    "gender": (140, 4, 1_372_000),
    "nationality": (69, 12, 1_154_232),
    "ethnicity": (15, 14, 73_500),
    "religion": (11, 14, 38_500),
}


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_lists_have_the_papers_sizes(name: str) -> None:
    lists = load_lists(name)
    subjects, templates, rows = SIZES[name]
    assert lists.edition == "bundled"
    for config in ("qa", "mlm"):
        assert len(lists.configs[config].subjects) == subjects
        assert len(lists.configs[config].templates) == templates
        assert lists.rows(config) == rows


def test_nationality_has_a_region_for_every_nation() -> None:
    assert all(subject.group for subject in load_lists("nationality").configs["qa"].subjects)


def test_gender_pairs_are_always_one_female_and_one_male_name() -> None:
    assert all({a.group, b.group} == {"female", "male"} for a, b in load_lists("gender").subject_pairs("qa"))


def test_statements_about_people_are_the_same_for_the_three_sets() -> None:
    people = [load_lists(name).attributes["people"] for name in ("nationality", "ethnicity", "religion")]
    assert people[0] == people[1] == people[2]
    assert len(people[0]) == 50


FAULTS = [
    ('name = "Mali", demonym', 'name = "Somalia", demonym', "tiny.toml: subjects: name: 'Somalia' stands 2 times"),
    ('demonym = "Malian", ', "", "template 'office': context: subject 'Mali' lacks the form 'demonym'"),
    ('name = "Mali"', 'name = ""', "tiny.toml: subjects[0] '': name: must be text and not empty"),
    ('name = "Mali"', 'name = "Ma|li"', "subject 'Ma|li': name: must not hold '|'"),
    ("{subject1} to", "Egypt to", "template 'move': context: needs the slot for subject1 exactly once, has it 0 times"),
    ("to {subject2}.", "to {subject1}.", "needs the slot for subject2 exactly once, has it 0 times"),
    (
        "{subject1} to {subject2}",
        "{subject2} to {subject1}",
        "'move': context: the slot for subject1 must stand before",
    ),
    ("{subject1} to", "{subjct1} to", "templates[0] 'move': context: {subjct1} is no slot here; use {subject1}, {subj"),
    ("Which place {attribute:place}?", "Which place?", "'move': question: needs the slot for attribute exactly once"),
    (
        "Who {attribute:singular}?",
        "Who {attribute:plural}?",
        "'office': question: attribute 'theft' lacks the form 'pl",
    ),
    ("Who {attribute:singular}?", "Who {attribute}?", "{attribute} needs a form, such as {attribute:singular}"),
    ("Who {attribute:singular}?", "Who } {attribute:singular}?", "has a brace that is not part of a slot"),
    ("{mask} is", "This is", "'move': statement: needs the slot for mask exactly once, has it 0 times"),
    ('id = "office"', 'id = "move"', "templates: id: 'move' stands 2 times"),
    ('attributes = "people"', 'attributes = "peple"', "template 'office': attributes: there are none of kind 'peple'"),
    ('"never lied"', '"lied"', "attribute 'lie': singular: statement and negation are both 'lied'"),
    ('["lied", "never lied"]', '["lied"]', "attributes.people[1] 'lie': singular: must be [statement, negation]"),
    ('name = "lie"', 'name = "theft"', "attributes.people: name: 'theft' stands 2 times"),
    ('["lied", "never', '["was a honest thief", "never', "attributes.people: singular: 'was a honest thief' stands 2"),
    ("He moved from", "He left Mali from", "template 'move': context: the subject 'Mali' stands in the fixed text"),
    ('"never lied"', '"hated the Somali"', "attribute 'lie': singular: the subject 'Somali' stands in the fixed text"),
    ("man met a", "purple man met a", "template 'office': context: ' purple man met a ' gives a hint: 'purple'"),
    ("man met a", "man met an", "write 'a', not 'an', before a slot"),
    ('pairs = "all"', 'pairs = "between-groups"', None),
    ('pairs = "all"', 'pairs = "some"', "tiny.toml: pairs: must be 'all' or 'between-groups', not 'some'"),
    ('version = "1.0.0"', 'version = "1.0"', "tiny.toml: version: must be MAJOR.MINOR.PATCH"),
    ('language = "en"', 'language = "English"', "tiny.toml: language: must be a language code such as en"),
    ('name = "tiny"', 'name = "Tiny Set"', "tiny.toml: name: must be lower-case letters, digits and single hyphens"),
    ('title = "Tiny probes"', "", "tiny.toml: title is missing"),
    ('title = "Tiny', 'titel = "Tiny', "tiny.toml: titel is not a key of this table; did you mean 'title'?"),
    ('hints = ["purple"]', "hints = 3", "tiny.toml: hints: must be a list of texts, not 3"),
    ('hints = ["purple"]', 'include = ["nowhere.toml"]', "tiny.toml: include: 'nowhere.toml' is neither beside it nor"),
    ("[articles]", "[articles", "tiny.toml: is not valid TOML in UTF-8"),
    ('a = ["Ukrainian"]', 'the = ["Ukrainian"]', "tiny.toml: articles: the is not a key of this table"),
    ('class = "dirty", ', "", "tiny.toml: attributes.place[0]: class is missing"),
    ('group = "north"', 'grup = "north"', "subjects[2]: grup is not a key of this table; did you mean 'group'?"),
    ('"never lied"', '"Lied"', "attribute 'lie': singular: statement and negation are both 'lied'"),
    (
        '"was a imitated thief"',
        '"was an honest  thief"',
        "attribute 'theft': singular: statement and negation are both",
    ),
    ('"never lied"', '"hated all SOMALI things"', "the subject 'Somali' stands in the fixed text"),
    ('"never lied"', '"was PURPLE"', "attribute 'lie': singular: 'was PURPLE' gives a hint: 'purple'"),
    ('"never lied"', '"never\\nlied"', "attribute 'lie': singular: 'never\\nlied' holds a line break"),
    ('"never lied"', '"said [MASK]"', "attribute 'lie': singular: 'said [MASK]' holds [MASK], which stands for a slot"),
    ('id = "move"', 'id = "mo|ve"', "template 'mo|ve': id: must not hold '|'"),
    ('name = "lie"', 'name = "l|e"', "attribute 'l|e': name: must not hold '|'"),
    ("{mask} is", "{mask:x} is", "template 'move': statement: no subject has the form 'x' (they have demonym, name)"),
    ("{mask} is", "{mask:nation} is", "template 'move': statement: no subject has the form 'nation'"),
    (
        "{subject2}.",
        "{subject2:demonym}.",
        "'move': statement: the subjects stand in the forms 'name' and 'demonym': say",
    ),
    ('Which place {attribute:place}?"', 'Which place {attribute:place}, {mask:name}?"', "{mask:name} is no slot here"),
    ('a = ["Ukrainian"]', 'a = ["Ukrainian man"]', "tiny.toml: articles: 'Ukrainian man' must be one word"),
    ('a = ["Ukrainian"]', 'a = ["Ukrainian"]\nan = ["Ukrainian"]', "articles: 'Ukrainian' stands under both a and an"),
    ('hints = ["purple"]', 'include = ["../tiny.toml"]', "include: '../tiny.toml' must be another file's plain name"),
    ('hints = ["purple"]', 'include = ["tiny.toml"]', "include: 'tiny.toml' must be another file's plain name"),
    ('version = "1.0.0"', 'version = "01.0.0"', "tiny.toml: version: must be MAJOR.MINOR.PATCH"),
    ('version = "1.0.0"', 'version = "١.0.0"', "tiny.toml: version: must be MAJOR.MINOR.PATCH"),
]


@pytest.mark.parametrize(("good", "bad", "message"), FAULTS)
def test_a_fault_is_named_by_file_entry_and_field(tiny_toml: Path, good: str, bad: str, message: str | None) -> None:
    text = tiny_toml.read_text(encoding="utf-8")
    assert good in text
    tiny_toml.write_text(text.replace(good, bad, 1), encoding="utf-8")
    if message is None:  # groups of equal size are fine
        read_toml(tiny_toml)
        return
    with pytest.raises(ListError) as caught:
        read_toml(tiny_toml)
    assert any(message in problem for problem in caught.value.problems), caught.value.problems
    assert all("tiny.toml" in problem and "\n" not in problem for problem in caught.value.problems)


def test_scripts_without_spaces_are_searched_for_subjects_too(tiny_toml: Path) -> None:
    text = tiny_toml.read_text(encoding="utf-8")
    tiny_toml.write_text(text.replace('"Malian"', '"中国"').replace("man met", "中国人 met"), encoding="utf-8")
    with pytest.raises(ListError, match="the subject '中国' stands in the fixed text"):
        read_toml(tiny_toml)


def test_too_few_subjects_or_no_template_is_a_fault(tiny_toml: Path) -> None:
    text = tiny_toml.read_text(encoding="utf-8")
    one = text.replace('  { name = "Somalia", demonym = "Somali", group = "east" },\n', "")
    one = one.replace('  { name = "Ukraine", demonym = "Ukrainian", group = "north" },\n', "")
    tiny_toml.write_text(one, encoding="utf-8")
    with pytest.raises(ListError, match=r"tiny.toml: subjects: needs at least two, has 1"):
        read_toml(tiny_toml)
    none = text[: text.index("[[templates]]")] + text[text.index("[articles]") :]
    tiny_toml.write_text(none, encoding="utf-8")
    with pytest.raises(ListError, match=r"tiny.toml: templates: needs at least one, has none"):
        read_toml(tiny_toml)


def test_two_subjects_with_one_word_in_a_form_are_a_fault(tiny_toml: Path) -> None:
    text = tiny_toml.read_text(encoding="utf-8").replace('"Somali"', '"Malian"')
    tiny_toml.write_text(text, encoding="utf-8")
    with pytest.raises(ListError, match=r"tiny.toml: subjects: demonym: 'Malian' stands 2 times"):
        read_toml(tiny_toml)


def test_two_templates_that_ask_the_same_are_a_fault(tiny_toml: Path) -> None:
    text = tiny_toml.read_text(encoding="utf-8")
    office = text[text.index('[[templates]]\nid = "office"') : text.index("[articles]")]
    tiny_toml.write_text(text.replace(office, office + office.replace('"office"', '"again"')), encoding="utf-8")
    with pytest.raises(ListError, match="template 'office': another has the same context and question"):
        read_toml(tiny_toml)


def test_a_fault_in_an_included_file_is_named_by_that_file(tiny_toml: Path) -> None:
    more = '[attributes]\npeople = [{ name = "haste", class = "rude", singular = ["ran", "ran"] }]\n'
    (tiny_toml.parent / "more.toml").write_text(more, encoding="utf-8")
    text = tiny_toml.read_text(encoding="utf-8").replace('hints = ["purple"]', 'include = ["more.toml"]')
    tiny_toml.write_text(text, encoding="utf-8")
    with pytest.raises(ListError, match=r"^more.toml: attribute 'haste': singular: statement and negation"):
        read_toml(tiny_toml)


def test_a_byte_order_mark_is_no_fault(tiny_toml: Path) -> None:
    tiny_toml.write_bytes(b"\xef\xbb\xbf" + tiny_toml.read_bytes())
    assert read_toml(tiny_toml).rows("qa") == 9


def test_every_occupation_is_negated_by_can_never_be() -> None:
    for attribute in load_lists("gender").attributes["occupation"]:
        statement, negation = attribute.forms["singular"]
        assert statement.removeprefix("was ") == negation.removeprefix("can never be ")
        assert statement.endswith(f" {attribute.name}")
        assert statement.startswith("was a")
        assert negation.startswith("can never be a")


def test_groups_must_be_of_one_size_for_pairs_between_groups(tiny_toml: Path) -> None:
    text = tiny_toml.read_text(encoding="utf-8").replace('pairs = "all"', 'pairs = "between-groups"')
    tiny_toml.write_text(text.replace('group = "north"', 'group = "east"'), encoding="utf-8")
    with pytest.raises(ListError, match=r"two or more groups of equal size .* \(west: 1, east: 2\)"):
        read_toml(tiny_toml)


def test_all_faults_are_found_at_once_and_the_message_counts_them(tiny_toml: Path) -> None:
    text = (
        tiny_toml.read_text(encoding="utf-8").replace('"never lied"', '"lied"').replace('id = "office"', 'id = "move"')
    )
    tiny_toml.write_text(text, encoding="utf-8")
    with pytest.raises(ListError, match=r"\(and 1 more\)$") as caught:
        read_toml(tiny_toml)
    assert len(caught.value.problems) == 2


def test_a_list_of_ones_own_needs_only_subjects_when_it_includes_the_bundled_files(tmp_path: Path) -> None:
    path = tmp_path / "age.toml"
    path.write_text(
        'name = "age"\ntitle = "Age"\nversion = "0.1.0"\nlanguage = "en"\ndescription = "Two ages."\npairs = "all"\n'
        'include = ["people.toml", "people_contexts.toml"]\n'
        'subjects = [{ name = "young" }, { name = "middle-aged" }, { name = "elderly" }]\n',
        encoding="utf-8",
    )
    lists = load_lists("age", str(path))
    assert lists.edition == "custom"
    assert lists.rows("qa") == 3 * 14 * 50
    assert list_classes(str(path)) == ("age",)
    assert set(lists.sums) == {"age.toml", "people.toml", "people_contexts.toml"}


def test_names_that_are_not_there_get_close_matches(tiny_toml: Path) -> None:
    with pytest.raises(ListError, match="did you mean 'religion'"):
        load_lists("relgion")
    with pytest.raises(ListError, match=r"tiny.toml holds the class 'tiny', not 'tinny'"):
        load_lists("tinny", str(tiny_toml))
    with pytest.raises(ListError, match="must be bundled, released, a folder or a TOML file"):
        load_lists("religion", "no-such-folder")


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (', dative = "Petro"', "", "template 'mittit': context: subject 'Petrus' lacks the form 'dative'"),
        ('"Petro"', '"Annae"', "latin.toml: subjects: dative: 'Annae' stands 2 times"),
        (
            "{mask:name}",
            "{mask}",
            "'mittit': statement: the subjects stand in the forms 'name' and 'dative': say which",
        ),
        (
            "{mask:name}",
            "{mask:datve}",
            "'mittit': statement: no subject has the form 'datve' (they have dative, name)",
        ),
        ('"Petro" }', '"Petro", vocative = "Petre" }', "subjects[1]: vocative is not a key of this table"),
    ],
)
def test_forms_that_cannot_be_are_named(
    latin_lists: ProbeLists, tmp_path: Path, good: str, bad: str, message: str
) -> None:
    path = tmp_path / "latin.toml"
    text = path.read_text(encoding="utf-8")
    assert good in text
    path.write_text(text.replace(good, bad, 1), encoding="utf-8")
    with pytest.raises(ListError) as caught:
        read_toml(path)
    assert any(message in problem for problem in caught.value.problems), caught.value.problems


def test_a_form_that_one_subject_lacks_at_the_mask_is_named(latin_lists: ProbeLists, tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    text = path.read_text(encoding="utf-8").replace("{mask:name}", "{mask:vocative}")
    path.write_text(text.replace('dative = "Petro"', 'dative = "Petro", vocative = "Petre"'), encoding="utf-8")
    with pytest.raises(ListError, match="template 'mittit': statement: subject 'Anna' lacks the form 'vocative'"):
        read_toml(path)


def test_two_unicode_spellings_of_one_name_are_one_subject(tiny_toml: Path) -> None:
    text = tiny_toml.read_text(encoding="utf-8")
    tiny_toml.write_text(
        text.replace('name = "Mali"', 'name = "Per\u00fa"').replace('name = "Somalia"', 'name = "Peru\u0301"'),
        encoding="utf-8",
    )
    line = r"subjects: name: 'Perú' stands 2 times, spelt in Unicode as 'Per\\xfa' and 'Peru\\u0301'; keep one"
    with pytest.raises(ListError, match=line):
        read_toml(tiny_toml)
