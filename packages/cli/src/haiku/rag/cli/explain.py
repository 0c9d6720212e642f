"""A search's report for a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haiku.rag.models import DatabaseReport, ResultReport, SearchReport


def explain_lines(report: SearchReport) -> Iterator[str]:
    """What each database contributed, how long each stage took, and how each result's score came about."""
    yield f"fusion: {report.fusion or 'none'}; rerank: {report.rerank}; candidates: {report.candidates}"
    if report.below_min_score:
        yield f"below the least score: {report.below_min_score}"
    if report.duplicates:
        yield f"duplicates named beside a result: {report.duplicates}"
    yield "stages: " + ", ".join(f"{name} {spent:.1f} ms" for name, spent in report.stages.items())
    yield "databases:"
    yield from map(_database, report.databases)
    if report.results:
        yield "results:"
        for entry in report.results:
            yield from _result(entry)


def _database(entry: DatabaseReport) -> str:
    best = f", best by its own score {_score(entry.best_score)}" if entry.best_score is not None else ""
    return f"  {entry.name}: {entry.status}, {entry.candidates} candidates{best}, {entry.milliseconds:.1f} ms"


def _result(entry: ResultReport) -> Iterator[str]:
    """Where it ended, then a line for what its database said and one for what became of that."""
    yield f"  {entry.rank}. score {_score(entry.score)}, chunk {entry.chunk_id} of '{entry.source}'"
    share = "" if entry.keyword_share is None else f", share {_score(entry.keyword_share)}"
    yield (
        f"     vector {_score(entry.similarity)}{_rank(entry.vector_rank)}; "
        f"keyword {_score(entry.keyword_score)}{share}{_rank(entry.keyword_rank)}; "
        f"in the database rank {entry.rank_in_database}"
    )
    yield (
        f"     fused {_score(entry.fused_score)}{_rank(entry.fused_rank)}; "
        f"reranked {_score(entry.rerank_score)}{_rank(entry.rerank_rank)}; "
        f"weighted {_score(entry.weighted_score)}; boost {entry.boost:g}"
    )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _rank(value: int | None) -> str:
    return "" if value is None else f" (rank {value})"
