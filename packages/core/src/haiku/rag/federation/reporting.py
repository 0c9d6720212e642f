"""Filling in a search's report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pyarrow as pa
from opentelemetry import trace

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.federation.boundary import Outcome
from haiku.rag.federation.candidates import Candidates
from haiku.rag.federation.fusing import Fused
from haiku.rag.federation.rank import Ranking
from haiku.rag.federation.rerank import Reranked
from haiku.rag.models import DatabaseReport, ResultReport, SearchReport

tracer = trace.get_tracer("haiku.rag")
LEG_COLUMNS = ("similarity", "vector_rank", "keyword_score", "keyword_share", "keyword_rank")


@contextmanager
def stage(report: SearchReport, name: str) -> Iterator[None]:
    """A span, and the stage's duration in the report."""
    started = perf_counter()
    with tracer.start_as_current_span(f"haiku.rag.search.{name}"):
        try:
            yield
        finally:
            report.stages[name] = round((perf_counter() - started) * 1000, 3)


def report_databases(
    report: SearchReport,
    refs: Iterable[DatabaseRef],
    opened: Mapping[str, Outcome[Any]],
    tables: Mapping[str, Outcome[pa.Table]],
) -> None:
    """What each database contributed, or why it did not."""
    for ref in refs:
        answer = tables.get(ref.name)
        last: Outcome[Any] = answer or opened[ref.name]
        rows = answer.value.num_rows if answer is not None and answer.value is not None else 0
        spent = opened[ref.name].milliseconds + (answer.milliseconds if answer is not None else 0.0)
        report.databases.append(
            DatabaseReport(
                name=ref.name,
                status=last.status if last.error is not None or rows else "empty",
                candidates=rows,
                best_score=last.value["score"][0].as_py() if rows and last.value is not None else None,
                milliseconds=round(spent, 3),
                reason=None if last.error is None else str(last.error),
            )
        )


def note_failures(report: SearchReport, outcomes: Iterable[Outcome[Any]]) -> None:
    """A database that answered first and failed later counts as one that failed."""
    by_name = {entry.name: entry for entry in report.databases}
    for outcome in outcomes:
        if outcome.error is not None:
            entry = by_name[outcome.ref.name]
            entry.status, entry.reason = outcome.status, str(outcome.error)


def report_results(
    report: SearchReport,
    candidates: Candidates,
    ranking: Ranking,
    *,
    fused: Fused,
    reranked: Reranked | None,
    boosts: Mapping[str, float],
) -> None:
    """Each result's scores and ranks before and after the stages, and what was left out on the way."""
    report.below_min_score = ranking.below
    report.duplicates = sum(len(ranking.also.get(int(row), ())) for row in ranking.rows)
    after_fusion, after_reranking = _places(fused.order), _places(reranked.order if reranked else ())
    picked = candidates.table.take(pa.array(ranking.rows)).to_pylist()
    for number, (row, values) in enumerate(zip(ranking.rows.tolist(), picked, strict=True), 1):
        name = candidates.names[values["source"]]
        report.results.append(
            ResultReport(
                chunk_id=values["chunk_id"],
                source=name,
                **{column: values[column] for column in LEG_COLUMNS},
                rank_in_database=values["rank"],
                fused_score=float(fused.scores[row]),
                fused_rank=after_fusion[row],
                rerank_score=float(reranked.scores[row]) if reranked else None,
                rerank_rank=after_reranking.get(row),
                weighted_score=float(ranking.weighted[number - 1]),
                boost=boosts.get(name, 0.0),
                score=float(ranking.scores[number - 1]),
                rank=number,
            )
        )


def _places(rows: Iterable[int]) -> dict[int, int]:
    return {int(row): place for place, row in enumerate(rows, 1)}
