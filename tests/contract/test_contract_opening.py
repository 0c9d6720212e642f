"""Contract O: opening. Events say what happened before what; no clock does."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.errors import SourceUnavailableError

from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio
PATIENCE = 10


@pytest.fixture
async def two(world: World) -> World:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    return world


async def test_O1_a_set_opens_nothing_on_entry_and_a_query_just_what_it_selects(two: World) -> None:
    async with two.client("a", "b") as client:
        assert two.total("open") == 0
        assert ids(await client.search(QUERY, sources=["b"])) == [("b", "two")]
        assert await client.count_documents(sources=["b"]) == 1
        assert await client.get_document_by_id("doc-two", source="b")
        assert (two.calls("a", "open"), two.calls("b", "open")) == (0, 1)


async def test_O1_a_broken_database_that_nobody_asked_for_fails_no_query(two: World) -> None:
    two.server.fail("memory://a", OSError("broken"))
    async with two.client("a", "b") as client:
        assert ids(await client.search(QUERY, sources=["b"])) == [("b", "two")]
        assert [document.source for document in await client.list_documents(sources=["b"])] == ["b"]


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.search(QUERY),
        lambda client: client.list_documents(),
        lambda client: client.count_documents(),
        lambda client: client.clients_covering(),
        lambda client: client.get_document_by_id("doc-one"),
    ],
)
async def test_O2_cold_databases_open_concurrently(
    two: World, use: Callable[[HaikuRAG], Coroutine[Any, Any, object]]
) -> None:
    gates = [two.hold(name, "open") for name in ("a", "b")]
    async with two.client("a", "b") as client, anyio.create_task_group() as group:
        group.start_soon(use, client)
        with anyio.fail_after(PATIENCE):
            await two.entered("a", "open").wait()
            await two.entered("b", "open").wait()
        for gate in gates:
            gate.set()


async def test_O3_a_failed_open_is_not_remembered_and_the_others_stay_open(two: World) -> None:
    two.server.fail("memory://a", OSError("away"))
    async with two.client("a", "b") as client:
        for _ in range(2):
            with pytest.raises(SourceUnavailableError, match="'a'"):
                await client.search(QUERY)
        assert (two.calls("a", "open"), two.calls("b", "open")) == (2, 1)
        two.server.heal("memory://a")
        assert ids(await client.search(QUERY)) == [("a", "one"), ("b", "two")]
        assert (two.calls("a", "open"), two.calls("b", "open")) == (3, 1)


async def test_O4_two_concurrent_first_queries_open_each_database_once(two: World) -> None:
    gates = [two.hold(name, "open") for name in ("a", "b")]
    found: list[Any] = []

    async def ask() -> None:
        found.append(ids(await client.search(QUERY)))

    async with two.client("a", "b") as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            for gate in gates:
                gate.set()
        assert found == [[("a", "one"), ("b", "two")]] * 2
        assert (two.calls("a", "open"), two.calls("b", "open")) == (1, 1)


@pytest.mark.parametrize("operation", ["open", "search", "chunks_by_id"])
async def test_O5_cancelling_a_query_leaves_nothing_half_open_and_breaks_no_other(two: World, operation: str) -> None:
    gate = two.hold("a", operation)
    scope = anyio.CancelScope()
    found: list[Any] = []

    async def cancelled() -> None:
        with scope:
            await client.search(QUERY)

    async def other() -> None:
        found.append(ids(await client.search(QUERY)))

    async with two.client("a", "b") as client:
        async with anyio.create_task_group() as group:
            group.start_soon(cancelled)
            with anyio.fail_after(PATIENCE):
                await two.entered("a", operation).wait()
            group.start_soon(other)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            gate.set()
        assert scope.cancelled_caught
        assert found == [[("a", "one"), ("b", "two")]]
        assert two.server.handles("memory://a") == two.server.handles("memory://b") == 1
    assert two.server.handles("memory://a") == two.server.handles("memory://b") == 0


async def test_O5_cancelling_the_only_query_leaves_nothing_open(two: World) -> None:
    two.hold("a", "open")
    async with two.client("a", "b") as client:
        with anyio.move_on_after(PATIENCE) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(client.search, QUERY)
                await two.entered("a", "open").wait()
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught
        assert two.server.handles("memory://a") == 0
        two.gates.clear()
        assert ids(await client.search(QUERY)) == [("a", "one"), ("b", "two")]


async def test_O5_a_database_that_opens_after_the_client_was_closed_is_closed_too(two: World) -> None:
    gate = two.hold("a", "open")
    raised: list[Exception] = []

    async def ask() -> None:
        try:
            await client.search(QUERY)
        except Exception as error:  # noqa: BLE001 - any error will do: the client is gone
            raised.append(error)

    async with anyio.create_task_group() as group:
        async with two.client("a", "b") as client:
            group.start_soon(ask)
            await two.entered("a", "open").wait()
        gate.set()
    assert len(raised) == 1
    assert two.server.handles("memory://a") == 0


async def test_O5_an_open_that_does_not_fit_the_configuration_is_closed_again(world: World) -> None:
    world.empty("a", identity=world.other(dimension=3))
    world.empty("b")
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, on_unavailable="skip")
        assert [entry.name for entry in found.report.left_out] == ["a"]
        assert (world.server.handles("memory://a"), world.server.handles("memory://b")) == (0, 1)


async def test_O5_a_client_that_could_not_be_entered_holds_nothing(two: World) -> None:
    two.server.fail("memory://a", OSError("away"))
    with pytest.raises(SourceUnavailableError):
        await two.client("a").__aenter__()
    assert two.server.handles("memory://a") == 0
