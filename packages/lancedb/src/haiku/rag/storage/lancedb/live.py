"""The tables of a database, brought up to date at most once an interval, documents first."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import anyio

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import HaikuRagError
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS, reported
from haiku.rag.storage.lancedb.layout import current_layout, read_layouts
from haiku.rag.storage.lancedb.schema import DOCUMENTS, STATE_COLUMNS
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.tables import Tables, open_tables

T = TypeVar("T")
Read = Callable[[Tables, DocumentState], Awaitable[T]]


class LiveTables:
    """What reads go through.

    A reader takes the documents' state first and the other tables at least as new, so it meets every chunk of a
    revision that the state names; the writers keep old revisions longer than the interval.
    """

    def __init__(self, connection: Any, ref: DatabaseRef, tables: Tables, *, interval: float) -> None:
        self._connection = connection
        self._interval = interval
        self._lock = asyncio.Lock()
        self._state: DocumentState | None = None
        self._due = 0.0
        self._written = 0
        self._seen = 0
        self.ref = ref
        self.tables = tables

    def expire(self) -> None:
        """Make the next read look again: after a write of one's own."""
        self._written += 1

    async def state(self) -> DocumentState:
        """The documents' state, not older than the interval and not older than one's own last write."""
        if self._state is not None and self._is_fresh():
            return self._state
        async with self._lock:
            if self._state is None or not self._is_fresh():
                self._state = await self._refreshed()
            return self._state

    async def read(self, action: str, operation: Read[T]) -> T:
        """Run a read; when the engine fails, as after another process's clean-up, once more on fresh handles."""

        async def attempt() -> T:
            state = await self.state()
            return await operation(self.tables, state)

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

    async def documents_at(self, version: int) -> Any:
        """Another handle on the documents table, at a version of the past."""
        documents = await self._connection.open_table(self.tables.layout.tables[DOCUMENTS])
        await documents.checkout(version)
        return documents

    def close(self) -> None:
        """Release the handles."""
        self.tables.close()
        self._connection.close()

    def _is_fresh(self) -> bool:
        if self.ref.tag is not None:
            return True
        return self._seen == self._written and time.monotonic() < self._due

    async def _refreshed(self) -> DocumentState:
        written = self._written
        if self.ref.tag is None and await self._moved():
            self.tables = await open_tables(self._connection, self.ref)
        documents = self.tables.documents
        if self.ref.tag is None:
            await documents.checkout_latest()
        version, uid = await documents.version(), await self.tables.uid()
        state = self._state
        if state is not None and state.uid != uid:
            self.tables = await open_tables(self._connection, self.ref)
            documents = self.tables.documents
        if state is None or (state.version, state.uid) != (version, uid):
            table = await documents.query().select(STATE_COLUMNS).to_arrow()
            state = await anyio.to_thread.run_sync(lambda: DocumentState(table, version=version, uid=uid))
        if self.ref.tag is None:
            await self.tables.checkout_latest()
        self._seen = written
        self._due = time.monotonic() + self._interval
        return state

    async def _moved(self) -> bool:
        """Whether another generation has become the current one; takes over what else the settings now say."""
        settings = self.tables.settings
        version = await settings.version()
        await settings.checkout_latest()
        if await settings.version() == version:
            return False
        layout = current_layout(await read_layouts(settings, self.ref))
        if layout is None or layout.generation != self.tables.layout.generation:
            return True
        self.tables = replace(self.tables, layout=layout)
        return False

    async def _reopen(self) -> None:
        async with self._lock:
            self.tables = await open_tables(self._connection, self.ref)
            self._state = None
