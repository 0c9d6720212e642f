"""The tables of a database, brought up to date at most once an interval, documents first."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import anyio

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import ConfigMismatchError, HaikuRagError, StorageError
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS, STEP_ERRORS, reported
from haiku.rag.storage.lancedb.generations import layouts_now, settled_layout
from haiku.rag.storage.lancedb.layout import Layout, current_layout
from haiku.rag.storage.lancedb.schema import CHUNKS, DOCUMENTS, ITEMS, PICTURES, STATE_COLUMNS
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.tables import Tables, open_generation, open_tables

T = TypeVar("T")
AHEAD = (0.3, 0.7)
"""Where in the interval the next look is taken beside a read; at random, so that many databases do not look at once."""
Read = Callable[[Tables, DocumentState], Awaitable[T]]


class LiveTables:
    """What reads go through.

    A reader takes the documents' state first and the other tables at least as new, so it meets every chunk of a
    revision that the state names; the writers keep old revisions longer than the interval. A read's handle on the
    chunks stands still: it stays at one version however long the read takes, and another handle takes its place when
    the table has moved. While reads come, the next look is taken beside them before the interval is over.

    `identity` is the embedding that the database had when it was opened: callers' vectors are of it. When another
    generation becomes the current one its tables are opened instead; a staged one stays where it is.
    """

    def __init__(self, connection: Any, ref: DatabaseRef, tables: Tables, *, interval: float) -> None:
        self._connection = connection
        self._interval = interval
        self._lock = asyncio.Lock()
        self._state: DocumentState | None = None
        self._standing = tables
        self._behind: set[str] = set()
        self._looking: asyncio.Task[None] | None = None
        self._ahead = 0.0
        self._due = 0.0
        self._written = 0
        self._seen = 0
        self._settings_version: int | None = None
        self._settled_version: int | None = None
        self.ref = ref
        self.tables = tables
        self._is_staged = tables.layout.state == "staged"
        self.identity = tables.identity

    def expire(self) -> None:
        """Make the next read look again: after a write of one's own."""
        self._written += 1

    async def state(self) -> DocumentState:
        """The documents' state, not older than the interval and not older than one's own last write."""
        if self._state is not None and self._is_fresh():
            if time.monotonic() > self._ahead:
                self._look_beside()
            return self._state
        async with self._lock:
            if self._state is None or not self._is_fresh():
                self._state = await self._refreshed()
            return self._state

    async def read(self, action: str, operation: Read[T], *, parts: Sequence[str] = ()) -> T:
        """Run a read; when the engine fails, as after another process's clean-up, once more on fresh handles.

        The read gets tables whose chunks stand still; `parts` are the tables of items and pictures that it is about.
        """

        async def attempt() -> T:
            state = await self.state()
            tables = self._standing
            for part in self._behind.intersection(parts):
                await getattr(tables, part).checkout_latest()
                self._behind.discard(part)
            return await operation(tables, state)

        try:
            return await attempt()
        except HaikuRagError:
            raise
        except ENGINE_ERRORS:
            pass

        async def again() -> T:
            await self._reopen()
            return await attempt()

        return await reported(self.ref, action, again)

    async def follow(self) -> Tables:
        """The tables whose commits count, waiting while that changes.

        A commit made to tables of another generation than this gives afterwards has gone where nobody reads any more,
        and is to be made again. `ConfigMismatchError` where callers' vectors are of another embedding, `StorageError`
        for a staged generation that is staged no longer.
        """
        settings = self.tables.settings
        await settings.checkout_latest()
        version = await settings.version()
        if version != self._settled_version:
            await self._settle()
            self._settled_version = version
        self.check_embedding()
        return self.tables

    def check_embedding(self) -> None:
        """`ConfigMismatchError` where the database has another embedding by now than when it was opened."""
        if self.tables.identity != self.identity:
            raise ConfigMismatchError(
                f"database '{self.ref.name}' was rebuilt with another embedding ({self.tables.identity.describe()}) "
                "since it was opened. Set embeddings.model to it and open the database again.",
                source=self.ref.name,
            )

    async def documents_at(self, version: int) -> Any:
        """Another handle on the documents table, at a version of the past."""
        documents = await self._connection.open_table(self.tables.layout.tables[DOCUMENTS])
        await documents.checkout(version)
        return documents

    async def close(self) -> None:
        """Release the handles."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        if self._standing.chunks is not self.tables.chunks:
            self._standing.chunks.close()
        self.tables.close()
        self._connection.close()

    def _is_fresh(self) -> bool:
        if self.ref.tag is not None:
            return True
        return self._seen == self._written and time.monotonic() < self._due

    def _look_beside(self) -> None:
        self._ahead = self._due
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        try:
            async with self._lock:
                self._state = await self._refreshed()
        except STEP_ERRORS:
            pass  # the read that has to look itself meets it, and reports it

    async def _refreshed(self) -> DocumentState:
        written, started = self._written, time.monotonic()
        if self.ref.tag is None and await self._moved():
            self.tables = await self._opened()
        documents = self.tables.documents
        if self.ref.tag is None:
            await documents.checkout_latest()
        version, uid = await documents.version(), await self.tables.uid()
        state = self._state
        if state is not None and state.uid != uid:
            self.tables = await self._opened()
            documents = self.tables.documents
        if state is None or (state.version, state.uid) != (version, uid):
            table = await documents.query().select(STATE_COLUMNS).to_arrow()
            make = partial(DocumentState, table, version=version, uid=uid, earlier=state)
            state = await anyio.to_thread.run_sync(make)
        self._standing = await self._stood_still()
        self._behind = set() if self.ref.tag is not None else {ITEMS, PICTURES}
        self._seen = written
        self._due = started + self._interval
        self._ahead = started + self._interval * random.uniform(*AHEAD)  # noqa: S311 - it spreads looks, it guards nothing
        return state

    async def _stood_still(self) -> Tables:
        """The tables with a handle on the chunks, at their newest version or the tag, that nobody moves."""
        tables = self.tables
        if self.ref.tag is not None:
            return replace(tables, chunks_version=await tables.chunks.version())
        await tables.chunks.checkout_latest()
        version = await tables.chunks.version()
        old = self._standing
        if old.documents is tables.documents and old.chunks is not tables.chunks and old.chunks_version == version:
            return replace(tables, chunks=old.chunks, chunks_version=version)
        chunks = await self._connection.open_table(tables.layout.tables[CHUNKS])
        return replace(tables, chunks=chunks, chunks_version=await chunks.version())

    async def _moved(self) -> bool:
        """Whether another generation has become the current one; takes over what else the settings now say."""
        settings = self.tables.settings
        await settings.checkout_latest()
        version = await settings.version()
        if version == self._settings_version:
            return False
        layout = self._own(await layouts_now(settings, self.ref))
        if layout is None or layout.generation != self.tables.layout.generation:
            return True
        self.tables = replace(self.tables, layout=layout)
        self._settings_version = version
        return False

    def _own(self, layouts: list[Layout]) -> Layout | None:
        """The generation that is to be read: the current one, or always the same where that is staged."""
        if not self._is_staged:
            return current_layout(layouts)
        own = self.tables.layout.generation
        return next((layout for layout in layouts if layout.generation == own), None)

    async def _settle(self) -> None:
        settings, own = self.tables.settings, self.tables.layout
        if self._is_staged:
            layout = self._own(await layouts_now(settings, self.ref))
            if layout is None or layout.state != "staged":
                raise StorageError(
                    f"the rebuild of database '{self.ref.name}' was finished or given up by another process. Start it "
                    "again where it is still wanted.",
                    source=self.ref.name,
                )
        elif (await settled_layout(settings, self.ref)).generation != own.generation:
            await self._reopen()

    async def _opened(self) -> Tables:
        if self._is_staged:
            return await open_generation(self._connection, self.tables.settings, self.tables.layout)
        return await open_tables(self._connection, self.ref)

    async def _reopen(self) -> None:
        async with self._lock:
            self.tables = await self._opened()
            self._state = None
