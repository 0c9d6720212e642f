"""Contract S: selecting databases."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.client import DatabaseScope, HaikuRAG
from haiku.rag.errors import AmbiguousDatabaseError, ConfigError, HaikuRagError, ReadOnlyError, UnknownDatabaseError
from haiku.rag.models import ParsedDocument
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing import testing_config

from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio


@pytest.fixture
async def three(world: World) -> World:
    """Databases a, b and c with a passage each, and c better than b better than a."""
    await world.near("a", one=0.5)
    await world.near("b", two=0.6)
    await world.near("c", three=0.7)
    return world


async def test_S1_none_is_every_covered_database(three: World) -> None:
    async with three.client("a", "b", "c") as client:
        assert ids(await client.search(QUERY)) == [("c", "three"), ("b", "two"), ("a", "one")]
        assert [document.source for document in await client.list_documents()] == ["a", "b", "c"]
        assert await client.count_documents() == 3


async def test_S1_a_list_is_those_in_the_order_given_with_repeats_collapsing(three: World) -> None:
    async with three.client("a", "b", "c") as client:
        chosen = ["b", "a", "b"]
        assert ids(await client.search(QUERY, sources=chosen)) == [("b", "two"), ("a", "one")]
        assert [document.source for document in await client.list_documents(sources=chosen)] == ["b", "a"]
        assert await client.count_documents(sources=chosen) == 2
        assert [entry.name for entry in (await client.search(QUERY, sources=chosen)).report.databases] == ["b", "a"]


async def test_S1_an_empty_list_is_none_and_opens_and_embeds_nothing(three: World) -> None:
    async with three.client("a", "b", "c") as client:
        found = await client.search(QUERY, sources=[])
        assert (found, found.report.databases) == ([], [])
        assert await client.list_documents(sources=[]) == []
        assert await client.count_documents(sources=[]) == 0
        assert await client.search(b"\x89PNG", sources=[]) == []
    assert three.total("open") == three.embedded["query"] == 0


async def test_S1_a_text_is_no_list_of_names(three: World) -> None:
    async with three.client("a", "b", "c") as client:
        with pytest.raises(TypeError, match="a list of names, not the text 'ab'"):
            await client.search(QUERY, sources="ab")


async def test_S2_sources_on_the_constructor_choose_what_the_client_covers(three: World) -> None:
    config = three.config(["a", "b", "c"])
    async with HaikuRAG(config=config, sources=["c", "a", "c"], read_only=True) as client:
        assert client.source_names == ("c", "a")
        assert [document.source for document in await client.list_documents()] == ["c", "a"]


def test_S2_sources_beside_a_database_path_are_ambiguous(world: World, tmp_path: Path) -> None:
    for sources in (["a"], []):
        with pytest.raises(AmbiguousDatabaseError, match="path and sources were both given"):
            HaikuRAG(tmp_path / "x.memory", config=world.config([]), sources=sources)


def test_S2_a_database_path_beside_configured_databases_is_ambiguous(world: World, tmp_path: Path) -> None:
    with pytest.raises(AmbiguousDatabaseError, match="the configuration places 'a', 'b'"):
        HaikuRAG(tmp_path / "x.memory", config=world.config(["a", "b"]))


def test_S2_the_command_lines_path_is_not(world: World, tmp_path: Path) -> None:
    scope = DatabaseScope.resolve(world.config(["a"]), database_path=tmp_path / "x.memory", explicit=True)
    assert scope.names == ("x",)


def test_S2_a_name_beside_a_path_is_ambiguous(world: World, tmp_path: Path) -> None:
    with pytest.raises(AmbiguousDatabaseError, match="a database name and a database path"):
        DatabaseScope.resolve(world.config(["a"]), database_name="a", database_path=tmp_path, explicit=True)


async def test_S2_an_empty_list_is_an_error_when_the_client_opens(world: World) -> None:
    client = HaikuRAG(config=world.config(["a"]), sources=[])
    with pytest.raises(ValueError, match="leaves no database to cover"):
        await client.__aenter__()
    assert world.total("open") == 0


def test_S2_an_empty_selection_of_a_scope_is_an_error(world: World) -> None:
    with pytest.raises(ValueError, match="leaves no database to cover"):
        DatabaseScope.resolve(world.config(["a"])).select([])


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "/", "s3://bucket/db"])
def test_S2_a_path_that_names_no_local_database_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="database path"):
        HaikuRAG(path, config=testing_config({}, memory_plugin))


def test_S2_the_ending_of_a_path_chooses_its_engine_and_the_default_serves_for_others(tmp_path: Path) -> None:
    for name in ("x.memory", "x.other", "x"):
        (ref,) = DatabaseScope.resolve(testing_config({}, memory_plugin), database_path=tmp_path / name).databases
        assert (ref.name, ref.storage, ref.given) == ("x", "memory", True)


UNKNOWN = "no database 'bb' is covered. Covered: 'a', 'b'. Did you mean 'b'?"


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.search(QUERY, sources=["a", "bb"]),
        lambda client: client.search(QUERY, weights={"bb": 1.0}),
        lambda client: client.search(QUERY, boosts={"bb": 1.0}),
        lambda client: client.search(QUERY, on_unavailable=["bb"]),
        lambda client: client.list_documents(sources=["bb"]),
        lambda client: client.count_documents(sources=["bb"]),
        lambda client: client.get_document_by_id("d", source="bb"),
        lambda client: client.get_document_by_uri("d", source="bb"),
        lambda client: client.get_chunk_by_id("d", source="bb"),
        lambda client: client.resolve_document("d", source="bb"),
        lambda client: client.get_picture_bytes("d", "r", source="bb"),
        lambda client: client.reader_for("bb"),
        lambda client: client.clients_for(["a", "bb"]),
        lambda client: client.clients_covering(["bb"]),
    ],
)
async def test_S3_a_name_that_is_not_covered_is_an_error_before_anything_opens(
    world: World, use: Callable[[HaikuRAG], Awaitable[Any]]
) -> None:
    world.empty("a", "b")
    async with world.client("a", "b") as client:
        with pytest.raises(UnknownDatabaseError) as caught:
            await use(client)
    assert str(caught.value) == UNKNOWN
    assert isinstance(caught.value, KeyError)
    assert world.total("open") == 0


def test_S3_a_name_on_the_constructor_or_for_a_scope_is_checked_too(world: World) -> None:
    config = world.config(["a", "b"])
    with pytest.raises(UnknownDatabaseError, match="no database 'bb'"):
        HaikuRAG(config=config, sources=["bb"])
    with pytest.raises(UnknownDatabaseError, match="no database 'bb'"):
        DatabaseScope.resolve(config, database_name="bb")


@pytest.mark.parametrize("search", [{"weights": {"bb": 2}}, {"boosts": {"bb": 2}}, {"on_unavailable": ["bb"]}])
def test_S3_a_name_in_the_search_section_is_checked_against_the_configuration(
    world: World, search: dict[str, Any]
) -> None:
    with pytest.raises(UnknownDatabaseError, match="no database 'bb'"):
        HaikuRAG(config=world.config(["a", "b"], search=search))


async def test_S3_a_name_in_the_search_section_may_be_one_that_this_client_does_not_cover(three: World) -> None:
    config = three.config(["a", "b"], search={"weights": {"b": 0.5}, "boosts": {"b": 1}, "on_unavailable": ["b"]})
    async with HaikuRAG(config=config, sources=["a"], read_only=True) as client:
        assert ids(await client.search(QUERY)) == [("a", "one")]


def test_S4_what_is_covered_is_known_before_opening(world: World) -> None:
    several, single = world.client("b", "a"), world.client("a")
    assert (several.covers_multiple, several.source_names, several.source) == (True, ("b", "a"), None)
    assert (single.covers_multiple, single.source_names, single.source) == (False, ("a",), "a")
    assert world.total("open") == 0


async def test_S5_borrowed_clients_open_lazily_in_the_order_asked(three: World) -> None:
    async with three.client("a", "b", "c") as client:
        reader = await client.reader_for("b")
        assert (reader.source_names, ids(await reader.search(QUERY))) == (("b",), [("b", "two")])
        assert three.total("open") == 1
        borrowed = await client.clients_for(["c", "b", "c"])
        assert [entry.source for entry in borrowed] == ["c", "b"]
        assert (three.calls("b", "open"), three.calls("a", "open")) == (1, 0)


async def test_S5_covering_none_is_all_and_an_empty_list_is_none(three: World) -> None:
    async with three.client("a", "b", "c") as client:
        assert await client.clients_covering([]) == []
        assert three.total("open") == 0
        assert [entry.source for entry in await client.clients_covering(["b"])] == ["b"]
        assert [entry.source for entry in await client.clients_covering()] == ["a", "b", "c"]


async def test_S5_all_three_work_over_one_database(three: World) -> None:
    async with three.client("a") as client:
        borrowed = [
            await client.reader_for("a"),
            *await client.clients_for(["a"]),
            *await client.clients_covering(),
        ]
        assert [ids(await entry.search(QUERY)) for entry in borrowed] == [[("a", "one")]] * 3
        assert three.total("open") == 1


async def test_S5_borrowed_clients_inherit_read_only_and_are_closed_with_the_covering_client(three: World) -> None:
    async with three.client("a", "b") as client:
        reader = await client.reader_for("a")
        assert reader.is_read_only
        with pytest.raises(ReadOnlyError):
            await reader.delete_document("doc-one")
        async with reader as same:
            assert same is reader
        await reader.aclose()
        assert ids(await reader.search(QUERY)) == [("a", "one")]
        assert three.server.handles("memory://a") == 1
    assert three.server.handles("memory://a") == 0
    for use in (reader.search(QUERY), reader.list_documents(), client.reader_for("a"), reader.delete_document("d")):
        with pytest.raises(RuntimeError, match="the client is not open"):
            await use


async def test_S5_a_writable_client_lends_writable_ones(three: World) -> None:
    async with three.client("a", "b", read_only=False) as client:
        assert await (await client.reader_for("a")).delete_document("doc-one")
        assert await client.count_documents() == 1


MEANT_FOR_ONE: dict[str, Callable[[HaikuRAG], Awaitable[Any]]] = {
    "creating a document": lambda client: client.create_document("text"),
    "creating a document ": lambda client: client.create_document_from_source("/nowhere"),
    "creating documents": lambda client: anext(client.ingest("/nowhere")),
    "importing documents": lambda client: client.import_documents([]),
    "updating a document": lambda client: client.update_document("d", title="t"),
    "deleting a document": lambda client: client.delete_document("d"),
    "info": lambda client: client.info(),
    "rebuilding": lambda client: anext(client.rebuild()),
    "vacuuming": lambda client: client.vacuum(),
    "building indexes": lambda client: client.create_index(),
    "creating a tag": lambda client: client.create_tag("t"),
    "deleting a tag": lambda client: client.delete_tag("t"),
    "restoring a tag": lambda client: client.restore_tag("t"),
    "listing tags": lambda client: client.tags(),
    "reading the history": lambda client: client.history(),
}


@pytest.mark.parametrize("operation", MEANT_FOR_ONE)
async def test_S6_what_means_one_database_refuses_several_naming_the_operation(world: World, operation: str) -> None:
    world.empty("a", "b")
    async with world.client("a", "b", read_only=False) as client:
        with pytest.raises(AmbiguousDatabaseError) as caught:
            await MEANT_FOR_ONE[operation](client)
    assert str(caught.value).startswith(f"{operation.strip()} needs one database, and several are covered: 'a', 'b'.")
    assert world.total("open") == 0


def test_S6_creating_needs_one_database(world: World) -> None:
    with pytest.raises(AmbiguousDatabaseError, match="creating a database needs one database.*'a', 'b'"):
        HaikuRAG(config=world.config(["a", "b"]), create=True)


@pytest.mark.parametrize("other", [{"read_only": True}, {"tag": "v1"}])
def test_S6_creating_goes_with_neither_read_only_nor_a_tag(world: World, other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="create=True"):
        HaikuRAG(config=world.config(["a"]), create=True, **other)


async def test_S6_converting_and_chunking_touch_no_database(world: World, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Pilots\n\nThey wait.\n")
    async with world.client("a", "b") as client:
        parsed = await client.convert(tmp_path / "a.md")
        assert isinstance(parsed, ParsedDocument)
        assert [chunk.content for chunk in await client.chunk(parsed)] == ["Pilots", "They wait."]
    assert world.total("open") == 0


async def test_S6_an_error_of_a_client_that_was_not_entered_says_so(world: World) -> None:
    client = world.client("a", "b")
    for use in (client.search(QUERY), client.count_documents(), client.reader_for("a")):
        with pytest.raises(RuntimeError, match="the client is not open") as caught:
            await use
        assert not isinstance(caught.value, HaikuRagError)
