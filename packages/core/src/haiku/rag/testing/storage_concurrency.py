# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 40 to 43 of the storage contract: writes that are broken off, and several handles on one database."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import numpy as np

from haiku.rag.contracts.storage import Database, OpenMode
from haiku.rag.testing.storage_fixtures import DIMENSION, OpenDatabase, StorageFixtures, hybrid_query, vector_query
from haiku.rag.testing.storage_versions import documents_of, held, version, whole_versions

MOMENTS = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
"""Seconds after which a write is broken off: sooner and later than most take."""
WRITERS = 3
ROUNDS = 4


class ConcurrencyClauses(StorageFixtures):
    """Clauses 40 to 43."""

    async def test_40_a_write_that_is_broken_off_leaves_the_document_whole(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([version(0)])
        for number, seconds in enumerate(MOMENTS, start=1):
            before = await held(database)
            with anyio.move_on_after(seconds):
                await database.write([version(number)])
            assert await held(database) in (before, number)
        before = await held(database)
        with anyio.move_on_after(MOMENTS[2]):
            await database.delete((await documents_of(database))[0].id)
        assert await held(database) in (before, None)
        await database.write([version(99)])
        assert (await held(database), await database.count_documents(filter=None)) == (99, 1)

    async def test_41_databases_that_are_open_several_times_write_at_once(
        self, open_database: OpenDatabase, staleness_s: float
    ) -> None:
        databases = [await open_database() for _ in range(WRITERS)]

        async def write(number: int, database: Database) -> None:
            for turn in range(ROUNDS):
                await database.write([version(turn, f"mem:own {number}"), version(turn * WRITERS + number)])

        async with anyio.create_task_group() as group:
            for number, database in enumerate(databases):
                group.start_soon(write, number, database)
        await anyio.sleep(staleness_s)
        last = {await held(database) for database in databases}
        assert len(last) == 1
        assert last <= {(ROUNDS - 1) * WRITERS + number for number in range(WRITERS)}
        for database in databases:
            assert await database.count_documents(filter=None) == WRITERS + 1
            for number in range(WRITERS):
                assert await held(database, f"mem:own {number}") == ROUNDS - 1

    async def test_42_a_database_that_was_opened_before_shows_a_commit_in_time(
        self, open_database: OpenDatabase, staleness_s: float
    ) -> None:
        writer, reader = await open_database(), await open_database(mode=OpenMode.READ)
        assert await held(reader) is None
        for number in range(3):
            await writer.write([version(number)])
            await anyio.sleep(staleness_s)
            assert await held(reader) == number
        (row,) = await documents_of(writer)
        changed = await writer.update(row.id, uri=None, title="changed", metadata=None)
        await anyio.sleep(staleness_s)
        assert await documents_of(reader) == [changed]
        await writer.delete(row.id)
        await anyio.sleep(staleness_s)
        assert await held(reader) is None

    async def test_43_a_search_meets_no_half_document_while_another_writes(self, open_database: OpenDatabase) -> None:
        writer, reader = await open_database(), await open_database(mode=OpenMode.READ)
        writes = [version(number, f"mem:{number % 2}") for number in range(12)]
        vector = np.ones(DIMENSION, dtype=np.float32)
        queries = (vector_query(vector, depth=100), hybrid_query("passage", vector, depth=100))
        done = anyio.Event()

        async def write() -> None:
            for entry in writes:
                await writer.write([entry])
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not done.is_set():
                for query in queries:
                    whole_versions((await reader.search(query))["chunk_id"].to_pylist(), writes)
                await anyio.lowlevel.checkpoint()
        assert [await held(writer, uri) for uri in ("mem:0", "mem:1")] == [10, 11]
