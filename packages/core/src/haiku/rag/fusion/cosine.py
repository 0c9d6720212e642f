"""Cosine similarity, which means the same in every database."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.fusion import FusionContext


class CosineFusion:
    """Orders by the cosine of the passage to the query.

    A full-text search has no query vector: it orders by the databases' own text scores, which have no upper bound.
    A passage whose vector is zero has no angle and counts as 0.
    """

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    def scale(self, context: FusionContext) -> tuple[float, float] | None:
        """-1 to 1; none for full text."""
        return None if context.search_type == "fts" else (-1.0, 1.0)

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """The similarities, or for full text the text scores."""
        column = "keyword_score" if context.search_type == "fts" else "similarity"
        values = pool.column(column).fill_null(0.0).to_numpy()
        scores: NDArray[np.float64] = np.nan_to_num(values.astype(np.float64), nan=0.0)
        return scores
