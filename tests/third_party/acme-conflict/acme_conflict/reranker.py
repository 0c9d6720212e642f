"""A reranker that turns the order round."""

from collections.abc import Sequence

from haiku.rag.contracts import RerankCandidate


class BackwardsReranker:
    """The other reranker `acme`."""

    scale = None

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    async def rerank(
        self, query: str, candidates: Sequence[RerankCandidate], limit: int
    ) -> Sequence[tuple[int, float]]:
        """The last first."""
        return [(index, float(index)) for index in reversed(range(len(candidates)))]

    async def close(self) -> None:
        """Nothing is held."""
