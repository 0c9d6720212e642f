"""What a service is sent."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from haiku.rag.contracts import RerankCandidate
from haiku.rag.rerankers.http.protocols import JINA, ZEROENTROPY
from haiku.rag.rerankers.http.reranker import HttpReranker
from haiku.rag.testing.rerank_server import RerankServer

pytestmark = pytest.mark.anyio

Make = Callable[..., HttpReranker]

TEXTS = ["one word", "two words"]


def candidates(texts: Sequence[str]) -> list[RerankCandidate]:
    return [RerankCandidate(text=text, source="a", chunk_id=str(place)) for place, text in enumerate(texts)]


async def asked(reranker: HttpReranker, texts: Sequence[str] = TEXTS, query: str = "words") -> list[tuple[int, float]]:
    return await reranker.rerank(query, candidates(texts), 1)


@pytest.mark.parametrize(
    ("provider", "path", "body"),
    [
        ("http", "/rerank", {"query": "words", "documents": TEXTS, "top_n": 2}),
        (
            "jina",
            "/rerank",
            {
                "model": "jina-reranker-v2-base-multilingual",
                "query": "words",
                "documents": TEXTS,
                "top_n": 2,
                "return_documents": False,
            },
        ),
        ("vllm", "/rerank", {"query": "words", "documents": TEXTS, "top_n": 2, "truncate_prompt_tokens": -1}),
        ("tei", "/rerank", {"query": "words", "texts": TEXTS, "raw_scores": False, "truncate": True}),
        ("zeroentropy", "/models/rerank", {"model": "zerank-2", "query": "words", "documents": TEXTS, "top_n": 2}),
    ],
)
async def test_each_service_is_asked_in_its_own_dialect(
    make: Make, server: RerankServer, provider: str, path: str, body: dict[str, Any]
) -> None:
    pairs = await asked(make(provider))
    assert [(request.path, request.body) for request in server.requests] == [(path, body)]
    assert pairs[0] == (1, 1.0)


def test_the_public_services_are_where_their_documentation_says() -> None:
    assert (JINA.url, ZEROENTROPY.url) == ("https://api.jina.ai/v1", "https://api.zeroentropy.dev/v1")


@pytest.mark.parametrize(
    ("base", "section", "path"),
    [
        ("", {}, "/rerank"),
        ("/", {}, "/rerank"),
        ("/v1", {}, "/v1/rerank"),
        ("/v2/", {}, "/v2/rerank"),
        ("/v1/rerank", {}, "/v1/rerank"),
        ("/deployed?version=2", {}, "/deployed/rerank?version=2"),
        ("/v1", {"path": "/models/rank"}, "/v1/models/rank"),
    ],
)
async def test_the_path_follows_the_address_unless_it_is_there(
    make: Make, server: RerankServer, base: str, section: dict[str, Any], path: str
) -> None:
    await asked(make(base_url=server.url + base, section=section))
    assert server.requests[0].path == path


async def test_the_key_is_a_bearer_token_and_more_headers_can_be_set(make: Make, server: RerankServer) -> None:
    await asked(make(api_key=" sesame\n", section={"headers": {"X-Team": "search", "user-agent": "ours"}}))
    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer sesame"
    assert (headers["x-team"], headers["user-agent"]) == ("search", "ours")


async def test_a_header_of_the_configuration_takes_the_place_of_the_key(make: Make, server: RerankServer) -> None:
    await asked(make(api_key="sesame", section={"headers": {"authorization": "Key other"}}))
    assert server.requests[0].headers["authorization"] == "Key other"


async def test_without_a_key_no_authorization_is_sent(make: Make, server: RerankServer) -> None:
    await asked(make())
    assert "authorization" not in server.requests[0].headers


async def test_extra_body_is_merged_and_null_leaves_a_key_out(make: Make, server: RerankServer) -> None:
    await asked(make("tei", extra_body={"raw_scores": None, "truncate": False, "truncation_direction": "Left"}))
    body = server.requests[0].body
    assert "raw_scores" not in body
    assert (body["truncate"], body["truncation_direction"]) == (False, "Left")


async def test_a_named_model_is_asked_for(make: Make, server: RerankServer) -> None:
    await asked(make("jina", name="jina-reranker-m0"))
    assert server.requests[0].body["model"] == "jina-reranker-m0"


async def test_many_passages_go_in_several_requests_and_come_back_as_one_list(make: Make, server: RerankServer) -> None:
    texts = [f"{'needle ' * (place == 7)}hay {place}" for place in range(10)]
    pairs = await asked(make(section={"batch_size": 4}), texts, query="needle hay")
    assert sorted(len(request.body["documents"]) for request in server.requests) == [2, 4, 4]
    assert [index for index, _ in pairs] == [7, 0, 1, 2, 3, 4, 5, 6, 8, 9]


async def test_a_long_passage_is_cut_and_a_blank_one_is_marked(make: Make, server: RerankServer) -> None:
    await asked(make(section={"max_chars": 5}), ["a very long one", " \n"], query=" ")
    assert server.requests[0].body["documents"] == ["a ver", "-"]
    assert server.requests[0].body["query"] == "-"


async def test_any_text_can_be_sent(make: Make, server: RerankServer) -> None:
    await asked(make(), ["橋は1926年に再建された。", "🦀", "lone \udc80 half"], query="橋 \udfff")
    assert server.requests[0].body["documents"] == ["橋は1926年に再建された。", "🦀", "lone ? half"]
    assert server.requests[0].body["query"] == "橋 ?"


async def test_connections_are_kept_and_a_closed_reranker_opens_others(make: Make, server: RerankServer) -> None:
    reranker = make()
    first = await asked(reranker)
    assert await asked(reranker) == first
    assert len(server.connections) == 1
    await reranker.close()
    assert await asked(reranker) == first
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    ("provider", "given", "scale"),
    [
        ("http", {}, None),
        ("vllm", {}, None),
        ("zeroentropy", {}, None),
        ("tei", {}, (0.0, 1.0)),
        ("tei", {"section": {"scale": "unbounded"}}, None),
        ("http", {"section": {"scale": [-1, 1]}}, (-1.0, 1.0)),
        ("jina", {}, (0.0, 1.0)),
        ("jina", {"name": "jina-reranker-v3"}, None),
    ],
)
async def test_the_scale_is_the_documented_one_or_the_configured_one(
    make: Make, provider: str, given: dict[str, Any], scale: Any
) -> None:
    assert make(provider, **given).scale == scale


async def test_at_most_as_many_requests_as_configured_are_under_way(make: Make, server: RerankServer) -> None:
    await asked(make(section={"batch_size": 1, "concurrency": 2}), list("abcdefgh"))
    assert len(server.requests) == 8
    assert 1 <= len(server.connections) <= 2
