"""The suite of rerankers, against a service that speaks Cohere's protocol."""

from collections.abc import Callable

import pytest

from haiku.rag.contracts import Reranker
from haiku.rag.rerankers.cohere.reranker import CohereReranker
from haiku.rag.testing import RerankerContract

Make = Callable[..., CohereReranker]


class TestCohere(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make()


class TestCohereInSmallBatches(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make(section={"batch_size": 2, "concurrency": 2})
