"""What the tests of this package share: a service that speaks Cohere's protocol, and rerankers that ask it."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from haiku.rag.config import AppConfig
from haiku.rag.rerankers.cohere import plugin
from haiku.rag.rerankers.cohere.reranker import CohereReranker
from haiku.rag.testing import testing_config
from haiku.rag.testing.rerank_server import RerankServer


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with RerankServer() as running:
        yield running


@pytest.fixture
def configured() -> Callable[..., AppConfig]:
    """A configuration of the reranker: the keys of its model, and the section's as `section`."""

    def build(*, section: Any = None, timeout_s: float = 10.0, **model: Any) -> AppConfig:
        reranking = {"model": {"provider": "cohere", **model}, "timeout_s": timeout_s}
        return testing_config({"reranking": reranking, "rerank_cohere": section or {}}, plugin)

    return build


@pytest.fixture
async def make(
    anyio_backend: str, server: RerankServer, configured: Callable[..., AppConfig]
) -> AsyncIterator[Callable[..., CohereReranker]]:
    """The reranker as the kernel makes it, asking the service of this test; closed at the end."""
    all_made: list[CohereReranker] = []

    def build(**given: Any) -> CohereReranker:
        config = configured(**{"base_url": server.url, "api_key": "sesame", **given})
        made = config.kernel.create("reranker", "cohere", config)
        assert isinstance(made, CohereReranker)
        all_made.append(made)
        return made

    yield build
    for made in all_made:
        await made.close()
