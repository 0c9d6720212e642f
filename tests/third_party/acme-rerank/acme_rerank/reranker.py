"""Words that the query and a passage share, and pairs of neighbours among them."""

from collections.abc import Sequence
from itertools import pairwise

from haiku.rag.contracts import RerankCandidate


class AcmeReranker:
    """The reranker `acme`. Its scores have no upper bound."""

    scale = None

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    async def rerank(
        self, query: str, candidates: Sequence[RerankCandidate], limit: int
    ) -> Sequence[tuple[int, float]]:
        """The best `limit` candidates."""
        wanted = _terms(query)
        scores = [float(len(wanted & _terms(candidate.text))) for candidate in candidates]
        return sorted(enumerate(scores), key=lambda pair: (-pair[1], pair[0]))[:limit]

    async def close(self) -> None:
        """Nothing is held."""


def _terms(text: str) -> set[tuple[str, ...]]:
    words = [word.strip(".,;:!?") for word in text.casefold().split()]
    return {(word,) for word in words} | set(pairwise(words))
