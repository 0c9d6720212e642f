"""Contract L: listing and lookups."""

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haiku.rag.client import HaikuRAG
from haiku.rag.contracts import Comparison
from haiku.rag.errors import AmbiguousDatabaseError, SourceUnavailableError

from .world import World

pytestmark = pytest.mark.anyio
NAMES = ("a", "b", "c")


async def filled(world: World, *sizes: int) -> None:
    """So many documents in each database, called by database and number."""
    for name, size in zip(NAMES, sizes, strict=False):
        await world.near(name, **{f"{name}{number}": 0.5 for number in range(size)})


async def titles(client: HaikuRAG, limit: int | None = None, offset: int = 0) -> list[str | None]:
    return [document.title for document in await client.list_documents(limit, offset)]


async def test_L1_a_limit_means_that_many_documents_in_total_interleaved(world: World) -> None:
    await filled(world, 4, 1, 2)
    async with world.client(*NAMES) as client:
        assert await titles(client) == ["a0", "b0", "c0", "a1", "c1", "a2", "a3"]
        assert await titles(client, 4) == ["a0", "b0", "c0", "a1"]
        assert await titles(client, 2, 3) == ["a1", "c1"]
        assert await titles(client, 0) == []
        assert await titles(client, None, 5) == ["a2", "a3"]
        assert await titles(client, 5, 100) == []
        assert await client.count_documents() == 7


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=3), window=st.integers(1, 6))
def test_L1_consecutive_windows_neither_repeat_nor_skip_a_document(world: World, sizes: list[int], window: int) -> None:
    async def walk() -> tuple[list[str | None], list[str | None]]:
        world.server.states.clear()
        await filled(world, *sizes)
        async with world.client(*NAMES[: len(sizes)]) as client:
            pages = [await titles(client, window, offset) for offset in range(0, sum(sizes) + window, window)]
            return [title for page in pages for title in page], await titles(client)

    walked, whole = anyio.run(walk)
    assert walked == whole
    assert len(set(whole)) == sum(sizes)


async def test_L1_within_a_database_the_order_is_by_creation_and_updates_do_not_change_it(world: World) -> None:
    await filled(world, 3)
    async with world.client("a", read_only=False) as client:
        await client.update_document("doc-a0", metadata={"read": True})
        assert await titles(client) == ["a0", "a1", "a2"]


async def test_L1_a_filter_counts_and_lists_what_it_selects(world: World) -> None:
    await filled(world, 2, 2)
    chosen = Comparison("title", "in", ("a1", "b0"))
    async with world.client("a", "b") as client:
        assert [document.title for document in await client.list_documents(filter=chosen)] == ["a1", "b0"]
        assert await client.count_documents(filter=chosen) == 2


async def test_L1_a_database_without_a_part_in_the_window_is_not_asked_for_documents(world: World) -> None:
    await filled(world, 2, 0)
    async with world.client("a", "b") as client:
        await client.list_documents()
    assert (world.calls("a", "list_documents"), world.calls("b", "list_documents")) == (1, 0)


async def test_L1_content_comes_when_it_is_asked_for(world: World) -> None:
    await filled(world, 1)
    async with world.client("a", "b") as client:
        world.empty("b")
        (plain,) = await client.list_documents()
        (whole,) = await client.list_documents(include_content=True)
    assert (plain.content, whole.content) == (None, "passage a0")


@pytest.mark.parametrize(("limit", "offset"), [(-1, 0), (None, -1)])
async def test_L1_a_window_is_not_negative(world: World, limit: int | None, offset: int) -> None:
    async with world.client("a", "b") as client:
        with pytest.raises(ValueError, match="must not be negative"):
            await client.list_documents(limit, offset)


async def test_L2_with_a_source_that_database_alone_is_asked(world: World) -> None:
    for name in ("a", "b"):
        await world.near(name, one=0.5)
    async with world.client("a", "b") as client:
        found = [
            await client.get_document_by_id("doc-one", source="b"),
            await client.get_document_by_uri("file:///one.md", source="b"),
            await client.resolve_document("one", source="b"),
            await client.get_chunk_by_id("one", source="b"),
        ]
        assert [entry.source for entry in found if entry] == ["b"] * 4
        assert await client.get_document_by_id("nowhere", source="b") is None
    assert (world.calls("a", "open"), world.calls("b", "open")) == (0, 1)


