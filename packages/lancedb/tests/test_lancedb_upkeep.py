"""Indexes, compaction, old revisions, and commits that meet others."""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import lancedb
import pytest

from haiku.rag.config.models import StorageConfig
from haiku.rag.contracts import CandidateQuery, DatabaseRef, OpenMode
from haiku.rag.errors import StorageError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb import commits, failures, garbage, upkeep, writing
from haiku.rag.storage.lancedb.rows import new_revision, revision_nanoseconds
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

pytestmark = pytest.mark.anyio

HOUR_NS = 3600 * 10**9
IDENTITY = EmbeddingIdentity(provider="test", model="seeded", dimension=8)


async def coverage(location):
    connection = await lancedb.connect_async(location)
    return await (await connection.open_table("chunks")).index_stats("text_idx")


async def revisions(location, table):
    connection = await lancedb.connect_async(location)
    found = await (await connection.open_table(table)).query().select(["revision"]).to_arrow()
    return set(found["revision"].to_pylist())


async def settled(database):
    """Let upkeep end what it has begun."""
    if database._upkeep._task is not None:
        await asyncio.wait({database._upkeep._task})


@pytest.fixture
def made_earlier(monkeypatch):
    """Lets revisions be made so many nanoseconds ago."""

    def shift(nanoseconds: int) -> None:
        monkeypatch.setattr(
            "haiku.rag.storage.lancedb.placing.new_revision", lambda now: new_revision(now - nanoseconds)
        )
        monkeypatch.setattr(writing, "COMMIT_WITHIN_NS", 10**18)

    return shift


async def test_no_index_is_made_on_an_empty_table(open_database, location):
    database = await open_database()
    assert await coverage(location) is None
    await database.close()
    assert await coverage(location) is None


async def test_the_first_rows_are_indexed_at_once_and_closing_leaves_nothing_uncovered(open_database, location, make):
    database = await open_database()
    await database.write([make("a.md")])
    assert (await coverage(location)).num_indexed_rows == 1
    for number in range(3):
        await database.write([make(f"{number}.md")])
    assert (await coverage(location)).num_unindexed_rows == 3
    await database.close()
    stats = await coverage(location)
    assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (4, 0)


async def test_the_index_catches_up_after_enough_commits(open_database, location, make, monkeypatch):
    monkeypatch.setattr(upkeep, "COMMITS_BETWEEN", 4)
    database = await open_database()
    for number in range(4):
        await database.write([make(f"{number}.md")])
    await settled(database)
    assert (await coverage(location)).num_unindexed_rows == 0
    await database.write([make("rests.md")])
    await settled(database)
    assert (await coverage(location)).num_unindexed_rows == 1


async def test_the_index_is_found_again_and_not_built_twice(open_database, location, make):
    for number in range(2):
        database = await open_database()
        await database.write([make(f"{number}.md")])
        await database.close()
    connection = await lancedb.connect_async(location)
    indexes = list(await (await connection.open_table("chunks")).list_indices())
    assert sorted(index.name for index in indexes) == ["id_idx", "identifiers_idx", "revision_idx", "text_idx"]
    (text,) = (index for index in indexes if index.name == "text_idx")
    assert (text.index_details or {})["base_tokenizer"] == "icu"


async def test_no_table_has_an_index_on_the_key_which_is_the_primary_key_from_the_first_version(
    open_database, location, make
):
    database = await open_database()
    await database.write([make()])
    await database.close()
    connection = await lancedb.connect_async(location)
    documents = await connection.open_table("documents")
    assert await documents.list_indices() == []
    await documents.checkout(1)
    key = (await documents.schema()).field("key")
    assert (key.nullable, key.metadata[b"lance-schema:unenforced-primary-key"]) == (False, b"true")


async def test_many_small_commits_are_compacted(open_database, location, make, monkeypatch):
    monkeypatch.setattr(upkeep, "SMALL_FRAGMENTS", 3)
    database = await open_database()
    for number in range(5):
        await database.write([make(f"{number}.md")])
    await database.close()
    connection = await lancedb.connect_async(location)
    for name in ("documents", "chunks", "items"):
        stats: Any = await (await connection.open_table(name)).stats()
        # Rows that the full-text index covered before stay apart from those it has yet to cover.
        assert stats["fragment_stats"]["num_fragments"] <= 2
    assert await (await open_database()).count_documents(filter=None) == 5


