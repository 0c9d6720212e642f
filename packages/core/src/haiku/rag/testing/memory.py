"""A storage engine that keeps its databases in memory: the whole contract, exact, and small enough to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio
import pyarrow as pa

from haiku.rag.config import StorageSection
from haiku.rag.contracts.filters import Filter
from haiku.rag.contracts.storage import CandidateQuery, Database, DatabaseInfo, DatabaseRef, DocumentWrite, OpenMode
from haiku.rag.errors import DocumentConflictError, FilterError, MissingDatabaseError, ReadOnlyError, TagError
from haiku.rag.models import Chunk, Document, DocumentItem, EmbeddingIdentity
from haiku.rag.testing.memory_search import candidates
from haiku.rag.testing.memory_server import MemoryServer, MemoryState, StoredDocument, memory_server, now
from haiku.rag.testing.selection import selects

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig


class MemorySection(StorageSection):
    """The `memory` section: the databases, and the name of the server that holds them."""

    server: str = "default"


class MemoryStorage:
    """The engine `memory`. Takes filters as structure only; keeps no tags."""

    name = "memory"
    section = "memory"

    def __init__(self, config: AppConfig | None = None, *, server: MemoryServer | None = None) -> None:
        named = "default" if config is None else config.section(self.section).server
        self.server = server or memory_server(named)

    async def open(self, ref: DatabaseRef, *, mode: OpenMode, identity: EmbeddingIdentity | None) -> MemoryDatabase:
        """Open what the server holds at the location."""
        await self.server.visit(ref.location, "open")
        if ref.tag is not None:
            raise TagError(f"database '{ref.name}' has no tag '{ref.tag}'. The memory storage keeps none.")
        if mode is OpenMode.CREATE:
            self.server.create(ref.location, identity)
        if ref.location not in self.server.states:
            raise MissingDatabaseError(f"there is no database '{ref.name}'. Create it first.")
        self.server.count_handle(ref.location, 1)
        return MemoryDatabase(self.server, ref, mode, engine=self.name)

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


class MemoryDatabase:
    """One open database of a server."""

    def __init__(self, server: MemoryServer, ref: DatabaseRef, mode: OpenMode, *, engine: str) -> None:
        self._server = server
        self._ref = ref
        self._mode = mode
        self._engine = engine
        self._is_open = True

    @property
    def identity(self) -> EmbeddingIdentity | None:
        """The embedding that it was created for."""
        return self._state.identity

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
        return [state.put(_new_row(state, parts, moment), parts) for parts in documents]

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
        return state.put(stored.row.model_copy(update={**changes, "updated_at": now()}), stored.parts)

    async def delete(self, document_id: str) -> bool:
        """Forget the document."""
        state = await self._visit_to_write("delete")
        return state.documents.pop(document_id, None) is not None

    async def info(self) -> DatabaseInfo:
        """What is counted."""
        state = await self._visit("info")
        return DatabaseInfo(
            storage=self._engine,
            schema_version=1,
            documents=len(state.documents),
            chunks=sum(len(stored.parts.chunks) for stored in state.documents.values()),
            identity=state.identity,
            updated_at=state.updated_at,
        )

    async def close(self) -> None:
        """Let go of the server."""
        if self._is_open:
            self._is_open = False
            self._server.count_handle(self._ref.location, -1)

    @property
    def _state(self) -> MemoryState:
        state = self._server.states.get(self._ref.location)
        if state is None:
            raise MissingDatabaseError(f"the database '{self._ref.name}' is gone.")
        return state

    async def _visit(self, operation: str) -> MemoryState:
        await self._server.visit(self._ref.location, operation)
        return self._state

    async def _visit_to_write(self, operation: str) -> MemoryState:
        if self._mode is OpenMode.READ:
            raise ReadOnlyError(f"database '{self._ref.name}' is open for reading only.")
        return await self._visit(operation)


def _new_row(state: MemoryState, parts: DocumentWrite, moment: datetime) -> Document:
    replaced = state.by_uri(parts.uri) or state.documents.get(parts.id or "")
    return Document(
        id=replaced.row.id if replaced else parts.id or str(uuid4()),
        uri=parts.uri,
        title=parts.title,
        metadata=dict(parts.metadata),
        content=parts.content,
        content_hash=parts.content_hash,
        created_at=replaced.row.created_at if replaced else moment,
        updated_at=moment,
        chunk_count=len(parts.chunks),
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
    return lambda row: selects(filter, {"id": row.id, "uri": row.uri, "title": row.title})
