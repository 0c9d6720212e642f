"""A search over two databases whose reranker is a service, from the question to the report."""

import logging
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.errors import RerankError
from haiku.rag.rerankers.http import plugin
from haiku.rag.testing import memory_server, testing_config
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing.rerank_server import RerankAnswer, RerankServer

pytestmark = pytest.mark.anyio

QUERY = "when was the stone bridge rebuilt"
PASSAGES = {
    "north": ["The stone bridge was rebuilt in 1926.", "Yeast makes gas.", "The bridge is of stone."],
    "south": ["A bridge was rebuilt.", "Owls hunt at night.", "When was the harbour built?"],
}
KEY = "sesame-key"

Open = Callable[..., HaikuRAG]


@pytest.fixture
async def search_with(anyio_backend: str, request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Clients over two filled databases in memory, with a `reranking` section or without a reranker."""
    place = request.node.nodeid

    def client(reranking: Any = None, **flags: Any) -> HaikuRAG:
        data = {
            "memory": {"server": place, "databases": {name: f"memory://{name}" for name in PASSAGES}},
            "embeddings": {"model": {"provider": "hash", "name": place}},
            "reranking": reranking,
        }
        return HaikuRAG(config=testing_config(data, memory_plugin, plugin), **flags)

    for name, texts in PASSAGES.items():
        async with client(sources=[name], create=True) as writer:
            for number, text in enumerate(texts):
                await writer.create_document(text, uri=f"{name}-{number}.md")
    yield lambda reranking=None: client(reranking, read_only=True)
    memory_server(place).states.clear()


def at(url: str, provider: str = "http", **more: Any) -> dict[str, Any]:
    return {"model": {"provider": provider, "base_url": url, "api_key": KEY}, **more}


def shown(results: Any) -> list[tuple[str, str]]:
    return [(hit.source, hit.content) for hit in results]


async def fused(search_with: Open) -> list[tuple[str, str]]:
    async with search_with() as client:
        return shown(await client.search(QUERY, limit=6))


@pytest.mark.parametrize("provider", ["http", "jina", "vllm", "tei", "zeroentropy"])
async def test_the_service_orders_the_passages_of_both_databases(
    search_with: Open, server: RerankServer, provider: str
) -> None:
    async with search_with(at(server.url, provider)) as client:
        found = await client.search(QUERY, limit=3)
    assert found.report.rerank == "ok"
    assert found[0].content == "The stone bridge was rebuilt in 1926."
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert len(server.requests) == 1
    body = server.requests[0].body
    assert sorted(body.get("documents") or body["texts"]) == sorted(
        text for texts in PASSAGES.values() for text in texts
    )


TROUBLE: dict[str, tuple[Callable[[RerankServer], None], str]] = {
    "503 with JSON": (
        lambda server: setattr(server, "answer", lambda _: RerankAnswer(status=503, body={"key": KEY})),
        "failed (the service answered 503)",
    ),
    "401": (
        lambda server: setattr(server, "answer", lambda _: RerankAnswer(status=401, body={"key": KEY})),
        "failed (the service answered 401: check reranking.model.api_key)",
    ),
    "too few": (
        lambda server: setattr(server, "alter", lambda entries: entries[:4]),
        "failed (the service returned 4 scores for 6 passages)",
    ),
    "too many": (
        lambda server: setattr(server, "alter", lambda entries: entries * 2),
        "failed (the service returned 12 scores for 6 passages)",
    ),
    "equal": (
        lambda server: setattr(server, "alter", lambda entries: [{**e, "relevance_score": 0.5} for e in entries]),
        "failed (it gave different passages one and the same score)",
    ),
    "NaN": (
        lambda server: setattr(
            server, "alter", lambda entries: [{**e, "relevance_score": float("nan")} for e in entries]
        ),
        "failed (the service returned a score that is not a finite number)",
    ),
    "garbage": (
        lambda server: setattr(server, "answer", lambda _: RerankAnswer(body=b"<html>")),
        "failed (the service's answer is not JSON)",
    ),
    "hangs": (lambda server: server.hold.set(), "failed (no answer within 0.5 s)"),
}


@pytest.mark.parametrize("trouble", TROUBLE)
async def test_a_service_in_trouble_leaves_the_fused_order_and_says_why(
    search_with: Open, server: RerankServer, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = await fused(search_with)
    prepare, expected = TROUBLE[trouble]
    prepare(server)
    waits: dict[str, Any] = {"timeout_s": 0.5} if trouble == "hangs" else {}
    caplog.set_level(logging.INFO, logger="haiku")
    async with search_with(at(server.url, **waits)) as client:
        with anyio.fail_after(20):
            found = await client.search(QUERY, limit=6)
    assert shown(found) == before
    assert found.report.rerank == expected
    assert KEY not in caplog.text
    if trouble == "hangs":
        assert await anyio.to_thread.run_sync(server.hung_up.wait, 10)


@pytest.mark.parametrize("trouble", TROUBLE)
async def test_a_service_in_trouble_is_an_error_where_reranking_is_required(
    search_with: Open, server: RerankServer, trouble: str
) -> None:
    prepare, expected = TROUBLE[trouble]
    prepare(server)
    waits: dict[str, Any] = {"timeout_s": 0.5} if trouble == "hangs" else {}
    async with search_with(at(server.url, required=True, **waits)) as client:
        with anyio.fail_after(20), pytest.raises(RerankError) as caught:
            await client.search(QUERY)
    assert str(caught.value) == f"reranking {expected}, and reranking.required is set."
    assert server.url not in str(caught.value)
    assert KEY not in str(caught.value)


async def test_a_service_that_is_not_there_leaves_the_fused_order(search_with: Open) -> None:
    before = await fused(search_with)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        async with search_with(at(f"http://127.0.0.1:{free.getsockname()[1]}")) as client:
            found = await client.search(QUERY, limit=6)
    assert shown(found) == before
    assert found.report.rerank == "failed (the service could not be reached)"
