"""The reranker `local`: late interaction over the token vectors of the embedder's own model."""

from collections.abc import Iterator, Sequence

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from haiku.rag.config import AppConfig, ModelConfig
from haiku.rag.contracts.reranker import RerankCandidate
from haiku.rag.embedders.local.embedder import MODEL
from haiku.rag.embedders.local.loading import Once
from haiku.rag.embedders.local.scripts import latin_share
from haiku.rag.errors import ConfigError, EmbeddingError, MissingDependencyError, RerankError
from haiku.rag.rerankers.local.cache import PassageCache, key_of
from haiku.rag.rerankers.local.compact import CompactPassage
from haiku.rag.rerankers.local.reader import Reader
from haiku.rag.rerankers.local.scoring import HIGHEST, LOWEST, bounded
from haiku.rag.rerankers.local.settings import RerankLocalSettings

LEAST_LATIN = 0.5
MEGABYTE = 1 << 20

Passages = dict[bytes, CompactPassage]


class LocalReranker:
    """Scores the first candidates by what the model of the embedder `local` makes of query and passages.

    Nothing is loaded before the first query. Passages are read in worker threads, one batch at a time, whoever asks:
    a cancelled call stops after the batch that it is in, and what it has read is kept for the next one. A score
    depends on the query, the passage and its fused score, and on no other candidate.
    """

    scale = (LOWEST, HIGHEST)

    def __init__(self, settings: RerankLocalSettings) -> None:
        self._settings = settings
        self._reader = Once(lambda: Reader(max_tokens=settings.max_tokens))
        self._cache = PassageCache(settings.cache_mb * MEGABYTE)
        self._turns: RunVar[anyio.Lock] = RunVar(f"{__name__}.{id(self)}")

    async def rerank(self, query: str, candidates: Sequence[RerankCandidate], limit: int) -> list[tuple[int, float]]:
        """The first candidates, `max_candidates` or `limit` of them, best first; equal scores keep their order.

        A query in a script that the model does not read leaves all candidates as they are fused. `RerankError` if they
        have no fused scores then, and if the model cannot be used.
        """
        if not candidates:
            return []
        if latin_share(query) < LEAST_LATIN:
            scores = _fused_scores(candidates)
        else:
            scores = await self._scores(query, candidates[: max(limit, self._settings.max_candidates)])
        return sorted(enumerate(scores), key=lambda pair: -pair[1])

    async def close(self) -> None:
        """Release the model and what was read; a later call loads it again."""
        await to_thread.run_sync(self._release)

    async def _scores(self, query: str, candidates: Sequence[RerankCandidate]) -> list[float]:
        try:
            question = await to_thread.run_sync(lambda: self._reader().question(query))
            keys, passages = await self._passages([candidate.text for candidate in candidates])
        except (EmbeddingError, MissingDependencyError) as error:
            raise RerankError(str(error).rstrip(".")) from error
        fused = [candidate.score for candidate in candidates]
        return await to_thread.run_sync(
            lambda: [question.score(passages[key], score) for key, score in zip(keys, fused, strict=True)]
        )

    async def _passages(self, texts: Sequence[str]) -> tuple[list[bytes], Passages]:
        """The texts' keys, and by key what is remembered of them or is read now."""
        keys = await to_thread.run_sync(lambda: [key_of(text) for text in texts])
        wanted = dict(zip(keys, texts, strict=True))
        passages = self._cache.found(wanted)
        if len(passages) < len(wanted):
            async with self._turn():
                passages |= self._cache.found(wanted.keys() - passages.keys())
                missing = {key: text for key, text in wanted.items() if key not in passages}
                steps = await to_thread.run_sync(lambda: self._reader().passages(missing))
                while len(passages) < len(wanted):
                    passages |= await to_thread.run_sync(self._step, steps)
        return keys, passages

    def _turn(self) -> anyio.Lock:
        """Held by the one call that reads; a lock belongs to one event loop."""
        turn = self._turns.get(None)
        if turn is None:
            turn = anyio.Lock()
            self._turns.set(turn)
        return turn

    def _step(self, steps: Iterator[Passages]) -> Passages:
        """Read one batch. Blocking."""
        done = next(steps)
        for key, passage in done.items():
            self._cache.put(key, passage)
        return done

    def _release(self) -> None:
        self._reader.clear()
        self._cache.clear()


def create_local(config: AppConfig) -> LocalReranker:
    """The reranker `local`. `ConfigError` for a model that it is not."""
    model = config.reranking.model
    if model is not None:
        _check(model)
    return LocalReranker(config.section("rerank_local"))


def _check(model: ModelConfig) -> None:
    if model.name not in ("", MODEL):
        raise ConfigError(
            f"reranking.model.name: reranker 'local' has one model, '{MODEL}', and not '{model.name}'. Leave the name "
            "out, or choose another provider."
        )
    if model.base_url is not None or model.api_key is not None:
        raise ConfigError(
            "reranking.model: reranker 'local' runs in this process and asks no service. Leave base_url and api_key "
            "out, or choose another provider."
        )


def _fused_scores(candidates: Sequence[RerankCandidate]) -> list[float]:
    fused = [candidate.score for candidate in candidates if candidate.score is not None]
    if len(fused) < len(candidates):
        raise RerankError(f"'{MODEL}' reads English, and the query is in another script")
    return [bounded(score) for score in fused]
