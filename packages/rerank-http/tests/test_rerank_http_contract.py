"""The suite of rerankers, against a service that speaks each dialect."""

from collections.abc import Callable

import pytest

from haiku.rag.contracts import Reranker
from haiku.rag.rerankers.http.reranker import HttpReranker
from haiku.rag.testing import RerankerContract

Make = Callable[..., HttpReranker]


class TestHttp(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make("http")


class TestJina(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make("jina", api_key="k")


class TestVllm(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make("vllm", name="bge-reranker-base")


class TestTei(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make("tei")


class TestZeroEntropy(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make("zeroentropy", api_key="k")


class TestInSmallBatches(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make("tei", section={"batch_size": 2, "concurrency": 2})
