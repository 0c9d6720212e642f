"""Listing, lookups, consistency between clients, and what survives another process."""

import asyncio
import shutil
from datetime import timedelta

import lancedb
import numpy as np
import pytest

from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import MissingDatabaseError, StorageError
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

pytestmark = pytest.mark.anyio

ALPHA = CandidateQuery(search_type="fts", depth=10, text="alpha")


async def uris(database, **fields):
    asked = {"limit": None, "offset": 0, "filter": None, "include_content": False, **fields}
    return [document.uri for document in await database.list_documents(**asked)]


async def test_documents_are_listed_by_creation_then_id(database, make):
    for name in ("c", "a", "b"):
        await database.write([make(f"{name}.md")])
    await database.write([make("c.md", "again")])
    assert await uris(database) == ["c.md", "a.md", "b.md"]


async def test_windows_neither_repeat_nor_skip(database, make):
    await database.write([make(f"{number}.md") for number in range(7)])
    windows = [await uris(database, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [uri for window in windows for uri in window] == await uris(database)
    assert await uris(database, limit=0) == await uris(database, limit=3, offset=9, include_content=True) == []
    assert await uris(database, limit=2, offset=1, filter="uri IN ('1.md', '3.md', '5.md')") == ["3.md", "5.md"]


async def test_content_is_read_only_when_it_is_asked_for(database, make):
    await database.write([make("a.md", "one"), make("b.md", "two")])
    listing = {"limit": None, "offset": 0, "filter": None}
    assert [doc.content for doc in await database.list_documents(**listing, include_content=False)] == [None, None]
    assert [doc.content for doc in await database.list_documents(**listing, include_content=True)] == ["one", "two"]


async def test_lookups_answer_none_or_nothing_for_what_is_not_there(database, make):
    await database.write([make("a.md")])
    assert await database.document_by_id("no'") is None
    assert await database.document_by_uri("no") is None
    assert await database.document_by_title("no") is None
    assert await database.items("no") == []
    assert await database.picture("no", "p") is None


async def test_a_title_means_the_first_document_that_has_exactly_it(database, make):
    first, _, _ = await database.write(
        [make("a.md", title="Same"), make("b.md", title="Same"), make("c.md", title="same")]
    )
    assert await database.document_by_title("Same") == first


async def test_info_counts_what_is_live(database, make):
    await database.write([make("a.md", "one", "two")])
    (stored,) = await database.write([make("a.md", "three")])
    info = await database.info()
    assert (info.storage, info.schema_version, info.documents, info.chunks) == ("lancedb", 2, 1, 1)
    assert info.identity == database.identity
    assert info.updated_at == stored.updated_at
    assert info.size_bytes > 1000
    assert info.indexes == dict.fromkeys(("identifiers_idx", "text_idx"), "FTS, 2 rows, 1 not covered")


async def test_the_info_of_an_empty_database_has_no_moment(database):
    info = await database.info()
    assert (info.documents, info.updated_at, info.indexes) == (0, None, {})


async def test_a_client_sees_its_own_write_at_once_and_anothers_after_the_interval(open_database, make):
    patient = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600))
    one, two = await open_database(engine=patient), await open_database(engine=patient)
    assert await uris(one) == await uris(two) == []
    await one.write([make("a.md")])
    assert await uris(one) == ["a.md"]
    assert await uris(two) == []
    two._live._due = 0.0
    assert await uris(two) == ["a.md"]


async def test_a_client_that_has_not_looked_again_still_shows_old_revisions_whole(open_database, make):
    patient = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600))
    reader = await open_database(engine=patient)
    writer = await open_database()
    (stored,) = await writer.write([make("a.md", "alpha one", "alpha two")])
    assert (await reader.search(ALPHA)).num_rows == 2
    await writer.write([make("a.md", "beta")])
    await writer.close()
    found = await reader.search(ALPHA)
    assert [chunk.content for chunk in await reader.chunks_by_id(sorted(found["chunk_id"].to_pylist()))]
    assert found.num_rows == 2
    assert len(await reader.items(stored.id)) == 2


async def test_many_reads_at_once_look_once(open_database, make, monkeypatch):
    patient = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600))
    database = await open_database(engine=patient)
    await database.write([make()])
    looks = []
    refreshed = database._live._refreshed

    async def counted():
        looks.append(1)
        return await refreshed()

    monkeypatch.setattr(database._live, "_refreshed", counted)
    await asyncio.gather(*(uris(database) for _ in range(20)))
    assert len(looks) == 1


