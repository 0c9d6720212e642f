# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 1 to 9 of the storage contract: opening and closing."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from haiku.rag.contracts.storage import OpenMode, Storage
from haiku.rag.errors import MissingDatabaseError, ReadOnlyError, TagError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.testing.storage_fixtures import (
    DIMENSION,
    MakeRef,
    OpenDatabase,
    StorageFixtures,
    document,
    hybrid_query,
    text_query,
    titles,
    vector_query,
)


class OpeningClauses(StorageFixtures):
    """Clauses 1 to 9."""

    @pytest.mark.parametrize("mode", [OpenMode.READ, OpenMode.WRITE])
    async def test_01_what_is_not_there_is_missing_and_stays_so(
        self, storage: Storage, make_ref: MakeRef, identity: EmbeddingIdentity, mode: OpenMode
    ) -> None:
        ref = make_ref("nowhere")
        for _ in range(2):
            with pytest.raises(MissingDatabaseError):
                await storage.open(ref, mode=mode, identity=identity)
        assert ref.path is None or not ref.path.exists()
        await storage.close()

    async def test_02_creating_makes_an_empty_one_or_opens_what_is_there(
        self, storage: Storage, open_database: OpenDatabase, make_ref: MakeRef, identity: EmbeddingIdentity
    ) -> None:
        first = await open_database()
        assert first.identity == identity
        assert await first.count_documents(filter=None) == 0
        await first.write([document("text", title="kept")])
        await first.close()
        other = EmbeddingIdentity(provider="other", model="other", dimension=DIMENSION)
        again = await storage.open(make_ref("one"), mode=OpenMode.CREATE, identity=other)
        assert again.identity == identity
        assert await titles(again, None) == ["kept"]
        await again.close()

    async def test_03_an_empty_database_answers_everything_with_nothing(self, open_database: OpenDatabase) -> None:
        await (await open_database()).close()
        database = await open_database(mode=OpenMode.READ)
        for query in (vector_query([1.0] * DIMENSION), text_query("word"), hybrid_query("word", [1.0] * DIMENSION)):
            assert (await database.search(query)).num_rows == 0
        assert await database.list_documents(limit=5, offset=0, filter=None, include_content=True) == []
        assert await database.chunks_by_id(["nothing"]) == []
        assert await database.items("nothing") == []
        assert await database.picture("nothing", "x") is None
        assert (await database.info()).documents == 0

    async def test_04_a_database_for_reading_refuses_writes(self, open_database: OpenDatabase) -> None:
        writer = await open_database()
        (stored,) = await writer.write([document("text", title="kept")])
        await writer.close()
        reader = await open_database(mode=OpenMode.READ)
        with pytest.raises(ReadOnlyError):
            await reader.write([document("other")])
        with pytest.raises(ReadOnlyError):
            await reader.update(stored.id, uri=None, title="changed", metadata=None)
        with pytest.raises(ReadOnlyError):
            await reader.delete(stored.id)
        assert await titles(reader, None) == ["kept"]

    async def test_05_a_tag_that_does_not_exist_is_a_tag_error(
        self, storage: Storage, open_database: OpenDatabase, make_ref: MakeRef, identity: EmbeddingIdentity
    ) -> None:
        await (await open_database()).close()
        with pytest.raises(TagError):
            await storage.open(replace(make_ref("one"), tag="never"), mode=OpenMode.READ, identity=identity)

    async def test_06_what_was_written_is_there_when_opened_again(
        self, open_database: OpenDatabase, identity: EmbeddingIdentity
    ) -> None:
        write = document("alpha text", "beta text", uri="mem:1", title="alpha", metadata={"n": [1, {"x": None}]})
        database = await open_database()
        (stored,) = await database.write([write])
        before = await database.search(hybrid_query("beta", [1.0] * DIMENSION))
        await database.close()
        reader = await open_database(mode=OpenMode.READ)
        assert reader.identity == identity
        assert await reader.document_by_id(stored.id) == stored
        assert (await reader.search(hybrid_query("beta", [1.0] * DIMENSION))).equals(before)

    async def test_07_closing_twice_is_safe(self, storage: Storage, open_database: OpenDatabase) -> None:
        database = await open_database()
        for closing in (database, database, storage, storage):
            await closing.close()

    async def test_08_databases_do_not_see_each_other(self, open_database: OpenDatabase) -> None:
        one, two = await open_database("one"), await open_database("two")
        (stored,) = await one.write([document("shared words", uri="mem:1", title="first")])
        await two.write([document("shared words", uri="mem:1", title="second")])
        assert await titles(one, None) == ["first"]
        assert await titles(two, None) == ["second"]
        assert await two.document_by_id(stored.id) is None
        assert (await two.search(text_query("shared"))).num_rows == 1

    async def test_09_a_cancelled_operation_leaves_the_database_usable(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([document("some words")])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await database.search(text_query("words"))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
        assert (await database.search(text_query("words"))).num_rows == 1