async def test_revisions_replaced_long_enough_ago_are_removed(open_database, location, make, monkeypatch):
    monkeypatch.setattr(garbage, "SHORTEST_GRACE_SECONDS", -1.0)
    database = await open_database()
    await database.write([make("a.md", pictures={"p": b"1"})])
    first = await revisions(location, "chunks")
    await database.write([make("a.md", pictures={"p": b"2"}), make("b.md")])
    await database.close()
    for table in ("chunks", "items"):
        assert len(await revisions(location, table)) == 2
        assert not await revisions(location, table) & first
    assert len(await revisions(location, "pictures")) == 1


async def test_revisions_replaced_just_now_stay_for_readers(open_database, location, make):
    database = await open_database()
    await database.write([make("a.md")])
    await database.write([make("a.md")])
    await database.close()
    assert len(await revisions(location, "chunks")) == 2


async def test_what_another_process_replaced_is_removed_once_it_is_old(
    open_database, location, make, made_earlier, monkeypatch
):
    made_earlier(2 * HOUR_NS)
    one = await open_database()
    await one.write([make("a.md")])
    await one.write([make("a.md")])
    two = await open_database()
    await two.write([make("b.md")])
    await two.close()
    assert len(await revisions(location, "chunks")) == 3, "the version of a minute ago may still be read"
    monkeypatch.setattr(garbage, "SHORTEST_GRACE_SECONDS", -1.0)
    three = await open_database()
    await three.write([make("c.md")])
    await three.close()
    assert len(await revisions(location, "chunks")) == 3


class StoppedClock:
    """A clock that stands still."""

    def __init__(self, now):
        self.now = now

    def time(self):
        return self.now

    def time_ns(self):
        return int(self.now * 1e9)

    def monotonic(self):
        return self.now


async def test_revisions_that_a_recent_version_names_are_kept(open_database, location, make, made_earlier, monkeypatch):
    made_earlier(2 * HOUR_NS)
    one = await open_database()
    await one.write([make("a.md")])
    await asyncio.sleep(0.02)
    moment = time.time()
    await one.write([make("a.md")])
    two = await open_database()
    cleaner = two._upkeep._garbage
    monkeypatch.setattr(cleaner, "_grace", 100.0)
    monkeypatch.setattr(garbage, "time", StoppedClock(moment + 100.0))
    await two._live.tables.documents.checkout_latest()
    await cleaner.remove(await cleaner.find())
    assert len(await revisions(location, "chunks")) == 2
    monkeypatch.setattr(cleaner, "_grace", 0.0)
    await cleaner.remove(await cleaner.find())
    assert len(await revisions(location, "chunks")) == 1


async def test_rows_that_nothing_names_are_left_for_an_hour_and_removed_then(
    open_database, location, make, made_earlier, monkeypatch
):
    database = await open_database()
    await database.write([make("a.md")])

    async def broken_off(*_):
        raise RuntimeError("killed")

    for age in (0, 2 * HOUR_NS):
        made_earlier(age)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writing, "upsert", lambda _: type("Broken", (), {"execute": broken_off})())
            with pytest.raises(StorageError):
                await database.write([make("b.md")])
    assert len(await revisions(location, "chunks")) == 3
    cleaner = database._upkeep._garbage
    monkeypatch.setattr(cleaner, "_grace", 0.0)
    await cleaner.remove(await cleaner.find())
    left = await revisions(location, "chunks")
    assert len(left) == 2
    assert all(time.time_ns() - revision_nanoseconds(revision) < HOUR_NS for revision in left)


async def test_many_revisions_are_removed_in_pieces(open_database, location, make, monkeypatch):
    monkeypatch.setattr(garbage, "SHORTEST_GRACE_SECONDS", -1.0)
    monkeypatch.setattr(garbage, "DELETED_AT_ONCE", 3)
    database = await open_database()
    for _ in range(2):
        await database.write([make(f"{number}.md") for number in range(10)])
    await database.close()
    assert len(await revisions(location, "chunks")) == 10


async def test_a_tag_older_than_the_retention_stays_and_stops_no_upkeep(open_database, location, make, monkeypatch):
    database = await open_database()
    await database.write([make("a.md")])
    connection = await lancedb.connect_async(location)
    for name in ("documents", "chunks", "items", "pictures"):
        table = await connection.open_table(name)
        await table.tags.create("v1", await table.version())
    for number in range(3):
        await database.write([make(f"{number}.md")])
    monkeypatch.setattr(database._upkeep._vacuum, "retention", lambda _: timedelta(milliseconds=1))
    await asyncio.sleep(0.05)
    await database.close()
    assert (await coverage(location)).num_unindexed_rows == 0
    reader = await open_database(mode=OpenMode.READ, tag="v1")
    assert await reader.count_documents(filter=None) == 1
    assert (await reader.search(CandidateQuery(search_type="fts", depth=5, text="alpha"))).num_rows == 1


