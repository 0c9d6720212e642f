"""From a request to what each database is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.storage import CandidateQuery, DatabaseRef
from haiku.rag.errors import EmbeddingError
from haiku.rag.federation.boundary import attempt
from haiku.rag.federation.fetch import Opened
from haiku.rag.federation.identity import check_comparable
from haiku.rag.federation.request import SearchRequest
from haiku.rag.federation.session import Session

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


async def candidate_query(
    session: Session, request: SearchRequest, refs: Sequence[DatabaseRef], opened: Opened
) -> CandidateQuery | None:
    """The query for every database, embedded once; None where one database's filter matches nothing."""
    vector = None
    if request.search_type != "fts":
        check_comparable([(ref, database.identity) for ref in refs if (database := opened[ref.name].value)])
        if await _matches_nothing(session, request, refs, opened):
            return None
        vector = await _embedded(session, request)
    return CandidateQuery(
        search_type=request.search_type,
        depth=depth_of(session, request),
        text=None if request.search_type == "vector" else request.text,
        vector=vector,
        filter=request.filter,
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


async def _embedded(session: Session, request: SearchRequest) -> NDArray[np.float32]:
    embedder = session.embedder
    vector = np.asarray(await embedder.embed_query(request.query), dtype=np.float32)
    if vector.shape != (embedder.identity.dimension,) or not np.isfinite(vector).all():
        raise EmbeddingError(
            f"the embedder returned a query vector that is not {embedder.identity.dimension} finite numbers."
        )
    return vector
