"""The steps of upkeep, each with its own outcome: one that fails stops no other."""

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio

from haiku.rag.models.upkeep import UpkeepReport, UpkeepStep
from haiku.rag.storage.lancedb.compaction import Removed, clean_up, compact, removable, shape_of
from haiku.rag.storage.lancedb.failures import STEP_ERRORS, failure_reason, is_conflict
from haiku.rag.storage.lancedb.garbage import IN_FLIGHT_SECONDS, Garbage
from haiku.rag.storage.lancedb.indexes import (
    build_text,
    build_vectors,
    lacks_vector_index,
    lags,
    lookups,
    unfit_text_indexes,
)
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.location import folder_size
from haiku.rag.storage.lancedb.retired import Retired
from haiku.rag.storage.lancedb.schema import CHUNKS, DOCUMENTS, ITEMS, PICTURES, SETTINGS

PARTS = (DOCUMENTS, CHUNKS, ITEMS, PICTURES, SETTINGS)
Step = Callable[["Round"], Awaitable[str]]
"""Does its part, or with `dry_run` finds out what there is to do; gives what it was, empty where there was nothing."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One going through the steps.

    Old states are kept for `retention`, and looked for with `with_versions`. A table is compacted from so many
    `fragments` on, up to `freely` bytes however little is new. An index is caught up when it lacks so many rows
    (`lag`) and such a share of all (`lag_share`).
    """

    retention: timedelta
    freely: int
    dry_run: bool = False
    fragments: int = 2
    lag: int = 1
    lag_share: float = 0.0
    with_versions: bool = True


class Vacuum:
    """The steps over one database."""

    def __init__(self, connection: Any, live: LiveTables, garbage: Garbage, *, interval: float) -> None:
        self._live = live
        self._garbage = garbage
        self._retired = Retired(connection, live.ref)
        self._shortest = timedelta(seconds=max(IN_FLIGHT_SECONDS, 8 * interval))

    def retention(self, seconds: float) -> timedelta:
        """How long old states are kept: what is asked for, and never less than readers and writers need."""
        return max(timedelta(seconds=seconds), self._shortest)

    async def run(self, settings: Round) -> UpkeepReport:
        """Take every step."""
        steps = [await self._outcome(name, step, settings) for name, step in self._steps()]
        return UpkeepReport(finished_at=datetime.now(UTC), dry_run=settings.dry_run, steps=steps)

    def _steps(self) -> Iterable[tuple[str, Step]]:
        yield "old revisions", self._remove_revisions
        yield "old generations", self._drop_generations
        if self._live.ref.location.startswith("db://"):
            # A service looks after indexes, files and versions itself, and lets nobody else.
            return
        yield "text indexes", self._build_text_indexes
        yield "lookup indexes", self._build_lookups
        yield "vector index", self._build_vector_index
        yield "index catch-up", self._catch_up
        for part in PARTS:
            yield f"compaction of {part}", partial(self._compact, part)
        for part in PARTS:
            yield f"old versions of {part}", partial(self._clean_up, part)

    async def _outcome(self, name: str, step: Step, settings: Round) -> UpkeepStep:
        began = time.monotonic()
        try:
            detail = await step(settings)
        except STEP_ERRORS as error:
            return _failed(name, error, seconds=time.monotonic() - began)
        status = "nothing to do" if not detail else "planned" if settings.dry_run else "done"
        return UpkeepStep.model_validate(
            {"name": name, "status": status, "detail": detail, "seconds": round(time.monotonic() - began, 3)}
        )

    async def _remove_revisions(self, settings: Round) -> str:
        found = await self._garbage.find()
        detail = _listed([f"{await dead.rows()} rows of {dead.table.name}" for dead in found])
        if not settings.dry_run:
            await self._garbage.remove(found)
        return detail

    async def _drop_generations(self, settings: Round) -> str:
        found = await self._retired.droppable(self._live.tables, settings.retention)
        if not settings.dry_run:
            for layout in found:
                await self._retired.drop(self._live.tables, layout)
        return _listed(f"generation {layout.generation}" for layout in found)

    async def _build_text_indexes(self, settings: Round) -> str:
        tables = self._live.tables
        names = await unfit_text_indexes(tables)
        if not settings.dry_run:
            await build_text(tables, *names, language=tables.layout.language)
        return _listed(names)

    async def _build_lookups(self, settings: Round) -> str:
        missing = [lookup for lookup in lookups(self._live.tables) if await lookup.is_missing()]
        if not settings.dry_run:
            for lookup in missing:
                await lookup.build()
        return _listed(f"{lookup.column} of {lookup.table.name}" for lookup in missing)

    async def _build_vector_index(self, settings: Round) -> str:
        tables = self._live.tables
        if not await lacks_vector_index(tables):
            return ""
        if not settings.dry_run:
            await build_vectors(tables)
        return f"{await tables.chunks.count_rows()} vectors"

    async def _catch_up(self, settings: Round) -> str:
        found = [lag for lag in await lags(self._live.tables) if lag.is_worth_it(settings.lag, settings.lag_share)]
        if not settings.dry_run:
            for lag in found:
                await lag.build()
        return _listed(f"{lag.uncovered} rows for {lag.index} of {lag.table.name}" for lag in found)

    async def _compact(self, part: str, settings: Round) -> str:
        table = getattr(self._live.tables, part)
        shape = await shape_of(table)
        if shape.is_compact() or not shape.is_worth_it(settings.freely):
            return ""
        if shape.fragments < settings.fragments and not shape.is_worn:
            return ""
        if not settings.dry_run:
            await compact(table)
        return f"{shape.fragments} fragments, {shape.bytes:,} bytes"

    async def _clean_up(self, part: str, settings: Round) -> str:
        table = getattr(self._live.tables, part)
        if not settings.with_versions or not await removable(table, settings.retention):
            return ""
        shape = await shape_of(table)
        if not shape.is_compact() and not shape.is_worth_it(settings.freely):
            # The engine compacts before it cleans up, always: both wait until that is in proportion.
            return ""
        if settings.dry_run:
            versions = await removable(table, settings.retention)
            return _removal(Removed(versions=versions, bytes=await self._most_removed(table, shape.bytes)))
        return _removal(await clean_up(table, settings.retention))

    async def _most_removed(self, table: Any, live_bytes: int) -> int | None:
        path = self._live.ref.path
        if path is None:
            return None
        return max(0, await anyio.to_thread.run_sync(folder_size, path / f"{table.name}.lance") - live_bytes)


def _failed(name: str, error: Exception, *, seconds: float) -> UpkeepStep:
    if is_conflict(error):
        detail = "left for another time: other processes kept writing"
        return UpkeepStep(name=name, status="nothing to do", detail=detail, seconds=round(seconds, 3))
    return UpkeepStep(name=name, status="failed", detail=failure_reason(error), seconds=round(seconds, 3))


def _listed(entries: Iterable[str]) -> str:
    return ", ".join(entries)


def _removal(removed: Removed) -> str:
    size = "" if removed.bytes is None else f", {removed.bytes:,} bytes"
    return f"{removed.versions} versions{size}" if removed.versions else ""
