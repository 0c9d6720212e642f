"""The fusing stage: one score for every candidate, whatever model its database was written with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.candidates import RRF_K
from haiku.rag.contracts.fusion import FusionContext
from haiku.rag.federation.rank import Scale, Scores
from haiku.rag.federation.spaces import Space
from haiku.rag.federation.strategy import Strategy

if TYPE_CHECKING:
    from haiku.rag.federation.candidates import Candidates
    from haiku.rag.federation.request import SearchRequest
    from haiku.rag.federation.session import Session

BY_RANK = "rrf"


@dataclass(frozen=True, kw_only=True)
class Fused:
    """The scores with their scale, the rows in their order, and what the fusion is called.

    `warning` says, where that is so, that another fusion was used than the one that was chosen.
    """

    name: str
    scores: Scores
    scale: Scale
    order: NDArray[np.int64]
    warning: str | None = None


def context_of(request: SearchRequest, names: Sequence[str], *, spaces: Sequence[Space] = ()) -> FusionContext:
    """What a fusion is told. Of several models the one that reads the least of the query counts."""
    return FusionContext(
        sources=tuple(names),
        search_type=request.search_type,
        limit=request.limit,
        query=request.text,
        readable=min((space.readable for space in spaces), default=1.0),
    )


def fuse(
    session: Session, request: SearchRequest, strategy: Strategy, candidates: Candidates, spaces: Sequence[Space]
) -> Fused:
    """The strategy over all candidates.

    Similarities to vectors of different models do not compare. Where candidates come from several spaces and the
    fusion compares similarities, it ranks each space by itself, as if that had been searched alone, and the spaces'
    lists are merged by reciprocal rank.
    """
    offering = candidates.offering()
    filled = [space for space in spaces if offering.intersection(space.names)]
    if len(filled) > 1 and strategy.record.compares_similarity:
        return _by_rank(session, request, candidates, filled, instead_of=strategy.name)
    context = context_of(request, candidates.names, spaces=filled)
    scores = _scores(strategy, candidates, context)
    return Fused(
        name=strategy.name, scores=scores, scale=strategy.fusion.scale(context), order=candidates.order(scores)
    )


def _by_rank(
    session: Session, request: SearchRequest, candidates: Candidates, spaces: Sequence[Space], *, instead_of: str
) -> Fused:
    scores = np.full(candidates.table.num_rows, np.nan)
    for space in spaces:
        part = candidates.part(space.names)
        strategy = Strategy.of(session, request, databases=len(part.refs))
        ranked = part.order(_scores(strategy, part, context_of(request, part.names, spaces=[space])))
        rows = candidates.rows_of(space.names)[ranked]
        scores[rows] = 1.0 / (RRF_K + np.arange(1, len(rows) + 1))
    return Fused(
        name=BY_RANK,
        scores=scores,
        scale=(0.0, 1.0 / (RRF_K + 1)),
        order=candidates.order(scores),
        warning=(
            f"the databases were written with {len(spaces)} embedding models, whose similarities do not compare: "
            f"'{instead_of}' was not used across them, their lists were merged by rank ('{BY_RANK}')."
        ),
    )


def _scores(strategy: Strategy, candidates: Candidates, context: FusionContext) -> Scores:
    return np.asarray(strategy.fusion.fuse(candidates.table, context), dtype=np.float64)
