"""A weighted sum of a passage's cosine and of its comparable keyword score."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.fusion import FusionContext
from haiku.rag.fusion.evidence import keyword_shares, similarities


@dataclass(frozen=True, kw_only=True)
class Combination:
    """`similarity * cosine + keyword * share`. A search by one leg alone orders by that one, as it stands."""

    similarity: float
    keyword: float

    def scale(self, context: FusionContext) -> tuple[float, float]:
        """From the worst cosine without a word to the best of both."""
        if context.search_type == "fts":
            return (0.0, 1.0)
        if context.search_type == "vector":
            return (-1.0, 1.0)
        return (-self.similarity, self.similarity + self.keyword)

    def scores(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """One score a row, which depends on that row alone."""
        if context.search_type == "fts":
            return keyword_shares(pool)
        if context.search_type == "vector":
            return similarities(pool)
        total: NDArray[np.float64] = self.similarity * similarities(pool) + self.keyword * keyword_shares(pool)
        return total
