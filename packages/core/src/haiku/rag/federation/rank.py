"""From the databases' candidates to one ranked list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.candidates import CANDIDATE_SCHEMA
from haiku.rag.federation.request import SearchRequest
from haiku.rag.federation.slots import Slots

Scores = NDArray[np.float64]
Scale = tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Rows of the pool, best first, with the score that orders them and the one that they had before boosts.

    `below` counts what `min_score` removed, `eligible` are all rows that it left, best first. `also` maps a row to
    those of other databases that say the same.
    """

    rows: NDArray[np.int64]
    scores: Scores
    weighted: Scores
    eligible: NDArray[np.int64]
    also: Mapping[int, Sequence[int]]
    below: int = 0


def pool_candidates(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of all candidates, with `source`: the index of the table that each row came from."""
    columns = CANDIDATE_SCHEMA.names
    together = pa.concat_tables([table.select(columns) for table in tables]).combine_chunks()
    source = np.repeat(np.arange(len(tables), dtype=np.int32), [table.num_rows for table in tables])
    return together.append_column("source", pa.array(source))


def order(pool: pa.Table, scores: Scores, configured: Sequence[int]) -> NDArray[np.int64]:
    """The rows by score, best first; NaN is left out.

    Of exactly equal scores the better rank within its database comes first, then the source that was configured
    earlier; `configured` gives each source's place in that order.
    """
    place = np.asarray(configured, dtype=np.int64)[pool.column("source").to_numpy()]
    rank = pool.column("rank").to_numpy()
    rows: NDArray[np.int64] = np.lexsort((place, rank, -scores))
    return rows[~np.isnan(scores[rows])]


def weighted(
    scores: Scores,
    sources: NDArray[np.int32],
    names: Sequence[str],
    weights: Mapping[str, float],
    scale: Scale,
) -> Scores:
    """Multiply each score, mapped to [0, 1] by its scale, by its database's weight; a weight of 0 leaves rows out.

    A bounded scale is mapped back afterwards, so that a weight of 1 changes nothing and `min_score` keeps its
    meaning. Scores without a bound are mapped by the logistic function and stay in [0, 1].
    """
    if all(weights.get(name, 1.0) == 1.0 for name in names):
        return scores
    factor = np.array([weights.get(name, 1.0) for name in names])[sources]
    if scale is None:
        with np.errstate(over="ignore"):  # a score far below 0 is mapped to 0
            mapped = factor / (1.0 + np.exp(-scores))
    else:
        low, _ = scale
        mapped = np.where(factor == 1.0, scores, low + factor * (scores - low))
    return np.where(factor == 0.0, np.nan, mapped)


def rank(
    pool: pa.Table,
    scores: Scores,
    request: SearchRequest,
    *,
    names: Sequence[str],
    configured: Sequence[int],
    scale: Scale,
    max_per_source: int | None,
    passage: Callable[[int], Hashable | None] | None = None,
) -> Ranking:
    """Apply weights, the threshold, boosts and the cap a database, in this order, and cut to the limit.

    `passage` says what a row says, see `Slots`: then a passage of several databases is one row, the best.
    """
    sources = pool.column("source").to_numpy()
    scaled = weighted(scores, sources, names, request.weights, scale)
    below = 0
    if request.min_score is not None:
        below = int((scaled < request.min_score).sum())
        scaled = np.where(scaled < request.min_score, np.nan, scaled)
    final = scaled + np.array([request.boosts.get(name, 0.0) for name in names])[sources]
    eligible = order(pool, final, configured)
    slots = Slots(sources=sources, cap=max_per_source, passage=passage)
    plain = max_per_source is None and passage is None
    rows = (eligible if plain else slots.filled(eligible.tolist()))[: request.limit]
    return Ranking(
        rows=rows, scores=final[rows], weighted=scaled[rows], eligible=eligible, also=slots.also, below=below
    )
