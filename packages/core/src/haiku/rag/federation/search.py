"""A query's way: open, embed, plan, fetch, fuse or rerank, cut, enrich. One direction, no step twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.fusion import Fusion, FusionContext
from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import RerankError
from haiku.rag.federation.boundary import Outcome, failure_to_raise
from haiku.rag.federation.enrich import add_images, as_result, read_chunks
from haiku.rag.federation.fetch import Opened, fetch_candidates, open_databases
from haiku.rag.federation.plan import make_plan
from haiku.rag.federation.query import candidate_query, reranks
from haiku.rag.federation.rank import Ranking, Scores, order, pool_candidates, rank
from haiku.rag.federation.reporting import note_failures, report_databases, report_results, stage, tracer
from haiku.rag.federation.request import SearchRequest
from haiku.rag.federation.rerank import rerank_scores
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.federation.session import Session
from haiku.rag.models import Chunk, SearchReport, SearchResult, SearchResults

Scale = tuple[float, float] | None


@dataclass(kw_only=True)
class Search:
    """One search on its way: what was asked, and the report so far."""

    session: Session
    request: SearchRequest
    report: SearchReport = field(default_factory=SearchReport)
    _failed: dict[str, Outcome[Any]] = field(default_factory=dict)

    async def run(self) -> SearchResults:
        """The results, best first, with their report."""
        with tracer.start_as_current_span("haiku.rag.search"):
            refs = self.session.scope.chosen(self.request.sources)
            results = await self._run(refs) if refs else []
            return SearchResults(results, report=self.report)

    async def _run(self, refs: tuple[DatabaseRef, ...]) -> list[SearchResult]:
        with stage(self.report, "open"):
            opened = await open_databases(self.session, refs, timeout_s=self._timeout)
        self._raise_for(opened.values())
        answering = tuple(ref for ref in refs if opened[ref.name].error is None)
        with stage(self.report, "embed"):
            query = await candidate_query(self.session, self.request, answering, opened)
        tables: dict[str, Outcome[pa.Table]] = {}
        if query is not None:
            plan = make_plan(self.session.kernel, DatabaseScope(answering), self.request)
            with stage(self.report, "fetch"):
                tables = await fetch_candidates(self.session, plan, query, opened, timeout_s=self._timeout)
        report_databases(self.report, refs, opened, tables)
        self._raise_for([tables.get(ref.name) or opened[ref.name] for ref in refs])
        offered = [ref for ref in answering if ref.name in tables and tables[ref.name].error is None]
        if not offered:
            return []
        return await self._ranked(offered, pool_candidates([tables[ref.name].value for ref in offered]), opened)

    async def _ranked(self, refs: list[DatabaseRef], pool: pa.Table, opened: Opened) -> list[SearchResult]:
        self.report.candidates = pool.num_rows
        configured = [self.session.place[ref.name] for ref in refs]
        with stage(self.report, "fuse"):
            context = self._context(refs)
            fusion = self._fusion()
            fused = np.asarray(fusion.fuse(pool, context), dtype=np.float64)
            fused_order = order(pool, fused, configured)
        scores, scale = fused, fusion.scale(context)
        if reranks(self.session, self.request):
            with stage(self.report, "rerank"):
                scores, scale = await self._reranked(pool, fused_order, refs, opened, otherwise=(fused, scale))
        with stage(self.report, "enrich"):
            ranking, chunks = await self._survivors(pool, scores, refs, opened, scale=scale)
            results = [
                as_result(chunk, source=refs[source].name, score=float(score))
                for chunk, source, score in zip(
                    chunks, pool["source"].to_numpy()[ranking.rows], ranking.scores, strict=True
                )
            ]
            if self.request.include_images:
                outcomes = await add_images(self.session, results, opened, timeout_s=self._timeout)
                self._note(outcomes, refs)
        self.report.below_min_score = ranking.below
        report_results(self.report, pool, ranking, fused=fused, fused_order=fused_order, names=context.sources)
        return results

    async def _survivors(
        self, pool: pa.Table, scores: Scores, refs: list[DatabaseRef], opened: Opened, *, scale: Scale
    ) -> tuple[Ranking, list[Chunk]]:
        """The ranking and its chunks; what a database that failed now, or a chunk that is gone, left free is filled."""
        source = pool["source"].to_numpy()
        chunks: dict[int, Chunk] = {}
        while True:
            failed = [index for index, ref in enumerate(refs) if ref.name in self._failed]
            scores = np.where(np.isin(source, failed), np.nan, scores)
            ranking = rank(
                pool,
                scores,
                self.request,
                names=[ref.name for ref in refs],
                configured=[self.session.place[ref.name] for ref in refs],
                scale=scale,
                max_per_source=self.session.config.search.max_per_source,
            )
            unread = np.array([row for row in ranking.rows if int(row) not in chunks], dtype=np.int64)
            if not unread.size:
                return ranking, [chunks[int(row)] for row in ranking.rows]
            read = await self._read(pool, unread, refs, opened)
            chunks |= {int(row): chunk for row, chunk in zip(unread, read, strict=True) if chunk is not None}
            scores[[row for row in unread if int(row) not in chunks]] = np.nan

    async def _reranked(
        self,
        pool: pa.Table,
        rows: NDArray[np.int64],
        refs: list[DatabaseRef],
        opened: Opened,
        *,
        otherwise: tuple[Scores, Scale],
    ) -> tuple[Scores, Scale]:
        settings = self.session.config.reranking
        reranker = self.session.reranker
        assert reranker is not None  # one is configured, or this stage would not run
        rows = rows[: self.session.config.search.rerank_max_candidates]
        chunks = await self._read(pool, rows, refs, opened)
        try:
            scores = await rerank_scores(
                reranker,
                self.request.text or "",
                pool,
                rows,
                chunks,
                sources=[ref.name for ref in refs],
                limit=self._wanted(len(rows)),
                timeout_s=settings.timeout_s,
            )
        except RerankError as error:
            if settings.required:
                raise RerankError(f"reranking failed ({error}), and reranking.required is set.") from None
            self.report.rerank = f"failed ({error})"
            return otherwise
        self.report.rerank = "ok"
        return scores, reranker.scale

    async def _read(
        self, pool: pa.Table, rows: NDArray[np.int64], refs: list[DatabaseRef], opened: Opened
    ) -> Sequence[Chunk | None]:
        chunks, outcomes = await read_chunks(self.session, pool, rows, refs, opened, timeout_s=self._timeout)
        self._note(outcomes, refs)
        return chunks

    def _note(self, outcomes: Sequence[Outcome[Any]], refs: list[DatabaseRef]) -> None:
        """Report the databases that failed after they had answered; raise where the request wants them."""
        note_failures(self.report, outcomes)
        self._failed |= {outcome.ref.name: outcome for outcome in outcomes if outcome.error is not None}
        self._raise_for([self._failed.get(ref.name) or Outcome(ref=ref) for ref in refs])

    def _wanted(self, count: int) -> int:
        """How many scores the reranker must give: all where weights, boosts or a cap can still reorder them."""
        reorders = self.request.weights or self.request.boosts or self.session.config.search.max_per_source
        return count if reorders else self.request.limit

    def _fusion(self) -> Fusion:
        """The fusion asked for, else reciprocal rank for hybrid search in one database, else cosine."""
        single_hybrid = len(self.request.sources) == 1 and self.request.search_type == "hybrid"
        default = "rrf" if single_hybrid else "cosine"
        name = self.request.fusion or self.session.config.search.fusion or default
        self.report.fusion = name
        fusion: Fusion = self.session.kernel.create("fusion", name, self.session.config)
        return fusion

    def _context(self, refs: list[DatabaseRef]) -> FusionContext:
        return FusionContext(
            sources=tuple(ref.name for ref in refs),
            search_type=self.request.search_type,
            limit=self.request.limit,
            query=self.request.text,
        )

    @property
    def _timeout(self) -> float:
        return self.session.config.search.timeout_s

    def _raise_for(self, outcomes: Iterable[Outcome[Any]]) -> None:
        error = failure_to_raise(outcomes, self.request.on_unavailable)
        if error is not None:
            raise error
