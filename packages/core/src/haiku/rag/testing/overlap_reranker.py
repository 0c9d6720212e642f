"""A deterministic reranker without a model: the share of the query's words that a passage holds."""

from __future__ import annotations

from collections.abc import Sequence

from haiku.rag.contracts.reranker import RerankCandidate
from haiku.rag.testing.words import words


class OverlapReranker:
    """The reranker `overlap`."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    @property
    def scale(self) -> tuple[float, float]:
        """From no word to every word."""
        return (0.0, 1.0)

    async def rerank(
        self,
        query: str,
        candidates: Sequence[RerankCandidate],
        limit: int,
    ) -> list[tuple[int, float]]:
        """Every candidate; ties keep the order in which they were offered."""
        wanted = set(words(query))
        shares = [len(wanted & set(words(candidate.text))) / max(len(wanted), 1) for candidate in candidates]
        return sorted(enumerate(shares), key=lambda pair: -pair[1])

    async def close(self) -> None:
        """Nothing is held."""
