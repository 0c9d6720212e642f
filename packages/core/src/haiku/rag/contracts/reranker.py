"""The contract of a reranker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class RerankCandidate:
    """A candidate as a reranker sees it: the passage with its headings, and where it is from.

    `score` is its fused score, on the fusion's own scale; None where there is none.
    """

    text: str
    source: str
    chunk_id: str
    score: float | None = None


class Reranker(Protocol):
    """Scores passages against the query, whatever database they came from."""

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest score it can give; None where there is no bound (logits)."""

    async def rerank(
        self, query: str, candidates: Sequence[RerankCandidate], limit: int
    ) -> Sequence[tuple[int, float]]:
        """Pairs of an index into `candidates` and a score, best first; at least `limit` of them, or all.

        Each index comes at most once. Raises whatever its service raises: core turns it into a report.
        """

    async def close(self) -> None:
        """Release what it holds. Safe to call twice."""
