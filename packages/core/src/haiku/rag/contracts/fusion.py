"""The contract of a fusion strategy."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.models import SearchType


@dataclass(frozen=True, kw_only=True)
class FusionContext:
    """What a fusion may know beside the candidates.

    `sources` are the databases in the order of the selection; `search_type` what was searched for; `query` the text
    of the query, None for an image; `limit` how many results are wanted. `readable` is the part of the query's text,
    from 0 to 1, that the embedding model reads: a model of another language gives similarities that say little.
    """

    sources: tuple[str, ...]
    search_type: SearchType
    limit: int
    query: str | None = None
    readable: float = 1.0


class Fusion(Protocol):
    """Gives every pooled candidate one score; core orders by it.

    A fusion scores and does not sort: that the list follows the returned score, and how exact ties fall, then holds
    for every strategy. Pure: no I/O, no state, the same answer for the same pool.
    """

    def scale(self, context: FusionContext) -> tuple[float, float] | None:
        """The lowest and the highest score that it can give; None where there is no bound."""

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        """Scores of shape `(pool.num_rows,)`, higher is better; NaN leaves the row out.

        `pool` has the columns of `CANDIDATE_SCHEMA` and `source` (int32, an index into `context.sources`). Its
        rows come database after database, each best first.
        """
