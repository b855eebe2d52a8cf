"""Words of others stay words: in Markdown, in front matter, on a terminal."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from builders.cards import front_matter
from builders.text import code, fenced, markdown
from unqover_data.signs import visible

FACTS = {
    "license": None,
    "language": "en",
    "version": "1.0.0",
    "tasks": [],
    "tags": [],
    "default_config": "qa",
    "configs": {"qa": {"test": {"rows": 1}}},
}
MARKUP = [
    "*not* _bold_ ~~gone~~ $$x$$",
    "[link](https://example.org) ![image](https://example.org/x.png) [^1]",
    "<script>alert(1)</script> <!-- owner: end --> &copy;",
    "`code` ``` `` \\` \\",
    "a | b || c \\| d",
    "# heading", "- item", "1. item", "+ item", "---", "===", "> quote", "| a |",
    "line\n\n# heading\n---\n```\n",
    "see https://example.org/a`b|c<d>, www.example.org/[x](y). HTTP://example.org",
    "write to mallory+1@example.org or mailto:mallory@example.org",
]  # fmt: skip


def words(text: str, *, where: str) -> list[str]:
    """Render a text where a card has it, and give what is left beside words: any other kind of token."""
    laid_out = {"line": "{}", "item": "- {}", "heading": "# {}", "cell": "| a |\n|---|\n| {} |", "alt": "![{}](a.png)"}
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(laid_out[where].format(text))
    inline: list[Any] = [child for token in page if token.type == "inline" for child in token.children or ()]
    if where == "alt":
        assert [token.type for token in inline] == ["image"]
        inline = list(inline[0].children or ())
    kinds = {token.type for token in page} | {token.type for token in inline}
    outside = {"paragraph_open", "paragraph_close", "inline", "text", "text_special", "code_inline", "image"}
    assert kinds - outside <= {
        "item": {"bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"},
        "heading": {"heading_open", "heading_close"},
        "cell": {
            f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")
        },
    }.get(where, set())
    shown = [token.content for token in inline if token.content]
    return shown[1:] if where == "cell" else shown


@pytest.mark.parametrize("word", ["x", "x.", "www.", "a@", "a:"])
def test_a_long_word_takes_no_time(word: str) -> None:
    before = time.process_time()
    markdown(word * 50_000)
    assert time.process_time() - before < 5  # of some minutes


@pytest.mark.parametrize("where", ["line", "item", "heading", "cell", "alt"])
@pytest.mark.parametrize("text", MARKUP)
def test_markup_of_others_is_text(text: str, where: str) -> None:
    assert "".join(words(markdown(text), where=where)) == " ".join(text.split())


def test_a_page_makes_no_link_of_an_address() -> None:
    for text in ("https://example.org", "ftp://example.org/x", "www.example.org", "a@example.org", "mailto:a@b.org"):
        assert markdown(f"see {text}, or not") == f"see `{text}`, or not"


def test_code_is_not_ended_by_what_it_holds() -> None:
    assert code("a|b") == "`a|b`"
    assert code("a|b", cell=True) == "a\\|b"
    assert code("a`b") == "a\\`b"
    assert "".join(words(code("a|`b`", cell=True), where="cell")) == "a|`b`"
    (block,) = MarkdownIt("commonmark").parse(fenced("@misc{x}\n```\n# not\n`````", "bibtex"))
    assert (block.type, block.content) == ("fence", "@misc{x}\n```\n# not\n`````\n")


HIDDEN = (
    "\x00\x07\x1b\x7f\x85\xad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2060\u2066\u2069\ufeff\u3164"
)


@pytest.mark.parametrize("sign", HIDDEN)
def test_signs_that_act_unseen_are_written_out(sign: str) -> None:
    assert visible(f"a{sign}b") == f"a[U+{ord(sign):04X}]b"
    assert visible(f"a{sign}b", keep=sign) == f"a{sign}b"
    front = front_matter({**FACTS, "title": f"a{sign}b: [x]"}, [{"names": {"0": f"a{sign}b"}}])
    assert sign not in front
    read = yaml.safe_load(front.split("---\n")[1])
    assert read["pretty_name"] == f"a[U+{ord(sign):04X}]b: [x]"
    assert read["dataset_info"] == [{"names": {"0": f"a{sign}b"}}]  # a class is called what it is called


@pytest.mark.parametrize(
    "text",
    [
        "بِسْمِ",
        "שָׁלוֹם",
        "می\u200cخواهم",
        "क्\u200dष",
        "👩\u200d💻",
        "Ελλάδα",
        "日本",
        "e\u0301",
        "\u0600\u0661",
        "naïve 5 % €",
    ],
)
def test_scripts_of_the_world_stay_readable(text: str) -> None:
    assert visible(text) == markdown(text) == text
    assert yaml.safe_load(front_matter({**FACTS, "title": text}, []).split("---\n")[1])["pretty_name"] == text


def test_joiners_without_a_letter_to_join_are_written_out() -> None:
    assert visible("a\u200db क\u200d\u200d") == "a[U+200D]b क\u200d[U+200D]"


@pytest.mark.parametrize(
    "title", ["---\n---\n# Mine", "a: b\n---\nlicense: mit", "'\"\\ {}[]", "- ---", "!!python/object:x"]
)
def test_nothing_ends_the_front_matter(title: str) -> None:
    from huggingface_hub import DatasetCard

    card = DatasetCard(front_matter({**FACTS, "title": title}, [{"names": {"0": title}}]) + "the text\n")
    read = card.data.to_dict()
    assert read["pretty_name"] == visible(title)
    assert read["dataset_info"] == [{"names": {"0": title}}]
    assert "license" not in read
    assert card.text.strip() == "the text"
