"""What a plugin's tests need: a conformance suite a kind, and small real plugins to test against.

A suite is a class with numbered tests; the module that holds it says in prose what each number means. Subclass it in
a test module and override the fixture that makes the thing under test:

    from haiku.rag.testing import RerankerContract

    class TestAcmeReranker(RerankerContract):
        @pytest.fixture
        def reranker(self):
            return AcmeReranker()

`testing_kernel` and `testing_config` hold core's own plugin and those that are given, whatever else is installed.
Install with `haiku-rag-core[testing]`. Nothing here is an entry point.
"""

import pytest

_SUITES = ("chunker", "converter", "downloading", "embedder", "fusion", "reranker", "source", "storage")
_CLAUSES = (
    "concurrency",
    "conditions",
    "filters",
    "fixtures",
    "maintenance",
    "opening",
    "rebuild",
    "search",
    "tags",
    "text",
    "versions",
    "writing",
)
pytest.register_assert_rewrite(*(f"{__name__}.{suite}" for suite in _SUITES))
pytest.register_assert_rewrite(*(f"{__name__}.storage_{part}" for part in _CLAUSES))

from haiku.rag.testing.chunker import ChunkerContract  # noqa: E402 - assertions are rewritten from here on
from haiku.rag.testing.converter import ConverterContract  # noqa: E402
from haiku.rag.testing.downloading import DownloadingContract  # noqa: E402
from haiku.rag.testing.embedder import EmbedderContract  # noqa: E402
from haiku.rag.testing.fetching_reranker import FetchingReranker  # noqa: E402
from haiku.rag.testing.fusion import FusionContract  # noqa: E402
from haiku.rag.testing.hash_embedder import HashEmbedder, embedding_calls  # noqa: E402
from haiku.rag.testing.kernel import testing_config, testing_kernel, testing_plugin  # noqa: E402
from haiku.rag.testing.memory import MemoryDatabase, MemoryStorage  # noqa: E402
from haiku.rag.testing.memory_server import MemoryServer, memory_server  # noqa: E402
from haiku.rag.testing.overlap_reranker import OverlapReranker  # noqa: E402
from haiku.rag.testing.reranker import RerankerContract  # noqa: E402
from haiku.rag.testing.source import SourceContract  # noqa: E402
from haiku.rag.testing.storage import StorageContract  # noqa: E402
from haiku.rag.testing.text import ParagraphChunker, TextConverter  # noqa: E402

__all__ = [
    "ChunkerContract",
    "ConverterContract",
    "DownloadingContract",
    "EmbedderContract",
    "FetchingReranker",
    "FusionContract",
    "HashEmbedder",
    "MemoryDatabase",
    "MemoryServer",
    "MemoryStorage",
    "OverlapReranker",
    "ParagraphChunker",
    "RerankerContract",
    "SourceContract",
    "StorageContract",
    "TextConverter",
    "embedding_calls",
    "memory_server",
    "testing_config",
    "testing_kernel",
    "testing_plugin",
]
