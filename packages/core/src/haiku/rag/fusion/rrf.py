"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), k = 60."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.candidates import RRF_K
from haiku.rag.contracts.fusion import FusionContext

LEGS = ("vector_rank", "keyword_rank")


class ReciprocalRankFusion:
    """Sums 1 / (60 + rank) over the legs in which a passage was found, each ranked within its own database.

    Over one database this is the usual hybrid merge. Over several it treats every database's first hit alike,
    relevant or not: use it where databases are known to be equally good for the query.
    """

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    def scale(self, context: FusionContext) -> tuple[float, float] | None:
        """0 to the score of a passage that is first in both legs."""
        return (0.0, len(LEGS) / (RRF_K + 1))

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """The sums; a leg that did not find the passage adds nothing."""
        ranks = np.stack([pool.column(leg).cast(pa.float64()).fill_null(np.inf).to_numpy() for leg in LEGS])
        total: NDArray[np.float64] = (1.0 / (RRF_K + ranks)).sum(axis=0)
        return total
