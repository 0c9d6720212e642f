"""Contract D: copies of a database share their ids."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import RerankCandidate
from haiku.rag.plugins import RerankerRecord, hookimpl

from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio


@pytest.fixture
async def copies(world: World) -> World:
    """Two databases with the same document and chunk ids and different texts."""
    await world.text("a", one="harbour pilots at dawn", two="granite")
    await world.text("b", one="harbour pilots", two="dawn of granite")
    return world


async def test_D1_shared_ids_come_back_from_both_with_the_right_texts(copies: World) -> None:
    async with copies.client("a", "b") as client:
        found = await client.search(QUERY)
        texts = {(hit.source, hit.chunk_id): hit.content for hit in found}
        assert texts == {
            ("a", "one"): "harbour pilots at dawn",
            ("b", "one"): "harbour pilots",
            ("a", "two"): "granite",
            ("b", "two"): "dawn of granite",
        }
        assert [(entry.source, entry.chunk_id) for entry in found.report.results] == ids(found)
        listed = await client.list_documents(include_content=True)
        assert {(document.source, document.id): document.content for document in listed} == {
            (source, f"doc-{chunk}"): text for (source, chunk), text in texts.items()
        }


async def test_D1_a_lookup_with_a_source_gives_that_databases_own(copies: World) -> None:
    async with copies.client("a", "b") as client:
        for source, text in (("a", "harbour pilots at dawn"), ("b", "harbour pilots")):
            chunk = await client.get_chunk_by_id("one", source=source)
            document = await client.get_document_by_id("doc-one", source=source)
            assert chunk is not None
            assert document is not None
            assert chunk.content == document.content == text


class LastFirst:
    """The reranker `last`: it scores a passage by its text, and remembers each with its source."""

    scale = None
    seen: ClassVar[list[tuple[str, str, str]]] = []

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    @hookimpl
    def haiku_rag_register_reranker(self) -> list[RerankerRecord]:
        return [RerankerRecord(name="last", summary="s", factory=f"{__name__}:LastFirst")]

    async def rerank(self, query: str, candidates: Sequence[RerankCandidate], limit: int) -> Any:
        LastFirst.seen = [(candidate.source, candidate.chunk_id, candidate.text) for candidate in candidates]
        return [(index, float(candidate.text == "dawn of granite")) for index, candidate in enumerate(candidates)]

    async def close(self) -> None:
        """Nothing is held."""


async def test_D1_a_reranker_sees_and_scores_each_of_them_apart(copies: World) -> None:
    config = copies.config(["a", "b"], LastFirst(), reranking={"model": {"provider": "last"}})
    async with HaikuRAG(config=config, read_only=True) as client:
        found = await client.search(QUERY)
    assert ids(found)[0] == ("b", "two")
    assert {(source, chunk): text for source, chunk, text in LastFirst.seen} == {
        (hit.source, hit.chunk_id): hit.content for hit in found
    }


async def test_D1_pictures_of_shared_ids_are_each_databases_own(world: World) -> None:
    for name, data in (("a", b"A"), ("b", b"B")):
        await world.pictured(name, {"pic": data}, one=0.9)
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, include_images=True)
    assert {hit.source: hit.image_data for hit in found} == {"a": {"pic": "QQ=="}, "b": {"pic": "Qg=="}}


async def test_D1_ids_are_random(tmp_path: Path) -> None:
    config = AppConfig.model_validate({"lancedb": {"databases": {name: str(tmp_path / name) for name in ("a", "b")}}})
    made = []
    for name in ("a", "b"):
        async with HaikuRAG(config=config, sources=[name], create=True) as client:
            document = await client.create_document("Pilots wait in the harbour.", uri="u")
            made += [document.id, (await client.search("pilots"))[0].chunk_id]
    assert {UUID(identifier).version for identifier in made} == {4}
    assert len(set(made)) == 4
