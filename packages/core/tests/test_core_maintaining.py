"""Upkeep, tags, history and migrations through the client, over storage in memory."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import anyio
import numpy as np
import pytest

from haiku.rag.client import DatabaseScope, HaikuRAG, RebuildMode, migrate, pending_migrations
from haiku.rag.config import AppConfig
from haiku.rag.contracts import CheckedDatabase, DatabaseRef, OpenMode
from haiku.rag.errors import (
    AmbiguousDatabaseError,
    ConfigMismatchError,
    MigrationRequiredError,
    ReadOnlyError,
    SourceUnavailableError,
    StorageError,
    TagError,
)
from haiku.rag.models import UpkeepReport, UpkeepStep
from haiku.rag.testing import MemoryServer, MemoryStorage, memory_server, plugin, testing_config
from haiku.rag.testing.storage_fixtures import IDENTITY, document

pytestmark = pytest.mark.anyio
PLACE = "memory://somewhere/a"
OPERATIONS: dict[str, Callable[[HaikuRAG], Awaitable[Any]]] = {
    "vacuuming": lambda client: client.vacuum(),
    "building indexes": lambda client: client.create_index(),
    "listing tags": lambda client: client.tags(),
    "creating a tag": lambda client: client.create_tag("t"),
    "deleting a tag": lambda client: client.delete_tag("t"),
    "restoring a tag": lambda client: client.restore_tag("t"),
    "reading the history": lambda client: client.history(),
}
MIGRATIONS = {"reading which migrations are pending": pending_migrations, "migrating": migrate}


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> MemoryServer:
    """A server with one database of two documents."""
    async with HaikuRAG(config=config(request.node.nodeid), create=True) as client:
        for text in ("They wait.", "They sail."):
            await client.create_document(text, uri=text)
    return memory_server(request.node.nodeid)


@pytest.fixture
def name(request: pytest.FixtureRequest, server: MemoryServer) -> str:
    """The filled server's name."""
    return str(request.node.nodeid)


def config(name: str, databases: dict[str, Any] | None = None, section: str = "memory", **sections: Any) -> AppConfig:
    return testing_config({section: {"server": name, "databases": databases or {"a": PLACE}}, **sections}, plugin)


async def test_a_tag_is_made_read_restored_and_forgotten(name: str) -> None:
    async with HaikuRAG(config=config(name)) as client:
        tag = await client.create_tag("spring")
        await client.create_document("They land.", uri="late")
        async with HaikuRAG(config=config(name), tag="spring") as then:
            assert await then.count_documents() == 2
        before = await client.restore_tag("spring")
        assert await client.count_documents() == 2
        assert [entry.name for entry in await client.tags()] == [before, "spring"]
        assert tag in await client.tags()
        await client.restore_tag(before)
        assert await client.count_documents() == 3
        await client.delete_tag("spring")
        assert "spring" not in {entry.name for entry in await client.tags()}


async def test_history_is_newest_first_and_limited(name: str) -> None:
    async with HaikuRAG(config=config(name)) as client:
        await client.create_tag("two")
        assert [(entry.version, entry.tags) for entry in await client.history()] == [(2, ["two"]), (1, [])]
        assert [entry.version for entry in await client.history(limit=1)] == [2]
        assert await client.history(limit=0) == []
        with pytest.raises(ValueError, match="limit must not be negative"):
            await client.history(limit=-1)


async def test_vacuum_keeps_old_states_as_long_as_it_is_told_or_configured(name: str) -> None:
    async with HaikuRAG(config=config(name)) as client:
        assert [step.status for step in (await client.vacuum()).steps] == ["nothing to do"]
        planned = await client.vacuum(retention_seconds=0, dry_run=True)
        assert (planned.dry_run, [step.status for step in planned.steps], planned.failed) == (True, ["planned"], [])
        assert len(await client.history()) == 2
        assert [step.status for step in (await client.vacuum(retention_seconds=0)).steps] == ["done"]
        assert len(await client.history()) == 1
        assert await client.create_index() == {}
    async with HaikuRAG(config=config(name, storage={"vacuum_retention_seconds": 0})) as client:
        await client.create_document("More.")
        assert [step.status for step in (await client.vacuum()).steps] == ["done"]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 1e300])
