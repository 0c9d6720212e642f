"""The reranker `cohere`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.to_thread

from cohere import AsyncClientV2
from haiku.rag.config import AppConfig
from haiku.rag.config.models import ModelConfig
from haiku.rag.contracts import RerankCandidate
from haiku.rag.errors import ConfigError, RerankError
from haiku.rag.rerankers.cohere.bounded import BoundedClient
from haiku.rag.rerankers.cohere.failures import FAILURES, failure
from haiku.rag.rerankers.cohere.scores import scores_of
from haiku.rag.rerankers.cohere.settings import RerankCohereSettings

MODEL = "rerank-v3.5"
BLANK = "-"
RESERVED = frozenset({"model", "query", "documents", "top_n"})
ANSWER_BYTES = 1 << 20
"""A thousand scores take a tenth of it."""


class CohereReranker:
    """Scores by asking Cohere, in batches where there are many passages; one that fails breaks off the others."""

    def __init__(self, *, model: ModelConfig, settings: RerankCohereSettings, timeout_s: float) -> None:
        self._model = model
        self._settings = settings
        self._timeout_s = timeout_s
        self._slots = anyio.CapacityLimiter(settings.concurrency)
        self._opening = anyio.Lock()
        self._http: BoundedClient | None = None
        self._client: AsyncClientV2 | None = None

    @property
    def scale(self) -> tuple[float, float]:
        """Cohere's scores are from 0 to 1."""
        return (0.0, 1.0)

    async def rerank(self, query: str, candidates: Sequence[RerankCandidate], limit: int) -> list[tuple[int, float]]:
        """A score for every candidate; equal ones keep the order in which they were offered."""
        scores = [0.0] * len(candidates)
        failures: list[RerankError] = []

        async def score_from(start: int) -> None:
            batch = candidates[start : start + self._settings.batch_size]
            try:
                async with self._slots:
                    scores[start : start + len(batch)] = await self._asked(query, batch)
            except RerankError as error:
                failures.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for start in range(0, len(candidates), self._settings.batch_size):
                group.start_soon(score_from, start)
        if failures:
            raise failures[0]
        return sorted(enumerate(scores), key=lambda pair: -pair[1])

    async def close(self) -> None:
        """Close the connections."""
        http, self._http, self._client = self._http, None, None
        if http is not None:
            await http.aclose()

    async def _asked(self, query: str, batch: Sequence[RerankCandidate]) -> list[float]:
        client = await self._opened()
        try:
            answer = await client.rerank(
                model=self._model.name.strip() or MODEL,
                query=_sendable(query),
                documents=[_sendable(candidate.text) for candidate in batch],
                top_n=len(batch),
                request_options={"additional_body_parameters": self._optional()},
            )
            return scores_of(answer, len(batch))
        except FAILURES as error:
            failed = failure(error)
        # Without its cause, whose text holds headers and the answer.
        raise failed

    def _optional(self) -> dict[str, Any]:
        """What is in the body beside the question: nothing that is not configured."""
        settings = {"max_tokens_per_doc": self._settings.max_tokens_per_doc, "priority": self._settings.priority}
        return {**{key: value for key, value in settings.items() if value is not None}, **self._model.extra_body}

    async def _opened(self) -> AsyncClientV2:
        async with self._opening:
            if self._client is None:
                self._http, self._client = await anyio.to_thread.run_sync(self._made)
        assert self._client is not None
        return self._client

    def _made(self) -> tuple[BoundedClient, AsyncClientV2]:
        http = BoundedClient(max_bytes=ANSWER_BYTES, longest_wait_s=self._timeout_s)
        client = AsyncClientV2(
            _key(self._model),
            base_url=self._model.base_url,
            max_retries=self._settings.retries,
            httpx_client=http,
            log_warning_experimental_features=False,
        )
        return http, client


def create_cohere(config: AppConfig) -> CohereReranker:
    """The factory that the record names."""
    model = config.reranking.model
    assert model is not None
    for key in ("temperature", "thinking", "max_tokens"):
        if getattr(model, key) is not None:
            raise ConfigError(f"reranking.model.{key} means nothing to the reranker 'cohere'. Remove it.")
    for name in sorted(RESERVED & model.extra_body.keys()):
        raise ConfigError(f"reranking.model.extra_body must not set '{name}', which the request needs. Remove it.")
    key = _key(model)
    if not key:
        raise ConfigError("reranker 'cohere' needs a key. Set reranking.model.api_key.")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("reranking.model.api_key holds characters that no HTTP header can carry. Correct it.")
    return CohereReranker(model=model, settings=config.section("rerank_cohere"), timeout_s=config.reranking.timeout_s)


def _key(model: ModelConfig) -> str:
    return "" if model.api_key is None else model.api_key.get_secret_value().strip()


def _sendable(text: str) -> str:
    """The text, a lone surrogate replaced, and a blank one by a mark: neither may be sent."""
    return text.encode("utf-8", "replace").decode() if text.strip() else BLANK
