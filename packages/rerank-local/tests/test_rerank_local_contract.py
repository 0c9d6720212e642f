"""The suite that every reranker passes."""

import pytest

from haiku.rag.rerankers.local import plugin
from haiku.rag.rerankers.local.reranker import LocalReranker, create_local
from haiku.rag.testing import RerankerContract, testing_config


class TestLocalReranker(RerankerContract):
    @pytest.fixture
    def reranker(self) -> LocalReranker:
        return create_local(testing_config({"reranking": {"model": {"provider": "local"}}}, plugin))
