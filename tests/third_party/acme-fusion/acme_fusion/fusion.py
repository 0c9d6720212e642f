"""Cosine similarity, and a tenth more for a passage that holds words of the query."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts import FusionContext

BONUS = 0.1


class SumFusion:
    """The strategy `acme-sum`."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    def scale(self, context: FusionContext) -> tuple[float, float]:
        """-1, to a passage in the query's direction that holds its words."""
        return (-1.0, 1.0 + BONUS)

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """One score a row; what is not known counts as nothing."""
        cosine = np.nan_to_num(pool.column("similarity").fill_null(0.0).to_numpy())
        words = np.nan_to_num(pool.column("keyword_score").fill_null(0.0).to_numpy())
        return np.asarray(cosine + BONUS * words / (words + 1.0), dtype=np.float64)
