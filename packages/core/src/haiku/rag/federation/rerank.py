"""The reranking stage: one score for every pooled candidate, or the fused order and the reason."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.reranker import RerankCandidate, Reranker
from haiku.rag.errors import RerankError
from haiku.rag.federation.rank import Scores
from haiku.rag.models import Chunk

logger = logging.getLogger(__name__)


async def rerank_scores(
    reranker: Reranker,
    query: str,
    pool: pa.Table,
    rows: NDArray[np.int64],
    passages: Sequence[Chunk | None],
    *,
    sources: Sequence[str],
    limit: int,
    timeout_s: float,
) -> Scores:
    """The reranker's scores of `rows`, NaN for every other row and for what it did not return.

    `passages` are the rows' chunks, None where one is gone. `RerankError` names the failure: an exception, a timeout,
    an index that is out of range or repeated, a score that is not finite, fewer scores than asked for.
    """
    known = [index for index, chunk in enumerate(passages) if chunk is not None]
    source = pool.column("source").to_numpy()
    candidates = [
        RerankCandidate(
            text=chunk.contextualized(),
            source=sources[source[rows[index]]],
            chunk_id=str(pool["chunk_id"][int(rows[index])]),
        )
        for index, chunk in enumerate(passages)
        if chunk is not None
    ]
    pairs = await _asked(reranker, query, candidates, limit, timeout_s) if candidates else []
    _check(pairs, len(candidates), min(limit, len(candidates)))
    scores = np.full(pool.num_rows, np.nan)
    for index, score in pairs:
        scores[rows[known[index]]] = score
    return scores


async def _asked(
    reranker: Reranker, query: str, candidates: list[RerankCandidate], limit: int, timeout_s: float
) -> Sequence[tuple[int, float]]:
    try:
        with anyio.fail_after(timeout_s):
            pairs = await reranker.rerank(query, candidates, limit)
            return [(int(index), float(score)) for index, score in pairs]
    except TimeoutError:
        reason = f"no answer within {timeout_s:g} s"
    except Exception as error:  # the plugin boundary: the search can go on without it
        logger.debug("the reranker failed", exc_info=True)
        reason = type(error).__name__
    raise RerankError(reason)


def _check(pairs: Sequence[tuple[int, float]], count: int, wanted: int) -> None:
    indices = [index for index, _ in pairs]
    if any(not 0 <= index < count for index in indices):
        raise RerankError("it returned an index that was not offered")
    if len(set(indices)) != len(indices):
        raise RerankError("it returned an index twice")
    if not all(np.isfinite(score) for _, score in pairs):
        raise RerankError("it returned a score that is not a finite number")
    if len(indices) < wanted:
        raise RerankError(f"it returned {len(indices)} scores, and {wanted} were wanted")
