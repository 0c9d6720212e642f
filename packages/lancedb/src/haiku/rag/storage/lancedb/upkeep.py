"""Upkeep by itself: in the background after writes, once more on closing, and when asked for."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio

from haiku.rag.config.models import StorageConfig
from haiku.rag.models.upkeep import UpkeepReport
from haiku.rag.storage.lancedb.failures import STEP_ERRORS
from haiku.rag.storage.lancedb.garbage import Garbage
from haiku.rag.storage.lancedb.generations import change_layout
from haiku.rag.storage.lancedb.indexes import build_text, build_vectors, lookups, unfit_text_indexes
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text_index import TEXT_INDEXES
from haiku.rag.storage.lancedb.vacuum import Round, Vacuum

logger = logging.getLogger(__name__)

COMMITS_BETWEEN = 20
SECONDS_BETWEEN = 30.0
REST = 4
"""Upkeep rests for this many times as long as it last took, so that it never takes more than a fifth of the time."""
SMALL_FRAGMENTS = 20
FREELY_BYTES = 4 << 20
"""A table of up to so many bytes is compacted in the background however little is new."""
LAG_ROWS = 1_000
LAG_SHARE = 0.1
LAG_ROWS_ON_CLOSING = 500
"""An index is caught up in the background once it lacks so many rows and such a share of them, on closing once it
lacks so many."""
SECONDS_BETWEEN_VERSIONS = 600.0
"""Looking for old versions lists every file of a table: in the background it is done this seldom."""
FIRST_INDEX_SECONDS = 1.0
"""The write that brings the first text waits for its index at most so long: until there is one, words are cut up in
another way than queries expect."""


class Upkeep:
    """Keeps one database fast and small, in one task at a time.

    Nothing of it ever fails a write, and of all it does the first text's index alone delays one.
    """

    def __init__(
        self, connection: Any, live: LiveTables, storage: StorageConfig, *, interval: float, language: str | None
    ) -> None:
        self._live = live
        self._language = language
        self._storage = storage
        self._garbage = Garbage(live, interval=interval)
        self._vacuum = Vacuum(connection, live, self._garbage, interval=interval)
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._text_is_seen_to = False
        self._commits = 0
        self._due = time.monotonic() + SECONDS_BETWEEN
        self._earliest = 0.0
        self._versions_due = 0.0

    def note_superseded(self, revisions: Iterable[str]) -> None:
        """Remember what a commit has replaced."""
        self._garbage.note_superseded(revisions)

    async def after_write(self) -> None:
        """See to the first text's index, and start the rest when enough commits or enough time have gone by."""
        self._commits += 1
        if not self._text_is_seen_to and self._is_idle():
            await self._begin_with_text()
        now = time.monotonic()
        if self._is_idle() and self._storage.auto_vacuum and self._earliest <= now and self._is_due(now):
            self._task = asyncio.create_task(self._run())

    async def finish(self) -> None:
        """End what is under way, and catch up once more where anything was written since."""
        try:
            if self._task is not None:
                await asyncio.wait({self._task})
            if self._commits and self._storage.auto_vacuum:
                await self._run(lag=LAG_ROWS_ON_CLOSING, lag_share=0.0)
        finally:
            if self._task is not None:
                self._task.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({self._task})

    async def vacuum(self, *, retention_seconds: float | None, dry_run: bool) -> UpkeepReport:
        """Everything at once, however little there is to do."""
        seconds = self._storage.vacuum_retention_seconds if retention_seconds is None else retention_seconds
        async with self._lock:
            await self._live.state()
            report = await self._vacuum.run(
                Round(
                    retention=self._vacuum.retention(seconds),
                    freely=self._storage.compaction_target_bytes,
                    dry_run=dry_run,
                )
            )
            if not dry_run:
                await self._record(report)
        self._live.expire()
        return report

    async def rebuild_indexes(self) -> None:
        """Build every index again, the vector index as well where the database is small.

        The language that is configured by now is taken over for the text, and written down.
        """
        async with self._lock:
            await self._live.state()
            tables = self._live.tables
            if await tables.chunks.count_rows():
                await build_text(tables, *TEXT_INDEXES, language=self._language)
                await build_vectors(tables)
            for lookup in lookups(tables):
                if await lookup.has_rows():
                    await lookup.build()
            await change_layout(tables.settings, _row_of(tables), {"language": self._language})
        self._live.expire()

    def _is_idle(self) -> bool:
        return self._task is None or self._task.done()

    def _is_due(self, now: float) -> bool:
        return self._commits >= COMMITS_BETWEEN or now >= self._due

    async def _begin_with_text(self) -> None:
        self._task = asyncio.create_task(self._first_index())
        await asyncio.wait({self._task}, timeout=FIRST_INDEX_SECONDS)

    async def _first_index(self) -> None:
        async with self._lock:
            await self._attempt(self._index_text)

    async def _index_text(self) -> None:
        tables = self._live.tables
        if not await tables.chunks.count_rows():
            return
        self._text_is_seen_to = True
        names = await unfit_text_indexes(tables)
        if names:
            await build_text(tables, *names, language=tables.layout.language)

    async def _run(self, *, lag: int = LAG_ROWS, lag_share: float = LAG_SHARE) -> None:
        began = time.monotonic()
        with_versions = began >= self._versions_due
        async with self._lock:
            self._commits = 0
            report = await self._vacuum.run(
                Round(
                    retention=self._vacuum.retention(self._storage.vacuum_retention_seconds),
                    freely=FREELY_BYTES,
                    fragments=SMALL_FRAGMENTS,
                    lag=lag,
                    lag_share=lag_share,
                    with_versions=with_versions,
                )
            )
            if any(step.status != "nothing to do" for step in report.steps):
                await self._record(report)
        now = time.monotonic()
        if with_versions:
            self._versions_due = now + SECONDS_BETWEEN_VERSIONS
        self._earliest = now + REST * (now - began)
        self._due = now + SECONDS_BETWEEN

    async def _record(self, report: UpkeepReport) -> None:
        """Write the outcome down for whoever asks; where that fails the next one will be."""
        tables = self._live.tables
        changes = {"upkeep": report.model_dump_json()}
        await self._attempt(lambda: change_layout(tables.settings, _row_of(tables), dict(changes)))

    async def _attempt(self, action: Callable[[], Awaitable[object]]) -> None:
        try:
            await action()
        except STEP_ERRORS as error:
            logger.debug("upkeep of database '%s': %s", self._live.ref.name, type(error).__name__)


def _row_of(tables: Tables) -> str:
    return f"generation = {tables.layout.generation}"
