# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 44 to 46 of the storage contract: what text searches find beyond plain words."""

from __future__ import annotations

from typing import ClassVar

import pytest

from haiku.rag.contracts.storage import Database
from haiku.rag.testing.storage_fixtures import OpenDatabase, StorageFixtures, document, text_query

SPELLINGS = (
    ("straße", "STRASSE"),
    ("re\u0301sume\u0301", "R\u00e9sum\u00e9"),
    ("ﾃﾞｰﾀ", "データ"),
    ("ｗｉｄｅ", "wide"),
    ("oﬃce", "Office"),
    ("ΟΔΟΣ", "οδος"),
)
PHRASES = (
    "the quick brown fox",
    "a brown quick fox",
    "quick and brown, a fox",
    "我们讨论机器学习的基础",
    "机器和学习",
)
IDENTIFIERS = (
    "written in C++ mostly",
    "written in C# mostly",
    "written in C mostly",
    "call snake_case here",
    "a case of one snake",
    "see std::vector there",
    "runs on node.js today",
    "a node that has js in it",
)


class TextClauses(StorageFixtures):
    """Clauses 44 to 46."""

    finds_phrases: ClassVar[bool] = False
    finds_identifiers: ClassVar[bool] = False

    @pytest.mark.parametrize(("stored", "asked"), SPELLINGS, ids=ascii)
    async def test_44_spellings_meet(self, open_database: OpenDatabase, stored: str, asked: str) -> None:
        database = await open_database()
        await database.write([document("something else"), document(f"{stored} 1", title=stored)])
        for text in (stored, asked):
            assert await _titles(database, text) == [stored]

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ('"quick brown"', [0]),
            ('"QUICK Brown"', [0]),
            ('"brown quick" fox', [1]),
            ('"quick" "fox"', [0, 1, 2]),
            ('"brown fox" "the quick"', [0]),
            ('"brown fox" "brown quick"', []),
            ('zebra "quick fox"', [1]),
            ('"机器学习"', [3]),
            ('fox "quick brown', [0, 1, 2]),
            ('"!!!" zebra "quick brown"', [0]),
        ],
        ids=ascii,
    )
    async def test_45_every_quoted_phrase_has_to_be_there(
        self, open_database: OpenDatabase, asked: str, expected: list[int]
    ) -> None:
        if not self.finds_phrases:
            pytest.skip("the engine knows no phrases")
        database = await open_database()
        await database.write([document(text, title=text) for text in PHRASES])
        assert sorted(await _titles(database, asked)) == sorted(PHRASES[place] for place in expected)

    @pytest.mark.parametrize(
        ("asked", "first"),
        [("C++", 0), ("c#", 1), ("SNAKE_CASE", 3), ("std::vector", 5), ("vector", 5), ("Node.js", 6)],
    )
    async def test_46_identifiers_are_found_whole_and_by_their_parts(
        self, open_database: OpenDatabase, asked: str, first: int
    ) -> None:
        if not self.finds_identifiers:
            pytest.skip("the engine knows no identifiers")
        database = await open_database()
        await database.write([document(text, title=text) for text in IDENTIFIERS])
        assert (await _titles(database, asked))[0] == IDENTIFIERS[first]
        assert {IDENTIFIERS[3], IDENTIFIERS[4]} == set(await _titles(database, "snake"))


async def _titles(database: Database, text: str) -> list[str]:
    """The titles of what a text search finds, best first."""
    found = (await database.search(text_query(text)))["document_id"].to_pylist()
    documents = [await database.document_by_id(document_id) for document_id in found]
    return [str(document.title) for document in documents if document is not None]
