"""What the tests of this package share: a real service, and rerankers that ask it."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from haiku.rag.config import AppConfig
from haiku.rag.rerankers.http import plugin
from haiku.rag.rerankers.http.reranker import HttpReranker
from haiku.rag.testing import testing_config
from haiku.rag.testing.rerank_server import RerankServer

Make = Callable[..., HttpReranker]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with RerankServer() as running:
        yield running


@pytest.fixture
def configured() -> Callable[..., AppConfig]:
    """A configuration of a reranker: the keys of its model, and the section's as `section`."""

    def build(provider: str = "http", *, section: Any = None, timeout_s: float = 10.0, **model: Any) -> AppConfig:
        reranking = {"model": {"provider": provider, **model}, "timeout_s": timeout_s}
        return testing_config({"reranking": reranking, "rerank_http": section or {}}, plugin)

    return build


@pytest.fixture
async def create(anyio_backend: str, configured: Callable[..., AppConfig]) -> AsyncIterator[Make]:
    """The reranker that a configuration names, made by the kernel, and closed at the end."""
    all_made: list[HttpReranker] = []

    def build(provider: str = "http", **given: Any) -> HttpReranker:
        config = configured(provider, **given)
        made = config.kernel.create("reranker", provider, config)
        assert isinstance(made, HttpReranker)
        all_made.append(made)
        return made

    yield build
    for made in all_made:
        await made.close()


@pytest.fixture
def make(create: Make, server: RerankServer) -> Make:
    """The same, asking the service of this test."""

    def build(provider: str = "http", **given: Any) -> HttpReranker:
        return create(provider, **{"base_url": server.url, **given})

    return build
