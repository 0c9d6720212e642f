# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 34 to 39 of the storage contract: what filters mean for moments, ranges, metadata and kinds of values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from haiku.rag.contracts.filter_values import ORDERS
from haiku.rag.contracts.filters import MOMENT_FIELDS, And, Comparison, Filter, FilterOperator, Not, Or
from haiku.rag.contracts.storage import Database
from haiku.rag.errors import FilterError
from haiku.rag.testing.random_filters import RandomFilters
from haiku.rag.testing.selection import selects
from haiku.rag.testing.storage_fixtures import (
    DIMENSION,
    OpenDatabase,
    StorageFixtures,
    document,
    text_query,
    titles,
    vector_query,
)

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
EAST = timezone(timedelta(hours=5, minutes=30))
HELD: dict[str, Any] = {
    "one": 1,
    "one point oh": 1.0,
    "half": 0.5,
    "minus": -3,
    "large": 2**53 + 1,
    "true": True,
    "false": False,
    "text one": "1",
    "text true": "true",
    "word": "word",
    "empty": "",
    "march": "2026-03-01",
    "march noon": "2026-03-01T12:00:00+02:00",
    "no month": "2026-13-01",
    "null": None,
    "list": ["word", 1, None, ["inner"]],
    "no list": [],
    "object": {"word": "word"},
}
KINDS: tuple[tuple[FilterOperator, Any, set[str]], ...] = (
    ("=", 1, {"one", "one point oh", "list"}),
    ("=", 1.0, {"one", "one point oh", "list"}),
    ("=", True, {"true"}),
    ("=", False, {"false"}),
    ("!=", True, {"false", "list", "no list"}),
    ("=", "1", {"text one"}),
    ("=", "true", {"text true"}),
    ("=", 2**53 + 1, {"large"}),
    ("=", 2**53, set()),
    (">", 2**53, {"large"}),
    ("<", 1, {"half", "minus"}),
    ("<=", 0.5, {"half", "minus"}),
    (">=", -3, {"one", "one point oh", "half", "minus", "large", "list"}),
    ("!=", 1, {"half", "minus", "large", "no list"}),
    ("in", (0.5, True, "word"), {"half", "true", "word", "list"}),
    ("in", (), set()),
    ("like", "w_r%", {"word", "list"}),
    ("like", "", {"empty"}),
    ("like", "%", {"text one", "text true", "word", "empty", "march", "march noon", "no month", "list"}),
    (">=", "2026-03", {"text true", "word", "march", "march noon", "no month", "list"}),
    ("<", "1", {"empty"}),
    ("!=", "word", {"text one", "text true", "empty", "march", "march noon", "no month", "no list"}),
    ("=", "inner", set()),
    ("=", MARCH, {"march"}),
    ("=", MARCH.astimezone(EAST), {"march"}),
    ("=", MARCH + timedelta(hours=10), {"march noon"}),
    (">", MARCH, {"march noon"}),
    ("<=", MARCH + timedelta(hours=10), {"march", "march noon"}),
    ("!=", MARCH, {"march noon", "list", "no list"}),
    ("in", (MARCH, 1), {"march", "one", "one point oh", "list"}),
)
NESTED: dict[str, dict[str, Any]] = {
    "nested": {"author": {"name": "Ada", "born": {"year": 1815}}, "tags": ["logic", "looms"]},
    "flat": {"author.name": "Ada", "author": {"name": "Bea"}, "tags": "logic"},
    "plain": {"author": "Ada", "tags": []},
    "odd": {"key with blanks": 1, 'a "quoted" key': 2, "橋": 3, "it's": 4, "": {"": 5}, "$.a[0]": 6},
    "none": {},
}
PLACES: tuple[tuple[str, FilterOperator, Any, set[str]], ...] = (
    ("author.name", "=", "Ada", {"nested", "flat"}),
    ("author.name", "=", "Bea", set()),
    ("author.name", "!=", "Ada", set()),
    ("author.born.year", "<", 1900, {"nested"}),
    ("author", "=", "Ada", {"plain"}),
    ("author.name.first", "=", "Ada", set()),
    ("tags", "=", "logic", {"nested", "flat"}),
    ("tags", "!=", "logic", {"plain"}),
    ("tags", "!=", "cloth", {"nested", "flat", "plain"}),
    ("tags", "like", "loom%", {"nested"}),
    ("tags", "in", ("looms", "cloth"), {"nested"}),
    ("key with blanks", "=", 1, {"odd"}),
    ('a "quoted" key', "=", 2, {"odd"}),
    ("橋", "=", 3, {"odd"}),
    ("it's", "=", 4, {"odd"}),
    (".", "=", 5, {"odd"}),
    ("$.a[0]", "=", 6, {"odd"}),
    ("Author.name", "=", "Ada", set()),
)
MEANINGLESS: tuple[Any, ...] = (
    Comparison("colour", "=", "red"),
    Comparison("metadata", "=", "red"),
    Comparison("metadata.", "=", "red"),
    Comparison("metadata. ", "=", "red"),
    Comparison("title", "=", 5),
    Comparison("title", "=", None),  # type: ignore[arg-type]
    Comparison("title", "=", ("a",)),
    Comparison("title", "in", "a"),
    Comparison("title", "in", ("a", None)),  # type: ignore[arg-type]
    Comparison("title", "in", ("a", 1)),
    Comparison("title", "is", "a"),  # type: ignore[arg-type]
    Comparison("title", "like", "a\\"),
    Comparison("uri", "<", MARCH),
    Comparison("created_at", ">", "2026-03-01"),
    Comparison("created_at", ">", 2026),
    Comparison("created_at", ">", datetime(2026, 3, 1)),
    Comparison("updated_at", "like", MARCH),
    Comparison("metadata.n", "=", None),  # type: ignore[arg-type]
    Comparison("metadata.n", "=", float("nan")),
    Comparison("metadata.n", "<", float("inf")),
    Comparison("metadata.n", "<", True),
    Comparison("metadata.n", "like", 5),
    Comparison("metadata.n", "=", [1]),  # type: ignore[arg-type]
    Comparison("metadata.n", "in", (MARCH.date(),)),  # type: ignore[arg-type]
    And(("title = 'a'",)),  # type: ignore[arg-type]
    Or(Comparison("title", "=", "a")),  # type: ignore[arg-type]
    Not(None),  # type: ignore[arg-type]
)
ROUNDS = 150


