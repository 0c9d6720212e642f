"""The reranker behind an HTTP service."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from haiku.rag.contracts import RerankCandidate
from haiku.rag.errors import RerankError
from haiku.rag.rerankers.http.answers import read_scores
from haiku.rag.rerankers.http.protocols import Protocol
from haiku.rag.rerankers.http.service import Service
from haiku.rag.rerankers.http.settings import RerankHttpSettings


class HttpReranker:
    """Scores by asking a service, in batches where there are many passages.

    A failed batch fails the whole and breaks off the others: half of the scores would rank by luck.
    """

    def __init__(
        self,
        *,
        service: Service,
        protocol: Protocol,
        model: str,
        extra: Mapping[str, Any],
        settings: RerankHttpSettings,
        timeout_s: float,
    ) -> None:
        self._service = service
        self._protocol = protocol
        self._model = model
        self._extra = extra
        self._batch_size = settings.batch_size or protocol.batch_size
        self._max_chars = settings.max_chars
        self._slots = anyio.CapacityLimiter(settings.concurrency)
        self._scale = _scale(settings, protocol.scale_for(model))
        self._timeout_s = timeout_s

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest score, None where it is not known."""
        return self._scale

    async def rerank(self, query: str, candidates: Sequence[RerankCandidate], limit: int) -> list[tuple[int, float]]:
        """A score for every candidate; equal ones keep the order in which they were offered."""
        deadline = anyio.current_time() + self._timeout_s
        texts = [candidate.text[: self._max_chars] for candidate in candidates]
        starts = range(0, len(texts), self._batch_size)
        scores: dict[int, list[float]] = {}
        failures: list[RerankError] = []

        async def one(start: int) -> None:
            try:
                async with self._slots:
                    batch = texts[start : start + self._batch_size]
                    scores[start] = await self._scores(query, batch, deadline=deadline)
            except RerankError as error:
                failures.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for start in starts:
                group.start_soon(one, start)
        if failures:
            raise failures[0]
        pairs = enumerate(score for start in starts for score in scores[start])
        return sorted(pairs, key=lambda pair: -pair[1])

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def _scores(self, query: str, texts: Sequence[str], *, deadline: float) -> list[float]:
        request = self._protocol.request(self._model, query, texts, self._extra)
        # A lone surrogate, which a query may hold, is not text that can be sent.
        body = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        answer = await self._service.ask(body, deadline=deadline)
        return read_scores(answer, len(texts), self._scale)


def _scale(settings: RerankHttpSettings, known: tuple[float, float] | None) -> tuple[float, float] | None:
    if settings.scale is None:
        return known
    return None if settings.scale == "unbounded" else settings.scale
