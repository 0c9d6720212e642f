"""What the tests share."""

from collections.abc import Callable
from typing import Any

import pytest

from haiku.rag.contracts import RerankCandidate
from haiku.rag.embedders.local.embedder import minilm_model, minilm_tokenizer
from haiku.rag.rerankers.local.reranker import LocalReranker
from haiku.rag.rerankers.local.settings import RerankLocalSettings

Candidates = Callable[..., list[RerankCandidate]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def loaded() -> object:
    """Holds the model, so that not every test loads it."""
    return minilm_model(), minilm_tokenizer()


@pytest.fixture
def reranker() -> Callable[..., LocalReranker]:
    def build(**settings: Any) -> LocalReranker:
        return LocalReranker(RerankLocalSettings(**settings))

    return build


@pytest.fixture
def candidates() -> Candidates:
    """Candidates of texts, with the same fused score or none."""

    def build(*texts: str, score: float | None = None) -> list[RerankCandidate]:
        return [
            RerankCandidate(text=text, source="db", chunk_id=str(number), score=score)
            for number, text in enumerate(texts)
        ]

    return build
