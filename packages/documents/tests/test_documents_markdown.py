"""Markdown."""

import pytest

from haiku.rag.converters.documents.markdown import MarkdownConverter
from haiku.rag.errors import ConversionError


@pytest.fixture
def convert(content):
    return lambda text: MarkdownConverter().convert(content(text, "notes.md"))


@pytest.fixture
def parts(convert):
    return lambda text: [(item.label, item.text) for item in convert(text).items]


def test_headings_have_levels_and_lose_their_markup(convert):
    items = convert("# One *two*\n\n### Three `code`\n\nSetext\nline\n------\n").items
    assert [(item.label, item.level, item.text) for item in items] == [
        ("heading", 1, "One two"),
        ("heading", 3, "Three code"),
        ("heading", 2, "Setext line"),
    ]


def test_the_first_heading_is_the_title(convert):
    assert convert("Before.\n\n## First\n\n# Second").title == "First"
    assert convert("No heading.").title is None


def test_paragraphs_are_unwrapped_and_hard_breaks_stay(parts):
    assert parts("one\ntwo [link](http://x.org) **bold**  \nthree<br>four <b>x</b>") == [
        ("paragraph", "one two link bold\nthree\nfour x")
    ]


def test_lists_keep_their_nesting_and_numbers(parts):
    assert parts("- a\n  - b\n    wrapped\n\n    more\n- c\n\n3. x\n4. y\n   hard  \n   z\n") == [
        ("list_item", "- a"),
        ("list_item", "  - b wrapped"),
        ("list_item", "    more"),
        ("list_item", "- c"),
        ("list_item", "3. x"),
        ("list_item", "4. y hard\n  z"),
    ]


def test_code_keeps_its_lines_and_its_language(parts):
    assert parts("```python title\ndef f():\n\n    return 1\n```\n\n    indented\n      more\n") == [
        ("code", "```python\ndef f():\n\n    return 1\n```"),
        ("code", "indented\n  more"),
    ]


def test_code_that_holds_a_fence_gets_a_longer_one(parts):
    assert parts("````md\n```\nx\n```\n````") == [("code", "````md\n```\nx\n```\n````")]


def test_tables_keep_cells_and_escape_bars(parts):
    table = "| a | b |\n|---|:-:|\n| 1 \\| 2 | **x** ![pic](y.png) |\n| only |  |\n"
    assert parts(table) == [("table", "| a | b |\n| --- | --- |\n| 1 \\| 2 | x pic |\n| only |  |")]


def test_quotes_html_and_entities_are_read(parts):
    text = "> quoted\n> text\n\n<div>raw <b>html</b></div>\n\nR&amp;D &eacute; &#xD800;\n\n---\n"
    assert parts(text) == [("quote", "quoted text"), ("paragraph", "raw html"), ("paragraph", "R&D é \ufffd")]


def test_pictures_are_items_with_their_alternative_text(parts):
    assert parts("See ![A chart](c.png) here.\n\n![](nothing.png) ![Alone](d.png)") == [
        ("paragraph", "See here."),
        ("picture", "A chart"),
        ("picture", "Alone"),
    ]


@pytest.mark.parametrize(
    ("field", "title"),
    [
        ("title: Plain: it's", "Plain: it's"),
        ('Title: "Quoted"', "Quoted"),
        ("title: 'One'", "One"),
        ("title: >", "Head"),
    ],
)
def test_front_matter_gives_the_title_and_is_left_out(convert, field, title):
    document = convert(f"---\ntags: [a]\n{field}\n---\n# Head\n\nText.")
    assert document.title == title
    assert [item.text for item in document.items] == ["Head", "Text."]
    assert document.content == "# Head\n\nText."


def test_a_rule_at_the_top_is_not_front_matter(parts):
    assert parts("---\n\nNot a field\n\n---\n\nText.") == [("paragraph", "Not a field"), ("paragraph", "Text.")]


def test_a_file_of_front_matter_alone_is_read_as_text(convert):
    document = convert("---\ntitle: Only this\n---\n")
    assert (document.title, document.content) == ("Only this", "title: Only this")


def test_what_shows_nothing_is_kept_as_it_is_written(parts):
    assert parts("<!-- a note to the editor -->") == [("paragraph", "<!-- a note to the editor -->")]


def test_nesting_past_any_limit_loses_no_word(parts):
    assert "deep" in parts(">" * 5000 + " deep")[0][1]
    assert parts("> " * 60 + "quoted mail") == [("quote", "quoted mail")]


def test_the_content_is_the_markdown_itself(convert):
    assert convert("# Head\n\n- a\n").content == "# Head\n\n- a"


def test_an_empty_file_is_refused(convert):
    with pytest.raises(ConversionError, match=r"'notes\.md' is empty"):
        convert("\n \n")


def test_front_matter_without_any_value_still_holds_text(convert):
    assert convert("---\na:\n---\n").content == "a:"


def test_a_field_that_never_comes_costs_no_time(convert):
    document = convert("---\n" + "# c\n" * 3000 + "body")
    assert document.content.endswith("body")


@pytest.mark.parametrize(
    ("field", "title"),
    [("'One'", "One"), ('"Two"', "Two"), ("Three", "Three"), ("'Four", "'Four"), ("five" + " " * 50_000 + "!", None)],
)
def test_a_title_loses_its_quotes_however_long_it_is(convert, field, title):
    found = convert(f"---\ntitle: {field}\n---\nbody").title
    assert found == title if title else found.endswith("!")
