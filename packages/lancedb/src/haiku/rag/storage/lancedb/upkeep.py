"""Upkeep after writes and on closing: bounded steps, each with its own outcome."""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import anyio

from haiku.rag.errors import HaikuRagError
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS
from haiku.rag.storage.lancedb.garbage import IN_FLIGHT_SECONDS, PATIENCE_SECONDS, Garbage
from haiku.rag.storage.lancedb.live import LiveTables

logger = logging.getLogger(__name__)

TEXT_INDEX = "text_idx"
COMMITS_BETWEEN = 20
SECONDS_BETWEEN = 30.0
REST = 4
"""Upkeep rests for this many times as long as it last took, so that it never takes more than a fifth of the time."""
LONGEST_RUN_SECONDS = 30.0
SMALL_FRAGMENTS = 20
BEFORE_TAGS = timedelta(hours=1)
STEP_ERRORS: tuple[type[Exception], ...] = (HaikuRagError, *ENGINE_ERRORS)


class Upkeep:
    """Keeps one database fast. A failing step is logged and tried another time; it never fails a write."""

    def __init__(self, live: LiveTables, *, interval: float) -> None:
        self._live = live
        self._garbage = Garbage(live, interval=interval)
        self._retention = timedelta(seconds=max(IN_FLIGHT_SECONDS, 8 * interval))
        self._indexed = False
        self._commits = 0
        self._rest_until = time.monotonic() + SECONDS_BETWEEN
        self._earliest = 0.0

    def note_superseded(self, revisions: Iterable[str]) -> None:
        """Remember what a commit has replaced."""
        self._garbage.note_superseded(revisions)

    async def after_write(self) -> None:
        """Index the first rows at once; the rest when enough commits or enough time have gone by."""
        self._commits += 1
        if not self._indexed:
            await self._step("index", self._ensure_index)
        now = time.monotonic()
        if now < self._earliest or (self._commits < COMMITS_BETWEEN and now < self._rest_until):
            return
        with anyio.move_on_after(LONGEST_RUN_SECONDS):
            await self._run()
        took = time.monotonic() - now
        self._earliest = time.monotonic() + REST * took
        self._rest_until = time.monotonic() + SECONDS_BETWEEN

    async def finish(self) -> None:
        """Catch up before closing, where anything was written."""
        if self._commits:
            await self._run()

    async def _run(self) -> None:
        self._commits = 0
        await self._step("old revisions", self._garbage.remove)
        await self._step("index", self._ensure_index)
        await self._step("chunks", self._catch_up)
        tables = self._live.tables
        await self._step("documents", lambda: self._compact(tables.documents))
        await self._step("items", lambda: self._compact(tables.items))

    async def _step(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except STEP_ERRORS as error:
            logger.debug("upkeep of database '%s': %s: %s", self._live.ref.name, name, type(error).__name__)

    async def _ensure_index(self) -> None:
        chunks = self._live.tables.chunks
        if self._indexed or not await chunks.count_rows():
            return
        if TEXT_INDEX not in {index.name for index in await chunks.list_indices()}:
            await committed(chunks, lambda: _create_text_index(chunks), patience=PATIENCE_SECONDS)
        self._indexed = True

    async def _catch_up(self) -> None:
        chunks = self._live.tables.chunks
        await chunks.checkout_latest()
        coverage = await chunks.index_stats(TEXT_INDEX)
        if coverage is not None and coverage.num_unindexed_rows:
            await self._optimize(chunks)

    async def _compact(self, table: Any) -> None:
        await table.checkout_latest()
        fragments = (await table.stats())["fragment_stats"]["num_small_fragments"]
        if fragments >= SMALL_FRAGMENTS:
            await self._optimize(table)

    async def _optimize(self, table: Any) -> None:
        retention = await self._retention_of(table)

        async def optimize() -> None:
            await table.optimize(cleanup_older_than=retention)

        await committed(table, optimize, patience=PATIENCE_SECONDS)

    async def _retention_of(self, table: Any) -> timedelta:
        # Cleaning up over a tagged version fails, and with it all that optimizing does: keep what is as old as any tag.
        tagged = {tag["version"] for tag in (await table.tags.list()).values()}
        if not tagged:
            return self._retention
        versions = await table.list_versions()
        made: list[datetime] = [entry["timestamp"] for entry in versions if entry["version"] in tagged]
        return max(self._retention, datetime.now() - min(made) + BEFORE_TAGS)


async def _create_text_index(chunks: Any) -> None:
    from lancedb.index import FTS

    # icu/split finds words inside runs of Chinese and Japanese as well as the parts of snake_case and of addresses.
    config = FTS(base_tokenizer="icu/split", stem=False, remove_stop_words=False, with_position=False)
    await chunks.create_index("text", config=config, replace=False, name=TEXT_INDEX)
