"""The contract of an embedder."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from haiku.rag.models import EmbeddingIdentity

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns text (and, where it can, pictures) into vectors.

    Constructing one loads no model and opens no connection; the first call does. Vectors are float32 and finite.
    A text has the same vector in any batch, and no part of a long text is silently left out.
    Failures are `EmbeddingError`.
    """

    @property
    def identity(self) -> EmbeddingIdentity:
        """Provider, model, dimension and document prefix; known without loading the model."""

    @property
    def modalities(self) -> frozenset[str]:
        """What it reads: `"text"`, and `"image"` where pictures' bytes are accepted."""

    @property
    def max_tokens(self) -> int:
        """The longest text, in its own tokens, that it reads in one piece."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of its own tokens in each text, without special tokens and prefixes.

        Blocking: it may load the tokenizer.
        """

    async def embed_query(self, query: str | bytes) -> Vectors:
        """The vector of a query, of shape `(dimension,)`. Bytes are an encoded image."""

    async def embed_documents(self, contents: Sequence[str | bytes]) -> Vectors:
        """The vectors of documents, of shape `(len(contents), dimension)`."""

    async def close(self) -> None:
        """Release what it holds. Safe to call twice."""


@runtime_checkable
class LanguageBound(Protocol):
    """What an embedder also is, where its model does not read every language or script.

    Core finds it by the method's name; of an embedder without it every text is taken to be read.
    """

    def reads(self, text: str) -> float:
        """The part of a text, from 0 to 1, that the model reads; 1 for one without letters. Loads no model."""
