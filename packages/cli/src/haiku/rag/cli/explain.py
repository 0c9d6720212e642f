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
    yield "stages: " + ", ".join(f"{name} {spent:.1f} ms" for name, spent in report.stages.items())
    yield "databases:"
    yield from map(_database, report.databases)
    if report.results:
        yield "results:"
        yield from map(_result, report.results)


def _database(entry: DatabaseReport) -> str:
    best = f", best by its own score {_score(entry.best_score)}" if entry.best_score is not None else ""
    return f"  {entry.name}: {entry.status}, {entry.candidates} candidates{best}, {entry.milliseconds:.1f} ms"


def _result(entry: ResultReport) -> str:
    return (
        f"  {entry.rank}. score {_score(entry.score)}; similarity {_score(entry.similarity)}, "
        f"keyword {_score(entry.keyword_score)}, fused {_score(entry.fused_score)}; "
        f"rank {entry.rank_in_database} in '{entry.source}', {entry.fused_rank} after fusion; chunk {entry.chunk_id}"
    )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
