"""Capability `rebuild` of the storage in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Self

from haiku.rag.contracts.storage import DocumentWrite, OpenMode
from haiku.rag.errors import StorageError
from haiku.rag.models import Document, EmbeddingIdentity
from haiku.rag.testing.memory_handle import MemoryHandle
from haiku.rag.testing.memory_server import MemoryState, new_row

STAGED = "#staged"
"""What is staged for a location is at the location with this after it."""


class MemoryRebuilding(MemoryHandle):
    """The part of `MemoryDatabase` that rebuilds; nothing is awaited between a look and a change."""

    async def parts(self, document_id: str) -> DocumentWrite | None:
        """What was written, and the row's own facts."""
        stored = (await self._visit("parts")).documents.get(document_id)
        if stored is None:
            return None
        row = stored.row
        return replace(
            stored.parts,
            id=row.id,
            uri=row.uri,
            title=row.title,
            metadata=row.metadata,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    async def rewrite(self, document: DocumentWrite, *, seen: Document) -> Document | None:
        """Replace it where it is as it was seen."""
        state = await self._visit_to_write("rewrite")
        stored = state.documents.get(seen.id)
        if stored is None or stored.row.updated_at != seen.updated_at:
            return None
        write = replace(document, id=seen.id, uri=stored.row.uri, created_at=stored.row.created_at)
        self._committed("rewrite")
        return state.put(new_row(state, write), write)

    async def job(self) -> str | None:
        """What was written down."""
        return (await self._visit("job")).job

    async def set_job(self, job: str | None) -> None:
        """Write it down; None drops what is staged."""
        (await self._visit_to_write("set_job")).job = job
        if job is None:
            self._server.drop(self._ref.location + STAGED)

    async def staged(self, identity: EmbeddingIdentity, *, anew: bool = False) -> Self:
        """A database at a location of its own."""
        await self._visit_to_write("staged")
        location = self._ref.location + STAGED
        begun = self._server.states.get(location)
        if begun is None or anew or begun.identity != identity:
            self._server.states[location] = MemoryState(identity=identity)
        ref = replace(self._ref, location=location)
        return type(self)(
            self._server, ref, OpenMode.WRITE, engine=self._engine, retention_seconds=self._retention_seconds
        )

    async def adopt(self, *, catch_up: Callable[[], Awaitable[None]] | None = None) -> bool:
        """Put the staged state in place."""
        state = await self._visit_to_write("adopt")
        staged = self._server.states.get(self._ref.location + STAGED)
        if staged is None:
            raise StorageError(f"nothing is staged for database '{self._ref.name}'.")
        if _moments(state) != _moments(staged) and catch_up is not None:
            await catch_up()
        if _moments(state) != _moments(staged):
            return False
        self._server.states[self._ref.location] = self._server.states.pop(self._ref.location + STAGED)
        self._embedding = staged.identity
        self._committed("rebuild")
        return True


def _moments(state: MemoryState) -> dict[str, object]:
    return {document: stored.row.updated_at for document, stored in state.documents.items()}