async def test_upkeep_that_fails_fails_no_write(open_database, make, monkeypatch):
    async def broken(*_, **__):
        raise RuntimeError("no space left")

    database = await open_database()
    monkeypatch.setattr(upkeep, "COMMITS_BETWEEN", 1)
    monkeypatch.setattr(upkeep, "build_text", broken)
    monkeypatch.setattr(database._upkeep._garbage, "find", broken)
    assert len(await database.write([make()])) == 1
    await settled(database)
    found = await database.search(CandidateQuery(search_type="fts", depth=1, text="alpha"))
    assert found.num_rows == 1
    outcome = {step.name: (step.status, step.detail) for step in (await database.info()).upkeep.steps}
    assert outcome["old revisions"] == ("failed", "the disk is full")
    assert outcome["text indexes"][0] == "done", "a step that fails stops no other"
    await database.close()


async def test_a_table_that_cannot_be_counted_for_an_index_fails_nothing(open_database, make, monkeypatch, caplog):
    async def broken(*_):
        raise RuntimeError("no space left at /secret/place")

    database = await open_database()
    monkeypatch.setattr("lancedb.table.AsyncTable.count_rows", broken)
    await database._upkeep.after_write()
    assert database._upkeep._task.exception() is None
    assert "secret" not in caplog.text


async def test_what_was_replaced_and_left_no_rows_is_remembered_no_longer_than_readers_may_be_on_it(
    open_database, make, monkeypatch
):
    database = await open_database()
    for _ in range(2):
        await database.write([replace(make("a.md"), chunks=[], items=[], vectors=None)])
    upkeep = database._upkeep._garbage
    await upkeep.find()
    assert len(upkeep._superseded) == 1
    monkeypatch.setattr(upkeep, "_grace", -1.0)
    await upkeep.find()
    assert not upkeep._superseded


async def test_a_write_does_not_wait_for_upkeep(open_database, make, monkeypatch):
    monkeypatch.setattr(upkeep, "COMMITS_BETWEEN", 1)
    monkeypatch.setattr("haiku.rag.storage.lancedb.database.CLOSING_SECONDS", 0.05)
    database = await open_database()
    monkeypatch.setattr(database._upkeep._garbage, "find", anyio.sleep_forever)
    with anyio.fail_after(20):
        for number in range(3):
            await database.write([make(f"{number}.md")])
        await database.close()


async def test_the_first_write_waits_for_the_text_index_but_not_for_long(open_database, make, monkeypatch):
    async def hangs(*_, **__):
        await anyio.sleep_forever()

    monkeypatch.setattr(upkeep, "FIRST_INDEX_SECONDS", 0.01)
    monkeypatch.setattr(upkeep, "build_text", hangs)
    monkeypatch.setattr("haiku.rag.storage.lancedb.database.CLOSING_SECONDS", 0.05)
    database = await open_database()
    with anyio.fail_after(20):
        for number in range(2):
            await database.write([make(f"{number}.md")])
        await database.close()


async def test_without_auto_vacuum_nothing_happens_by_itself_but_the_first_text_index(location, make, monkeypatch):
    monkeypatch.setattr(upkeep, "COMMITS_BETWEEN", 1)
    engine = LanceDBStorage(LanceDBSettings(), StorageConfig(auto_vacuum=False))
    ref = DatabaseRef(name="notes", location=str(location), storage="lancedb")
    database = await engine.open(ref, mode=OpenMode.CREATE, identity=IDENTITY)
    for number in range(3):
        await database.write([make(f"{number}.md")])
    assert (await database.info()).upkeep is None
    await database.close()
    stats = await coverage(location)
    assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (1, 2)


async def test_the_outcome_is_written_down_for_other_processes(open_database, make):
    database = await open_database()
    await database.write([make()])
    await database.close()
    reader = await open_database(mode=OpenMode.READ)
    report = (await reader.info()).upkeep
    assert report is not None
    assert not report.failed
    assert {step.name for step in report.steps if step.status == "done"} == {"lookup indexes"}


async def test_an_outcome_that_cannot_be_written_down_is_let_go(open_database, make, monkeypatch):
    async def broken(*_):
        raise RuntimeError("commit conflict")

    monkeypatch.setattr(upkeep, "change_layout", broken)
    database = await open_database()
    await database.write([make()])
    await database.close()
    assert (await (await open_database()).info()).upkeep is None


async def test_upkeep_rests_in_proportion_to_what_it_took(open_database, make, monkeypatch):
    monkeypatch.setattr(upkeep, "COMMITS_BETWEEN", 1)
    monkeypatch.setattr(upkeep, "REST", 10**9)
    database = await open_database()
    await database.write([make("a.md")])
    await settled(database)
    finished = (await database.info()).upkeep.finished_at
    await database.write([make("b.md")])
    await settled(database)
    assert (await database.info()).upkeep.finished_at == finished


