"""The embedder: texts in, vectors out, in short steps."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock

import anyio.to_thread
import numpy as np
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.multilingual.encoder import unit
from haiku.rag.embedders.multilingual.model import Model
from haiku.rag.embedders.multilingual.sequences import Window, batches
from haiku.rag.embedders.multilingual.tokenizer import segments
from haiku.rag.errors import EmbeddingError
from haiku.rag.models import EmbeddingIdentity

PORTION_TOKENS = 32_768
"""Tokens that wait to be sorted by the length of their texts."""


class MultilingualEmbedder:
    """An `Embedder` of text. The model is loaded by the first call that needs it.

    A call is a series of steps, each at most a batch long and done in a worker thread. Calls take turns step by step,
    so that a query does not wait for a bulk load, and a cancelled call ends with the step that it is in.
    """

    modalities = frozenset({"text"})

    def __init__(
        self, identity: EmbeddingIdentity, *, query_prefix: str, max_tokens: int, load: Callable[[], Model]
    ) -> None:
        self._identity = identity
        self._query_prefix = query_prefix
        self._max_tokens = max_tokens
        self._load = load
        self._loading = Lock()
        self._loaded: Model | None = None
        self._turns: RunVar[CapacityLimiter] = RunVar(f"turns of {id(self)}")

    @property
    def identity(self) -> EmbeddingIdentity:
        """Known from the configuration."""
        return self._identity

    @property
    def max_tokens(self) -> int:
        """The longest text, in its own tokens, that is read in one piece."""
        return self._max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of each text's own tokens. Blocking: it may load the model."""
        tokenizer = self._model().tokenizer
        return [sum(len(tokenizer.ids(segment)) for segment in segments(text)) for text in texts]

    async def embed_query(self, query: str | bytes) -> Vectors:
        """The vector of a query, of shape `(dimension,)`."""
        return np.asarray((await self._embed([query], self._query_prefix))[0])

    async def embed_documents(self, contents: Sequence[str | bytes]) -> Vectors:
        """The vectors of texts, in their order, of shape `(len(contents), dimension)`."""
        return await self._embed(contents, self._identity.document_prefix)

    async def close(self) -> None:
        """Release the model. A later call loads it again."""
        await anyio.to_thread.run_sync(self._release)

    async def _embed(self, contents: Sequence[str | bytes], prefix: str) -> Vectors:
        texts = [_text(content) for content in contents]
        sums = np.zeros((len(texts), self._identity.dimension), dtype=np.float32)
        steps = self._steps(texts, prefix, sums)
        while await anyio.to_thread.run_sync(next, steps, False, limiter=self._turn()):
            pass
        return unit(sums)

    def _turn(self) -> CapacityLimiter:
        """One step at a time in an event loop, first come, first served."""
        limiter = self._turns.get(None)
        if limiter is None:
            limiter = CapacityLimiter(1)
            self._turns.set(limiter)
        return limiter

    def _steps(self, texts: Sequence[str], prefix: str, sums: Vectors) -> Iterator[bool]:
        """Add up the vectors of the texts' windows, each as often as it has tokens; True after each step."""
        model = self._model()
        frame = model.frame(prefix, self._max_tokens)
        waiting: list[Window] = []
        for number, text in enumerate(texts):
            ids: list[int] = []
            for segment in segments(text):
                ids += model.tokenizer.ids(segment)
                yield True
            waiting += frame.windows(number, ids)
            if sum(len(window.ids) for window in waiting) >= PORTION_TOKENS:
                yield from _added(model, waiting, sums)
                waiting = []
        yield from _added(model, waiting, sums)

    def _model(self) -> Model:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _release(self) -> None:
        with self._loading:
            self._loaded = None


def _added(model: Model, windows: Iterable[Window], sums: Vectors) -> Iterator[bool]:
    for batch in batches(windows):
        vectors = model.encoder.vectors([window.ids for window in batch])
        for window, vector in zip(batch, vectors, strict=True):
            sums[window.text] += vector * max(1, window.tokens)
        yield True


def _text(content: str | bytes) -> str:
    if isinstance(content, str):
        return content
    raise EmbeddingError(
        "embedder 'multilingual' reads text only and was given an image. Leave images out, or choose an embedder that "
        "reads them."
    )