@pytest.mark.parametrize("more_versions", [False, True])
async def test_a_reader_survives_that_another_process_creates_the_database_anew(
    open_database, location, make, more_versions
):
    reader = await open_database(mode=OpenMode.CREATE)
    await reader.write([make("old.md", "alpha", title="old")])
    vector = CandidateQuery(search_type="hybrid", depth=10, text="alpha", vector=np.ones(8, np.float32))
    assert (await reader.search(vector)).num_rows == 1
    connection = await lancedb.connect_async(location)
    await connection.drop_all_tables()
    writer = await open_database(engine=LanceDBStorage(LanceDBSettings()))
    for number in range(4 if more_versions else 1):
        await writer.write([make(f"new{number}.md", "alpha anew")])
    assert await uris(reader) == await uris(writer)
    found = await reader.search(vector)
    assert {chunk.content for chunk in await reader.chunks_by_id(found["chunk_id"].to_pylist())} == {"alpha anew"}


async def test_a_reader_survives_a_clean_up_of_the_versions_it_is_on(open_database, location, make):
    patient = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600))
    reader = await open_database(engine=patient, mode=OpenMode.CREATE)
    writer = await open_database()
    for number in range(5):
        await writer.write([make(f"{number}.md", "alpha")])
    assert len(await uris(reader)) == 5
    connection = await lancedb.connect_async(location)
    for name in ("documents", "chunks", "items", "pictures"):
        table = await connection.open_table(name)
        await table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)
    assert (await reader.search(ALPHA)).num_rows == 5
    assert len(await reader.list_documents(limit=None, offset=0, filter=None, include_content=True)) == 5


async def test_a_database_that_went_away_is_missing(open_database, location, make):
    database = await open_database()
    await database.write([make()])
    shutil.rmtree(location)
    with pytest.raises(MissingDatabaseError, match="there is no database 'notes'"):
        await uris(database)


async def test_a_missing_data_file_is_an_error_that_names_no_location(open_database, location, make):
    writer = await open_database()
    await writer.write([make()])
    await writer.close()
    database = await open_database(mode=OpenMode.READ, engine=LanceDBStorage(LanceDBSettings()))
    shutil.rmtree(location / "items.lance" / "data")
    (document,) = await database.list_documents(limit=1, offset=0, filter=None, include_content=False)
    with pytest.raises(StorageError, match=r"^database 'notes' could not be read: a part of it is missing\.") as caught:
        await database.items(document.id)
    assert str(location) not in str(caught.value)
    assert (caught.value.__context__, caught.value.source) == (None, "notes")


async def test_vectors_that_do_not_add_up_are_left_to_a_scan(open_database, location, make):
    database = await open_database()
    await database.write([make("a.md", "one", "two")])
    connection = await lancedb.connect_async(location)
    await (await connection.open_table("chunks")).delete("content = 'two'")
    found = await database.search(CandidateQuery(search_type="vector", depth=5, vector=np.ones(8, np.float32)))
    assert found.num_rows == 1
    assert database._vectors._budget._free == 512 << 20


async def test_vectors_that_cannot_be_read_are_an_error_and_hold_no_memory(open_database, location, make):
    await (await open_database()).write([make()])
    database = await open_database(mode=OpenMode.READ, engine=LanceDBStorage(LanceDBSettings()))
    shutil.rmtree(location / "chunks.lance" / "data")
    with pytest.raises(StorageError, match="database 'notes' could not be searched: a part of it is missing"):
        await database.search(CandidateQuery(search_type="vector", depth=5, vector=np.ones(8, np.float32)))
    assert database._vectors._budget._free == 512 << 20


async def test_vectors_beyond_the_budget_are_scanned_and_the_budget_is_given_back(open_database, make, tmp_path):
    engine = LanceDBStorage(LanceDBSettings(vector_memory_mb=1))
    one = await open_database(tmp_path / "one", engine=engine)
    two = await open_database(tmp_path / "two", engine=engine)
    for database in (one, two):
        await database.write([make("a.md", *map(str, range(5_000)))])
    asked = CandidateQuery(search_type="vector", depth=5, vector=np.ones(8, np.float32))
    first, second = await one.search(asked), await two.search(asked)
    assert first["similarity"].to_pylist() == pytest.approx(second["similarity"].to_pylist(), abs=1e-6)
    assert [database._vectors._held.memory is None for database in (one, two)] == [False, True]
    await one.close()
    await two.write([make("b.md")])
    await two.search(asked)
    assert two._vectors._held.memory is not None


