"""A deterministic embedder without a model: words hashed into a vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.errors import EmbeddingError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.testing.words import words

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig

DIMENSION = 64
IMAGES = "image"


class HashEmbedder:
    """The embedder `hash`: each word adds 1 or -1 at a place that its hash gives, and the sum is normalised.

    Texts that share words are near each other, in every process alike. A model whose name begins with `image` reads
    pictures too, and takes the words in their bytes. `embedding_calls` counts what a model was asked.
    """

    def __init__(self, config: AppConfig | None = None, *, name: str = "words", dimension: int = DIMENSION) -> None:
        model = None if config is None else config.embeddings.model
        self._name = (model.name if model else "") or name
        self._dimension = (model.vector_dim if model else None) or dimension
        self._query_prefix = model.query_prefix if model else ""
        self._document_prefix = model.document_prefix if model else ""
        self._calls = embedding_calls(self._name)

    @property
    def identity(self) -> EmbeddingIdentity:
        """Provider `hash`, and what was configured."""
        return EmbeddingIdentity(
            provider="hash", model=self._name, dimension=self._dimension, document_prefix=self._document_prefix
        )

    @property
    def modalities(self) -> frozenset[str]:
        """Text, and pictures for a model named so."""
        return frozenset({"text", "image"}) if self._name.startswith(IMAGES) else frozenset({"text"})

    @property
    def max_tokens(self) -> int:
        """As much as any test writes."""
        return 8192

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Its tokens are the words between spaces."""
        return [len(text.split()) for text in texts]

    async def embed_query(self, query: str | bytes) -> Vectors:
        """One vector."""
        self._calls["query"] += 1
        return self._vector(query, self._query_prefix)

    async def embed_documents(self, contents: Sequence[str | bytes]) -> Vectors:
        """One vector a content."""
        self._calls["documents"] += 1
        self._calls["contents"] += len(contents)
        rows = [self._vector(content, self._document_prefix) for content in contents]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self._dimension)

    async def close(self) -> None:
        """Nothing is held."""
        self._calls["close"] += 1

    def _vector(self, content: str | bytes, prefix: str) -> Vectors:
        if isinstance(content, bytes) and "image" not in self.modalities:
            raise EmbeddingError(f"the embedder 'hash' reads pictures only with a model named '{IMAGES}…'.")
        text = content.decode("latin-1") if isinstance(content, bytes) else prefix + content
        total = np.zeros(self._dimension, dtype=np.float64)
        for word in words(text):
            place, sign = _place(word, self._dimension)
            total[place] += sign
        if not total.any():
            total[0] = 1.0
        return (total / np.linalg.norm(total)).astype(np.float32)


def _place(word: str, dimension: int) -> tuple[int, int]:
    number = int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    return (number >> 1) % dimension, 1 if number & 1 else -1


@cache
def embedding_calls(name: str) -> Counter[str]:  # noqa: ARG001 - the name is the cache's key
    """What the models of a name were asked in this process: `query`, `documents`, `contents`, `close`."""
    return Counter()
