"""A storage engine that keeps its databases in memory: the whole contract, exact, and small enough to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import pyarrow as pa

from haiku.rag.config import StorageSection
from haiku.rag.config.models import StorageConfig
from haiku.rag.contracts.filters import Filter
from haiku.rag.contracts.maintenance import Migration
from haiku.rag.contracts.storage import CandidateQuery, Database, DatabaseInfo, DatabaseRef, DocumentWrite, OpenMode
from haiku.rag.errors import (
    DocumentConflictError,
    FilterError,
    MigrationRequiredError,
    MissingDatabaseError,
    TagError,
)
from haiku.rag.models import Chunk, Document, DocumentItem, EmbeddingIdentity
from haiku.rag.testing.memory_past import SCHEMA_VERSION, MemoryPast
from haiku.rag.testing.memory_rebuild import MemoryRebuilding
from haiku.rag.testing.memory_search import candidates
from haiku.rag.testing.memory_server import MemoryServer, StoredDocument, memory_server, new_row, now
from haiku.rag.testing.memory_tags import MemoryTagging
from haiku.rag.testing.memory_upkeep import MemoryUpkeep
from haiku.rag.testing.selection import selector

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig


class MemorySection(StorageSection):
    """The `memory` section: the databases, and the name of the server that holds them."""

    server: str = "default"


class MemoryStorage:
    """The engine `memory`. Takes filters as structure only."""

    name = "memory"
    section = "memory"

    def __init__(self, config: AppConfig | None = None, *, server: MemoryServer | None = None) -> None:
        named = "default" if config is None else config.section(self.section).server
        self.server = server or memory_server(named)
        storage = StorageConfig() if config is None else config.storage
        self._retention_seconds = storage.vacuum_retention_seconds

    async def open(self, ref: DatabaseRef, *, mode: OpenMode, identity: EmbeddingIdentity | None) -> MemoryDatabase:
        """Open what the server holds at the location."""
        await self.server.visit(ref.location, "open")
        if ref.tag is not None and mode is not OpenMode.READ:
            raise TagError(f"database '{ref.name}' is placed at tag '{ref.tag}' and can only be read.", source=ref.name)
        if mode is OpenMode.CREATE:
            self.server.create(ref.location, identity)
        if self._past(ref).pending:
            raise MigrationRequiredError(
                f"database '{ref.name}' has an older schema. Run: haiku-rag migrate", source=ref.name
            )
        database = MemoryDatabase(self.server, ref, mode, engine=self.name, retention_seconds=self._retention_seconds)
        self.server.count_handle(ref.location, 1)
        return database

    async def pending_migrations(self, ref: DatabaseRef) -> Sequence[Migration]:
        """What `MemoryServer.age` has made necessary."""
        await self.server.visit(ref.location, "pending_migrations")
        return self._past(ref).pending

    async def migrate(self, ref: DatabaseRef) -> Sequence[Migration]:
        """Give the database the current schema."""
        await self.server.visit(ref.location, "migrate")
        past = self._past(ref)
        steps, past.schema_version = past.pending, SCHEMA_VERSION
        return steps

    def _past(self, ref: DatabaseRef) -> MemoryPast:
        if ref.location not in self.server.states:
            raise MissingDatabaseError(f"there is no database '{ref.name}'. Create it first.")
        return self.server.pasts[ref.location]

    async def search_many(self, databases: Sequence[Database], query: CandidateQuery) -> list[pa.Table | Exception]:
        """Answer for all of them in one round trip."""
        answers: list[pa.Table | Exception] = [TimeoutError()] * len(databases)

        async def ask(index: int, database: Database) -> None:
            assert isinstance(database, MemoryDatabase)
            try:
                answers[index] = await database.answer(query, "search_many")
            except Exception as error:  # noqa: BLE001 - the per-database boundary
                answers[index] = error

        async with anyio.create_task_group() as group:
            for index, database in enumerate(databases):
                group.start_soon(ask, index, database)
        return answers

    async def close(self) -> None:
        """Nothing is shared but the server, which stays."""


class ManyMemoryStorage(MemoryStorage):
    """The engine `memory-many`: the same, registered as one that searches many databases in one round trip."""

    name = "memory-many"
    section = "memory_many"


class MemoryDatabase(MemoryTagging, MemoryUpkeep, MemoryRebuilding):
    """One open database of a server."""

    async def search(self, query: CandidateQuery) -> pa.Table:
        """Exact candidates."""
        return await self.answer(query, "search")

    async def answer(self, query: CandidateQuery, operation: str) -> pa.Table:
        """Exact candidates, counted as the operation that asked."""
        state = await self._visit(operation)
        return candidates(state.in_order(), query, _selector(query.filter))

    async def chunks_by_id(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        """The chunks that are there, in the order asked."""
        state = await self._visit("chunks_by_id")
        known = {
            chunk.id: _read(chunk, stored.row) for stored in state.documents.values() for chunk in stored.parts.chunks
        }
        return [known[chunk_id] for chunk_id in chunk_ids if chunk_id in known]

    async def list_documents(
        self, *, limit: int | None, offset: int, filter: str | Filter | None, include_content: bool
    ) -> list[Document]:
        """A window over the documents."""
        state = await self._visit("list_documents")
        selected = [stored.row for stored in state.in_order() if _selector(filter)(stored.row)]
        window = selected[offset:] if limit is None else selected[offset : offset + limit]
        return window if include_content else [row.model_copy(update={"content": None}) for row in window]

    async def count_documents(self, *, filter: str | Filter | None) -> int:
        """How many the filter selects."""
        state = await self._visit("count_documents")
        return sum(map(_selector(filter), (stored.row for stored in state.documents.values())))

    async def document_by_id(self, document_id: str) -> Document | None:
        """By id."""
        state = await self._visit("document_by_id")
        return _row(state.documents.get(document_id))

    async def document_by_uri(self, uri: str) -> Document | None:
        """By URI."""
        state = await self._visit("document_by_uri")
        return _row(state.by_uri(uri))

    async def document_by_title(self, title: str) -> Document | None:
        """The first of a title."""
        state = await self._visit("document_by_title")
        return _row(next((stored for stored in state.in_order() if stored.row.title == title), None))

    async def items(self, document_id: str) -> list[DocumentItem]:
        """In reading order."""
        stored = (await self._visit("items")).documents.get(document_id)
        return [] if stored is None else list(stored.parts.items)

    async def picture(self, document_id: str, ref: str) -> bytes | None:
        """A picture or a page image."""
        stored = (await self._visit("picture")).documents.get(document_id)
        if stored is None:
            return None
        pages = {f"page/{number}": image for number, image in stored.parts.page_images.items()}
        return {**pages, **stored.parts.pictures}.get(ref)

    async def write(self, documents: Sequence[DocumentWrite]) -> list[Document]:
        """Store a batch; nothing is awaited once the first is stored."""
        state = await self._visit_to_write("write")
        moment = now()
        if documents:
            self._committed("write")
        return [state.put(new_row(state, parts, moment), parts) for parts in documents]

    async def update(
        self, document_id: str, *, uri: str | None, title: str | None, metadata: Mapping[str, Any] | None
    ) -> Document | None:
        """Change the row."""
        state = await self._visit_to_write("update")
        stored = state.documents.get(document_id)
        if stored is None:
            return None
        holder = None if uri is None else state.by_uri(uri)
        if holder is not None and holder.row.id != document_id:
            raise DocumentConflictError(f"another document of database '{self._ref.name}' has the URI '{uri}'.")
        given = {"uri": uri, "title": title, "metadata": None if metadata is None else dict(metadata)}
        changes = {key: value for key, value in given.items() if value is not None}
        self._committed("update")
        return state.put(stored.row.model_copy(update={**changes, "updated_at": now()}), stored.parts)

    async def delete(self, document_id: str) -> bool:
        """Forget the document."""
        state = await self._visit_to_write("delete")
        if document_id not in state.documents:
            return False
        del state.documents[document_id]
        self._committed("delete")
        return True

    async def info(self) -> DatabaseInfo:
        """What is counted."""
        state = await self._visit("info")
        return DatabaseInfo(
            storage=self._engine,
            schema_version=SCHEMA_VERSION,
            documents=len(state.documents),
            chunks=sum(len(stored.parts.chunks) for stored in state.documents.values()),
            identity=state.identity,
            updated_at=state.updated_at,
        )


def _read(chunk: Chunk, row: Document) -> Chunk:
    return chunk.model_copy(
        update={
            "embedding": None,
            "document_id": row.id,
            "document_uri": row.uri,
            "document_title": row.title,
            "document_meta": row.metadata,
        }
    )


def _row(stored: StoredDocument | None) -> Document | None:
    return None if stored is None else stored.row


def _selector(filter: str | Filter | None) -> Callable[[Document], bool]:
    if filter is None:
        return lambda _row: True
    if isinstance(filter, str):
        raise FilterError(
            "the memory storage takes filters as structure only, not as text. Use haiku.rag.contracts.Filter."
        )
    return selector(filter)