async def test_a_step_that_meets_other_writers_is_left_for_another_time(open_database, make, monkeypatch):
    async def conflicts(*_):
        raise RuntimeError("Retryable commit conflict for version 7")

    database = await open_database()
    await database.write([make()])
    monkeypatch.setattr(database._upkeep._garbage, "remove", conflicts)
    report = await database.vacuum(retention_seconds=None, dry_run=False)
    assert (report.steps[0].status, report.failed) == ("nothing to do", [])
    assert report.steps[0].detail == "left for another time: other processes kept writing"


async def test_closing_does_not_wait_for_upkeep_that_hangs(open_database, make, monkeypatch):
    monkeypatch.setattr("haiku.rag.storage.lancedb.database.CLOSING_SECONDS", 0.05)
    database = await open_database()
    await database.write([make()])
    monkeypatch.setattr(database._upkeep._garbage, "find", anyio.sleep_forever)
    with anyio.fail_after(5):
        await database.close()


async def test_a_write_cancelled_before_its_commit_leaves_the_old_document(open_database, make, monkeypatch):
    database = await open_database()
    (stored,) = await database.write([make("a.md", "alpha old")])
    with anyio.CancelScope() as scope:

        async def hang(*_):
            scope.cancel()
            await anyio.sleep_forever()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writing, "upsert", lambda _: type("Hanging", (), {"execute": hang})())
            await database.write([make("a.md", "alpha new")])
    assert scope.cancelled_caught
    assert (await database.document_by_id(stored.id)).content == "alpha old"
    found = await database.search(CandidateQuery(search_type="fts", depth=5, text="alpha"))
    assert [chunk.content for chunk in await database.chunks_by_id(found["chunk_id"].to_pylist())] == ["alpha old"]
    assert len(await database.write([make("a.md", "alpha new")])) == 1


async def test_a_write_that_took_too_long_is_given_up_before_upkeep_could_take_its_rows(
    open_database, make, monkeypatch
):
    database = await open_database()
    monkeypatch.setattr(writing, "COMMIT_WITHIN_NS", -1)
    with pytest.raises(StorageError, match="a write to database 'notes' took too long"):
        await database.write([make("a.md")])
    assert await database.count_documents(filter=None) == 0


class Conflicting:
    """A table whose commit conflicts a number of times."""

    def __init__(self, conflicts, text="lance error: Retryable commit conflict for version 7"):
        self.conflicts = conflicts
        self.text = text
        self.looked = 0

    async def commit(self):
        if self.conflicts:
            self.conflicts -= 1
            raise RuntimeError(self.text)
        return "done"

    async def checkout_latest(self):
        self.looked += 1


async def test_a_conflicting_commit_is_tried_again_on_the_newest_version():
    table = Conflicting(3)
    assert await commits.committed(table, table.commit) == "done"
    assert table.looked == 3


async def test_a_commit_that_always_conflicts_ends_with_a_sentence(open_database):
    table = Conflicting(10**9)
    with pytest.raises(RuntimeError) as caught:
        await commits.committed(table, table.commit, patience=0.1)
    database = await open_database()
    error = failures.engine_failure(database._ref, "written to", caught.value)
    assert str(error) == (
        "database 'notes' could not be written to: other processes kept writing to it. "
        "Check that it can be reached, then try again."
    )


async def test_another_failure_is_not_tried_again():
    table = Conflicting(1, "disk full")
    with pytest.raises(RuntimeError, match="disk full"):
        await commits.committed(table, table.commit)
    assert table.looked == 0


async def test_concurrent_writes_of_one_client_and_of_two_all_count(open_database, make):
    one, two = await open_database(), await open_database()
    writes = [(one, two)[number % 2].write([make(f"{number % 6}.md", f"text {number}")]) for number in range(18)]
    await asyncio.gather(*writes)
    for client in (one, two):
        assert await client.count_documents(filter=None) == 6


async def test_the_grace_grows_with_the_interval(open_database):
    slow = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=100))
    database = await open_database(engine=slow)
    assert database._upkeep._garbage._grace == 400
    assert database._upkeep._vacuum.retention(0) == timedelta(hours=1)
    assert database._upkeep._vacuum.retention(7200) == timedelta(hours=2)
    slower = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=1000))
    assert (await open_database(engine=slower))._upkeep._vacuum.retention(0) == timedelta(seconds=8000)
    assert (await open_database())._upkeep._garbage._grace == 60
