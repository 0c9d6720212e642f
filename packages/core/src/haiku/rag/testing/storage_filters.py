# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 22 to 26 of the storage contract: filters."""

from __future__ import annotations

import numpy as np
import pytest

from haiku.rag.contracts.filters import And, Comparison, Filter, Not, Or
from haiku.rag.contracts.storage import Database
from haiku.rag.errors import FilterError
from haiku.rag.testing.storage_fixtures import (
    DIMENSION,
    OpenDatabase,
    StorageFixtures,
    document,
    hybrid_query,
    ids_of,
    text_query,
    titles,
    vector_query,
)

HOSTILE = ("O'Brien", "50%_off", "50XYoff", "a\\b", "x'; drop", 'say "hi"', "line\nbreak", "' OR '1'='1", "橋")
LIKE_PATTERNS: tuple[tuple[str, list[str]], ...] = (
    ("50\\%\\_off", ["50%_off"]),
    ("50%off", ["50%_off", "50XYoff"]),
    ("50__off", ["50%_off", "50XYoff"]),
    ("a\\\\b", ["a\\b"]),
    ("%'%", ["' OR '1'='1", "O'Brien", "x'; drop"]),
    ("%", sorted(HOSTILE)),
    ("line%break", ["line\nbreak"]),
    ("_", ["橋"]),
    ("o'brien", []),
    ("", []),
)


class FilterClauses(StorageFixtures):
    """Clauses 22 to 26."""

    async def test_22_a_value_is_only_ever_a_value(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await _write_hostile(database)
        for value in HOSTILE:
            for field in ("title", "uri", "id"):
                assert await titles(database, Comparison(field, "=", value)) == [value]
                assert await titles(database, Comparison(field, "in", (value, "nothing"))) == [value]
                others = sorted(set(HOSTILE) - {value})
                assert await titles(database, Comparison(field, "!=", value)) == others
            table = await database.search(text_query("word", depth=50, filter=Comparison("title", "=", value)))
            assert table["document_id"].to_pylist() == [value]

    @pytest.mark.parametrize(("pattern", "expected"), LIKE_PATTERNS, ids=ascii)
    async def test_22_like_has_two_wildcards_and_an_escape(
        self, open_database: OpenDatabase, pattern: str, expected: list[str]
    ) -> None:
        database = await open_database()
        await _write_hostile(database)
        assert await titles(database, Comparison("title", "like", pattern)) == expected

    async def test_23_a_missing_field_satisfies_no_comparison(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write(
            [document("a", title="alpha", uri="mem:1"), document("b", title="beta"), document("c", uri="mem:3")]
        )
        alpha, beta = Comparison("title", "=", "alpha"), Comparison("title", "=", "beta")
        cases: list[tuple[Filter, list[str | None]]] = [
            (Comparison("title", "!=", "alpha"), ["beta"]),
            (Comparison("title", "like", "%"), ["alpha", "beta"]),
            (Comparison("uri", "!=", "mem:1"), [None]),
            (Not(alpha), [None, "beta"]),
            (Not(Comparison("title", "!=", "alpha")), [None, "alpha"]),
            (Or((alpha, beta)), ["alpha", "beta"]),
            (And((alpha, beta)), []),
            (And((Not(alpha), Comparison("uri", "like", "mem:%"))), [None]),
            (Not(Or((alpha, Not(beta)))), ["beta"]),
            (Not(Not(alpha)), ["alpha"]),
        ]
        for chosen, expected in cases:
            assert await titles(database, chosen) == sorted(expected, key=str), chosen

    async def test_24_long_and_empty_lists_of_values_work(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([document("word", title=f"t{number}", id=f"id-{number}") for number in range(5)])
        many = tuple(f"id-{number}" for number in range(3, 10_003))
        assert await titles(database, Comparison("id", "in", many)) == ["t3", "t4"]
        assert (await database.search(text_query("word", filter=Comparison("id", "in", many)))).num_rows == 2
        assert await titles(database, Comparison("id", "in", ())) == []
        assert (await titles(database, Not(Comparison("id", "in", ())))) == [f"t{number}" for number in range(5)]

    async def test_25_text_filters_work_or_are_refused(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([document("word", title="alpha"), document("word", title="beta")])
        if self.text_filter is not None:
            assert await titles(database, self.text_filter) == ["alpha"]
            assert (await database.search(text_query("word", filter=self.text_filter))).num_rows == 1
        for broken in ("title = ", "no such thing at all (") if self.text_filter else ("title = 'alpha'",):
            with pytest.raises(FilterError):
                await database.count_documents(filter=broken)
            with pytest.raises(FilterError):
                await database.search(text_query("word", filter=broken))

    async def test_26_a_filter_finds_its_own_however_loud_the_rest(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        near, far = np.eye(DIMENSION, dtype=np.float32)[0], np.eye(DIMENSION, dtype=np.float32)[1] + 0.1
        loud = [document("gamma gamma gamma gamma", title="drop", vectors=near[None]) for _ in range(50)]
        quiet = [document("gamma filler filler", title="keep", vectors=far[None]) for _ in range(50)]
        await database.write([write for pair in zip(loud, quiet, strict=True) for write in pair])
        kept = {chunk for write in quiet for chunk in ids_of(write)}
        keep = Comparison("title", "=", "keep")
        for query in (
            vector_query(near, filter=keep),
            text_query("gamma", filter=keep),
            hybrid_query("gamma", near, filter=keep),
        ):
            found = (await database.search(query))["chunk_id"].to_pylist()
            assert len(found) >= 10
            assert set(found) <= kept


async def _write_hostile(database: Database) -> None:
    await database.write([document("word", title=value, uri=value, id=value) for value in HOSTILE])
