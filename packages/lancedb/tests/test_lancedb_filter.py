"""Filters, as text and as structure."""

import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def at(year, month, day, hour=0, minute=0):
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "structure"),
    [
        ("uri = 'a'", Comparison("uri", "=", "a")),
        ("URI='a'", Comparison("uri", "=", "a")),
        ("\"title\" <> 'a'", Comparison("title", "!=", "a")),
        ("title != 'it''s'", Comparison("title", "!=", "it's")),
        ("title > 'a'", Comparison("title", ">", "a")),
        ("id IN ('1', '2')", Comparison("id", "in", ("1", "2"))),
        ("id NOT IN ('1')", Not(Comparison("id", "in", ("1",)))),
        ("title LIKE 'a\\%b'", Comparison("title", "like", "a\\%b")),
        ("title NOT LIKE 'a%'", Not(Comparison("title", "like", "a%"))),
        ("NOT (uri = 'a')", Not(Comparison("uri", "=", "a"))),
        (
            "uri = 'a' AND title = 'b' or id = 'c'",
            Or((And((Comparison("uri", "=", "a"), Comparison("title", "=", "b"))), Comparison("id", "=", "c"))),
        ),
        ("created_at > '2026-01-31'", Comparison("created_at", ">", at(2026, 1, 31))),
        ("UPDATED_AT <= '2026-01-31T08:30:00+01:00'", Comparison("updated_at", "<=", at(2026, 1, 31, 7, 30))),
        ("created_at IN ('2026-01-31 08:30Z')", Comparison("created_at", "in", (at(2026, 1, 31, 8, 30),))),
        ("created_at < TIMESTAMP '2026-01-31 08:30'", Comparison("created_at", "<", at(2026, 1, 31, 8, 30))),
        ("metadata.day >= DATE '2026-01-31'", Comparison("metadata.day", ">=", at(2026, 1, 31))),
        ("metadata.day >= '2026-01-31'", Comparison("metadata.day", ">=", "2026-01-31")),
        (
            "created_at BETWEEN '2026-01-31' AND '2026-02-01'",
            And((Comparison("created_at", ">=", at(2026, 1, 31)), Comparison("created_at", "<=", at(2026, 2, 1)))),
        ),
        (
            "metadata.n not between -1 and 2.5e0",
            Not(And((Comparison("metadata.n", ">=", -1), Comparison("metadata.n", "<=", 2.5)))),
        ),
        ("metadata.n IN (1, -2, 0.5, TRUE, 'a')", Comparison("metadata.n", "in", (1, -2, 0.5, True, "a"))),
        ("metadata.n = 9007199254740993", Comparison("metadata.n", "=", 9007199254740993)),
        ("metadata.done = false", Comparison("metadata.done", "=", False)),
        ("MetaData.Year != 2026", Comparison("metadata.Year", "!=", 2026)),
        ('metadata."key with blanks" = 1', Comparison("metadata.key with blanks", "=", 1)),
        ('metadata."a ""b"" c" = 1', Comparison('metadata.a "b" c', "=", 1)),
        ("metadata.a.b.c.d.e.f = 1", Comparison("metadata.a.b.c.d.e.f", "=", 1)),
        (
            "metadata.not = 1 AND metadata.select.from = 2",
            And((Comparison("metadata.not", "=", 1), Comparison("metadata.select.from", "=", 2))),
        ),
        ("metadata.2024 = 1", Comparison("metadata.2024", "=", 1)),
        ("metadata.橋 = '橋'", Comparison("metadata.橋", "=", "橋")),
    ],
)
def test_text_is_read_into_structure(text, structure):
    assert parse_filter(text) == structure


