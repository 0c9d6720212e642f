"""Filters, as text and as structure."""

import pytest

from haiku.rag.contracts.filters import And, Comparison, Not, Or
from haiku.rag.errors import FilterError
from haiku.rag.storage.lancedb.filter_text import parse_filter

pytestmark = pytest.mark.anyio

TITLES = ["O'Brien", "50%_off", "50xyoff", "a\\b", "ab", "x'; drop", "line\nbreak", "Ünï", None]


@pytest.fixture
async def titled(database, make):
    await database.write([make(f"docs/{number}.md", title=title) for number, title in enumerate(TITLES)])
    await database.write([make(None, "no address", title="alone", id="fixed-id")])
    return database


async def titles(database, condition):
    found = await database.list_documents(limit=None, offset=0, filter=condition, include_content=False)
    assert await database.count_documents(filter=condition) == len(found)
    return [document.title for document in found]


@pytest.mark.parametrize(
    ("text", "structure"),
    [
        ("uri = 'a'", Comparison("uri", "=", "a")),
        ("URI='a'", Comparison("uri", "=", "a")),
        ("\"title\" <> 'a'", Comparison("title", "!=", "a")),
        ("title != 'it''s'", Comparison("title", "!=", "it's")),
        ("id IN ('1', '2')", Comparison("id", "in", ("1", "2"))),
        ("id NOT IN ('1')", Not(Comparison("id", "in", ("1",)))),
        ("title LIKE 'a\\%b'", Comparison("title", "like", "a\\%b")),
        ("title NOT LIKE 'a%'", Not(Comparison("title", "like", "a%"))),
        ("NOT (uri = 'a')", Not(Comparison("uri", "=", "a"))),
        (
            "uri = 'a' AND title = 'b' or id = 'c'",
            Or((And((Comparison("uri", "=", "a"), Comparison("title", "=", "b"))), Comparison("id", "=", "c"))),
        ),
    ],
)
def test_text_is_read_into_structure(text, structure):
    assert parse_filter(text) == structure


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the filter is empty"),
        ("  \n", "the filter is empty"),
        ("urj = 'a'", "unknown field 'urj'. Did you mean 'uri'? Known: id, uri, title, created_at, updated_at."),
        ("content = 'a'", "unknown field 'content'"),
        ("uri = 'a'; DROP TABLE documents", "holds a ';'"),
        ("uri = 'a';", "holds a ';'"),
        ("uri = 'a' -- comment", "holds a comment"),
        ("/* c */ uri = 'a'", "holds a comment"),
        ("uri = 1", "something other than text in single quotes"),
        ('uri = "a"', "something other than text in single quotes"),
        ("uri = title", "something other than text in single quotes"),
        ("uri = NULL", "something other than text in single quotes"),
        ("uri = 'a' || 'b'", "something other than text in single quotes"),
        ("uri IN ('a', 1)", "something other than text in single quotes"),
        ("uri LIKE ANY ('a')", "something other than text in single quotes"),
        ("lower(uri) = 'a'", "something other than a field on the left"),
        ("d.uri = 'a'", "something other than a field on the left"),
        ("uri = 'a' OR 1 = 1", "something other than a field on the left"),
        ("uri IN (SELECT uri FROM documents)", "something that filters do not have"),
        ("uri IN ()", "something that filters do not have"),
        ("uri ILIKE 'a'", "something that filters do not have"),
        ("uri LIKE 'a' ESCAPE 'b'", "something that filters do not have"),
        ("uri IS NULL", "something that filters do not have"),
        ("uri BETWEEN 'a' AND 'b'", "something that filters do not have"),
        ("uri > 'a'", "something that filters do not have"),
        ("uri", "something that filters do not have"),
        ("true", "something that filters do not have"),
        ("SELECT 1", "something that filters do not have"),
        ("uri = 'a", "cannot be understood"),
        ("uri = x'ab'", "cannot be understood"),
        ("AND", "cannot be understood"),
        ("(" * 5000 + "uri = 'a'" + ")" * 5000, "cannot be understood"),
        ("NOT " * 600 + "uri = 'a'", ""),
    ],
)
def test_anything_else_is_an_error_of_one_sentence(text, sentence):
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_long_chain_is_read():
    parsed = parse_filter(" OR ".join(f"uri = '{number}'" for number in range(2000)))
    assert isinstance(parsed, Or)
    assert len(parsed.parts) == 2000


@pytest.mark.parametrize("title", [title for title in TITLES if title])
async def test_any_title_is_matched_exactly(titled, title):
    quoted = title.replace("'", "''")
    assert await titles(titled, f"title = '{quoted}'") == [title]
    assert await titles(titled, f"title IN ('{quoted}', 'none')") == [title]
    assert await titles(titled, Comparison("title", "=", title)) == [title]
    escaped = title.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    assert await titles(titled, Comparison("title", "like", escaped)) == [title]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("title LIKE '50%off'", ["50%_off", "50xyoff"]),
        ("title LIKE '50\\%%'", ["50%_off"]),
        ("title LIKE '_b'", ["ab"]),
        ("title LIKE 'A_'", []),
        ("title LIKE '%break'", ["line\nbreak"]),
        ("uri LIKE 'docs/%' AND NOT uri IN ('docs/0.md', 'docs/1.md') AND title LIKE '50%'", ["50xyoff"]),
        ("id = 'fixed-id'", ["alone"]),
        ("title != 'alone'", [title for title in TITLES if title]),
        ("NOT title = 'alone'", TITLES),
        ("uri NOT LIKE 'docs/%'", ["alone"]),
        ("(title = 'ab' OR title = 'alone') AND uri LIKE '%'", ["ab"]),
        (And(()), [*TITLES, "alone"]),
        (Or(()), []),
        (Comparison("title", "in", ()), []),
        (Not(And((Comparison("uri", "like", "%"), Comparison("title", "like", "%")))), [None, "alone"]),
    ],
)
async def test_a_filter_selects_what_it_says(titled, condition, expected):
    assert await titles(titled, condition) == expected


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (Comparison("titel", "=", "a"), "unknown field 'titel'. Did you mean 'title'?"),
        (Comparison("title", "in", "text"), "operator 'in' does not go with"),
        (Comparison("title", "=", ("a",)), "operator '=' does not go with"),
        ("title = ", "cannot be understood"),
    ],
)
async def test_a_wrong_filter_is_an_error_of_every_read_that_takes_one(titled, condition, sentence):
    with pytest.raises(FilterError, match=sentence.replace("?", r"\?")):
        await titles(titled, condition)
    with pytest.raises(FilterError):
        await titled.count_documents(filter=condition)
