"""Cosine similarity, which means the same in every database."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.fusion import FusionContext
from haiku.rag.fusion.combination import Combination

COSINE = Combination(similarity=1.0, keyword=0.0)


class CosineFusion:
    """Orders by the cosine of the passage to the query.

    A full-text search has no query vector: it orders by how much of the attainable text score a passage attained in its
    database. A passage whose vector is zero has no angle and counts as 0.
    """

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    def scale(self, context: FusionContext) -> tuple[float, float]:
        """-1 to 1; 0 to 1 for full text."""
        return COSINE.scale(context)

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """The similarities, or for full text the shares."""
        return COSINE.scores(pool, context)
