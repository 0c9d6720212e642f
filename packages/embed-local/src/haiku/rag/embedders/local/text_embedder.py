"""The embedder over a tokenizer and a model that run in this process."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar, TypeVarTuple, Unpack

import anyio.to_thread
import numpy as np
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.local.batches import batches, portions
from haiku.rag.embedders.local.loading import Once
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.pooling import unit
from haiku.rag.embedders.local.recipe import Recipe
from haiku.rag.embedders.local.tokens import TextTokenizer, Window
from haiku.rag.errors import EmbeddingError
from haiku.rag.models import EmbeddingIdentity

T = TypeVar("T")
Given = TypeVarTuple("Given")


class TextEmbedder:
    """An `Embedder` of text. Nothing is loaded before the first call that needs it.

    Work is done in a worker thread, one batch at a time, so that a query waits for a batch and not for a whole load,
    and a cancelled call stops after the batch that it is in. A text longer than `max_tokens` is read in windows; its
    vector is their mean, weighted by their tokens.
    """

    modalities = frozenset({"text"})

    def __init__(
        self, recipe: Recipe, *, tokenizer: Callable[[], TextTokenizer], model: Callable[[], EncoderModel]
    ) -> None:
        self._recipe = recipe
        self._tokenizer = Once(tokenizer)
        self._model = Once(model)
        self._dimension = Once(self._find_dimension)
        self._turn = Lock()
        self._limiters: RunVar[CapacityLimiter] = RunVar(f"{__name__}.{id(self)}")

    @property
    def identity(self) -> EmbeddingIdentity:
        """Known from the configuration; only a model that says its dimension nowhere is loaded to find it."""
        return EmbeddingIdentity(
            provider=self._recipe.provider,
            model=self._recipe.model,
            dimension=self._dimension(),
            document_prefix=self._recipe.document_prefix,
        )

    @property
    def max_tokens(self) -> int:
        """The longest text, in its own tokens, that is read in one piece."""
        return self._recipe.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of each text's own tokens. Loads the tokenizer, not the model."""
        tokenizer = self._tokenizer()
        counts = [0] * len(texts)
        for portion in portions(texts):
            for (number, _), length in zip(portion, tokenizer.lengths([piece for _, piece in portion]), strict=True):
                counts[number] += length
        return counts

    async def embed_query(self, query: str | bytes) -> Vectors:
        """The vector of a query, of shape `(dimension,)`."""
        vectors = await self._embed([query], self._recipe.query_prefix)
        return np.asarray(vectors[0])

    async def embed_documents(self, contents: Sequence[str | bytes]) -> Vectors:
        """The vectors of texts, in their order, of shape `(len(contents), dimension)`."""
        return await self._embed(contents, self._recipe.document_prefix)

    async def close(self) -> None:
        """Release the model and the tokenizer; a later call loads them again."""
        await anyio.to_thread.run_sync(self._release)

    def _release(self) -> None:
        """Forget what is loaded. Blocking: a load that is under way in another thread is waited for."""
        self._model.clear()
        self._tokenizer.clear()

    async def _embed(self, contents: Sequence[str | bytes], prefix: str) -> Vectors:
        texts = [self._text(content) for content in contents]
        sums = np.zeros((len(texts), await self._in_thread(self._dimension)), dtype=np.float32)
        weights = np.zeros(len(texts), dtype=np.float32)
        for portion in portions(texts):
            for batch in await self._in_thread(self._batches, portion, prefix):
                await self._in_thread(self._add, batch, sums, weights)
        return await self._in_thread(self._finish, sums, weights)

    async def _in_thread(self, work: Callable[[Unpack[Given]], T], *given: *Given) -> T:
        limiter = self._limiters.get(None)
        if limiter is None:
            limiter = CapacityLimiter(1)
            self._limiters.set(limiter)
        return await anyio.to_thread.run_sync(work, *given, limiter=limiter)

    def _text(self, content: str | bytes) -> str:
        if isinstance(content, str):
            return content
        raise EmbeddingError(
            f"embedder '{self._recipe.provider}' reads text only and was given an image. Choose an embedder that reads "
            "images, or leave images out."
        )

    def _batches(self, portion: list[tuple[int, str]], prefix: str) -> list[Sequence[Window]]:
        windows = self._tokenizer().windows(portion, prefix=prefix, room=self._recipe.room)
        return batches(windows)

    def _add(self, batch: Sequence[Window], sums: Vectors, weights: NDArray[np.float32]) -> None:
        """Add the batch's vectors to those of their texts, each as often as it has tokens."""
        with self._turn:
            vectors = self._model().run([window.ids for window in batch], self._recipe.pooling)
        if vectors.shape[1] != sums.shape[1]:
            raise EmbeddingError(
                f"'{self._recipe.model}' returns vectors of {vectors.shape[1]} dimensions, and {sums.shape[1]} were "
                f"expected. Set embeddings.model.vector_dim to {vectors.shape[1]}."
            )
        if self._recipe.normalize:
            vectors = unit(vectors)
        for window, vector in zip(batch, vectors, strict=True):
            sums[window.text] += vector * np.float32(window.weight)
            weights[window.text] += window.weight

    def _finish(self, sums: Vectors, weights: NDArray[np.float32]) -> Vectors:
        sums /= weights[:, None]
        vectors = unit(sums) if self._recipe.normalize else sums
        bad = int((~np.isfinite(vectors).all(axis=1)).sum())
        if bad:
            raise EmbeddingError(
                f"'{self._recipe.model}' returned numbers that are not finite for {bad} of {len(vectors)} texts. "
                "Check the model's file, or use an export in float32."
            )
        return vectors

    def _find_dimension(self) -> int:
        if self._recipe.dimension is not None:
            return self._recipe.dimension
        with self._turn:
            return int(self._model().run([(0,)], self._recipe.pooling).shape[1])
