"""The reranking stage: one score for every pooled candidate, or the fused order and the reason."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index as as_index
from typing import TYPE_CHECKING

import anyio
import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.reranker import RerankCandidate, Reranker
from haiku.rag.errors import RerankError
from haiku.rag.federation.rank import Scale, Scores
from haiku.rag.federation.rerank_reason import reason_of

if TYPE_CHECKING:
    from haiku.rag.config.models import ModelConfig
    from haiku.rag.federation.candidates import Candidates
    from haiku.rag.federation.fusing import Fused
    from haiku.rag.federation.session import Session
    from haiku.rag.models import Chunk

logger = logging.getLogger(__name__)
Pairs = Sequence[tuple[int, float]]


@dataclass(frozen=True, kw_only=True)
class Reranked:
    """The reranker's scores of the pool, NaN for what it did not score, with their scale and the rows in order."""

    scores: Scores
    scale: Scale
    order: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Reranking:
    """A reranker, the model that was configured for it, and how long it may take."""

    reranker: Reranker
    model: ModelConfig
    timeout_s: float

    @classmethod
    def of(cls, session: Session) -> Reranking:
        """The session's, which has one; see `reranks`."""
        settings, reranker = session.config.reranking, session.reranker
        assert reranker is not None
        assert settings.model is not None
        return cls(reranker=reranker, model=settings.model, timeout_s=settings.timeout_s)

    async def ranked(
        self,
        query: str,
        candidates: Candidates,
        fused: Fused,
        passages: Sequence[Chunk | None],
        *,
        limit: int,
    ) -> Reranked:
        """Score the rows that come first after fusion, whose chunks are `passages`, None where one is gone.

        `RerankError` names the failure in a few words: an exception, a timeout, an index that was not offered or comes
        twice, a score that is not finite, fewer scores than `limit`, one score for everything.
        """
        offered_rows = zip(fused.order, passages, strict=False)  # the pool may be capped
        present = [(row, chunk) for row, chunk in offered_rows if chunk is not None]
        offered = [
            RerankCandidate(
                text=chunk.contextualized(),
                source=candidates.names[int(candidates.source[row])],
                chunk_id=str(candidates.table["chunk_id"][int(row)]),
                score=float(fused.scores[row]),
            )
            for row, chunk in present
        ]
        pairs = await self._asked(query, offered, limit) if offered else []
        _check(pairs, offered, min(limit, len(offered)))
        scores = np.full(candidates.table.num_rows, np.nan)
        for index, score in pairs:
            scores[present[index][0]] = score
        return Reranked(scores=scores, scale=self.reranker.scale, order=candidates.order(scores))

    async def _asked(self, query: str, offered: list[RerankCandidate], limit: int) -> Pairs:
        try:
            with anyio.move_on_after(self.timeout_s):
                pairs = await self.reranker.rerank(query, offered, limit)
                return [(as_index(index), float(score)) for index, score in pairs]
            reason = f"no answer within {self.timeout_s:g} s"
        except Exception as error:  # the plugin boundary: the search can go on without it
            logger.debug("the reranker failed", exc_info=True)
            reason = reason_of(error, self.model)
        raise RerankError(reason)


def _check(pairs: Pairs, offered: Sequence[RerankCandidate], wanted: int) -> None:
    indices = [index for index, _ in pairs]
    if any(not 0 <= index < len(offered) for index in indices):
        raise RerankError("it returned an index that was not offered")
    if len(set(indices)) != len(indices):
        raise RerankError("it returned an index twice")
    if not all(np.isfinite(score) for _, score in pairs):
        raise RerankError("it returned a score that is not a finite number")
    if len(indices) < wanted:
        raise RerankError(f"it returned {len(indices)} scores, and {wanted} were wanted")
    if _says_nothing(pairs, offered):
        raise RerankError("it gave different passages one and the same score")


def _says_nothing(pairs: Pairs, offered: Sequence[RerankCandidate]) -> bool:
    """One score for all that came back, and what came back is what was offered first: nothing was chosen."""
    if len({score for _, score in pairs}) != 1 or {index for index, _ in pairs} != set(range(len(pairs))):
        return False
    return len({offered[index].text for index, _ in pairs}) > 1
