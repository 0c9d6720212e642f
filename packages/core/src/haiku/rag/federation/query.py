"""From a request to what each database is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.storage import CandidateQuery, DatabaseRef
from haiku.rag.federation.boundary import Outcome, attempt
from haiku.rag.federation.fetch import Opened
from haiku.rag.federation.identity import check_comparable
from haiku.rag.federation.request import SearchRequest
from haiku.rag.federation.session import Session
from haiku.rag.federation.spaces import Space, query_vectors
from haiku.rag.federation.strategy import Strategy

MIN_DEPTH = 20
DEPTH_FACTOR = 2
MAX_DEPTH = 2**31 - 1
"""No leg has more candidates, and every storage engine can count as far."""


def depth_of(session: Session, request: SearchRequest) -> int:
    """How many candidates each leg of each database offers; decided once for the set.

    With a reranker, `limit * search.rerank_pool_factor`. Without one, twice the limit and at least 20: a passage that
    is in both legs, below the limit in each, may still belong into a reciprocal rank list.
    """
    if reranks(session, request):
        return min(request.limit * session.config.search.rerank_pool_factor, MAX_DEPTH)
    return min(max(DEPTH_FACTOR * request.limit, MIN_DEPTH), MAX_DEPTH)


def reranks(session: Session, request: SearchRequest) -> bool:
    """Whether a reranker is to score the pool: one is configured, and the query is text."""
    return session.config.reranking.model is not None and request.text is not None


@dataclass(frozen=True, kw_only=True)
class Queries:
    """What each database is asked; the outcomes of those that cannot be asked; and whose similarities compare."""

    asked: Mapping[str, CandidateQuery] = field(default_factory=dict)
    failed: Mapping[str, Outcome[Any]] = field(default_factory=dict)
    spaces: Sequence[Space] = ()
    warnings: Sequence[str] = ()


async def candidate_queries(
    session: Session, request: SearchRequest, strategy: Strategy, refs: Sequence[DatabaseRef], opened: Opened
) -> Queries:
    """The query for every database, embedded once a model. One database whose filter selects nothing is not asked."""
    if request.search_type == "fts":
        everywhere = _query(session, request, strategy, None)
        return Queries(asked={ref.name: everywhere for ref in refs})
    if not session.mixes_embeddings:
        check_comparable([(ref, database.identity) for ref in refs if (database := opened[ref.name].value)])
    if await _matches_nothing(session, request, refs, opened):
        return Queries()
    found = await query_vectors(session, request, refs, opened)
    of_vector = {id(vector): _query(session, request, strategy, vector) for vector in found.vectors.values()}
    return Queries(
        asked={name: of_vector[id(vector)] for name, vector in found.vectors.items()},
        failed={
            ref.name: Outcome(ref=ref, error=found.errors[ref.name], status="unavailable")
            for ref in refs
            if ref.name in found.errors
        },
        spaces=found.spaces,
        warnings=found.warnings,
    )


def _query(
    session: Session, request: SearchRequest, strategy: Strategy, vector: NDArray[np.float32] | None
) -> CandidateQuery:
    return CandidateQuery(
        search_type=request.search_type,
        depth=depth_of(session, request),
        text=None if request.search_type == "vector" else request.text,
        vector=vector,
        filter=request.filter,
        with_shares=strategy.reads_shares(request),
    )


async def _matches_nothing(
    session: Session, request: SearchRequest, refs: Sequence[DatabaseRef], opened: Opened
) -> bool:
    database = opened[refs[0].name].value
    if len(refs) != 1 or request.filter is None or database is None:
        return False
    outcome = await attempt(
        session.kernel,
        refs[0],
        lambda: database.count_documents(filter=request.filter),
        timeout_s=session.config.search.timeout_s,
    )
    if outcome.error is not None:
        raise outcome.error
    return outcome.value == 0
