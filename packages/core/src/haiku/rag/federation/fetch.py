"""Asking the databases for candidates, all at once, each under its deadline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import anyio
import pyarrow as pa

from haiku.rag.contracts.storage import CandidateQuery, Database, DatabaseRef, FederatedStorage
from haiku.rag.errors import PluginError
from haiku.rag.federation.boundary import Outcome, attempt, attempt_all, failed
from haiku.rag.federation.plan import SearchPlan
from haiku.rag.federation.session import Session

Opened = dict[str, Outcome[Database]]


async def open_databases(session: Session, refs: Sequence[DatabaseRef], *, timeout_s: float) -> Opened:
    """Open the cold ones together; an outcome a name, whatever the order of `refs`."""
    warm = {ref.name: Outcome(ref=ref, value=database) for ref in refs if (database := session.opened(ref))}
    cold = [ref for ref in refs if ref.name not in warm]
    outcomes = await attempt_all(session.kernel, cold, session.database, timeout_s=timeout_s) if cold else []
    return warm | {outcome.ref.name: outcome for outcome in outcomes}


async def fetch_candidates(
    session: Session, plan: SearchPlan, queries: Mapping[str, CandidateQuery], opened: Opened, *, timeout_s: float
) -> dict[str, Outcome[pa.Table]]:
    """One outcome a database: its candidates, or why there are none. What opening took counts against the deadline.

    `queries` holds each database's. A call of the plan whose databases have different ones becomes one call a query.
    """
    outcomes: dict[str, Outcome[pa.Table]] = {}

    async def ask(call: tuple[DatabaseRef, ...]) -> None:
        query = queries[call[0].name]
        spent = max(opened[ref.name].milliseconds for ref in call) / 1000
        for outcome in await _ask(session, call, query, opened, timeout_s=timeout_s - spent):
            outcomes[outcome.ref.name] = outcome

    async with anyio.create_task_group() as group:
        for call in plan.calls:
            for part in _by_query(call, queries):
                group.start_soon(ask, part)
    return outcomes


def _by_query(
    call: tuple[DatabaseRef, ...], queries: Mapping[str, CandidateQuery]
) -> Iterator[tuple[DatabaseRef, ...]]:
    parts: dict[int, list[DatabaseRef]] = {}
    for ref in call:
        parts.setdefault(id(queries[ref.name]), []).append(ref)
    yield from map(tuple, parts.values())


async def _ask(
    session: Session, call: tuple[DatabaseRef, ...], query: CandidateQuery, opened: Opened, *, timeout_s: float
) -> list[Outcome[pa.Table]]:
    first = call[0]
    databases = [_database(opened[ref.name]) for ref in call]
    if len(call) == 1:
        return [await attempt(session.kernel, first, lambda: databases[0].search(query), timeout_s=timeout_s)]
    storage: FederatedStorage = session.storage(first)  # type: ignore[assignment]  # its record says that it searches many
    started = perf_counter()
    together = await attempt(session.kernel, first, lambda: storage.search_many(databases, query), timeout_s=timeout_s)
    spent = (perf_counter() - started) * 1000
    if together.value is None:
        return [_spread(session, ref, together, spent) for ref in call]
    if len(together.value) != len(call):
        wrong = PluginError(f"storage '{first.storage}' answered {len(together.value)} of {len(call)} databases.")
        return [failed(session.kernel, ref, wrong, milliseconds=spent) for ref in call]
    return [_one(session, ref, answer, spent) for ref, answer in zip(call, together.value, strict=True)]


def _database(outcome: Outcome[Database]) -> Database:
    assert outcome.value is not None  # the plan holds the databases that opened
    return outcome.value


def _one(session: Session, ref: DatabaseRef, answer: pa.Table | Exception, spent: float) -> Outcome[pa.Table]:
    if isinstance(answer, Exception):
        return failed(session.kernel, ref, answer, milliseconds=spent)
    return Outcome(ref=ref, value=answer, milliseconds=spent)


def _spread(session: Session, ref: DatabaseRef, together: Outcome[Any], spent: float) -> Outcome[pa.Table]:
    """A call for several that failed as a whole is each one's failure, under its own name."""
    cause: Exception = TimeoutError() if together.status == "timeout" else ConnectionError("the common call failed")
    if together.error is not None and together.ref.name == ref.name:
        return Outcome(ref=ref, error=together.error, status=together.status, milliseconds=spent)
    return failed(session.kernel, ref, cause, milliseconds=spent)