async def test_L2_without_one_every_database_is_asked_at_once_and_the_first_in_configured_order_answers(
    world: World,
) -> None:
    for name in ("a", "b", "c"):
        await world.near(name, **({"one": 0.5} if name != "a" else {}))
    gates = [world.hold(name, "document_by_id") for name in ("a", "b", "c")]
    found: list[str | None] = []

    async def ask() -> None:
        document = await client.get_document_by_id("doc-one")
        found.append(document.source if document else None)

    async with world.client("a", "b", "c") as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            with anyio.fail_after(10):
                for name in ("a", "b", "c"):
                    await world.entered(name, "document_by_id").wait()
            for gate in reversed(gates):
                gate.set()
                await anyio.wait_all_tasks_blocked()
        assert found == ["b"]
        chunk = await client.get_chunk_by_id("one")
        assert chunk is not None
        assert chunk.source == "b"


async def test_L2_a_document_is_resolved_by_id_then_by_title_then_by_uri(world: World) -> None:
    await world.near("a", **{"doc-two": 0.5})
    await world.near("b", two=0.5)
    async with world.client("a", "b") as client:
        found = [await client.resolve_document(key) for key in ("doc-two", "two", "file:///two.md")]
    assert [(document.source, document.id) for document in found if document] == [("b", "doc-two")] * 3


async def test_L2_nothing_found_is_none(world: World) -> None:
    world.empty("a", "b")
    async with world.client("a", "b") as client:
        assert await client.get_document_by_id("x") is None
        assert await client.get_document_by_uri("x") is None
        assert await client.get_chunk_by_id("x") is None
        assert await client.resolve_document("x") is None
        assert await client.get_picture_bytes("x", "y", source="a") is None


async def test_L2_a_database_that_cannot_answer_fails_the_lookup(world: World) -> None:
    await world.near("a", one=0.5)
    async with world.client("a", "gone") as client:
        with pytest.raises(SourceUnavailableError, match="'gone' does not exist"):
            await client.get_document_by_id("doc-one")


async def test_L3_a_picture_needs_a_source_on_a_client_covering_several(world: World) -> None:
    await world.near("a", one=0.5)
    await world.pictured("b", {"pic": b"PNG"}, one=0.5)
    async with world.client("a", "b") as client:
        with pytest.raises(AmbiguousDatabaseError, match="reading a picture needs one database.*'a', 'b'"):
            await client.get_picture_bytes("doc-one", "pic")
        assert await client.get_picture_bytes("doc-one", "pic", source="b") == b"PNG"
        assert await client.get_picture_bytes("doc-one", "pic", source="a") is None
    async with world.client("b") as client:
        assert await client.get_picture_bytes("doc-one", "pic") == b"PNG"


async def test_L4_a_document_names_its_database_in_every_listing_and_lookup(world: World) -> None:
    await world.near("a", one=0.5)
    await world.near("b", two=0.5)
    for names in (("a", "b"), ("a",)):
        async with world.client(*names) as client:
            listed = await client.list_documents()
            assert [document.source for document in listed] == list(names)
            found = [
                await client.get_document_by_id("doc-one"),
                await client.get_document_by_uri("file:///one.md"),
                await client.resolve_document("one"),
            ]
            assert [document.source for document in found if document] == ["a"] * 3


async def test_L4_a_document_names_its_database_when_it_is_written(world: World) -> None:
    world.empty("a")
    async with world.client("a", read_only=False) as client:
        created = await client.create_document("Pilots.", uri="u")
        changed = await client.update_document(created.id, title="t")
        same = await client.create_document("Pilots.", uri="u")
        replaced = await client.update_document(created.id, content="Boats.")
    assert {document.source for document in (created, changed, same, replaced)} == {"a"}
