"""What the candidates bring to a fusion: their similarities, and text scores that compare across databases."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

USUAL_SCORE = 15.0
"""The text score that counts as half of what was attainable, where an engine does not tell how much that is."""

Evidence = NDArray[np.float64]


def similarities(pool: pa.Table) -> Evidence:
    """The cosine of each row, 0 where there is none."""
    return np.clip(_column(pool, "similarity"), -1.0, 1.0)


def keyword_shares(pool: pa.Table) -> Evidence:
    """How much of the attainable text score each row attained, from 0 to 1; 0 for a row that the words did not find.

    Where the engine gives the score and not the share, the share is `score / (score + 15)`: bounded, rising with the
    score, and of no other row's making.
    """
    score = np.maximum(_column(pool, "keyword_score"), 0.0)
    share = _column(pool, "keyword_share", missing=np.nan)
    return np.where(np.isnan(share), score / (score + USUAL_SCORE), np.clip(share, 0.0, 1.0))


def _column(pool: pa.Table, name: str, missing: float = 0.0) -> Evidence:
    values = pool.column(name).fill_null(missing).to_numpy().astype(np.float64)
    known: Evidence = np.nan_to_num(values, nan=missing)
    return known