def test_a_truth_value_is_no_number():
    parsed = parse_filter("metadata.done = TRUE")
    assert isinstance(parsed, Comparison)
    assert parsed.value is True


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the filter is empty"),
        ("  \n", "the filter is empty"),
        ("urj = 'a'", "unknown field 'urj'. Did you mean 'uri'? Known: id, uri, title, created_at, updated_at."),
        ("content = 'a'", "unknown field 'content'"),
        ("year > 2024", "A key of the metadata is written metadata.year."),
        ("author.name = 'a'", "A key of the metadata is written metadata.author.name."),
        ("metadata = 'a'", "A key of the metadata is written metadata.KEY."),
        ('metadata." " = 1', "names no key after 'metadata.'"),
        ("uri = 'a'; DROP TABLE documents", "holds a ';'"),
        ("uri = 'a';", "holds a ';'"),
        ("uri = 'a' -- comment", "holds a comment"),
        ("/* c */ uri = 'a'", "holds a comment"),
        ("uri = 1", "compares 'uri' with a number. It takes text."),
        ("uri IN ('a', 1)", "compares 'uri' with a number. It takes text."),
        ("uri = TRUE", "compares 'uri' with true or false. It takes text."),
        ("uri = DATE '2026-01-31'", "compares 'uri' with a datetime. It takes text."),
        ("created_at > 2026", "compares 'created_at' with a number"),
        ("created_at > '31.1.2026'", "'created_at' with a text that is no moment. Write a date such as '2026-01-31'"),
        ("created_at > '2026-02-30'", "'created_at' with a text that is no moment"),
        ("created_at LIKE '2026%'", "'created_at' with a text that is no moment"),
        ("metadata.day > DATE 'today'", "'metadata.day' with a text that is no moment"),
        ("metadata.n LIKE 5", "pattern for 'metadata.n' is no text"),
        ("metadata.n < TRUE", "They have no order"),
        ("metadata.n = 1e999", "a number that is not finite"),
        ("metadata.n = " + "9" * 400, "a number that is not finite"),
        ("metadata.n = " + "9" * 5000, "a number that cannot be read"),
        ("metadata.n = --5", "holds a comment"),
        ("metadata.n = - -5", "with something other than a value"),
        ("metadata.n = -'5'", "with something other than a value"),
        ('uri = "a"', "with something other than a value"),
        ("uri = title", "with something other than a value"),
        ("uri = NULL", "with something other than a value"),
        ("uri = 'a' || 'b'", "with something other than a value"),
        ("uri = ?", "with something other than a value"),
        ("uri LIKE ANY ('a')", "with something other than a value"),
        ("uri = (SELECT uri FROM documents)", "with something other than a value"),
        ("lower(uri) = 'a'", "something other than a field on the left"),
        ("uri = 'a' OR 1 = 1", "something other than a field on the left"),
        ("metadata.key-x = 1", "something other than a field on the left"),
        ("metadata.* = 1", "something other than a field on the left"),
        ("metadata.a.b.c.d.len() = 1", "something other than a field on the left"),
        ("d.uri = 'a'", "unknown field 'd.uri'"),
        ("uri IN (SELECT uri FROM documents)", "something that filters do not have"),
        ("uri IN ()", "something that filters do not have"),
        ("uri ILIKE 'a'", "something that filters do not have"),
        ("uri LIKE 'a' ESCAPE 'b'", "something that filters do not have"),
        ("uri IS NULL", "something that filters do not have"),
        ("uri BETWEEN SYMMETRIC 'b' AND 'a'", "something that filters do not have"),
        ("uri", "something that filters do not have"),
        ("uri = 'a' OR TRUE", "something that filters do not have"),
        ("SELECT 1", "cannot be understood at 'SELECT'"),
        ("uri = 'a' uri", "cannot be understood at 'uri'"),
        ("uri = 'a", "cannot be understood"),
        ("uri = x'ab'", "cannot be understood"),
        ("AND", "cannot be understood"),
        ("(" * 40 + "uri = 'a'" + ")" * 40, "nested more than 30 levels deep"),
        ("NOT " * 40 + "uri = 'a'", "nested more than 30 levels deep"),
        ("CASE WHEN " * 2000, "nested too deeply"),
        ("uri = 'a' AND " * 30_000 + "uri = 'a'", "more than 100,000 words, values and signs"),
        ("uri = '" + "a" * 1_000_000 + "'", "has 1,000,008 characters, more than 500,000"),
        (f"metadata.{'k' * 1000} = 1", "a metadata key of more than 1,000 characters"),
        ("uri LIKE '" + "%a" * 1001 + "'", "longer than 2,000 characters"),
        ("uri LIKE 'a\\'", "ends in a single backslash"),
    ],
    ids=lambda text: text[:40],
)
def test_anything_else_is_an_error_of_one_sentence(text, sentence):
    for _ in range(2):
        with pytest.raises(FilterError) as caught:
            parse_filter(text)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600


def test_a_long_chain_and_a_long_list_are_read():
    parsed = parse_filter(" OR ".join(f"uri = '{number}'" for number in range(10_000)))
    assert isinstance(parsed, Or)
    assert len(parsed.parts) == 10_000
    ids = tuple(str(uuid5(NAMESPACE_URL, str(number))) for number in range(10_000))
    assert parse_filter(f"id IN ({', '.join(map(repr, ids))})") == Comparison("id", "in", ids)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MOMENTS = st.datetimes(timezones=st.just(UTC))
