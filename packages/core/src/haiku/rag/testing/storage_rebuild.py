# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 64 to 69 of the storage contract: the capability `rebuild`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import numpy as np
import pytest

from haiku.rag.contracts.maintenance import RebuiltDatabase
from haiku.rag.contracts.storage import Database, DocumentWrite, OpenMode
from haiku.rag.errors import ConfigMismatchError, StorageError
from haiku.rag.models import Document, DocumentItem, EmbeddingIdentity
from haiku.rag.testing.storage_fixtures import (
    OpenDatabase,
    StorageFixtures,
    document,
    found_in_every_way,
    ids_of,
    text_query,
    vector_query,
)

OTHER = EmbeddingIdentity(provider="hash", model="other words", dimension=4)
MOMENT = datetime(2020, 5, 17, 3, 4, 5, 678901, tzinfo=UTC)


class RebuildClauses(StorageFixtures):
    """Clauses 64 to 69."""

    @pytest.fixture
    def open_rebuilt(self, open_database: OpenDatabase) -> OpenDatabase:
        """Opens databases of an engine that can rebuild them."""
        self.needs("rebuild")
        return open_database

    async def test_64_parts_are_what_was_written(self, open_rebuilt: OpenDatabase) -> None:
        database = await _rebuilt(open_rebuilt)
        items = [DocumentItem(ref="a", label="picture", text="x", page=4, box=(1.0, 2.0, 3.0, 4.5))]
        write = document("zero", "one", uri="mem:1", title="t", metadata={"k": 1}, items=items, pictures={"a": b"\x00"})
        write = replace(write, page_images={4: b"\xff"}, created_at=MOMENT)
        (stored,) = await database.write([write])
        parts = await database.parts(stored.id)
        assert parts is not None
        given = replace(write, id=stored.id, updated_at=stored.updated_at, vectors=None)
        assert replace(parts, vectors=None, chunks=[*parts.chunks], items=[*parts.items]) == given
        assert write.vectors is not None
        assert np.array_equal(np.asarray(parts.vectors), write.vectors)
        assert await database.parts("nothing") is None

    async def test_65_a_document_is_rewritten_where_it_is_as_it_was_seen(self, open_rebuilt: OpenDatabase) -> None:
        database, other = await _rebuilt(open_rebuilt), await _rebuilt(open_rebuilt)
        (seen,) = await database.write([document("outdated", uri="mem:1", pictures={"a": b"1"})])
        new = document("current", uri="mem:2", title="new")
        rewritten = await database.rewrite(new, seen=seen)
        assert rewritten is not None
        assert (rewritten.id, rewritten.uri, rewritten.created_at) == (seen.id, "mem:1", seen.created_at)
        assert (rewritten.title, await other.document_by_uri("mem:1")) == ("new", rewritten)
        assert await found_in_every_way(other, "outdated current") == set(ids_of(new))
        assert await database.picture(seen.id, "a") is None
        assert await other.rewrite(document("late"), seen=seen) is None
        renamed = await other.update(seen.id, uri=None, title="renamed", metadata=None)
        assert await database.rewrite(document("late"), seen=rewritten) is None
        assert await database.document_by_uri("mem:1") == renamed
        assert await database.delete(seen.id)
        assert await other.rewrite(document("late"), seen=cast("Document", renamed)) is None
        assert await other.count_documents(filter=None) == 0

    async def test_66_a_job_is_there_for_whoever_opens_the_database(self, open_rebuilt: OpenDatabase) -> None:
        database = await _rebuilt(open_rebuilt)
        assert await database.job() is None
        await database.set_job('{"it\'s": "begun"}')
        await database.close()
        again = await _rebuilt(open_rebuilt)
        assert await again.job() == '{"it\'s": "begun"}'
        await again.set_job(None)
        assert await again.job() is None

    async def test_67_what_is_staged_is_seen_by_nobody_and_gone_on_with(
        self, open_rebuilt: OpenDatabase, identity: EmbeddingIdentity
    ) -> None:
        database, reader = await _rebuilt(open_rebuilt), await open_rebuilt(mode=OpenMode.READ)
        staged = await database.staged(OTHER)
        write = replace(document("staged", id="x"), created_at=MOMENT, updated_at=MOMENT.replace(year=2021))
        (stored,) = await staged.write([_with_other_vectors(write)])
        assert (stored.id, stored.created_at, stored.updated_at.year) == ("x", MOMENT, 2021)
        assert (staged.identity, database.identity, reader.identity) == (OTHER, identity, identity)
        assert await reader.count_documents(filter=None) == await database.count_documents(filter=None) == 0
        later = await _rebuilt(open_rebuilt)
        assert await (await later.staged(OTHER)).document_by_id("x") == stored
        assert await (await later.staged(OTHER, anew=True)).count_documents(filter=None) == 0
        await (await later.staged(OTHER)).write([_with_other_vectors(document("staged", id="y"))])
        assert await (await later.staged(replace(OTHER, model="a third"))).count_documents(filter=None) == 0
        assert await (await later.staged(OTHER)).count_documents(filter=None) == 0

    async def test_68_adopting_changes_everything_at_once_or_nothing(
        self, open_rebuilt: OpenDatabase, identity: EmbeddingIdentity
    ) -> None:
        database, reader = await _rebuilt(open_rebuilt), await open_rebuilt(mode=OpenMode.READ)
        with pytest.raises(StorageError):
            await database.adopt()
        first, _ = await database.write([document("first", uri="mem:1"), document("second", uri="mem:2")])
        staged = await database.staged(OTHER)
        await _copy(database, staged, first.id)
        assert not await database.adopt()
        assert (database.identity, await reader.count_documents(filter=None)) == (identity, 2)
        await database.update(first.id, uri=None, title="new", metadata=None)
        for entry in await _listed(database):
            await _copy(database, staged, entry.id)
        (stale,) = await staged.write([_with_other_vectors(document("stale"))])
        assert not await database.adopt()
        before = await _listed(reader)

        async def catch_up() -> None:
            await staged.delete(stale.id)

        assert await database.adopt(catch_up=catch_up)
        assert await _listed(reader) == await _listed(database) == before
        assert (database.identity, reader.identity) == (OTHER, OTHER)
        assert (await reader.search(text_query("second"))).num_rows == 1
        assert (await database.search(vector_query([1.0] * OTHER.dimension))).num_rows == 2
        assert await database.job() is None
        again = await open_rebuilt(mode=OpenMode.READ)
        assert again.identity == OTHER

    async def test_69_a_writer_that_was_open_meanwhile_loses_nothing(
        self, open_rebuilt: OpenDatabase, identity: EmbeddingIdentity
    ) -> None:
        database, writer = await _rebuilt(open_rebuilt), await _rebuilt(open_rebuilt)
        (stored,) = await database.write([document("first", uri="mem:1")])
        same = await database.staged(identity)
        await same.write([cast("DocumentWrite", await database.parts(stored.id))])
        assert await database.adopt()
        (written,) = await writer.write([document("second", uri="mem:2")])
        assert await _listed(database) == [stored, written]
        staged = await database.staged(OTHER)
        for entry in (stored, written):
            await _copy(database, staged, entry.id)
        assert await database.adopt()
        with pytest.raises(ConfigMismatchError):
            await writer.write([document("third")])
        with pytest.raises(StorageError):
            await staged.write([_with_other_vectors(document("late"))])
        assert await _listed(database) == [stored, written]


async def _rebuilt(open_database: OpenDatabase) -> RebuiltDatabase:
    return cast("RebuiltDatabase", await open_database())


async def _copy(database: RebuiltDatabase, staged: RebuiltDatabase, document_id: str) -> None:
    await staged.write([_with_other_vectors(cast("DocumentWrite", await database.parts(document_id)))])


def _with_other_vectors(write: DocumentWrite) -> DocumentWrite:
    return replace(write, vectors=np.full((len(write.chunks), OTHER.dimension), 0.5, np.float32))


async def _listed(database: Database) -> list[Document]:
    return await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
