"""Contract C: which embedding a database was written with, and who may be searched together."""

import logging
from typing import Any

import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import Comparison
from haiku.rag.errors import ConfigMismatchError

from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio
NOTHING = Comparison("title", "=", "nowhere")


def prefixed(world: World, **prefixes: str) -> AppConfig:
    model = {"provider": "hash", "name": world.model, **prefixes}
    return world.config(["a"], embeddings={"model": model})


async def test_C0_the_document_prefix_is_part_of_an_identity_and_the_query_prefix_is_not(world: World) -> None:
    world.empty("a")
    async with HaikuRAG(config=prefixed(world, query_prefix="query: ")) as client:
        assert await client.count_documents() == 0
    with pytest.raises(ConfigMismatchError, match="document prefix 'passage: '"):
        await HaikuRAG(config=prefixed(world, document_prefix="passage: ")).__aenter__()


async def test_C0_the_identity_of_the_configuration_is_recorded_when_a_database_is_created(world: World) -> None:
    async with HaikuRAG(config=prefixed(world, document_prefix="passage: "), create=True) as client:
        assert (await client.info()).identity == world.other(document_prefix="passage: ")


@pytest.mark.parametrize("read_only", [True, False])
async def test_C1_another_dimension_is_a_mismatch(world: World, read_only: bool) -> None:
    world.empty("a", identity=world.other(dimension=12))
    with pytest.raises(ConfigMismatchError, match=r"database 'a'.*12 dimensions.*64 dimensions") as caught:
        await world.client("a", read_only=read_only).__aenter__()
    assert caught.value.source == "a"


@pytest.mark.parametrize("change", [{"provider": "other"}, {"model": "other"}])
async def test_C1_another_model_at_the_same_dimension_warns_a_reader_and_stops_a_writer(
    world: World, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    world.empty("a", identity=world.other(**change))
    async with world.client("a") as client:
        assert await client.search(QUERY) == []
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "database 'a' was written with" in record.getMessage()
    for create in (False, True):
        with pytest.raises(ConfigMismatchError, match="database 'a'"):
            await HaikuRAG(config=world.config(["a"]), create=create).__aenter__()


async def test_C1_a_matching_database_warns_of_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.empty("a")
    async with world.client("a", read_only=False) as client:
        assert await client.count_documents() == 0
    assert caplog.records == []


@pytest.mark.parametrize("search_type", ["hybrid", "vector"])
@pytest.mark.parametrize("choice", ["raise", "skip"])
async def test_C2_databases_searched_together_by_vector_must_agree(world: World, search_type: Any, choice: Any) -> None:
    await world.near("a", one=0.9)
    world.empty("b", identity=world.other(model="m2"))
    async with world.client("a", "b") as client:
        with pytest.raises(ConfigMismatchError, match="databases 'a' and 'b' cannot be searched together") as told:
            await client.search(QUERY, search_type=search_type, on_unavailable=choice)
        assert f"'a' was written with hash/{world.model}, 64 dimensions" in str(told.value)
        assert "'b' with hash/m2, 64 dimensions" in str(told.value)
        assert world.embedded["query"] == 0


async def test_C2_only_the_databases_searched_together_have_to_agree(world: World) -> None:
    await world.near("a", one=0.9)
    world.empty("b", identity=world.other(model="m2"))
    await world.near("c", three=0.8)
    async with world.client("a", "b", "c") as client:
        assert ids(await client.search(QUERY, sources=["c", "a"])) == [("a", "one"), ("c", "three")]
        assert await client.search(QUERY, sources=["b"]) == []


async def test_C2_full_text_search_embeds_nothing_and_is_not_affected(world: World) -> None:
    await world.text("a", one="harbour pilots")
    world.empty("b", identity=world.other(model="m2"))
    async with world.client("a", "b") as client:
        assert ids(await client.search("pilots", search_type="fts")) == [("a", "one")]
    assert world.embedded["query"] == 0


async def test_C2_a_search_of_several_embeds_the_query_once(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.9)
    async with world.client("a", "b") as client:
        await client.search(QUERY)
    assert world.embedded["query"] == 1


@pytest.mark.parametrize("search_type", ["hybrid", "vector"])
async def test_C3_over_one_database_a_filter_that_matches_nothing_never_embeds(world: World, search_type: Any) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.9)
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, sources=["a"], filter=NOTHING, search_type=search_type)
        assert (found, [entry.status for entry in found.report.databases]) == ([], ["empty"])
        assert (world.embedded["query"], world.calls("a", "search")) == (0, 0)


async def test_C3_a_filter_that_matches_something_embeds_once(world: World) -> None:
    await world.near("a", one=0.9, two=0.8)
    async with world.client("a") as client:
        assert ids(await client.search(QUERY, filter=Comparison("title", "=", "two"))) == [("a", "two")]
    assert world.embedded["query"] == 1
