"""Filling in a search's report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from opentelemetry import trace

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.federation.boundary import Outcome
from haiku.rag.federation.rank import Ranking, Scores
from haiku.rag.models import DatabaseReport, ResultReport, SearchReport

tracer = trace.get_tracer("haiku.rag")


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
    pool: pa.Table,
    ranking: Ranking,
    *,
    fused: Scores,
    fused_order: NDArray[np.int64],
    names: Sequence[str],
) -> None:
    """Each result's scores and ranks before and after the stages."""
    place = {int(row): index for index, row in enumerate(fused_order, 1)}
    picked = pool.take(pa.array(ranking.rows)).to_pylist()
    for number, (row, values) in enumerate(zip(ranking.rows, picked, strict=True), 1):
        report.results.append(
            ResultReport(
                chunk_id=values["chunk_id"],
                source=names[values["source"]],
                similarity=values["similarity"],
                keyword_score=values["keyword_score"],
                rank_in_database=values["rank"],
                fused_score=float(fused[row]),
                fused_rank=place[int(row)],
                score=float(ranking.scores[number - 1]),
                rank=number,
            )
        )