ANY_VALUE = TEXTS | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
KEYS = TEXTS.filter(str.strip)


@st.composite
def comparisons(draw):
    field = draw(st.sampled_from(["id", "uri", "title", "created_at", "updated_at", "metadata"]))
    if field == "metadata":
        field, values = f"metadata.{draw(KEYS)}", ANY_VALUE | MOMENTS
    else:
        values = MOMENTS if field.endswith("_at") else TEXTS
    operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "like"]))
    if operator == "in":
        return Comparison(field, "in", tuple(draw(st.lists(values, min_size=1, max_size=3))))
    if operator == "like" and not field.endswith("_at"):
        return Comparison(field, "like", draw(TEXTS).replace("\\", "\\\\"))
    value = draw(values)
    return Comparison(field, "=" if operator == "like" or isinstance(value, bool) else operator, value)


def structures():
    """Structures as text gives them: a part of an And is no And, and there are two at least."""
    leaves = comparisons()
    negated = leaves | leaves.map(Not)
    ands = st.lists(negated, min_size=2, max_size=3).map(lambda parts: And(tuple(parts)))
    ors = st.lists(negated | ands | ands.map(Not), min_size=2, max_size=3).map(lambda parts: Or(tuple(parts)))
    return negated | ands | ors | ors.map(Not)


def written(node):
    """The structure as text."""
    match node:
        case Not(part):
            return f"NOT ({written(part)})"
        case And(parts):
            return " AND ".join(f"({written(part)})" for part in parts)
        case Or(parts):
            return " OR ".join(f"({written(part)})" for part in parts)
    head, _, key = node.field.partition(".")
    field = head + '."' + key.replace('"', '""') + '"' if key else head
    if isinstance(node.value, tuple):
        return f"{field} IN ({', '.join(map(literal, node.value))})"
    return f"{field} {node.operator} {literal(node.value)}"


def literal(value):
    match value:
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat()}'"
    return repr(value)


@given(structures())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_structure_is_the_same_after_being_written_as_text(structure):
    assert parse_filter(written(structure)) == structure


@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(
            [
                "uri",
                "metadata",
                ".",
                "a",
                "=",
                "<",
                "'x'",
                "(",
                ")",
                "AND",
                "OR",
                "NOT",
                "IN",
                ",",
                "LIKE",
                "BETWEEN",
                "1",
                "-",
                "TRUE",
                "NULL",
                '"',
                "'",
                ";",
                "--",
                "/*",
                "DATE",
                "SELECT",
                "CASE",
                "[",
                "{",
                "\\",
            ]
        ),
        max_size=14,
    ).map(" ".join)
)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_any_text_is_read_or_refused_with_a_sentence(text):
    found = outcome(text)
    assert not isinstance(found, str) or found.endswith(".")


def outcome(text):
    try:
        return parse_filter(text)
    except FilterError as error:
        return str(error)


async def test_a_filter_for_true_is_not_answered_by_one_for_1(database, make):
    await database.write([make("a.md", metadata={"a": 1}), make("b.md", metadata={"a": True})])
    for value, uri in ((1, "a.md"), (True, "b.md"), (1.0, "a.md")):
        found = await database.list_documents(
            limit=None, offset=0, filter=Comparison("metadata.a", "=", value), include_content=False
        )
        assert [document.uri for document in found] == [uri]


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
        (Comparison("title", "in", "text"), "operator 'in' for 'title' takes a tuple of values."),
        (Comparison("title", "=", ("a",)), "operator '=' for 'title' takes one value."),
        ("title = ", "cannot be understood"),
    ],
)
async def test_a_wrong_filter_is_an_error_of_every_read_that_takes_one(titled, condition, sentence):
    with pytest.raises(FilterError, match=sentence.replace("?", r"\?")):
        await titles(titled, condition)
    with pytest.raises(FilterError):
        await titled.count_documents(filter=condition)


def test_the_filters_of_the_documentation_are_read():
    page = (Path(__file__).parents[3] / "docs/filters.md").read_text("utf-8")
    blocks = [block.splitlines() for block in re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)]
    lines = [line for block in blocks for line in block if not line.startswith("the filter")]
    assert len(lines) == 7
    for line in [*lines, *re.findall(r'--filter "(.*)"', page)]:
        parse_filter(line)
    assert outcome("titel = 'a'") in page
