"""What Cohere is sent, and what the configuration may say."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from haiku.rag.config import AppConfig
from haiku.rag.contracts import RerankCandidate
from haiku.rag.errors import ConfigError
from haiku.rag.rerankers.cohere import plugin
from haiku.rag.rerankers.cohere.reranker import CohereReranker
from haiku.rag.testing.rerank_server import RerankServer

pytestmark = pytest.mark.anyio

Make = Callable[..., CohereReranker]
TEXTS = ["one word", "two words"]


async def asked(
    reranker: CohereReranker, texts: Sequence[str] = TEXTS, query: str = "words"
) -> list[tuple[int, float]]:
    candidates = [RerankCandidate(text=text, source="a", chunk_id=str(place)) for place, text in enumerate(texts)]
    return await reranker.rerank(query, candidates, 1)


async def test_the_second_version_of_the_protocol_is_spoken(make: Make, server: RerankServer) -> None:
    assert (await asked(make()))[0] == (1, 1.0)
    (request,) = server.requests
    assert (request.path, request.headers["authorization"]) == ("/v2/rerank", "Bearer sesame")
    assert request.body == {"model": "rerank-v3.5", "query": "words", "documents": TEXTS, "top_n": 2}


async def test_what_is_configured_is_sent_too(make: Make, server: RerankServer) -> None:
    section = {"max_tokens_per_doc": 512, "priority": 3}
    await asked(make(name="rerank-v4.0-pro", section=section, extra_body={"priority": 4, "team": "search"}))
    body = server.requests[0].body
    assert (body["model"], body["max_tokens_per_doc"], body["priority"]) == ("rerank-v4.0-pro", 512, 4)
    assert body["team"] == "search"


async def test_many_passages_go_in_several_requests_and_come_back_as_one_list(make: Make, server: RerankServer) -> None:
    texts = [f"{'needle ' * (place == 7)}hay {place}" for place in range(10)]
    pairs = await asked(make(section={"batch_size": 4}), texts, query="needle hay")
    assert sorted(len(request.body["documents"]) for request in server.requests) == [2, 4, 4]
    assert [index for index, _ in pairs] == [7, 0, 1, 2, 3, 4, 5, 6, 8, 9]


async def test_any_text_can_be_sent(make: Make, server: RerankServer) -> None:
    await asked(make(), ["橋", " \n", "lone \udc80 half"], query="橋 \udfff")
    assert server.requests[0].body["documents"] == ["橋", "-", "lone ? half"]
    assert server.requests[0].body["query"] == "橋 ?"


async def test_connections_are_kept_and_a_closed_reranker_opens_others(make: Make, server: RerankServer) -> None:
    reranker = make()
    first = await asked(reranker)
    assert await asked(reranker) == first
    assert len(server.connections) == 1
    await reranker.close()
    assert await asked(reranker) == first
    assert len(server.connections) == 2


def test_scores_are_from_zero_to_one(configured: Callable[..., AppConfig]) -> None:
    config = configured(api_key="k")
    assert config.kernel.create("reranker", "cohere", config).scale == (0.0, 1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "reranker 'cohere' needs a key. Set reranking.model.api_key."),
        ({"api_key": " "}, "reranker 'cohere' needs a key. Set reranking.model.api_key."),
        (
            {"api_key": "sésame"},
            "reranking.model.api_key holds characters that no HTTP header can carry. Correct it.",
        ),
        (
            {"api_key": "k", "temperature": 0.5},
            "reranking.model.temperature means nothing to the reranker 'cohere'. Remove it.",
        ),
        (
            {"api_key": "k", "extra_body": {"top_n": 3}},
            "reranking.model.extra_body must not set 'top_n', which the request needs. Remove it.",
        ),
    ],
)
def test_what_cannot_work_is_refused_when_the_reranker_is_made(
    configured: Callable[..., AppConfig], given: dict[str, Any], message: str
) -> None:
    config = configured(**given)
    with pytest.raises(ConfigError) as caught:
        config.kernel.create("reranker", "cohere", config)
    assert str(caught.value) == message


def test_the_reranker_says_how_to_install_what_it_needs() -> None:
    (record,) = plugin.haiku_rag_register_reranker()
    assert (record.name, record.extra, record.needs) == ("cohere", "rerank-cohere", "cohere")