async def test_a_retention_that_is_none_is_refused(name: str, seconds: float) -> None:
    async with HaikuRAG(config=config(name)) as client:
        with pytest.raises(ValueError, match="retention_seconds must be a number from 0"):
            await client.vacuum(retention_seconds=seconds)


def test_a_report_knows_what_failed() -> None:
    steps = [UpkeepStep(name="a", status="failed"), UpkeepStep(name="b", status="done")]
    assert UpkeepReport.model_validate({"finished_at": "2026-05-01T00:00Z", "steps": steps}).failed == steps[:1]


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_each_needs_one_live_database_whose_engine_offers_it(name: str, operation: str) -> None:
    work = OPERATIONS[operation]
    several = config(name, {"a": PLACE, "b": PLACE})
    async with HaikuRAG(config=several, read_only=True) as client:
        with pytest.raises(AmbiguousDatabaseError, match=f"{operation} needs one database, .*'a', 'b'"):
            await work(client)
    async with HaikuRAG(config=config(name)) as client:
        await client.create_tag("v1")
    async with HaikuRAG(config=config(name, {"old": {"location": PLACE, "tag": "v1"}})) as client:
        with pytest.raises(TagError, match=f"{operation} works on the live database, and 'old'"):
            await work(client)
    async with HaikuRAG(config=config(name, section="memory_many")) as client:
        with pytest.raises(StorageError, match=f"{operation} is not offered by storage 'memory-many'.*'a'"):
            await work(client)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_read_only_what_writes_is_refused_and_what_looks_is_not(name: str, operation: str) -> None:
    async with HaikuRAG(config=config(name), read_only=True) as client:
        if operation in ("listing tags", "reading the history"):
            assert await OPERATIONS[operation](client) is not None
            return
        with pytest.raises(ReadOnlyError, match="'a'"):
            await OPERATIONS[operation](client)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_failure_is_that_of_the_database_and_says_not_where_it_is(
    name: str, server: MemoryServer, operation: str
) -> None:
    async with HaikuRAG(config=config(name)) as client:
        await client.count_documents()
        server.fail(PLACE, OSError(f"gone: {PLACE}"))
        with pytest.raises(SourceUnavailableError, match="database 'a' cannot be read") as caught:
            await OPERATIONS[operation](client)
        assert (caught.value.__cause__, caught.value.__context__, caught.value.source) == (None, None, "a")
        assert "somewhere" not in str(caught.value)
        server.heal(PLACE)


async def test_reading_tags_has_a_deadline_and_writing_has_none(name: str, server: MemoryServer) -> None:
    async with HaikuRAG(config=config(name, search={"timeout_s": 0.01})) as client:
        server.slow(PLACE, 0.05, "create_tag")
        await client.create_tag("late")
        server.slow(PLACE, 5.0, "tags")
        with pytest.raises(SourceUnavailableError, match="did not answer in time"):
            await client.tags()
        server.heal(PLACE)


async def test_another_embedding_is_no_hindrance(name: str) -> None:
    other = config(name, embeddings={"model": {"provider": "hash", "vector_dim": 16}})
    async with HaikuRAG(config=other, any_embedding=True) as client:
        await client.create_tag("before the rebuild")
        assert not (await client.vacuum()).failed
        with pytest.raises(ConfigMismatchError):
            await client.count_documents()


async def test_a_tag_from_before_a_rebuild_brings_its_embedding_back(name: str, server: MemoryServer) -> None:
    other = config(name, embeddings={"model": {"provider": "hash", "vector_dim": 16}})
    async with HaikuRAG(config=other, any_embedding=True) as client:
        await client.create_tag("old")
        assert [step.outcome async for step in client.rebuild(RebuildMode.EMBED_ONLY)] == ["rebuilt", "rebuilt"]
        assert [entry.operation for entry in await client.history()] == ["rebuild", "write", "write"]
        await client.restore_tag("old")
    recorded = server.states[PLACE].identity
    assert recorded is not None
    assert recorded.dimension == 64


