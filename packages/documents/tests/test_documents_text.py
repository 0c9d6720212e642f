"""Plain text and source code."""

from haiku.rag.converters.documents.prose import join_lines
from haiku.rag.converters.documents.text import TextConverter

PYTHON = """import os


def first():
    one = 1

    return one


CALL = run(
    1,

)
"""


def convert(source):
    return TextConverter().convert(source)


def test_paragraphs_are_what_stands_between_blank_lines(content):
    document = convert(content("First line\nsecond line\n\n \nNext.\n"))
    assert [(item.ref, item.label, item.text) for item in document.items] == [
        ("#/items/0", "paragraph", "First line\nsecond line"),
        ("#/items/1", "paragraph", "Next."),
    ]


def test_the_whole_text_is_kept_as_it_was_written(content):
    document = convert(content("\n\nA\n\n\n\nB\n"))
    assert (document.content, document.title, document.media_type) == ("A\n\n\n\nB", None, "text/plain")


def test_text_that_begins_like_markup_or_an_address_is_text(content):
    document = convert(content("BM25 is a ranking function.\n\nhttps://example.org/x is a URL."))
    assert [item.text for item in document.items] == ["BM25 is a ranking function.", "https://example.org/x is a URL."]


def test_source_code_is_cut_at_its_top_level_blocks(content):
    document = convert(content(PYTHON, "module.py"))
    assert [item.label for item in document.items] == ["code"] * 3
    assert [item.text.split("\n")[0] for item in document.items] == ["import os", "def first():", "CALL = run("]
    assert document.items[1].text == "def first():\n    one = 1\n\n    return one"
    assert document.items[2].text.endswith(")")


def test_the_media_type_tells_code_where_the_name_does_not(content):
    assert convert(content("{}", "data", media_type="application/json")).items[0].label == "code"
    assert convert(content("p {}", "style", media_type="text/css")).items[0].label == "code"
    assert convert(content("word", "README", media_type="text/plain")).items[0].label == "paragraph"


def test_wrapped_lines_join_with_a_space_only_where_a_script_has_spaces():
    assert join_lines(["one", " two ", "", "三", "四", "five"]) == "one two 三四 five"
