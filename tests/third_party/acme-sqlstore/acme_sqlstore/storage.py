"""The engine `acme-sql`."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import pyarrow as pa
from anyio.to_thread import run_sync

from acme_sqlstore import rows
from acme_sqlstore.place import Place
from acme_sqlstore.searching import search
from acme_sqlstore.selection import where
from haiku.rag.contracts import CandidateQuery, Database, DatabaseInfo, DatabaseRef, DocumentWrite, Filter, OpenMode
from haiku.rag.errors import ReadOnlyError, TagError
from haiku.rag.models import Chunk, Document, DocumentItem, EmbeddingIdentity

T = TypeVar("T")


class SqlStorage:
    """Opens databases in SQLite files; `round_trips` counts the statements that fetched candidates."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration but the locations, which come with each database."""
        self.round_trips = 0

    async def open(self, ref: DatabaseRef, *, mode: OpenMode, identity: EmbeddingIdentity | None) -> "SqlDatabase":
        """Open a database."""
        if ref.tag is not None:
            raise TagError(f"database '{ref.name}' has no tag '{ref.tag}': acme-sql keeps none.")
        place = Place.of(ref)
        if mode is OpenMode.CREATE:
            await run_sync(place.create, identity)
        recorded = await run_sync(place.identity)
        return SqlDatabase(self, place, recorded, is_read_only=mode is OpenMode.READ)

    async def search_many(self, databases: Sequence[Database], query: CandidateQuery) -> list[pa.Table | Exception]:
        """One statement for all databases of a file; files one after another."""
        answers: dict[int, pa.Table | Exception] = {}
        files: dict[Any, list[int]] = defaultdict(list)
        ours = cast("Sequence[SqlDatabase]", databases)
        for index, database in enumerate(ours):
            files[database.place.file].append(index)
        for indices in files.values():
            homes = [ours[index].place.name for index in indices]
            tables = await ours[indices[0]].run(lambda connection, homes=homes: search(connection, homes, query))
            self.round_trips += 1
            answers.update(zip(indices, tables, strict=True))
        return [answers[index] for index in range(len(databases))]

    async def close(self) -> None:
        """Nothing is shared."""


class SqlDatabase:
    """One database. Every operation has a connection of its own, in a worker thread."""

    def __init__(
        self, storage: SqlStorage, place: Place, identity: EmbeddingIdentity | None, *, is_read_only: bool
    ) -> None:
        self.place = place
        self._storage = storage
        self._identity = identity
        self._is_read_only = is_read_only

    @property
    def identity(self) -> EmbeddingIdentity | None:
        """What was recorded."""
        return self._identity

    async def run(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run an operation in a worker thread."""

        def work() -> T:
            with self.place.connection() as connection:
                return operation(connection)

        return await run_sync(work)

    async def _commit(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_read_only:
            raise ReadOnlyError(f"database '{self.place.name}' is open for reading only.")

        def work(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            result = operation(connection)
            connection.execute("COMMIT")
            return result

        return await self.run(work)

    async def search(self, query: CandidateQuery) -> pa.Table:
        """This database's candidates."""
        return (await self._storage.search_many([cast("Database", self)], query))[0]

    async def chunks_by_id(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        """Chunks in the order asked."""
        return await self.run(lambda connection: rows.chunks(connection, self.place.name, chunk_ids))

    async def list_documents(
        self, *, limit: int | None, offset: int, filter: str | Filter | None, include_content: bool
    ) -> list[Document]:
        """A window by creation, then id."""
        found = await self._documents(*where(filter), limit=-1 if limit is None else limit, offset=offset)
        return found if include_content else [entry.model_copy(update={"content": None}) for entry in found]

    async def _documents(
        self, condition: str, values: Sequence[Any], *, limit: int = -1, offset: int = 0
    ) -> list[Document]:
        statement = (
            f"SELECT body FROM documents d WHERE home = ? AND {condition} ORDER BY created_at, id LIMIT ? OFFSET ?"
        )
        given = (self.place.name, *values, limit, offset)
        found = await self.run(lambda connection: connection.execute(statement, given).fetchall())
        return [Document.model_validate_json(body) for (body,) in found]

    async def _document(self, condition: str, value: str) -> Document | None:
        return next(iter(await self._documents(condition, [value], limit=1)), None)

    async def count_documents(self, *, filter: str | Filter | None) -> int:
        """How many the filter selects."""
        return len(await self._documents(*where(filter)))

    async def document_by_id(self, document_id: str) -> Document | None:
        """By id."""
        return await self._document("id = ?", document_id)

    async def document_by_uri(self, uri: str) -> Document | None:
        """By URI."""
        return await self._document("uri = ?", uri)

    async def document_by_title(self, title: str) -> Document | None:
        """The first of a title."""
        return await self._document("title = ?", title)

    async def items(self, document_id: str) -> list[DocumentItem]:
        """In reading order."""
        return await self.run(lambda connection: rows.items(connection, self.place.name, document_id))

    async def picture(self, document_id: str, ref: str) -> bytes | None:
        """A picture or a page image."""
        statement = "SELECT data FROM pictures JOIN documents ON key = document WHERE home = ? AND id = ? AND ref = ?"
        given = (self.place.name, document_id, ref)
        row = await self.run(lambda connection: connection.execute(statement, given).fetchone())
        return row[0] if row else None

    async def write(self, documents: Sequence[DocumentWrite]) -> list[Document]:
        """One transaction."""

        def work(connection: sqlite3.Connection) -> list[Document]:
            moment = datetime.now(UTC)
            return [rows.put(connection, self.place.name, write, moment) for write in documents]

        return await self._commit(work)

    async def update(
        self, document_id: str, *, uri: str | None, title: str | None, metadata: Mapping[str, Any] | None
    ) -> Document | None:
        """Change what is given."""
        given = {"uri": uri, "title": title, "metadata": None if metadata is None else dict(metadata)}
        return await self._commit(lambda connection: rows.change(connection, self.place.name, document_id, given))

    async def delete(self, document_id: str) -> bool:
        """Remove a document."""
        return await self._commit(lambda connection: rows.remove(connection, self.place.name, document_id))

    async def info(self) -> DatabaseInfo:
        """Count."""
        documents = await self._documents("1", [])
        return DatabaseInfo(
            storage="acme-sql",
            schema_version=1,
            documents=len(documents),
            chunks=sum(document.chunk_count for document in documents),
            identity=self._identity,
            size_bytes=self.place.file.stat().st_size,
        )

    async def close(self) -> None:
        """No connection stays open."""
