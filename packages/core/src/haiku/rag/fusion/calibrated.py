"""Cosine and comparable keyword scores together, weighed by what the embedding model reads of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.fusion import FusionContext
from haiku.rag.fusion.combination import Combination

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig

LEAST_READABLE = 0.1
"""What the similarity keeps of its weight for a query that the model cannot read: it still settles near ties."""


class CalibratedFusion:
    """`w * cosine + (1 - w) * share`, where `w` is 0.6 for a query that the embedding model reads.

    The share is how much of the attainable text score a passage attained in its database. Both parts mean the same in
    every database, so a passage that only its words tell of keeps its place among those of other databases. Of a query
    in a script that the model does not read the cosine says little, and its weight falls with the part that is read.
    """

    def __init__(self, config: AppConfig) -> None:
        """Reads `search.calibrated`."""
        self._similarity = config.search.calibrated.similarity

    def scale(self, context: FusionContext) -> tuple[float, float]:
        """From the worst cosine without a word to the best of both."""
        return self._combination(context).scale(context)

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """The weighted sums."""
        return self._combination(context).scores(pool, context)

    def _combination(self, context: FusionContext) -> Combination:
        similarity = self._similarity * min(max(context.readable, LEAST_READABLE), 1.0)
        return Combination(similarity=similarity, keyword=1.0 - similarity)
