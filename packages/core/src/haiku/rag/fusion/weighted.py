"""Cosine and keyword score by fixed weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.fusion import FusionContext
from haiku.rag.fusion.combination import Combination

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig


class WeightedFusion:
    """`0.95 * cosine + 0.05 * share`, with other weights where `search.weighted` gives them.

    The share is how much of the attainable text score a passage attained in its database. The words decide between
    passages of about the same similarity.
    """

    def __init__(self, config: AppConfig) -> None:
        """Reads `search.weighted`."""
        weights = config.search.weighted
        self._combination = Combination(similarity=weights.similarity, keyword=weights.keyword)

    def scale(self, context: FusionContext) -> tuple[float, float]:
        """From the worst cosine without a word to the best of both."""
        return self._combination.scale(context)

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """The weighted sums."""
        return self._combination.scores(pool, context)