async def test_an_old_database_is_migrated_without_a_client(name: str, server: MemoryServer) -> None:
    found = config(name)
    scope = DatabaseScope.resolve(found)
    server.age(PLACE)
    with pytest.raises(MigrationRequiredError, match="'a' has an older schema. Run: haiku-rag migrate"):
        await HaikuRAG(config=found).__aenter__()
    pending = await pending_migrations(scope, found)
    assert [step.version for step in pending] == [1]
    assert await migrate(scope, found) == pending
    assert await migrate(scope, found) == await pending_migrations(scope, found) == []
    async with HaikuRAG(config=found) as client:
        assert await client.count_documents() == 2


@pytest.mark.parametrize("operation", MIGRATIONS)
async def test_migrating_needs_one_live_database_whose_engine_offers_it(
    name: str, server: MemoryServer, operation: str
) -> None:
    step = MIGRATIONS[operation]
    several, tagged = config(name, {"a": PLACE, "b": PLACE}), config(name, {"old": {"location": PLACE, "tag": "v1"}})
    many, gone = config(name, section="memory_many"), config(name, {"gone": "memory://somewhere/gone"})
    for found, error, text in (
        (several, AmbiguousDatabaseError, f"{operation} needs one database"),
        (tagged, TagError, f"{operation} works on the live database, and 'old'"),
        (many, StorageError, f"{operation} is not offered by storage 'memory-many'"),
        (gone, SourceUnavailableError, "database 'gone' does not exist"),
    ):
        with pytest.raises(error, match=text) as caught:
            await step(DatabaseScope.resolve(found), found)
        assert "somewhere" not in str(caught.value)
    server.slow(PLACE, 5.0, "migrate")
    server.slow(PLACE, 5.0, "pending_migrations")
    with anyio.move_on_after(0.01) as scope:
        await step(DatabaseScope.resolve(config(name)), config(name))
    assert scope.cancelled_caught
    server.heal(PLACE)


async def test_a_check_in_memory_finds_vectors_that_cannot_be_searched() -> None:
    storage = MemoryStorage(server=MemoryServer())
    ref = DatabaseRef(name="a", location=PLACE, storage="memory")
    for identity, faults in ((IDENTITY, 2), (None, 1)):
        storage.server.drop(PLACE)
        database: CheckedDatabase = await storage.open(ref, mode=OpenMode.CREATE, identity=identity)
        await database.write(
            [
                document("sound"),
                document("short", vectors=np.ones((1, 3), np.float32)),
                document("broken", vectors=np.full((1, 8), np.nan, np.float32)),
                document(),
            ]
        )
        (finding,) = await database.check(fix=False)
        assert (finding.status, len(finding.samples), str(faults) in finding.message) == ("failed", faults, True)
        assert finding.remedy


async def test_what_a_tag_holds_cannot_be_changed_through_what_was_read(name: str, server: MemoryServer) -> None:
    async with HaikuRAG(config=config(name)) as client:
        await client.create_tag("t")
        for entry in await client.list_documents():
            entry.metadata["changed"] = True
        (tag,) = server.pasts[PLACE].tags.values()
        assert not any(stored.row.metadata.get("changed") for stored in tag.state.in_order())


async def test_dropping_a_location_forgets_its_past(name: str, server: MemoryServer) -> None:
    async with HaikuRAG(config=config(name)) as client:
        await client.create_tag("t")
    server.drop(PLACE)
    async with HaikuRAG(config=config(name), create=True) as client:
        assert (await client.tags(), await client.history()) == ([], [])
        await client.create_document("new")
        moment = (await client.history())[0].at
        assert moment.utcoffset() == timedelta(0)
