"""What core asks of every reranker, asked of this one."""

import pytest
from acme_rerank.reranker import AcmeReranker

from haiku.rag.testing import RerankerContract


class TestAcmeReranker(RerankerContract):
    @pytest.fixture
    def reranker(self) -> AcmeReranker:
        return AcmeReranker()