class ConditionClauses(StorageFixtures):
    """Clauses 34 to 39."""

    async def test_34_moments_compare_as_moments_in_any_zone(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        for title in ("a", "b", "c"):
            await database.write([document("word", title=title)])
        changed = await database.document_by_title("a")
        assert changed is not None
        await database.update(changed.id, uri=None, title=None, metadata={"changed": True})
        held = await database.list_documents(limit=None, offset=0, filter=None, include_content=False)
        for field in MOMENT_FIELDS:
            for bound in [getattr(found, field) for found in held]:
                for operator in ORDERS:
                    chosen = Comparison(field, operator, bound.astimezone(EAST))  # type: ignore[arg-type]
                    expected = [found.title for found in held if ORDERS[operator](getattr(found, field), bound)]
                    assert await titles(database, chosen) == sorted(expected, key=str), chosen
                assert await titles(database, Comparison(field, "in", (bound, MARCH)))
        assert await titles(database, Comparison("updated_at", ">", max(found.created_at for found in held))) == ["a"]

    @pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
    async def test_35_texts_are_in_the_order_of_their_code_points(
        self, open_database: OpenDatabase, operator: FilterOperator
    ) -> None:
        database = await open_database()
        held = ("", " ", "10", "9", "Zebra", "apple", "apples", "Éclair", "straße", "橋", "～", "𝒳")
        await database.write([document("word", title=title, uri=f"x{title}") for title in held])
        await database.write([document("word")])
        for bound in held:
            expected = sorted(title for title in held if ORDERS[operator](title, bound))
            assert await titles(database, Comparison("title", operator, bound)) == expected
            assert await titles(database, Comparison("uri", operator, f"x{bound}")) == expected
        between = And((Comparison("title", ">=", "A"), Comparison("title", "<", "b")))
        assert await titles(database, between) == ["Zebra", "apple", "apples"]

    async def test_36_a_metadata_value_compares_with_its_own_kind_only(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([document("word", title=title, metadata={"v": held}) for title, held in HELD.items()])
        await database.write([document("word", title="without", metadata={"w": 1})])
        for operator, value, expected in KINDS:
            chosen = Comparison("metadata.v", operator, value)
            assert await titles(database, chosen) == sorted(expected), chosen
            assert await titles(database, Not(chosen)) == sorted({*HELD, "without"} - expected), chosen

    async def test_37_a_key_is_looked_up_whole_and_then_by_its_parts(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([document("word", title=title, metadata=held) for title, held in NESTED.items()])
        for key, operator, value, expected in PLACES:
            assert await titles(database, Comparison(f"metadata.{key}", operator, value)) == sorted(expected), key
        odd = await database.document_by_title("odd")
        assert odd is not None
        await database.update(odd.id, uri=None, title=None, metadata={"author": {"name": "Ada"}})
        assert await titles(database, Comparison("metadata.author.name", "=", "Ada")) == ["flat", "nested", "odd"]

    @pytest.mark.parametrize("meaningless", MEANINGLESS, ids=repr)
    async def test_38_a_filter_that_means_nothing_is_refused(
        self, open_database: OpenDatabase, meaningless: Any
    ) -> None:
        database = await open_database()
        await database.write([document("word", title="a", metadata={"n": 1})])
        for chosen in (meaningless, Or((Comparison("title", "=", "a"), Not(meaningless)))):
            await _is_refused(database, chosen)

    async def test_38_a_filter_that_is_nested_without_end_is_refused(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([document("word", title="a")])
        deep: Filter = Comparison("title", "=", "a")
        for _ in range(50):
            deep = Not(deep)
        assert await titles(database, deep) == ["a"]
        for _ in range(5000):
            deep = Not(deep)
        await _is_refused(database, deep)

    async def test_39_any_filter_selects_what_it_says(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        made = RandomFilters(seed=5)
        for batch in range(6):
            await database.write([_random_document(made, f"{batch}-{number}") for number in range(6)])
        held = await database.list_documents(limit=None, offset=0, filter=None, include_content=False)
        made = RandomFilters(seed=6, moments=tuple(found.created_at for found in held))
        for number in range(ROUNDS):
            chosen = made.filter()
            expected = [found.id for found in held if selects(chosen, found)]
            await _agrees(database, chosen, expected, searches=number % 10 == 0)


def _random_document(made: RandomFilters, name: str) -> Any:
    text = made.text()
    uri = None if text is None else f"{text}-{name}"
    return document("word", id=f"a{name}", uri=uri, title=made.text(), metadata=made.metadata())


async def _agrees(database: Database, chosen: Filter, expected: list[str], *, searches: bool) -> None:
    found = await database.list_documents(limit=None, offset=0, filter=chosen, include_content=False)
    assert [entry.id for entry in found] == expected, chosen
    assert await database.count_documents(filter=chosen) == len(expected), chosen
    if searches:
        vector = np.ones(DIMENSION, dtype=np.float32)
        for query in (text_query("word", depth=100, filter=chosen), vector_query(vector, depth=100, filter=chosen)):
            table = await database.search(query)
            assert sorted(table["document_id"].to_pylist()) == sorted(expected), chosen


async def _is_refused(database: Database, chosen: Filter) -> None:
    uses: tuple[Callable[[], Any], ...] = (
        lambda: database.count_documents(filter=chosen),
        lambda: database.list_documents(limit=1, offset=0, filter=chosen, include_content=False),
        lambda: database.search(text_query("word", filter=chosen)),
    )
    for use in uses:
        with pytest.raises(FilterError) as caught:
            await use()
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith(".")
