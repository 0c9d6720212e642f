"""The storage in memory as a test's instrument: what it counts, delays and breaks, and the models beside it."""

import anyio
import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import Comparison, DatabaseRef, OpenMode
from haiku.rag.errors import EmbeddingError, FilterError, MissingDatabaseError
from haiku.rag.testing import (
    HashEmbedder,
    MemoryServer,
    MemoryStorage,
    embedding_calls,
    memory_server,
    plugin,
    plugin_without_storage,
    testing_config,
    testing_kernel,
)
from haiku.rag.testing.storage_fixtures import document, text_query

pytestmark = pytest.mark.anyio
PLACE = "memory://wiki"
REF = DatabaseRef(name="wiki", location=PLACE, storage="memory")


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


async def test_a_server_counts_operations_and_open_handles(server: MemoryServer) -> None:
    storage = MemoryStorage(server=server)
    database = await storage.open(REF, mode=OpenMode.CREATE, identity=None)
    assert server.handles(PLACE) == 1
    await database.search(text_query("word"))
    await storage.search_many([database], text_query("word"))
    await database.close()
    await database.close()
    assert server.handles(PLACE) == 0
    assert server.calls == {(PLACE, "open"): 1, (PLACE, "search"): 1, (PLACE, "search_many"): 1}


async def test_a_failing_location_fails_every_operation_or_one_until_it_is_healed(server: MemoryServer) -> None:
    storage = MemoryStorage(server=server)
    database = await storage.open(REF, mode=OpenMode.CREATE, identity=None)
    server.fail(PLACE, ConnectionError("gone"), "search")
    with pytest.raises(ConnectionError):
        await database.search(text_query("word"))
    assert await database.count_documents(filter=None) == 0
    server.fail(PLACE, PermissionError("locked"))
    with pytest.raises(PermissionError):
        await storage.open(REF, mode=OpenMode.READ, identity=None)
    (answer,) = await storage.search_many([database], text_query("word"))
    assert isinstance(answer, PermissionError)
    server.heal(PLACE)
    assert (await database.search(text_query("word"))).num_rows == 0


async def test_a_slow_location_lets_other_tasks_go_first(server: MemoryServer) -> None:
    storage, order = MemoryStorage(server=server), []
    slow = await storage.open(REF, mode=OpenMode.CREATE, identity=None)
    quick = await storage.open(
        DatabaseRef(name="q", location="memory://q", storage="memory"), mode=OpenMode.CREATE, identity=None
    )
    server.slow(PLACE, 0.01)
    async with anyio.create_task_group() as group:
        for database, name in ((slow, "slow"), (quick, "quick")):

            async def search(database: object = database, name: str = name) -> None:
                await database.search(text_query("word"))  # type: ignore[attr-defined]
                order.append(name)

            group.start_soon(search)
    assert order == ["quick", "slow"]


async def test_a_database_that_is_dropped_is_missing_for_those_who_hold_it(server: MemoryServer) -> None:
    database = await MemoryStorage(server=server).open(REF, mode=OpenMode.CREATE, identity=None)
    server.drop(PLACE)
    with pytest.raises(MissingDatabaseError):
        await database.count_documents(filter=None)


async def test_a_filter_over_a_field_that_is_not_there_is_refused(server: MemoryServer) -> None:
    database = await MemoryStorage(server=server).open(REF, mode=OpenMode.CREATE, identity=None)
    await database.write([document("word")])
    with pytest.raises(FilterError, match="unknown field 'colour'"):
        await database.count_documents(filter=Comparison("colour", "=", "red"))


async def test_clients_of_one_server_see_the_same_databases() -> None:
    def config(section: str = "memory") -> AppConfig:
        return testing_config({section: {"server": "shared", "databases": {"wiki": PLACE}}}, plugin)

    async with HaikuRAG(config=config(), create=True) as client:
        await client.create_document("# Bridges\n\nA stone bridge.", uri="text:1")
    async with HaikuRAG(config=config("memory_many"), read_only=True) as client:
        assert [hit.source for hit in await client.search("stone bridge", limit=1)] == ["wiki"]
        assert (await client.info()).storage == "memory-many"
    assert memory_server("shared").handles(PLACE) == 0


def test_the_plugin_without_storage_leaves_the_engine_to_the_one_under_test() -> None:
    kernel = testing_kernel(plugin_without_storage)
    assert kernel.provided("storage") == []
    assert [entry.record.name for entry in kernel.provided("embedder")] == ["hash"]


async def test_the_hash_embedder_counts_what_it_was_asked_and_takes_its_shape_from_the_configuration() -> None:
    config = testing_config(
        {"embeddings": {"model": {"provider": "hash", "name": "image-counted", "vector_dim": 5}}}, plugin
    )
    embedder = HashEmbedder(config)
    assert embedder.identity.dimension == 5
    await embedder.embed_documents(["a", "b"])
    await embedder.embed_query(b"a picture of a bridge")
    assert embedding_calls("image-counted") == {"documents": 1, "contents": 2, "query": 1}


async def test_the_hash_embedder_refuses_pictures_without_a_model_for_them() -> None:
    with pytest.raises(EmbeddingError, match="reads pictures only with a model named 'image"):
        await HashEmbedder().embed_query(b"a picture")
