"""A search over two databases that Cohere reranks, from the question to the report."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import anyio
import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.errors import RerankError
from haiku.rag.models import SearchResults
from haiku.rag.rerankers.cohere import plugin
from haiku.rag.testing import memory_server, testing_config
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing.rerank_server import RerankAnswer, RerankServer

pytestmark = pytest.mark.anyio

QUERY = "who planted the old orchard"
ANSWER = "The old orchard: Marta planted it."
HOMES = {"farm": [ANSWER, "The old orchard is large.", "Rain on Monday."], "town": ["Who planted?", "A new tram."]}

Open = Callable[[Mapping[str, Any]], HaikuRAG]


@pytest.fixture
async def opened(anyio_backend: str, request: pytest.FixtureRequest, server: RerankServer) -> AsyncIterator[Open]:
    """Readers of two databases in memory; what is given is their `reranking`, empty for none."""
    here = request.node.name
    base = {
        "memory": {"server": here, "databases": {home: f"memory://{home}" for home in HOMES}},
        "embeddings": {"model": {"provider": "hash", "name": here}},
    }
    for home, texts in HOMES.items():
        async with HaikuRAG(config=testing_config(base, memory_plugin, plugin), sources=[home], create=True) as writer:
            for text in texts:
                await writer.create_document(text)

    def reader(reranking: Mapping[str, Any]) -> HaikuRAG:
        return HaikuRAG(config=testing_config({**base, "reranking": reranking}, memory_plugin, plugin), read_only=True)

    yield reader
    memory_server(here).states.clear()


def cohere(server: RerankServer, **more: Any) -> dict[str, Any]:
    return {"model": {"provider": "cohere", "base_url": server.url, "api_key": "sesame"}, "timeout_s": 2, **more}


async def searched(client: HaikuRAG) -> SearchResults:
    async with client:
        with anyio.fail_after(20):
            return await client.search(QUERY, limit=5)


def order(found: SearchResults) -> list[tuple[str, str]]:
    return [(hit.source, hit.content) for hit in found]


async def test_cohere_orders_the_passages_of_both_databases(opened: Open, server: RerankServer) -> None:
    found = await searched(opened(cohere(server)))
    assert found.report.rerank == "ok"
    assert order(found)[:2] == [("farm", ANSWER), ("farm", "The old orchard is large.")]
    assert len(server.requests[0].body["documents"]) == 5


def _silent(server: RerankServer) -> None:
    server.hold.set()


def _too_few(server: RerankServer) -> None:
    server.alter = lambda entries: entries[1:]


def _refusing(server: RerankServer) -> None:
    server.answer = lambda _: RerankAnswer(status=401, body={"message": "no api key sesame"})


def _overloaded(server: RerankServer) -> None:
    server.answer = lambda _: RerankAnswer(status=503, body={"message": "busy"}, headers={"retry-after-ms": "5"})


TROUBLE: dict[Callable[[RerankServer], None], str] = {
    _silent: "failed (no answer within 2 s)",
    _too_few: "failed (the service returned 4 scores for 5 passages)",
    _refusing: "failed (the service answered 401: check reranking.model.api_key)",
    _overloaded: "failed (the service answered 503)",
}


@pytest.mark.parametrize("begin", TROUBLE)
async def test_cohere_in_trouble_leaves_the_fused_order_and_is_reported(
    opened: Open, server: RerankServer, begin: Callable[[RerankServer], None]
) -> None:
    fused = await searched(opened({}))
    begin(server)
    found = await searched(opened(cohere(server)))
    assert order(found) == order(fused)
    assert found.report.rerank == TROUBLE[begin]


@pytest.mark.parametrize("begin", TROUBLE)
async def test_cohere_in_trouble_is_an_error_where_reranking_is_required(
    opened: Open, server: RerankServer, begin: Callable[[RerankServer], None]
) -> None:
    begin(server)
    with pytest.raises(RerankError) as caught:
        await searched(opened(cohere(server, required=True)))
    assert str(caught.value) == f"reranking {TROUBLE[begin]}, and reranking.required is set."