def holds_vectors(database):
    held = database._vectors._held
    return held is not None and held.memory is not None and held.state is database._live._state


async def test_a_large_table_is_asked_until_its_vectors_are_wanted_often_enough(open_database, make, monkeypatch):
    monkeypatch.setattr("haiku.rag.storage.lancedb.vectors.LARGE_BYTES", 0)
    database = await open_database()
    asked = CandidateQuery(search_type="vector", depth=5, vector=np.ones(8, np.float32))
    for turn in range(2):
        await database.write([make(f"{turn}.md", "one", "two")])
        found = []
        for search in range(4):
            found.append((await database.search(asked)).drop_columns("vector_rank"))
            if search == 2:
                await database._vectors._loading
            assert holds_vectors(database) is (search >= 2)
        assert found[0].num_rows == 2 * (turn + 1)
        assert all(table.equals(found[0]) for table in found)


async def test_vectors_that_cannot_be_read_beside_the_searches_are_done_without(open_database, make, monkeypatch):
    monkeypatch.setattr("haiku.rag.storage.lancedb.vectors.LARGE_BYTES", 0)
    database = await open_database()
    await database.write([make("a.md", "one", "two")])

    async def broken(*_):
        raise OSError

    monkeypatch.setattr("haiku.rag.storage.lancedb.vectors.read_memory", broken)
    asked = CandidateQuery(search_type="vector", depth=5, vector=np.ones(8, np.float32))
    for _ in range(5):
        assert (await database.search(asked)).num_rows == 2
        await asyncio.sleep(0)
    assert not holds_vectors(database)
    assert database._vectors._budget._free == 512 << 20


async def test_closing_ends_the_reading_of_vectors(open_database, make, monkeypatch):
    monkeypatch.setattr("haiku.rag.storage.lancedb.vectors.LARGE_BYTES", 0)
    database = await open_database()
    await database.write([make("a.md", "one", "two")])
    asked = CandidateQuery(search_type="vector", depth=5, vector=np.ones(8, np.float32))
    for _ in range(3):
        await database.search(asked)
    loading = database._vectors._loading
    await database.close()
    assert loading.done()
    assert database._vectors._budget._free == 512 << 20


async def test_where_rows_are_is_known_after_a_few_text_searches_and_changes_nothing(open_database, make):
    database = await open_database()
    for turn in range(3):
        await database.write([make(f"{number}.md", f"alpha {number} {turn}") for number in range(5)])
        found = [await database.search(ALPHA) for _ in range(4)]
        assert all(table.equals(found[0]) for table in found)
        assert found[0].num_rows == 5
        assert database._vectors._held.rows is not None
        assert database._vectors._held.memory is None


async def test_rows_without_room_in_memory_are_looked_up_in_the_table(open_database, make):
    database = await open_database(engine=LanceDBStorage(LanceDBSettings(vector_memory_mb=0)))
    await database.write([make("a.md", "alpha one", "alpha two")])
    for _ in range(4):
        found = await database.search(ALPHA)
        assert len(await database.chunks_by_id(found["chunk_id"].to_pylist())) == 2
    assert database._vectors._held.rows is None


@pytest.mark.parametrize("memory", [0, 512])
async def test_what_is_in_memory_is_right_after_a_compaction_by_another_process(open_database, location, make, memory):
    engine = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0, vector_memory_mb=memory))
    reader = await open_database(engine=engine)
    for number in range(6):
        await reader.write([make(f"{number}.md", f"alpha {number}", f"beta {number}")])
    await reader.write([make("2.md", "alpha anew")])
    asked = CandidateQuery(search_type="hybrid", depth=50, text="alpha", vector=np.ones(8, np.float32))
    before = [await reader.search(asked) for _ in range(4)][-1]
    connection = await lancedb.connect_async(location)
    chunks = await connection.open_table("chunks")
    await chunks.delete("content = 'alpha 2' OR content = 'beta 2'")
    await chunks.optimize(cleanup_older_than=timedelta(milliseconds=1))
    after = [await reader.search(asked) for _ in range(4)]
    columns = ["chunk_id", "similarity", "vector_rank"]
    first, *others = [table.select(columns).sort_by("chunk_id") for table in (before, *after)]
    assert all(other.equals(first) for other in others)
    assert first.num_rows == 11
    found = await reader.chunks_by_id(before["chunk_id"].to_pylist())
    assert sorted(chunk.content for chunk in found if "2" in (chunk.document_uri or "")) == ["alpha anew"]
