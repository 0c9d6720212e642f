"""The conformance suite, over the real embedder."""

import pytest

from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder
from haiku.rag.testing import EmbedderContract


class TestMultilingual(EmbedderContract):
    @pytest.fixture
    def embedder(self, multilingual: MultilingualEmbedder) -> MultilingualEmbedder:
        return multilingual
