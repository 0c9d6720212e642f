"""A query's way: open, embed, plan, fetch, fuse or rerank, cut, enrich. One direction, no step twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import RerankError
from haiku.rag.federation.boundary import Outcome, failure_to_raise
from haiku.rag.federation.candidates import Candidates
from haiku.rag.federation.enrich import add_images
from haiku.rag.federation.fetch import Opened, fetch_candidates, open_databases
from haiku.rag.federation.fusing import Fused, fuse
from haiku.rag.federation.passages import Passages, results_of
from haiku.rag.federation.plan import make_plan
from haiku.rag.federation.query import candidate_queries, reranks
from haiku.rag.federation.rank import Ranking, Scale, Scores, pool_candidates, rank
from haiku.rag.federation.reporting import note_failures, report_databases, report_results, stage, tracer
from haiku.rag.federation.request import SearchRequest
from haiku.rag.federation.rerank import Reranked, Reranking
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.federation.session import Session
from haiku.rag.federation.spaces import Space
from haiku.rag.federation.strategy import Strategy
from haiku.rag.federation.threshold import check_threshold, raise_unreachable
from haiku.rag.models import SearchReport, SearchResult, SearchResults


@dataclass(kw_only=True)
class Search:
    """One search on its way: what was asked, and the report so far."""

    session: Session
    request: SearchRequest
    report: SearchReport = field(default_factory=SearchReport)
    _offered: tuple[DatabaseRef, ...] = ()
    _failed: dict[str, Outcome[Any]] = field(default_factory=dict)

    async def run(self) -> SearchResults:
        """The results, best first, with their report."""
        with tracer.start_as_current_span("haiku.rag.search"):
            refs = self.session.scope.chosen(self.request.sources)
            results = await self._run(refs) if refs else []
            return SearchResults(results, report=self.report)

    async def _run(self, refs: tuple[DatabaseRef, ...]) -> list[SearchResult]:
        strategy = Strategy.of(self.session, self.request, databases=len(self.request.sources))
        check_threshold(self.session, self.request, strategy)
        timeout_s = self._timeout
        with stage(self.report, "open"):
            opened = await open_databases(self.session, refs, timeout_s=timeout_s)
        self._raise_for(opened.values())
        answering = tuple(ref for ref in refs if opened[ref.name].error is None)
        with stage(self.report, "embed"):
            queries = await candidate_queries(self.session, self.request, strategy, answering, opened)
        self.report.warnings += queries.warnings
        tables: dict[str, Outcome[pa.Table]] = dict(queries.failed)
        asked = tuple(ref for ref in answering if ref.name in queries.asked)
        if asked:
            plan = make_plan(self.session.kernel, DatabaseScope(asked), self.request)
            with stage(self.report, "fetch"):
                tables |= await fetch_candidates(self.session, plan, queries.asked, opened, timeout_s=timeout_s)
        report_databases(self.report, refs, opened, tables)
        self._raise_for([tables.get(ref.name) or opened[ref.name] for ref in refs])
        self._offered = tuple(ref for ref in asked if tables[ref.name].error is None)
        if not self._offered:
            return []
        candidates = Candidates(
            table=pool_candidates([tables[ref.name].value for ref in self._offered]),
            refs=self._offered,
            configured=tuple(self.session.place[ref.name] for ref in self._offered),
        )
        return await self._ranked(strategy, candidates, queries.spaces, opened)

    async def _ranked(
        self, strategy: Strategy, candidates: Candidates, spaces: Sequence[Space], opened: Opened
    ) -> list[SearchResult]:
        self.report.candidates = candidates.table.num_rows
        passages = Passages(session=self.session, candidates=candidates, opened=opened, note=self._note)
        with stage(self.report, "fuse"):
            fused = fuse(self.session, self.request, strategy, candidates, spaces)
        self.report.fusion = fused.name
        reranked = None
        if reranks(self.session, self.request):
            with stage(self.report, "rerank"):
                reranked = await self._reranked(candidates, passages, fused)
        else:
            raise_unreachable(self.session, self.request, fused.scale, of=f"'{fused.name}'")
        with stage(self.report, "enrich"):
            scores, scale = (fused.scores, fused.scale) if reranked is None else (reranked.scores, reranked.scale)
            ranking = await self._survivors(candidates, passages, scores, scale)
            results = results_of(candidates, passages, ranking)
            if self.request.include_images:
                self._note(await add_images(self.session, results, opened, timeout_s=self._timeout))
        report_results(self.report, candidates, ranking, fused=fused, reranked=reranked, boosts=self.request.boosts)
        if reranked is None:
            self._warn(fused, ranking)
        return results

    async def _survivors(self, candidates: Candidates, passages: Passages, scores: Scores, scale: Scale) -> Ranking:
        """The ranking, with every chunk at hand; what a failed database or a chunk that is gone left free is filled."""
        merges = self.request.dedupe and len(candidates.refs) > 1
        while True:
            ranking = rank(
                candidates.table,
                np.where(passages.lost(), np.nan, scores),
                self.request,
                names=candidates.names,
                configured=candidates.configured,
                scale=scale,
                max_per_source=self.session.config.search.max_per_source,
                passage=passages.passage if merges else None,
            )
            unread = passages.unread(ranking.eligible if merges else ranking.rows)
            if not unread.size:
                return ranking
            await passages.read(unread)

    async def _reranked(self, candidates: Candidates, passages: Passages, fused: Fused) -> Reranked | None:
        reranking = Reranking.of(self.session)
        rows = fused.order[: self.session.config.search.rerank_max_candidates]
        chunks = await passages.read(rows)
        try:
            reranked = await reranking.ranked(
                self.request.text or "", candidates, fused, chunks, limit=self._wanted(len(rows))
            )
        except RerankError as error:
            if self.session.config.reranking.required:
                raise RerankError(f"reranking failed ({error}), and reranking.required is set.") from None
            self.report.rerank = f"failed ({error})"
            return None
        self.report.rerank = "ok"
        return reranked

    def _warn(self, fused: Fused, ranking: Ranking) -> None:
        """Say what a user may not expect of the fused order, which stands."""
        if fused.warning is not None:
            self.report.warnings.append(fused.warning)
        if ranking.below and self.report.rerank != "off":
            self.report.warnings.append(
                f"without the reranker min_score {self.request.min_score:g} was held against the scores of "
                f"'{fused.name}': {ranking.below} candidates fell below it."
            )

    def _note(self, outcomes: Sequence[Outcome[Any]]) -> None:
        """Report the databases that failed after they had answered; raise where the request wants them."""
        note_failures(self.report, outcomes)
        self._failed |= {outcome.ref.name: outcome for outcome in outcomes if outcome.error is not None}
        self._raise_for([self._failed.get(ref.name) or Outcome(ref=ref) for ref in self._offered])

    def _wanted(self, count: int) -> int:
        """How many scores the reranker must give: all where something after it can still reorder or merge them."""
        request = self.request
        more = request.weights or request.boosts or request.dedupe or self.session.config.search.max_per_source
        return count if more else request.limit

    @property
    def _timeout(self) -> float:
        return self.session.config.search.timeout_s

    def _raise_for(self, outcomes: Iterable[Outcome[Any]]) -> None:
        error = failure_to_raise(outcomes, self.request.on_unavailable)
        if error is not None:
            raise error
